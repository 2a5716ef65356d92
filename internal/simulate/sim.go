package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/txn"
)

// sim is one simulation: what its clients know, and what came of it so far.
type sim struct {
	w    *world
	h    *history
	recv *receiver
	fol  []*follower

	over    chan struct{}   // closed when everything is settled: nobody waits for more
	resting map[string]bool // calls that stay as they are, and have not ended; read once over is closed
	grace   chan struct{}   // closed when whoever waits should have been answered
	waiters sync.WaitGroup

	mu        sync.Mutex
	approvals []asked // that clients were told of, newest last
	questions []asked
	calls     []string // ids that clients were told
	jobs      []string
	said      []string // faults and what else helps to read a failure
	problems  []string
	counts    map[string]int
	votes     int
	ends      map[string][]call.Status // of calls, as those who waited were told
}

// asked is a decision as a client knows it.
type asked struct {
	id     string
	owner  string // of a question: its job
	stream string
	digest string
	fixed  bool // the arguments cannot be edited
}

func newSim(w *world, seed uint64) *sim {
	return &sim{
		w: w, h: newHistory(), recv: newReceiver(w.t, seed), over: make(chan struct{}), grace: make(chan struct{}), counts: map[string]int{}, ends: map[string][]call.Status{},
		fol: []*follower{newFollower("one follower"), newFollower("another follower")},
	}
}

// note keeps what helps to read a failure.
func (s *sim) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf("%8.3f  ", time.Since(s.h.began).Seconds())+fmt.Sprintf(format, args...))
}

// problem notes what must not be.
func (s *sim) problem(what string) {
	s.note("PROBLEM %s", what)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, what)
}

func (s *sim) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// anywhere is somebody at one of the daemons.
func (s *sim) anywhere(name string, rnd *rand.Rand) *httpapi.Client {
	return s.w.as(name, rnd.IntN(len(s.w.members)))
}

// sorts of answers.
type sort int

const (
	well    sort = iota // it was done
	refusal             // it was not: the rules said no, or nothing was written
	unclear             // nobody knows
	wrong               // an answer that no client should ever have
)

// sortOf tells what an error says of the operation that it is the answer to.
func sortOf(err error) sort {
	switch {
	case err == nil:
		return well
	case httpapi.IsUnreachable(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unclear
	}
	switch f := fault.From(err); f.Code {
	case fault.Unavailable:
		if f.Reason == txn.ErrNotCommitted.Reason || f.Reason == txn.ErrBusy.Reason {
			return refusal
		}
		return unclear
	case fault.Unknown:
		return unclear
	case fault.Conflict, fault.Expired, fault.TooMany:
		if f.Reason != txn.ErrRestored.Reason { // no store went back in time
			return refusal
		}
	}
	return wrong
}

// expect notes an answer that no client should ever have.
func (s *sim) expect(what string, err error) sort {
	is := sortOf(err)
	s.count(what + ": " + wordOf(is, err))
	if is == wrong {
		f := fault.From(err)
		s.problem(fmt.Sprintf("%s was answered with %s %s: %v", what, f.Code, f.Reason, err))
	}
	return is
}

// wordOf is an answer in a word.
func wordOf(is sort, err error) string {
	switch {
	case is == well:
		return "well"
	case httpapi.IsUnreachable(err):
		return "no answer"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "gave up"
	}
	return fault.From(err).Reason
}

// told is what an answer says about a decision. A refusal may be about another one: a call
// waits for one after the other.
func told(id string, is sort, err error, stands standing) output {
	if is == refusal {
		if st, ok := decision.StandingOf(err); ok && st.ApprovalID+st.DecisionID == id {
			return output{refused: true, stands: standing{st.Status, st.Choice, st.By}}
		}
		return output{refused: true}
	}
	if is != well {
		return output{}
	}
	return output{done: true, stands: stands}
}

func standingOf(o decision.Object) standing { return standing{o.Status, o.Choice, o.DecidedBy} }

func questionStands(q httpapi.Question) standing {
	if q.Status == decision.Withdrawn {
		q.By = "" // who took it back
	}
	return standing{q.Status, q.Choice, q.By}
}

// met takes in an approval that somebody was told of.
func (s *sim) met(a asked, loose bool) bool {
	if !s.h.meet(a.id, loose) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.owner == "" {
		s.approvals = append(s.approvals, a)
	} else {
		s.questions = append(s.questions, a)
	}
	return true
}

// recent is one of the last few.
func recent[T any](s *sim, of *[]T, rnd *rand.Rand) (one T, ok bool) {
	const few = 12
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(*of)
	if n == 0 {
		return one, false
	}
	return (*of)[n-1-rnd.IntN(min(n, few))], true
}

// raise starts a daemon until it serves, or ctx ends.
func (s *sim) raise(ctx context.Context, m *member) {
	for ctx.Err() == nil {
		err := m.start()
		if err == nil {
			return
		}
		s.note("daemon %d does not start: %v", m.n, err)
		if !errors.Is(err, errEnded) {
			s.problem(err.Error())
		}
		after(ctx, 100*time.Millisecond)
	}
}
