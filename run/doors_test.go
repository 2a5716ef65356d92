package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// A run's approval is carried out by nobody but a driver, and swept by nobody as a call.
func TestWrongDoors(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{"n":1}`))
	ex := call.NewExecutor(call.Config{Store: w.st, Tools: w.tools, Policy: w.policy, Now: w.clock.Now})
	r := w.approved()
	lost := w.lostAfterYes()
	_, err := ex.Resume(w.ctx, r.ApprovalID, nil)
	if w.refused(err, "usage"); !strings.Contains(err.Error(), "run.Driver.Resume") {
		t.Errorf("it does not name the right door: %v", err)
	}
	_, err = ex.Resume(w.ctx, r.ApprovalID, &decision.Answer{Approved: true, By: "ana"})
	w.refused(err, "usage")
	if _, err := ex.Handle(w.ctx, []byte(`{"v":1,"approval_id":"`+r.ApprovalID+`"}`)); err == nil {
		t.Error("an envelope ran it")
	}
	before := w.call(lost.Current.CallID)
	if n, err := ex.Sweep(w.ctx, 100); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if now := w.call(before.ID); now.Status != call.Running || now.Version != before.Version {
		t.Errorf("the sweep touched %+v", now)
	}
	w.ran(`push{"n":1}`)
	w.stands(w.run(r.ID), run.Waiting, "")
}

// lostAfterYes is a run that was killed in the middle of what was approved.
func (w *world) lostAfterYes() run.Run {
	w.t.Helper()
	r := w.approved()
	h := w.inTool(func(d *run.Driver) (run.Run, error) { return d.Resume(w.ctx, r.ID) })
	h.life.die()
	_, _ = h.goOn()
	w.clock.Advance(run.DefaultLease + time.Microsecond)
	return w.run(r.ID)
}

// Cancelled during a tool whose outcome nobody learns: nothing is asked of anybody.
func TestCancelledAndUnknown(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("write", `{"n":1}`))
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		if err := w.op.Cancel(w.ctx, "run_x", "ana", ""); err != nil {
			t.Error(err)
		}
		return nil, tool.ErrOutcomeUnknown.Say("who knows")
	})
	r, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	w.stands(r, run.Cancelled, run.OperatorCancelled)
	if c := w.call(w.steps(r.ID)[0].CallID); c.Status != call.Unknown || len(w.approvals(r.ID)) != 0 {
		t.Errorf("call %s, approvals %v", c.Status, w.approvals(r.ID))
	}
}

// An agent that asks several models at once: each attempt is charged.
func TestMeterAtOnce(t *testing.T) {
	t.Parallel()
	w := quick(t)
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := in.Meter.Charge(ctx, 1, 2); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return completes(""), nil
	})
	if r := w.start(); r.Usage != (run.Usage{ModelCalls: 20, Tokens: 20, Cost: 40}) {
		t.Errorf("charged %+v", r.Usage)
	}
}

// What a policy sees of a run, at the first judging and at the resume.
func TestPolicyView(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{}`), calls("push", `{}`))
	r := w.approved()
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	want := []int{1, 2, 2}
	if len(w.policy.views) != len(want) {
		t.Fatalf("asked %d times", len(w.policy.views))
	}
	for i, v := range w.policy.views {
		if v.RunID != r.ID || v.Goal != "do it" || v.Step != want[i] || v.Now.IsZero() {
			t.Errorf("it saw %+v", v)
		}
	}
}

// A tool marked confirm asks, whatever the policy says.
func TestConfirm(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{}`))
	w.register("look", func(rt *tool.Tool) { rt.Confirm = true })
	r := w.waiting()
	if d := w.asked(r.ID); d.Kind != "read_only" || string(d.Presentation) != `{"tool":"look","args":{}}` {
		t.Errorf("asked %+v", d)
	}
	w.approve(r)
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	w.policy.always(policy.Ruling{Outcome: policy.Deny}, nil)
	if got := w.told(w.start().ID); got != "failed:policy_denied done" {
		t.Errorf("steps %s", got)
	}
}
