package call_test

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
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
	may := func(call.Call) error { return nil }
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
	res, err := door.Continue(w.ctx, p.CallID, func(call.Call) error { return errors.New("she left") })
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
