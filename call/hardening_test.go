package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/tool"
)

// lost is a tool's attempt that ends without telling how.
func lost(context.Context, tool.Call) (json.RawMessage, error) {
	return nil, tool.ErrOutcomeUnknown.Say("lost")
}

// replaced registers the tool with another implementation and returns its spy.
func (w *world) replaced(change func(*tool.Tool)) *spy {
	other := &spy{}
	w.register(func(tl *tool.Tool) {
		tl.Implementation, tl.Run = "v2", other
		if change != nil {
			change(tl)
		}
	})
	return other
}

// asksAnew resumes and expects a new question of the runtime's own instead of a run.
func (w *world) asksAnew(approvalID string, spies ...*spy) *call.PendingError {
	w.t.Helper()
	before := 0
	for _, s := range spies {
		before += len(s.calls())
	}
	_, err := w.ex.Resume(w.ctx, approvalID, nil)
	var p *call.PendingError
	if !errors.As(err, &p) || p.ApprovalID == approvalID || !p.MayHaveRun {
		w.t.Fatalf("resume answered %v; want a new question about a call that may have run", err)
	}
	after := 0
	for _, s := range spies {
		after += len(s.calls())
	}
	if after != before {
		w.t.Fatalf("the tool ran on a yes that was not given for it")
	}
	return p
}

// A yes to run a call again was given to one tool; another one does not run on
// it, whatever the policy says by now.
func TestAYesToRunAgainIsBoundToTheTool(t *testing.T) {
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	w.spy.then(lost)
	res, err := w.ex.Call(w.ctx, "refund", []byte(`{"amount":5}`))
	if err != nil || res.ApprovalID == "" {
		t.Fatalf("got %+v, %v", res, err)
	}
	w.approve(res.ApprovalID)
	other := w.replaced(nil)
	p := w.asksAnew(res.ApprovalID, w.spy, other)
	if d := w.decision(res.ApprovalID); d.Status != decision.Superseded {
		t.Errorf("the older yes is %s", d.Status)
	}
	w.approve(p.ApprovalID) // a yes to the tool as it is now
	w.resumed(p.ApprovalID, call.Succeeded)
	if len(other.calls()) != 1 {
		t.Errorf("ran %d times", len(other.calls()))
	}
}

// The same where the attempt ran with edited arguments and the policy asks.
func TestAnInterruptedEditMeetsOnlyItsOwnTool(t *testing.T) {
	w := setup(t)
	w.spy.then(lost)
	p := w.park(`{"amount":5}`)
	res, err := w.ex.Resume(w.ctx, p.ApprovalID, &decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{"amount":4}`)})
	if err != nil || res.Status != call.Unknown || res.ApprovalID == p.ApprovalID {
		t.Fatalf("got %+v, %v", res, err)
	}
	w.approve(res.ApprovalID)
	w.asksAnew(res.ApprovalID, w.spy, w.replaced(nil))
}

// A repeat under the tool's key runs on the yes that was spent; when that yes
// would be too old, a person is asked.
func TestARepeatUnderAKeyKeepsTheGrantsTime(t *testing.T) {
	w := setup(t, func(c *call.Config) { c.GrantTTL = 15 * time.Minute })
	w.register(func(tl *tool.Tool) { tl.Idempotent = true })
	w.spy.then(lost)
	p := w.park(`{"amount":5}`)
	w.approve(p.ApprovalID)
	if res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil); err != nil || res.Status != call.Unknown {
		t.Fatalf("got %+v, %v", res, err)
	}
	w.spy.then(nil)
	w.clock.advance(10 * 24 * time.Hour)
	w.asksAnew(p.ApprovalID, w.spy)
}

// A yes to run a call again lasts no longer than the policy let the first one last.
func TestAYesToRunAgainKeepsTheRulingsTimes(t *testing.T) {
	w := setup(t)
	w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, GrantTTL: 15 * time.Minute, ApprovalTTL: time.Hour})
	w.spy.then(lost)
	p := w.park(`{"amount":5}`)
	w.approve(p.ApprovalID)
	res, err := w.ex.Resume(w.ctx, p.ApprovalID, nil)
	if err != nil || res.Status != call.Unknown {
		t.Fatalf("got %+v, %v", res, err)
	}
	d := w.decision(res.ApprovalID)
	if d.GrantTTL != 15*time.Minute || !d.ExpiresAt.Equal(d.CreatedAt.Add(time.Hour)) {
		t.Errorf("grant %s, expires %s after it was asked", d.GrantTTL, d.ExpiresAt.Sub(d.CreatedAt))
	}
	w.approve(d.ID)
	w.clock.advance(16 * time.Minute)
	if _, err := w.ex.Resume(w.ctx, d.ID, nil); !errors.Is(err, call.ErrApprovalExpired) {
		t.Errorf("got %v", err)
	}
	if n := len(w.spy.calls()); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// The end of the call that a run id was made for takes away only its own counts.
func TestGuardsOutliveTheCallThatTheRunWasMadeFor(t *testing.T) {
	w := setup(t, func(c *call.Config) { c.Guards.CallsPerRun = 2 })
	p := w.park(`{"amount":1}`)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	started := 0
	once := func() {
		res, err := w.ex.Call(w.ctx, "refund", []byte(`{"amount":2}`), call.InRun(p.RunID))
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == call.Succeeded {
			started++
		}
	}
	once()
	w.approve(p.ApprovalID)
	w.resumed(p.ApprovalID, call.Succeeded)
	started++
	for range 3 {
		once()
	}
	if started != 2 {
		t.Errorf("%d calls were started in a run with a limit of 2", started)
	}
}

// A grant of an earlier life is spent under a key only if the tool declared that
// key when the call was parked, and as the same tool.
func TestARestoredGrantNeedsAKeyThatWasDeclaredThen(t *testing.T) {
	for name, change := range map[string]func(*tool.Tool){
		"declared later":  func(tl *tool.Tool) { tl.Idempotent, tl.Implementation = true, "" },
		"by another tool": func(tl *tool.Tool) { tl.Idempotent, tl.Implementation = true, "v2" },
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t)
			p := w.park(`{"amount":5}`)
			w.approve(p.ApprovalID)
			file := w.backup()
			w.resumed(p.ApprovalID, call.Succeeded)
			w.restore(file)
			w.policy.always(policy.Ruling{Outcome: policy.Allow})
			w.asksAnew(p.ApprovalID, w.spy, w.replaced(change))
		})
	}
}

// Lost calls of tools that nobody here knows do not hide the others from a sweep.
func TestUnknownToolsHideNoLostCallFromASweep(t *testing.T) {
	w := quick(t)
	w.policy.always(policy.Ruling{Outcome: policy.Allow})
	elsewhere := tool.Tool{Spec: tool.Spec{Name: "elsewhere", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: w.spy}
	if err := w.tools.Replace(elsewhere); err != nil {
		t.Fatal(err)
	}
	lose := func(name string) string {
		res, err := w.ex.Call(w.ctx, name, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		w.raw(`UPDATE call SET status='running', lease_until=?, lease_owner='x', result=NULL, ended_at=NULL WHERE id=?`, noon.Add(time.Second).UnixMicro(), res.CallID)
		w.raw(`UPDATE attempt SET outcome=NULL, ended_at=NULL WHERE call_id=?`, res.CallID)
		return res.CallID
	}
	for range 12 {
		lose("elsewhere")
	}
	ours := lose("refund")
	w.clock.advance(time.Hour)
	known := &tool.Registry{}
	refund, err := w.tools.Lookup("refund")
	if err != nil {
		t.Fatal(err)
	}
	if err := known.Register(*refund); err != nil {
		t.Fatal(err)
	}
	ex := w.executor(w.st, func(c *call.Config) { c.Tools = known })
	if n, err := ex.Sweep(w.ctx, 10); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if c := w.call(ours); c.Status != call.Unknown {
		t.Errorf("our lost call is %s", c.Status)
	}
}
