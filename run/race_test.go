package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
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

// hand is what one process acts with.
type hand struct {
	ctx context.Context
	d   *run.Driver
	op  decision.Operator
}

// do carries out one action on a run's approval and says how it ended, in a word.
func (h *hand) do(action, runID, approvalID string) string {
	var r run.Run
	var d decision.Decision
	var err error
	switch action {
	case "start":
		r, err = h.d.StartWithID(h.ctx, runID, "do it", run.DefaultLimits())
	case "resume":
		r, err = h.d.Resume(h.ctx, runID)
	case "approve":
		err = h.op.Approve(h.ctx, runID, approvalID, "ana", "")
		d.Status = decision.Approved
	case "reject":
		err = h.op.Reject(h.ctx, runID, approvalID, "bo", "")
		d.Status = decision.Rejected
	case "cancel":
		err = h.op.Cancel(h.ctx, runID, "eva", "")
		d.Status = "cancelled"
	case "expire":
		d, err = h.op.Expire(h.ctx, approvalID)
	default:
		return "no such action"
	}
	switch {
	case err != nil:
		return word(err)
	case d.Status != "":
		return string(d.Status)
	case r.Reason != "":
		return string(r.Reason)
	}
	return string(r.Status)
}

// Two who act on one run at the same moment. What each is told has to fit what the
// other is told, what is stored, and how often the tool ran.
var races = []struct {
	a, b     string
	approved bool
	later    time.Duration // by how much b's clock is ahead; then it is no race of processes
	may      []ending
}{
	{"resume", "resume", true, 0, []ending{
		{"goal_completed", "run_state run_leased", run.GoalCompleted, decision.Consumed, 1},
		{"run_state run_leased", "goal_completed", run.GoalCompleted, decision.Consumed, 1},
	}},
	{"approve", "reject", false, 0, []ending{
		{"approved", "not_pending", "", decision.Approved, 0},
		{"not_pending", "rejected", run.ApprovalRejected, decision.Rejected, 0},
	}},
	{"approve", "approve", false, 0, []ending{
		{"approved", "not_pending", "", decision.Approved, 0},
		{"not_pending", "approved", "", decision.Approved, 0},
	}},
	{"approve", "cancel", false, 0, []ending{
		{"approved", "cancelled", run.OperatorCancelled, decision.Approved, 0},
		{"run_state", "cancelled", run.OperatorCancelled, decision.Pending, 0},
	}},
	{"resume", "cancel", true, 0, []ending{
		{"goal_completed", "run_state", run.GoalCompleted, decision.Consumed, 1},
		{"run_state", "cancelled", run.OperatorCancelled, decision.Approved, 0},
		{"operator_cancelled", "cancelled", run.OperatorCancelled, decision.Consumed, 1}, // in the middle: the tool is not interrupted
		{"operator_cancelled", "cancelled", run.OperatorCancelled, decision.Consumed, 0},
		{string(run.Waiting), "cancelled", run.OperatorCancelled, decision.Consumed, 1}, // it went on, and waited for the next yes by then
	}},
	{"reject", "cancel", false, 0, []ending{
		{"rejected", "run_state", run.ApprovalRejected, decision.Rejected, 0},
		{"run_state not_pending", "cancelled", run.OperatorCancelled, decision.Pending, 0},
	}},
	{"approve", "expire", false, time.Hour + time.Microsecond, []ending{
		{"approved", "not_pending", "", decision.Approved, 0},
		{"approval_expired", "expired", run.ApprovalExpired, decision.Expired, 0},
	}},
	{"resume", "expire", true, 2*time.Hour + time.Microsecond, []ending{
		{"goal_completed", "not_pending", run.GoalCompleted, decision.Consumed, 1},
		{"approval_expired", "expired", run.ApprovalExpired, decision.Expired, 0},
		{"run_state", "expired", run.ApprovalExpired, decision.Expired, 0},
	}},
}

// ending is how a race may end.
type ending struct {
	a, b   string // words of which one is told
	reason run.Reason
	grant  decision.Status
	ran    int
}

func (o ending) is(a, b string, r run.Run, d decision.Decision, ran int) bool {
	has := func(words, word string) bool { return strings.Contains(" "+words+" ", " "+word+" ") }
	return has(o.a, a) && has(o.b, b) && r.Reason == o.reason && d.Status == o.grant && ran == o.ran
}

func (w *world) hand(st *store.Store, later time.Duration) *hand {
	now := func() time.Time { return w.clock.Now().Add(later) }
	return &hand{w.ctx, w.driver(func(c *run.Config) { c.Store, c.Now = st, now }), decision.Operator{Store: st, Now: now}}
}

func TestRaces(t *testing.T) {
	t.Parallel()
	for _, r := range races {
		for _, handles := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s against %s, %d handles", r.a, r.b, handles), func(t *testing.T) {
				t.Parallel()
				w := quick(t, calls("push", `{"n":1}`))
				other := w.st
				if handles == 2 {
					other = w.open()
				}
				hands := []*hand{w.hand(w.st, 0), w.hand(other, r.later)}
				ended := map[string]int{}
				for range rounds(200) { // and 200 times over two processes
					q := w.waiting(func(l *run.Limits) { l.ApprovalTTL, l.GrantTTL = time.Hour, 2*time.Hour })
					if r.approved {
						w.approve(q)
					}
					before := len(w.spy.calls())
					var words [2]string
					race(2, func(i int) { words[i] = hands[i].do([]string{r.a, r.b}[i], q.ID, q.ApprovalID) })
					now, d, ran := w.run(q.ID), w.asked(q.ID), len(w.spy.calls())-before
					if !oneOf(r.may, words[0], words[1], now, d, ran) {
						t.Fatalf("%s %s, %s %s: the run is %s %s, its approval %s, the tool ran %d times",
							r.a, words[0], r.b, words[1], now.Status, now.Reason, d.Status, ran)
					}
					ended[words[0]+" "+words[1]]++
				}
				t.Log(ended)
			})
		}
	}
}

func oneOf(may []ending, a, b string, r run.Run, d decision.Decision, ran int) bool {
	for _, o := range may {
		if o.is(a, b, r, d, ran) {
			return true
		}
	}
	return false
}

// A lost run, its old owner going on, and two that take it over, all at once: the run
// asks at most once, and whatever the outcome settles stays settled.
func TestRaceOfTakeovers(t *testing.T) {
	t.Parallel()
	for _, handles := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d handles", handles), func(t *testing.T) {
			t.Parallel()
			w := quick(t, calls("write", `{"n":1}`))
			other := w.st
			if handles == 2 {
				other = w.open()
			}
			hands := []*hand{w.hand(w.st, 0), w.hand(other, 0)}
			ended := map[string]int{}
			for i := range rounds(200) {
				id := fmt.Sprintf("run_%03d", i)
				h := w.inTool(func(d *run.Driver) (run.Run, error) { return d.StartWithID(w.ctx, id, "do it", run.DefaultLimits()) })
				w.clock.Advance(run.DefaultLease + time.Microsecond)
				words := make([]string, 3)
				race(3, func(i int) {
					if i < 2 {
						words[i] = hands[i].do("resume", id, "")
						return
					}
					r, err := h.goOn()
					words[i] = word(err) + string(r.Reason)
				})
				for i, said := range words[:2] {
					if !strings.Contains(" goal_completed WAITING_FOR_APPROVAL run_state run_leased lease_lost ", " "+said+" ") {
						t.Fatalf("process %d was told %q", i, said)
					}
				}
				r := w.run(id)
				c := w.call(w.steps(id)[0].CallID)
				if c.Status != call.Succeeded || c.Attempts != 1 || r.ApprovalN > 1 {
					t.Fatalf("%v: run %s, call %s, %d attempts, %d approvals", words, r.Status, c.Status, c.Attempts, r.ApprovalN)
				}
				if r.Status == run.Waiting && w.asked(id).Status != decision.Withdrawn {
					t.Fatalf("%v: the question is %s", words, w.asked(id).Status)
				}
				for range 3 { // where nobody came to the end
					if r.Status.Terminal() {
						break
					}
					w.clock.Advance(run.DefaultLease + time.Microsecond)
					r, _ = w.d.Resume(w.ctx, id)
				}
				w.stands(r, run.Completed, run.GoalCompleted)
				ended[strings.Join(words, " ")]++
			}
			if n := len(w.spy.calls()); n != rounds(200) {
				t.Errorf("the tool ran %d times", n)
			}
			t.Log(ended)
		})
	}
}

// The late outcome against a new yes and its resume: either the outcome settles the
// step and nothing runs again, or the yes is spent and the outcome is only noted.
func TestRaceOfLateOutcomeAndYes(t *testing.T) {
	t.Parallel()
	w := quick(t, calls("write", `{"n":1}`))
	other := w.hand(w.open(), 0)
	again := 0
	for i := range rounds(200) {
		id := fmt.Sprintf("run_%03d", i)
		h := w.inTool(func(d *run.Driver) (run.Run, error) { return d.StartWithID(w.ctx, id, "do it", run.DefaultLimits()) })
		w.clock.Advance(run.DefaultLease + time.Microsecond)
		q := w.resume(w.run(id))
		w.approve(q)
		w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`"again"`), nil })
		before := len(w.spy.calls())
		var said string
		race(2, func(i int) {
			if i == 0 {
				said = other.do("resume", id, "")
				return
			}
			_, _ = h.goOn()
		})
		ran := len(w.spy.calls()) - before
		r, d, c := w.run(id), w.decision(q.ApprovalID), w.call(q.Current.CallID)
		switch {
		case ran == 1 && said == "goal_completed" && d.Status == decision.Consumed && string(c.Result) == `"again"` && c.Attempts == 2:
			again++
		case ran == 0 && d.Status == decision.Superseded && string(c.Result) == `"held"` && c.Attempts == 1:
			if r.Status == run.Waiting {
				r = w.resume(r)
			}
			w.stands(r, run.Completed, run.GoalCompleted)
		default:
			t.Fatalf("resume %s, ran again %d times; run %s, call %s %s, question %s", said, ran, r.Status, c.Status, c.Result, d.Status)
		}
		if a := w.attempts(c.ID)[0]; !a.Late {
			t.Fatalf("first attempt %+v", a)
		}
	}
	t.Logf("ran again in %d rounds", again)
}

// One id at once: one run.
func TestRaceOfStarts(t *testing.T) {
	t.Parallel()
	w := quick(t, calls("write", `{"n":1}`))
	hands := []*hand{w.hand(w.st, 0), w.hand(w.open(), 0)}
	for i := range rounds(200) {
		words := make([]string, 4)
		race(len(words), func(k int) { words[k] = hands[k%2].do("start", fmt.Sprintf("run_%d", i), "") })
		count := map[string]int{}
		for _, w := range words {
			count[w]++
		}
		if count["goal_completed"] != 1 || count["run_state"] != 3 || len(w.spy.calls()) != i+1 {
			t.Fatalf("%v; %d tools ran", words, len(w.spy.calls()))
		}
	}
}
