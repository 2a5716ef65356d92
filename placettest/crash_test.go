package placettest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

func TestCrashStoreDies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		crash  placettest.Crash
		stored bool
	}{
		{placettest.Crash{Moment: placettest.BeforeCommit, N: 1}, false},
		{placettest.Crash{Moment: placettest.AfterCommit, N: 1}, true},
	} {
		t.Run(tc.crash.String(), func(t *testing.T) {
			t.Parallel()
			st := placettest.Open(t)
			dying := placettest.NewCrashStore(st, tc.crash)
			calls := shop(t, dying, placettest.NewWitness(t).Tool("refund"))
			if _, err := calls.Call(t.Context(), "refund", order); !errors.Is(err, placettest.ErrDead) {
				t.Fatalf("got %v", err)
			}
			if err := dying.View(t.Context(), func(txn.Tx) error { return nil }); !errors.Is(err, placettest.ErrDead) || !dying.Dead() {
				t.Errorf("a dead process reads: %v", err)
			}
			left, err := decision.Operator{Store: st}.Pending(t.Context(), 0)
			if err != nil || (len(left) == 1) != tc.stored {
				t.Errorf("stored: %v %v", left, err)
			}
		})
	}
}

func TestDeathWakesWaiters(t *testing.T) {
	t.Parallel()
	dying := placettest.NewCrashStore(placettest.Open(t), placettest.Crash{})
	told := make(chan error)
	go func() {
		_, err := event.Wait(t.Context(), dying, event.Waiting{})
		told <- err
	}()
	dying.Die()
	if err := <-told; !errors.Is(err, placettest.ErrDead) {
		t.Errorf("the waiter was told %v", err)
	}
}

func TestEachCrash(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*tool.Tool, *placettest.Witness){
		"person": func(*tool.Tool, *placettest.Witness) {},
		"probe":  func(tl *tool.Tool, w *placettest.Witness) { tl.Probe = w.Probe() },
		"both":   func(tl *tool.Tool, w *placettest.Witness) { tl.Probe, tl.Idempotent = w.Probe(), true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placettest.EachCrash(t, placettest.Scenario{
				Run: func(ctx context.Context, p *placettest.Process) error {
					refund := p.Witness.Tool("refund")
					declare(&refund, p.Witness)
					_, err := patient(ctx, p, shop(t, p.Store, p.Store.Tool(refund)))
					return err
				},
				Check: func(t *testing.T, p *placettest.Process) {
					if n := len(p.Witness.Lines()); n != 1 {
						t.Errorf("the tool ran %d times", n)
					}
				},
			})
		})
	}
}

// patient works for a call until it has ended, as a worker does: it lets a person
// answer, and asks a second time where the outcome is unknown, since a probe can
// be sure only once the dead process had its time.
func patient(ctx context.Context, p *placettest.Process, calls *call.Executor) (call.Result, error) {
	ana := placettest.Reviewer{Store: p.Store, By: "ana"}.
		Approve(placettest.Any).
		Approve(p.Witness.Missing).
		Reject(p.Witness.Done, "It was done.")
	message := []byte(`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"amount":500}}`)
	for unknown := 0; ; {
		res, err := calls.Handle(ctx, message)
		var waits *call.PendingError
		switch {
		case errors.As(err, &waits):
			if _, err := ana.Decide(ctx); err != nil {
				return res, err
			}
		case err == nil && res.Status == call.Unknown && unknown < 1:
			unknown++
			p.Clock.Advance(call.DefaultLease)
		default:
			return res, err
		}
	}
}
