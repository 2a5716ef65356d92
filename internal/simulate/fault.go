package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
)

// blow is one way in which things go wrong.
type blow struct {
	name  string
	often int // of all blows' sum
	do    func(ctx context.Context, s *sim, m *member, rnd *rand.Rand)
}

// blows are those that strike one daemon or its network.
var blows = []blow{
	{"kill", 4, killed},
	{"stop for longer than a lease", 2, stopped},
	{"cut", 4, func(_ context.Context, _ *sim, m *member, _ *rand.Rand) { m.proxy.Cut() }},
	{"lose all bytes", 2, blackholed},
	{"delay", 2, delayed},
	{"refuse", 2, refused},
	{"drop a commit", 2, dropped},
}

// snips are those that strike one transaction: where it matters most whether it counts.
var snips = []blow{
	{"cut before a commit", 1, armed((*pgtest.Proxy).CutBeforeCommit)},
	{"cut after a commit", 2, armed((*pgtest.Proxy).CutAfterCommitSent)},
	{"cut in a commit's answer", 2, armed((*pgtest.Proxy).CutInCommitAnswer)},
}

// strike lets one daemon have some of the blows until ctx ends, with pauses of up to rest.
func strike(ctx context.Context, s *sim, m *member, rnd *rand.Rand, of []blow, rest time.Duration) {
	for {
		pause(ctx, rnd, rest)
		if ctx.Err() != nil {
			return
		}
		b := chosen(of, rnd)
		s.note("daemon %d: %s", m.n, b.name)
		b.do(ctx, s, m, rnd)
	}
}

func chosen(of []blow, rnd *rand.Rand) blow {
	sum := 0
	for _, b := range of {
		sum += b.often
	}
	n := rnd.IntN(sum)
	for _, b := range of {
		if n -= b.often; n < 0 {
			return b
		}
	}
	panic("simulate: no blow")
}

func some(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rnd.Int64N(int64(most-least)))
}

func killed(ctx context.Context, s *sim, m *member, rnd *rand.Rand) {
	m.kill()
	pause(ctx, rnd, 500*time.Millisecond)
	s.raise(ctx, m)
}

func stopped(ctx context.Context, _ *sim, m *member, rnd *rand.Rand) {
	m.signal(syscall.SIGSTOP)
	after(ctx, lease+some(rnd, 200*time.Millisecond, time.Second))
	m.signal(syscall.SIGCONT)
}

func blackholed(ctx context.Context, _ *sim, m *member, rnd *rand.Rand) {
	m.proxy.Blackhole(true)
	after(ctx, some(rnd, 100*time.Millisecond, 3*time.Second))
	m.proxy.Blackhole(false)
}

func delayed(ctx context.Context, _ *sim, m *member, rnd *rand.Rand) {
	m.proxy.Delay(some(rnd, time.Millisecond, 40*time.Millisecond), some(rnd, time.Millisecond, 40*time.Millisecond))
	after(ctx, some(rnd, 300*time.Millisecond, 2*time.Second))
	m.proxy.Delay(0, 0)
}

func refused(ctx context.Context, _ *sim, m *member, rnd *rand.Rand) {
	m.proxy.Refuse(true)
	m.proxy.Cut()
	after(ctx, some(rnd, 100*time.Millisecond, time.Second))
	m.proxy.Refuse(false)
}

// fragments are of statements in transactions: votes, starts and ends of attempts, calls
// that wait, repeated deliveries. Empty: any.
var fragments = []string{"", "INTO vote", "INTO vote", "INTO vote", "INTO attempt", "INTO attempt", "UPDATE attempt", "INTO call", "delivery_attempt"}

func armed(arm func(*pgtest.Proxy, ...string) <-chan pgtest.Strike) func(context.Context, *sim, *member, *rand.Rand) {
	return func(ctx context.Context, s *sim, m *member, rnd *rand.Rand) {
		var in []string
		if f := fragments[rnd.IntN(len(fragments))]; f != "" {
			in = []string{f}
		}
		wait, stop := within(ctx, 2*time.Second)
		defer stop()
		select {
		case st, struck := <-arm(m.proxy, in...):
			if struck {
				s.note("daemon %d: it struck after %d statements, the server said %q", m.n, len(st.Statements), st.Answer)
			}
		case <-wait.Done():
			m.proxy.Disarm()
		}
	}
}

// dropped leaves a transaction open on the server, with its locks, until it is cut.
func dropped(ctx context.Context, s *sim, m *member, rnd *rand.Rand) {
	armed((*pgtest.Proxy).DropCommit)(ctx, s, m, rnd)
	after(ctx, some(rnd, 100*time.Millisecond, 2*time.Second))
	m.proxy.Cut()
}

// heal ends whatever goes wrong with a daemon's network.
func (m *member) heal() {
	m.proxy.Disarm()
	m.proxy.Delay(0, 0)
	m.proxy.Refuse(false)
	m.proxy.Blackhole(false)
	m.proxy.Cut()
}

// restart lets the server go down and come back every so often, under all daemons.
func restart(ctx context.Context, s *sim, rnd *rand.Rand) {
	for {
		after(ctx, some(rnd, 3*time.Second, 12*time.Second))
		if ctx.Err() != nil {
			return
		}
		mode := []pgtest.Mode{pgtest.Fast, pgtest.Immediate}[rnd.IntN(2)]
		s.note("the server: restart, %s", mode)
		if err := s.w.server.Restart(context.WithoutCancel(ctx), mode); err != nil {
			s.problem(fmt.Sprintf("the server does not start again: %v", err))
			return
		}
	}
}
