package call_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

func (w *world) continuable(in time.Duration) (ids []string) {
	w.t.Helper()
	err := txn.View(w.ctx, w.st, func(tx call.Tx) error {
		ids = nil
		cs, err := tx.Continuable(event.MainSpace, tx.Now().Add(in), "", 10)
		for _, c := range cs {
			ids = append(ids, c.ID)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// What a door parked only that door goes on with, once a person has agreed and its
// principal may ask still; a refusal is tried again later, and nothing runs twice.
func TestServerContinues(t *testing.T) {
	t.Parallel()
	w := setup(t)
	door := w.ex.Server("http")
	may := func(txn.Tx, call.Call) (bool, error) { return true, nil }
	_, err := door.Call(w.ctx, "ana", "refund", []byte(`{"order":"o"}`))
	var p *call.PendingError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	_, err = door.Call(w.ctx, "ana", "refund", []byte(`{}`), call.WithMetadata(map[string]string{"origin": "x"}))
	if !errors.Is(err, call.ErrUsage) {
		t.Errorf("a caller sets the origin: %v", err)
	}
	if ids := w.continuable(0); len(ids) != 0 {
		t.Errorf("found %v, which nobody has agreed to", ids)
	}
	if _, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "bo"}); err != nil {
		t.Fatal(err)
	}
	if ids := w.continuable(0); len(ids) != 1 || ids[0] != p.CallID {
		t.Errorf("found %v", ids)
	}
	if _, err := w.ex.Server("gateway").Continue(w.ctx, p.CallID, may); !errors.Is(err, call.ErrUsage) {
		t.Errorf("another door: %v", err)
	}
	if _, err := w.ex.Resume(w.ctx, p.ApprovalID, nil); !errors.Is(err, call.ErrUsage) {
		t.Errorf("by hand: %v", err)
	}
	res, err := door.Continue(w.ctx, p.CallID, func(txn.Tx, call.Call) (bool, error) { return false, nil })
	if err != nil || res.Kind != call.KindNotAuthorised || res.Status != call.Pending {
		t.Fatalf("%+v %v", res, err)
	}
	if err := w.ex.Postpone(w.ctx, call.Call{ID: p.CallID, ApprovalID: p.ApprovalID}, res.Message, time.Minute); err != nil {
		t.Fatal(err)
	}
	if now, later := w.continuable(0), w.continuable(2*time.Minute); len(now) != 0 || len(later) != 1 {
		t.Errorf("found %v now, %v after the wait", now, later)
	}
	if res, err = door.Continue(w.ctx, p.CallID, may); err != nil || res.Status != call.Succeeded {
		t.Fatalf("%+v %v", res, err)
	}
	if _, err := door.Continue(w.ctx, p.CallID, may); !errors.Is(err, call.ErrAlreadyDecided) {
		t.Errorf("twice: %v", err)
	}
	if n := len(w.spy.calls()); n != 1 || len(w.continuable(time.Hour)) != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

// An attempt that was handed over and never confirmed is unknown when its lease ends;
// what its holder says late settles it.
func TestServerLosesWhatItHandedOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	door := w.ex.Server("http")
	_, _, err := door.Reserve(w.ctx, "ana", "refund", []byte(`{"order":"o"}`))
	var p *call.PendingError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	if _, err := w.op.Decide(w.ctx, p.ApprovalID, decision.Answer{Approved: true, By: "bo"}); err != nil {
		t.Fatal(err)
	}
	if ids := w.continuable(0); len(ids) != 0 {
		t.Errorf("a daemon would take it: %v", ids)
	}
	h, res, err := door.ReserveAgain(w.ctx, "ana", p.CallID)
	if err != nil || res.Status != call.Running || h.Attempt.Fence != 1 {
		t.Fatalf("%+v %+v %v", h, res, err)
	}
	w.clock.advance(2 * call.DefaultLease)
	if _, err := door.Renew(w.ctx, "ana", p.CallID, 1); !errors.Is(err, call.ErrLeaseLost) {
		t.Errorf("renewed: %v", err)
	}
	if _, err := w.ex.Sweep(w.ctx, 100); err != nil {
		t.Fatal(err)
	}
	c, err := door.Confirm(w.ctx, "ana", p.CallID, 1, call.Outcome{Status: call.Succeeded, Result: []byte(`1`)})
	if err != nil || c.Status != call.Succeeded {
		t.Errorf("%s %v", c.Status, err)
	}
	if n := len(w.spy.calls()); n != 0 {
		t.Errorf("the tool ran here %d times", n)
	}
}

// A right that is withdrawn while the policy is asked stops the start, which is where
// it counts; the yes stays unspent.
func TestServerAsksWhoMayWhereItStarts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var left bool
	may := func(txn.Tx, call.Call) (bool, error) { return !left, nil }
	door := w.ex.Server("http")
	p := w.parked(door.Call(w.ctx, "ana", "refund", []byte(`{"order":"o"}`)))
	w.approve(p.ApprovalID)
	w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
		left = true
		return policy.Default().Evaluate(ctx, r, v)
	})
	res, err := door.Continue(w.ctx, p.CallID, may)
	if err != nil || res.Kind != call.KindNotAuthorised || res.Status != call.Pending || res.ApprovalID != p.ApprovalID {
		t.Fatalf("%+v %v", res, err)
	}
	w.status(p, call.Pending, decision.Approved)
	w.ran("")
	unsure := errors.New("the store does not answer")
	if _, err := door.Continue(w.ctx, p.CallID, func(txn.Tx, call.Call) (bool, error) { return false, unsure }); !errors.Is(err, unsure) {
		t.Errorf("it cannot be found out: %v", err)
	}
	w.policy.set(nil)
	left = false
	if res, err := door.Continue(w.ctx, p.CallID, may); err != nil || res.Status != call.Succeeded {
		t.Errorf("%+v %v", res, err)
	}
}

// Resuming by hand what came in through a server's door is refused, and says who
// carried it out and how it stands.
func TestServerCallsResumedByHand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	door := w.ex.Server("http")
	may := func(txn.Tx, call.Call) (bool, error) { return true, nil }
	refused := func(p *call.PendingError, words ...string) {
		t.Helper()
		_, byApproval := w.ex.Resume(w.ctx, p.ApprovalID, nil)
		_, byCall := w.ex.RunCall(w.ctx, p.RunID, p.CallID, "refund", []byte(`{"order":"o"}`))
		for _, err := range []error{byApproval, byCall} {
			w.matches(err, call.ErrUsage)
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in: %v", word, err)
				}
			}
		}
	}
	me := fmt.Sprintf("process %d", os.Getpid())
	park := func() *call.PendingError {
		t.Helper()
		return w.parked(door.Call(w.ctx, "ana", "refund", []byte(`{"order":"o"}`)))
	}

	p := park()
	refused(p, "HTTP tool server", "/v1/approvals/"+p.ApprovalID+"/decide")
	w.approve(p.ApprovalID)
	refused(p, "runs it by itself")
	g := newGate()
	w.spy.then(g.hold)
	ended := make(chan error, 1)
	go func() {
		_, err := door.Continue(w.ctx, p.CallID, may)
		ended <- err
	}()
	<-g.began
	refused(p, "is running it", me, p.CallID+" is running")
	close(g.open)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	w.spy.then(nil)
	refused(p, "ran it (attempt 1", me, p.CallID+" is succeeded")

	no := park()
	w.reject(no.ApprovalID)
	refused(no, no.CallID+" is denied", "never ran")

	// A client of its own carries it out.
	_, _, err := door.Reserve(w.ctx, "ana", "refund", []byte(`{"order":"o"}`))
	own := w.parked(call.Result{}, err)
	w.approve(own.ApprovalID)
	refused(own, "only its client", "POST /v1/calls")
	if _, _, err := door.ReserveAgain(w.ctx, "ana", own.CallID); err != nil {
		t.Fatal(err)
	}
	refused(own, `"ana" carried it out`, own.CallID+" is running")
}

// A yes that nobody has acted on can be taken back: it never runs then, whoever tries.
func TestWithdrawGranted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park(`{"order":"o"}`)
	op := decision.Operator{Store: w.st, Principal: "user:ana"}
	withdraw := func(id string) error {
		_, err := call.WithdrawGranted(w.ctx, op, id, "ana", "asked again")
		return err
	}
	w.refused(withdraw(p.ApprovalID), "usage") // it waits for a person
	w.refused(withdraw("apr_none"), "not_found")
	w.approve(p.ApprovalID)
	if _, err := call.WithdrawGranted(w.ctx, op, p.ApprovalID, "", ""); err == nil {
		t.Error("by nobody")
	}
	c, err := call.WithdrawGranted(w.ctx, op, p.ApprovalID, "ana", "asked again")
	if err != nil || c.Status != call.Cancelled || c.Message != "asked again" {
		t.Fatalf("%+v %v", c, err)
	}
	w.status(p, call.Cancelled, decision.Superseded)
	if d := w.latest(p.CallID); d.WithdrawnBy != "ana" || d.WithdrawnPrincipal != "user:ana" || d.DecidedBy == "" {
		t.Errorf("who took it back: %+v", d)
	}
	if got := w.types(p.CallID); !strings.HasSuffix(got, "approval.superseded call.cancelled") {
		t.Errorf("events: %s", got)
	}
	w.refused(withdraw(p.ApprovalID), "already_decided")
	if _, err := w.ex.Resume(w.ctx, p.ApprovalID, nil); err == nil {
		t.Error("it is resumed")
	}
	w.ran("")
	used := w.park(`{"order":"p"}`)
	w.approve(used.ApprovalID)
	w.resumed(used.ApprovalID, call.Succeeded)
	w.refused(withdraw(used.ApprovalID), "already_decided")
}

// Taking back and running race: one of them has it.
func TestWithdrawGrantedRaces(t *testing.T) {
	t.Parallel()
	w := quick(t)
	for range 200 {
		p := w.park(`{"order":"o"}`)
		w.approve(p.ApprovalID)
		before := len(w.spy.calls())
		back, together := make(chan error, 1), make(chan struct{})
		go func() {
			<-together
			_, err := call.WithdrawGranted(w.ctx, decision.Operator{Store: w.st}, p.ApprovalID, "ana", "")
			back <- err
		}()
		close(together)
		res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
		ran, taken := err == nil && res.Status == call.Succeeded, <-back == nil
		if ran == taken || ran != (len(w.spy.calls()) == before+1) {
			t.Fatalf("ran: %v (%v), taken back: %v", ran, err, taken)
		}
	}
}

// Keys are forgotten by the sweep once their time is over, in small steps, and not
// before; one that is used again by then stays.
func TestSweepForgetsKeys(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ask := func(key string) string {
		t.Helper()
		return w.parked(w.ex.Call(w.ctx, "refund", []byte(`{"order":"o"}`), call.WithIdempotencyKey("r", key))).CallID
	}
	sweep := func(limit, want int) {
		t.Helper()
		if n, err := w.ex.Sweep(w.ctx, limit); err != nil || n != want {
			t.Errorf("swept %d, want %d: %v", n, want, err)
		}
	}
	first := ask("a")
	for _, key := range []string{"b", "c", "d", "e"} {
		ask(key)
	}
	w.clock.advance(call.KeptKeys)
	sweep(100, 0)
	if again := ask("a"); again != first {
		t.Errorf("forgotten before its time: %s, not %s", again, first)
	}
	ask("young")
	w.clock.advance(time.Second)
	if again := ask("a"); again == first { // taken anew before a sweep came
		t.Error("kept after its time")
	}
	sweep(3, 3)
	sweep(3, 1)
	sweep(3, 0)
	if n := w.number(`SELECT count(*) FROM idempotency`); n != 2 {
		t.Errorf("%d keys are left, want those that were used last", n)
	}
}
