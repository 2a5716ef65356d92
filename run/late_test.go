package run_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// slow is a run whose only tool goes on after its caller gave up: nobody knows then
// what became of it, and a person is asked. let makes the tool answer.
type slow struct {
	store *store.Store
	drive *run.Driver
	began chan struct{}
	let   chan struct{}
}

func newSlow(t *testing.T) slow {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s := slow{store: st, began: make(chan struct{}), let: make(chan struct{})}
	tools, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "note", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.LocalMutation},
		Run: tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) {
			close(s.began)
			<-s.let
			return json.RawMessage(`"noted"`), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.drive = run.NewDriver(run.Config{Store: st, Tools: tools, Agent: run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if len(in.Steps) == 0 {
			return run.Proposal{Kind: run.CallTool, Tool: "note", Args: json.RawMessage(`{}`)}, nil
		}
		return run.Proposal{Kind: run.Complete, Result: json.RawMessage(in.Steps[0].Result)}, nil
	})})
	return s
}

// interrupted starts the run, up to the question what is to become of its step.
func (s slow) interrupted(t *testing.T, opts ...run.Option) run.Run {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		<-s.began
		giveUp()
	}()
	r, err := s.drive.Start(ctx, "note it", run.DefaultLimits(), opts...)
	if err != nil || r.Status != run.Waiting || s.approval(t, r.ApprovalID).Kind != decision.KindInterrupted {
		t.Fatalf("%v: %s, %s", err, r.Status, r.Detail)
	}
	return r
}

// late lets the tool answer and waits until that is recorded.
func (s slow) late(t *testing.T) {
	t.Helper()
	close(s.let)
	if err := s.drive.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s slow) approval(t *testing.T, id string) (d decision.Decision) {
	t.Helper()
	if err := txn.View(t.Context(), s.store, func(tx run.Tx) (err error) { d, err = tx.Decision(id); return err }); err != nil {
		t.Fatal(err)
	}
	return d
}

func (s slow) call(t *testing.T, id string) (c call.Call) {
	t.Helper()
	if err := txn.View(t.Context(), s.store, func(tx run.Tx) (err error) { c, err = tx.Call(id); return err }); err != nil {
		t.Fatal(err)
	}
	return c
}

// A late outcome answers the question that the run waits on, before a person and
// after their yes; the run then goes on with it.
func TestLateOutcomeAnswersTheQuestion(t *testing.T) {
	t.Parallel()
	for was, then := range map[decision.Status]decision.Status{decision.Pending: decision.Withdrawn, decision.Approved: decision.Superseded} {
		t.Run(string(was), func(t *testing.T) {
			t.Parallel()
			s := newSlow(t)
			r := s.interrupted(t)
			if was == decision.Approved {
				if err := s.drive.Approve(t.Context(), r.ID, r.ApprovalID, "ana", ""); err != nil {
					t.Fatal(err)
				}
			}
			s.late(t)
			if d, c := s.approval(t, r.ApprovalID), s.call(t, r.Current.CallID); d.Status != then || c.Status != call.Succeeded {
				t.Fatalf("the question is %s, the call %s", d.Status, c.Status)
			}
			r, err := s.drive.Resume(t.Context(), r.ID)
			if err != nil || r.Status != run.Completed || r.Result != `"noted"` {
				t.Errorf("%v: %s with %s", err, r.Status, r.Result)
			}
		})
	}
}

// One that comes after the run was cancelled is recorded, and what is closed stays.
func TestLateOutcomeAfterTheRun(t *testing.T) {
	t.Parallel()
	s := newSlow(t)
	r := s.interrupted(t)
	if err := s.drive.Cancel(t.Context(), r.ID, "ana", "enough"); err != nil {
		t.Fatal(err)
	}
	s.late(t)
	d, c := s.approval(t, r.ApprovalID), s.call(t, r.Current.CallID)
	if d.Status != decision.Pending || d.Open || c.Status != call.Succeeded {
		t.Errorf("the question is %s (open: %v), the call %s", d.Status, d.Open, c.Status)
	}
	if n, err := (decision.Operator{Store: s.store, Now: func() time.Time { return time.Now().AddDate(100, 0, 0) }}).ExpireDue(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d were expired: %v", n, err)
	}
}
