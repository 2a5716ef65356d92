package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// rounds is how often a race is run: less often where everything is slow.
func rounds(n int) int { return max(n/raceFactor, 3) }

// race runs n functions that start together.
func race(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// Two who act on one approval at the same moment. What each is told has to fit what
// the other is told, what is stored, and how often the tool ran.
var races = []struct {
	a, b  string
	later time.Duration // by how much b's clock is ahead; then it is no race of processes
	ready func(w *world) *call.PendingError
	judge func(w *world, p *call.PendingError, a, b string, ran int) (problem string)
}{
	{"resume", "resume", 0, approved, func(w *world, p *call.PendingError, a, b string, ran int) string {
		return w.oneOf(p, a, b, ran, "succeeded", 1, call.Succeeded, decision.Consumed)
	}},
	{"resume-yes", "resume-yes", 0, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		return w.oneOf(p, a, b, ran, "succeeded", 1, call.Succeeded, decision.Consumed)
	}},
	{"resume-no", "resume-no", 0, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		return w.oneOf(p, a, b, ran, "denied", 0, call.Denied, decision.Consumed)
	}},
	{"approve", "reject", 0, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		if a == "approved" && b == "not_pending" {
			return w.stands(p, ran, 0, call.Pending, decision.Approved)
		}
		if a == "not_pending" && b == "rejected" {
			return w.stands(p, ran, 0, call.Denied, decision.Rejected)
		}
		return "not exactly one won"
	}},
	{"resume-yes", "resume-no", 0, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		if a == "succeeded" && b == "already_decided" {
			return w.stands(p, ran, 1, call.Succeeded, decision.Consumed)
		}
		if a == "already_decided" && b == "denied" {
			return w.stands(p, ran, 0, call.Denied, decision.Consumed)
		}
		return "not exactly one won"
	}},
	{"resume-yes", "withdraw", 0, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		if a == "succeeded" && b == "not_pending" {
			return w.stands(p, ran, 1, call.Succeeded, decision.Consumed)
		}
		if (a == "already_decided" || a == "not_pending") && b == "withdrawn" {
			return w.stands(p, ran, 0, call.Cancelled, decision.Withdrawn)
		}
		return "not exactly one won"
	}},
	{"approve", "expire", time.Hour + time.Microsecond, pending, func(w *world, p *call.PendingError, a, b string, ran int) string {
		if a == "approved" && b == "not_pending" {
			return w.stands(p, ran, 0, call.Pending, decision.Approved)
		}
		if a == "approval_expired" && b == "expired" {
			return w.stands(p, ran, 0, call.Expired, decision.Expired)
		}
		return "not exactly one won"
	}},
	{"resume", "expire", 2*time.Hour + time.Microsecond, approved, func(w *world, p *call.PendingError, a, b string, ran int) string {
		if a == "succeeded" && b == "not_pending" {
			return w.stands(p, ran, 1, call.Succeeded, decision.Consumed)
		}
		if a == "approval_expired" && b == "expired" {
			return w.stands(p, ran, 0, call.Expired, decision.Expired)
		}
		return "not exactly one won"
	}},
}

func pending(w *world) *call.PendingError { return w.park(`{"n":1}`) }

func approved(w *world) *call.PendingError {
	p := w.park(`{"n":1}`)
	w.approve(p.ApprovalID)
	return p
}

// oneOf: one of two is told want, the other that it is over.
func (w *world) oneOf(p *call.PendingError, a, b string, ran int, want string, runs int, c call.Status, d decision.Status) string {
	over := map[string]bool{"already_decided": true, "run_state": true, "moved": true}
	if !(a == want && over[b] || b == want && over[a]) {
		return "not exactly one won"
	}
	return w.stands(p, ran, runs, c, d)
}

func (w *world) stands(p *call.PendingError, ran, runs int, c call.Status, d decision.Status) string {
	w.t.Helper()
	gotCall, gotDecision := w.call(p.CallID), w.decision(p.ApprovalID)
	switch {
	case ran != runs:
		return fmt.Sprintf("the tool ran %d times", ran)
	case gotCall.Status != c || gotDecision.Status != d:
		return fmt.Sprintf("call %s and approval %s are stored", gotCall.Status, gotDecision.Status)
	}
	return ""
}

func (w *world) hand(st *store.Store) *hand {
	return &hand{w.ctx, w.ex2(st), decision.Operator{Store: st, Now: w.clock.Now}}
}

func (w *world) ex2(st *store.Store) *call.Executor {
	return w.executor(st, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = time.Hour, 2*time.Hour })
}

func TestRaces(t *testing.T) {
	t.Parallel()
	for _, r := range races {
		for _, handles := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s against %s, %d handles", r.a, r.b, handles), func(t *testing.T) {
				t.Parallel()
				w := quick(t)
				w.ex = w.ex2(w.st)
				hands := []*hand{w.hand(w.st), w.hand(w.st)}
				if handles == 2 {
					hands[1] = w.hand(w.open())
				}
				hands[1].op.Now = func() time.Time { return w.clock.Now().Add(r.later) }
				for range rounds(200) {
					p := r.ready(w)
					before := len(w.spy.calls())
					var words [2]string
					race(2, func(i int) { words[i] = hands[i].do([]string{r.a, r.b}[i], p.ApprovalID) })
					if problem := r.judge(w, p, words[0], words[1], len(w.spy.calls())-before); problem != "" {
						t.Fatalf("%s %s, %s %s: %s", r.a, words[0], r.b, words[1], problem)
					}
				}
			})
		}
	}
}

// A lost call: sweeps, resumes and the late outcome all at once. There is one
// question at most, and whatever the outcome settles stays settled (case 070).
func TestRaceOfRecovery(t *testing.T) {
	t.Parallel()
	for _, handles := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d handles", handles), func(t *testing.T) {
			t.Parallel()
			w := quick(t)
			other := w.hand(w.st)
			if handles == 2 {
				other = w.hand(w.open())
			}
			for range rounds(200) {
				p := approved(w)
				s := w.stall(p.ApprovalID)
				words := make([]string, 4)
				race(4, func(i int) {
					switch i {
					case 0:
						res, err := s.goOn()
						words[0] = string(res.Status)
						if err != nil {
							words[0] = reason(err)
						}
					case 1:
						words[1] = other.do("sweep", "")
					case 2:
						words[2] = other.do("resume", p.ApprovalID)
					case 3:
						words[3] = w.hand(w.st).do("resume", p.ApprovalID)
					}
				})
				c := w.call(p.CallID)
				if c.Status != call.Succeeded || string(c.Result) != `"held"` || words[0] != "succeeded" || words[1] != "swept" {
					t.Fatalf("call %s; %v", c.Status, words)
				}
				if c.ApprovalN > 2 || c.Attempts != 1 {
					t.Fatalf("%d approvals, %d attempts; %v", c.ApprovalN, c.Attempts, words)
				}
				if d := w.latest(p.CallID); d.ID != p.ApprovalID && d.Status != decision.Withdrawn {
					t.Fatalf("the question is %s", d.Status)
				}
			}
		})
	}
}

// The late outcome against a new yes and its resume: either the outcome settles the
// call and nothing runs again, or the yes is spent and the outcome is only noted.
func TestRaceOfLateOutcomeAndYes(t *testing.T) {
	t.Parallel()
	for _, handles := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d handles", handles), func(t *testing.T) {
			t.Parallel()
			w := quick(t)
			other := w.hand(w.st)
			if handles == 2 {
				other = w.hand(w.open())
			}
			ranAgain := 0
			for range rounds(200) {
				p := approved(w)
				s := w.stall(p.ApprovalID)
				q := w.parked(w.ex.Resume(w.ctx, p.ApprovalID, nil))
				w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`"again"`), nil })
				before := len(w.spy.calls())
				var word, late string
				race(2, func(i int) {
					if i == 0 {
						word = other.do("resume-yes", q.ApprovalID)
						return
					}
					res, err := s.goOn()
					late = fmt.Sprint(res.Status, err)
				})
				again := len(w.spy.calls()) - before
				c, d, a := w.call(p.CallID), w.decision(q.ApprovalID), w.attempts(p.CallID)
				switch {
				case word == "succeeded" && again == 1 && d.Status == decision.Consumed && string(c.Result) == `"again"` && len(a) == 2:
					ranAgain++
				case word != "succeeded" && again == 0 && (d.Status == decision.Withdrawn || d.Status == decision.Superseded) && string(c.Result) == `"held"` && len(a) == 1:
				default:
					t.Fatalf("resume %s, late %s, ran again %d times; call %s %s, question %s, %d attempts", word, late, again, c.Status, c.Result, d.Status, len(a))
				}
				if c.Status != call.Succeeded || !a[0].Late {
					t.Fatalf("call %s, first attempt %+v", c.Status, a[0])
				}
			}
			t.Logf("ran again in %d rounds", ranAgain)
		})
	}
}

// Calls of one chosen id at once: one call, one run (cases 072, 179).
func TestRaceOfSameIDs(t *testing.T) {
	t.Parallel()
	w := quick(t)
	w.register(func(rt *tool.Tool) { rt.SideEffect = tool.LocalMutation }) // which the policy allows
	hands := []*call.Executor{w.ex, w.executor(w.open())}
	for round := range rounds(200) {
		ids := make([]string, 6)
		race(len(ids), func(i int) {
			for {
				res, err := hands[i%2].RunCall(w.ctx, "r", fmt.Sprint(round), "refund", []byte(`{"n":1}`))
				switch {
				case err == nil && res.Status == call.Succeeded:
					ids[i] = res.CallID
					return
				case reason(err) == "call_running":
				default:
					t.Errorf("got %+v, %v", res, err)
					return
				}
			}
		})
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("several calls: %v", ids)
			}
		}
		if n := len(w.spy.calls()); n != round+1 {
			t.Fatalf("%d runs of %d calls", n, round+1)
		}
	}
}
