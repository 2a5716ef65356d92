package simulate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/store/storetest"
)

// Names of the environment that make simulations last, and begin with a seed that is known.
const (
	lastsVariable = "PLACET_SIMULATE"
	seedVariable  = "PLACET_SIMULATE_SEED"
)

// plan says how much is simulated.
type plan struct {
	seed     uint64
	daemons  int
	clients  int
	lasts    time.Duration // the faulty part
	restarts bool          // the server goes down, too
}

// of are the numbers of one of the plan's actors.
func (p plan) of(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, actor)) }

// simulate lets clients work while things go wrong, then lets everything come to rest, and
// looks at what came of it.
func simulate(t *testing.T, p plan) {
	t.Helper()
	t.Logf("%s=%d repeats its choices", seedVariable, p.seed)
	w := newWorld(t, p.daemons)
	s := newSim(w, p.seed)
	s.addTargets()
	following, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	var followers sync.WaitGroup
	for i, f := range s.fol {
		followers.Go(func() { f.follow(following, s, p.of(200+uint64(i))) })
	}
	s.rage(t.Context(), p)
	s.calm(t.Context(), p)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	m, err := gather(ctx, w.store)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.fol {
		f.reaches(ctx, len(m.events))
	}
	unfollow()
	followers.Wait()
	s.judge(t, m)
	storetest.CheckInvariants(t, w.store)
	s.report(t, p)
}

// rage is the time in which things go wrong.
func (s *sim) rage(ctx context.Context, p plan) {
	ctx, stop := within(ctx, p.lasts)
	defer stop()
	var all sync.WaitGroup
	for i := range p.clients {
		c := &client{s, i, p.of(uint64(i))}
		all.Go(func() { c.work(ctx) })
	}
	for i, m := range s.w.members {
		all.Go(func() { strike(ctx, s, m, p.of(100+uint64(i)), blows, 2*time.Second) })
		all.Go(func() { strike(ctx, s, m, p.of(120+uint64(i)), snips, 400*time.Millisecond) })
	}
	if p.restarts {
		all.Go(func() { restart(ctx, s, p.of(150)) })
	}
	all.Wait()
}

// calm lets everything come to rest.
func (s *sim) calm(ctx context.Context, p plan) {
	ctx, stop := within(ctx, patience)
	defer stop()
	s.note("faults are over")
	s.heal(ctx)
	left, err := s.settle(ctx, p.of(300))
	if err != nil {
		s.problem(fmt.Sprintf("%v within %s: %d approvals, %d questions, %d jobs, %d at daemons, %d deliveries are left (%v)",
			errRestless, patience, len(left.approvals), len(left.questions), len(left.jobs), left.daemons, left.sending, err))
	}
	s.note("all is quiet")
	if s.resting, err = resting(ctx, s.w.store); err != nil {
		s.problem(err.Error())
	}
	close(s.over)
	late := time.AfterFunc(toAnswer, func() { close(s.grace) })
	defer late.Stop()
	s.waiters.Wait()
}

// addTargets makes the wake targets, before there is any event: each is due.
func (s *sim) addTargets() {
	s.w.t.Helper()
	hears := []string{
		string(event.ApprovalRequested), string(event.ApprovalDecided), string(event.CallStarted), string(event.CallFinished), string(event.RunFinished),
		string(event.DecisionRequested), string(event.DecisionResolved), string(event.JobCancelled),
	}
	for _, unordered := range []bool{false, true} {
		_, err := s.w.as("root", 0).AddWakeTarget(s.w.t.Context(), httpapi.Waking{Adding: delivery.Adding{
			Type: delivery.KindWebhook, URL: s.recv.url, Events: hears, MaxAttempts: 100, RetryDelaySeconds: 0.05, TimeoutSeconds: 1, Unordered: unordered,
		}})
		if err != nil {
			s.w.t.Fatal(err)
		}
	}
}

func (s *sim) judge(t *testing.T, m stored) {
	t.Helper()
	lines, err := readWitness(s.w.seen)
	if err != nil {
		t.Fatal(err)
	}
	s.finals(m)
	ops := s.h.all()
	arrived, again := checkArrived(s.recv.arrivals(), m)
	s.note("%d lines of the witness, %d attempts of unknown outcome, %d events, %d operations on %d decisions, %d deliveries, %d of them again",
		len(lines), m.lost(), len(m.events), len(ops), len(s.h.known), len(m.deliveries), again)
	all := slices.Concat(checkWitness(lines, m), checkRepeats(m), checkTold(ops, m), checkDense(m), checkDue(m), arrived, checkCalls(s.calls, s.ends, m), judgeHistory(ops, os.TempDir()))
	for _, f := range s.fol {
		all = append(all, checkFollowed(f.name, f.sights(), m)...)
	}
	for _, m := range s.w.members {
		all = append(all, m.strangeEnds()...)
	}
	for _, what := range all {
		s.problem(what)
	}
}

// report fails the test for each problem, and tells what helps to read it.
func (s *sim) report(t *testing.T, p plan) {
	t.Helper()
	t.Logf("seed %d: %s", p.seed, s.said[len(s.said)-1])
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%6d  %s", s.counts[what], what)
	}
	const most = 20
	slices.Sort(s.problems)
	s.problems = slices.Compact(s.problems)
	for i, what := range s.problems {
		if i == most {
			t.Errorf("and %d more", len(s.problems)-most)
			break
		}
		t.Errorf("seed %d: %s", p.seed, what)
	}
	if t.Failed() {
		t.Logf("what happened:\n%s", strings.Join(s.said, "\n"))
	}
}
