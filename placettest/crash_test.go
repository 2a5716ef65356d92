package placettest_test

import (
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

func TestCrashesAreCounted(t *testing.T) {
	t.Parallel()
	s := placettest.NewCrashStore(placettest.Open(t), placettest.Crash{})
	w := placettest.NewWitness(t)
	calls := shop(t, s, s.Tool(w.Tool("refund")))
	waits := park(t, calls, "refund")
	if n, err := (placettest.Reviewer{Store: s}).Approve(placettest.Any).Decide(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	resume(t, calls, waits)
	refused := errors.New("refused")
	if err := s.Update(t.Context(), func(txn.Tx) error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	// Parked, decided, started, finished; what was refused is no commit.
	got := s.Crashes()
	if len(got) != 2*4+1 || got[0].String() != "before commit 1" || got[7].String() != "after commit 4" || got[8].String() != "after effect 1" {
		t.Errorf("got %v", got)
	}
}

func TestEffectThatNobodyHearsOf(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	dying := placettest.NewCrashStore(st, placettest.Crash{Moment: placettest.AfterEffect, N: 1})
	calls := shop(t, dying, dying.Tool(w.Tool("refund")))
	waits := park(t, calls, "refund")
	if _, err := (placettest.Reviewer{Store: st}).Approve(placettest.Any).Decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Resume(t.Context(), waits.ApprovalID, nil); !errors.Is(err, placettest.ErrDead) {
		t.Errorf("got %v", err)
	}
	if n := w.Count(waits.CallID); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	// The next process finds an attempt whose lease has not ended.
	if _, err := shop(t, st, w.Tool("refund")).Resume(t.Context(), waits.ApprovalID, nil); !errors.Is(err, call.ErrAlreadyDecided) {
		t.Errorf("got %v", err)
	}
}

func TestDeadProcessStartsNoTool(t *testing.T) {
	t.Parallel()
	s, w := placettest.NewCrashStore(placettest.Open(t), placettest.Crash{}), placettest.NewWitness(t)
	refund := s.Tool(w.Tool("refund"))
	s.Die()
	s.Die()
	_, err := refund.Run.Run(t.Context(), tool.Call{CallID: "c", Args: order})
	if !errors.Is(err, tool.ErrNotStarted) || !errors.Is(err, placettest.ErrDead) || len(w.Lines()) > 0 {
		t.Errorf("got %v, %v", err, w.Lines())
	}
}
