package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// What is stored when a person has to agree (spec 1.2).
func TestWhatIsAsked(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", ` {"n": 1} `))
	r, err := w.d.Start(w.ctx, "do it", run.DefaultLimits(), run.As("bot"), run.WithMetadata(map[string]string{"k": "v"}))
	if err != nil {
		t.Fatal(err)
	}
	d := w.asked(r.ID)
	want := `{"run_id":"` + r.ID + `","step_id":"` + r.Current.ID + `","tool":{`
	if !strings.HasPrefix(string(d.Request), want) || !strings.HasSuffix(string(d.Request), `"args": {"n": 1} }`) {
		t.Errorf("request …%s", d.Request[len(d.Request)-60:])
	}
	if string(d.Presentation) != `{"tool":"push","args": {"n": 1} }` || string(d.Capability) != string(d.Presentation) || d.Kind != "remote_mutation" {
		t.Errorf("kind %s, capability %s, presentation %s", d.Kind, d.Capability, d.Presentation)
	}
	if digest, err := request.ApprovalDigest(d.Kind, d.Capability, d.Presentation, d.Request); err != nil || digest != d.Digest {
		t.Errorf("digest %s, %v", d.Digest, err)
	}
	if d.RequestedBy != "bot" || d.Metadata["k"] != "v" || d.N != 1 || !d.ExpiresAt.IsZero() {
		t.Errorf("asked %+v", d)
	}
	s := r.Current
	if s.Ruling.Outcome != policy.RequireApproval || s.Ruling.Reason != d.Reason || s.Status != run.AwaitingApproval || s.ApprovalID != d.ID {
		t.Errorf("step %+v", s)
	}
	if c := w.call(s.CallID); c.Status != call.Pending || c.StepID != s.ID || c.RunID != r.ID || string(c.Args) != ` {"n": 1} ` {
		t.Errorf("call %+v", c)
	}
	if why, err := decision.ApprovalReason(w.ctx, w.st, r.ID, d.ID); err != nil || why != d.Reason {
		t.Errorf("reason %q, %v", why, err)
	}
	if _, err := w.op.Decide(w.ctx, d.ID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{}`)}); word(err) != "usage" {
		t.Errorf("an edit: %v", err) // edits exist for calls only (spec 1.6)
	}
	if _, err := w.op.Withdraw(w.ctx, d.ID, "bot", ""); word(err) != "usage" {
		t.Errorf("a withdrawal: %v", err)
	}
}

// No order of words: those of spec 1.3, each the first failure.
func TestDecidingRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	r := w.waiting()
	other := w.waiting()
	for name, tt := range map[string]struct {
		do   func() error
		want string
	}{
		"unknown approval":     {func() error { return w.d.Approve(w.ctx, r.ID, "apr_x", "ana", "") }, "not_found"},
		"another run's":        {func() error { return w.d.Approve(w.ctx, other.ID, r.ApprovalID, "ana", "") }, "not_found"},
		"unknown run":          {func() error { return w.d.Cancel(w.ctx, "run_x", "ana", "") }, "not_found"},
		"nobody":               {func() error { return w.d.Approve(w.ctx, r.ID, r.ApprovalID, "", "") }, "usage"},
		"nobody rejects":       {func() error { return w.d.Reject(w.ctx, r.ID, r.ApprovalID, "", "") }, "usage"},
		"nothing shown":        {func() error { return w.d.ApproveShown(w.ctx, r.ID, r.ApprovalID, "", "ana", "") }, "approval_changed"},
		"another shown":        {func() error { return w.d.RejectShown(w.ctx, r.ID, r.ApprovalID, "sha256-placet1:00", "ana", "") }, "approval_changed"},
		"resume while pending": {func() error { _, err := w.d.Resume(w.ctx, r.ID); return err }, "run_state"},
	} {
		if got := word(tt.do()); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if now := w.run(r.ID); now.Version != r.Version || now.Status != run.Waiting {
		t.Errorf("something was written: %+v", now)
	}
	digest := w.asked(r.ID).Digest
	if err := w.d.ApproveShown(w.ctx, r.ID, r.ApprovalID, digest, "ana", "as shown"); err != nil {
		t.Fatal(err)
	}
	err := w.d.Approve(w.ctx, r.ID, r.ApprovalID, "bo", "")
	if w.refused(err, "not_pending"); !strings.Contains(err.Error(), "ana") {
		t.Errorf("it does not say who decided: %v", err)
	}
	w.refused(w.d.Reject(w.ctx, r.ID, r.ApprovalID, "bo", ""), "not_pending")
	if err := w.d.RejectShown(w.ctx, other.ID, other.ApprovalID, w.asked(other.ID).Digest, "ana", "no"); err != nil {
		t.Fatal(err)
	}
	w.stands(w.run(other.ID), run.Cancelled, run.ApprovalRejected)
}

func TestReject(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	r := w.waiting()
	if err := w.d.Reject(w.ctx, r.ID, r.ApprovalID, "ana", "not on a Friday"); err != nil {
		t.Fatal(err)
	}
	r = w.run(r.ID)
	w.stands(r, run.Cancelled, run.ApprovalRejected)
	if s := r.Current; s.Status != run.StepFailed || s.Observation != run.PolicyDenied || !strings.Contains(s.Message, r.ApprovalID) || !strings.Contains(s.Message, "not on a Friday") {
		t.Errorf("step %+v", s)
	}
	if c := w.call(r.Current.CallID); c.Status != call.Denied {
		t.Errorf("call %s", c.Status)
	}
	_, err := w.d.Resume(w.ctx, r.ID)
	w.refused(err, "run_state")
	w.ran("")
}

// The package functions need a store and nothing else.
func TestPackageFunctions(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	var heard []event.Type
	obs := event.ObserverFunc(func(e event.Event) { heard = append(heard, e.Type) })
	r, digest := w.waiting(), ""
	digest = w.asked(r.ID).Digest
	if err := decision.ApproveShown(w.ctx, w.st, obs, r.ID, r.ApprovalID, digest, "ana", ""); err != nil {
		t.Error(err)
	}
	if err := decision.Cancel(w.ctx, w.st, obs, r.ID, "ana", "after all"); err != nil {
		t.Error(err)
	}
	w.stands(w.run(r.ID), run.Cancelled, run.OperatorCancelled)
	if d := w.asked(r.ID); d.Status != decision.Approved || d.Open { // it stays as it is, and is no work
		t.Errorf("approval %s, open %t", d.Status, d.Open)
	}
	if c := w.call(w.run(r.ID).Current.CallID); c.Status != call.Cancelled {
		t.Errorf("call %s", c.Status)
	}
	q := w.waiting()
	if err := decision.Reject(w.ctx, w.st, obs, q.ID, q.ApprovalID, "ana", ""); err != nil {
		t.Error(err)
	}
	if len(heard) != 6 {
		t.Errorf("heard %v", heard)
	}
	_, err := w.d.Resume(w.ctx, r.ID)
	w.refused(err, "run_state")
	w.ran("")
}

// A pending approval of an ended run is no longer work (spec 1.4).
func TestPendingOfEndedRun(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	r := w.waiting(func(l *run.Limits) { l.ApprovalTTL = time.Hour })
	if err := w.d.Cancel(w.ctx, r.ID, "ana", "never mind"); err != nil {
		t.Fatal(err)
	}
	if left, err := w.op.Pending(w.ctx, 0); err != nil || len(left) != 0 {
		t.Errorf("pending %v, %v", left, err)
	}
	shown, err := w.op.Show(w.ctx, r.ApprovalID)
	if err != nil || shown.Status != decision.Pending {
		t.Errorf("shown %+v, %v", shown, err)
	}
	w.refused(w.d.Approve(w.ctx, r.ID, r.ApprovalID, "ana", ""), "run_state")
	w.clock.Advance(2 * time.Hour)
	if n, err := w.op.ExpireDue(w.ctx, 100); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	var pending int64
	w.view(func(tx store.Tx) (err error) { pending, err = tx.Pending("main", 0); return err })
	if pending != 0 {
		t.Errorf("%d count as pending", pending)
	}
	if s := w.steps(r.ID)[0]; s.Observation != run.WasInterrupted || !strings.Contains(s.Message, "never mind") {
		t.Errorf("step %+v", s)
	}
}

// The instant itself is still in time, a microsecond later is not; whoever looks
// first expires it, and the step is closed with it (spec 1.5).
func TestExpiry(t *testing.T) {
	t.Parallel()
	expired := map[string]func(w *world, r run.Run) error{
		"approve": func(w *world, r run.Run) error { return w.d.Approve(w.ctx, r.ID, r.ApprovalID, "ana", "") },
		"reject":  func(w *world, r run.Run) error { return w.d.Reject(w.ctx, r.ID, r.ApprovalID, "ana", "") },
		"resume":  func(w *world, r run.Run) error { _, err := w.d.Resume(w.ctx, r.ID); return err },
		"sweep":   func(w *world, r run.Run) error { _, err := w.op.ExpireDue(w.ctx, 10); return err },
	}
	for name, do := range expired {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("push", `{}`))
			r := w.waiting(func(l *run.Limits) { l.ApprovalTTL = time.Hour })
			in := w.waiting(func(l *run.Limits) { l.ApprovalTTL = time.Hour })
			w.clock.Advance(time.Hour)
			if name == "resume" || name == "sweep" {
				w.approve(in)
			} else if err := do(w, in); err != nil {
				t.Errorf("at the instant: %v", err)
			}
			w.clock.Advance(time.Microsecond)
			err := do(w, r)
			if want := map[string]string{"approve": "approval_expired", "reject": "approval_expired"}[name]; word(err) != want {
				t.Errorf("just after: %v", err)
			}
			r = w.run(r.ID)
			w.stands(r, run.Cancelled, run.ApprovalExpired)
			if s := r.Current; s.Status != run.StepFailed || s.Observation != run.WasInterrupted {
				t.Errorf("step %+v", s)
			}
			if d, c := w.asked(r.ID), w.call(r.Current.CallID); d.Status != decision.Expired || c.Status != call.Expired {
				t.Errorf("approval %s, call %s", d.Status, c.Status)
			}
			w.refused(w.d.Approve(w.ctx, r.ID, r.ApprovalID, "ana", ""), "approval_expired")
			w.ran("")
		})
	}
}

// How old a yes may be. ApprovalTTL alone never bounds it.
func TestGrantTTL(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{"n":1}`))
	ttl := func(l *run.Limits) { l.GrantTTL, l.ApprovalTTL = time.Hour, time.Hour }
	fresh, stale, swept := w.approved(ttl), w.approved(ttl), w.approved(ttl)
	w.clock.Advance(time.Hour)
	w.stands(w.resume(fresh), run.Completed, run.GoalCompleted)
	w.clock.Advance(time.Microsecond)
	w.stands(w.resume(stale), run.Cancelled, run.ApprovalExpired)
	if n, err := w.op.ExpireDue(w.ctx, 10); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	for _, r := range []run.Run{stale, swept} {
		d := w.asked(r.ID)
		if w.stands(w.run(r.ID), run.Cancelled, run.ApprovalExpired); d.Status != decision.Expired || d.DecidedBy != "ana" || d.DecidedAt.IsZero() {
			t.Errorf("approval %+v", d)
		}
	}
	old := w.approved(func(l *run.Limits) { l.ApprovalTTL = time.Hour })
	w.clock.Advance(7 * 24 * time.Hour)
	w.stands(w.resume(old), run.Completed, run.GoalCompleted)
	w.ran(`push{"n":1} push{"n":1}`)
}

// A grant that grows too old while the policy is asked never starts.
func TestGrantExpiresWhileJudged(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{"n":1}`))
	r := w.approved(func(l *run.Limits) { l.GrantTTL = time.Hour })
	w.policy.set(func(ctx context.Context, rq request.Request, v policy.View) (policy.Ruling, error) {
		w.clock.Advance(time.Hour + time.Microsecond)
		return policy.Default().Evaluate(ctx, rq, v)
	})
	w.stands(w.resume(r), run.Cancelled, run.ApprovalExpired)
	w.ran("")
}

// Of the ruling's, the run's and the configuration's times the shorter counts.
func TestShorterTTL(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for i, tt := range []struct{ ruling, limits, config, want time.Duration }{
		{0, 0, 0, 0}, {3 * h, 0, 0, 3 * h}, {0, 3 * h, 0, 3 * h}, {0, 0, 3 * h, 3 * h}, {3 * h, 2 * h, h, h}, {h, 2 * h, 3 * h, h}, {2 * h, h, 3 * h, h}, {2 * h, 0, h, h},
	} {
		w := setup(t, calls("push", `{}`))
		w.use(func(c *run.Config) { c.ApprovalTTL, c.GrantTTL = tt.config, tt.config })
		w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, ApprovalTTL: tt.ruling, GrantTTL: tt.ruling}, nil)
		r := w.approved(func(l *run.Limits) { l.ApprovalTTL, l.GrantTTL = tt.limits, tt.limits })
		d := w.asked(r.ID)
		if got := d.ExpiresAt; tt.want == 0 && !got.IsZero() || tt.want != 0 && !got.Equal(d.CreatedAt.Add(tt.want)) {
			t.Errorf("%d: it expires at %s, asked at %s", i, got, d.CreatedAt)
		}
		if d.GrantTTL != tt.want {
			t.Errorf("%d: the yes is good for %s, want %s", i, d.GrantTTL, tt.want)
		}
	}
}

// Content altered alone, and content altered together with its digest (spec 1.10).
func TestAlteredContent(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		w := setup(t, calls("push", `{}`))
		pending, approved := w.waiting(), w.approved()
		w.raw(`UPDATE decision SET presentation = CAST('{"title":"harmless"}' AS BLOB)`)
		w.refused(w.d.Approve(w.ctx, pending.ID, pending.ApprovalID, "ana", ""), "approval_hash")
		_, err := w.d.Resume(w.ctx, approved.ID)
		w.refused(err, "approval_hash")
		if r := w.run(approved.ID); r.Status != run.Waiting || w.asked(r.ID).Status != decision.Approved {
			t.Errorf("run %s", r.Status)
		}
		if err := w.d.Reject(w.ctx, pending.ID, pending.ApprovalID, "ana", ""); err != nil {
			t.Errorf("a no: %v", err)
		}
		w.ran("")
	})
	t.Run("with its digest", func(t *testing.T) {
		t.Parallel()
		w := setup(t, calls("push", `{}`))
		r := w.waiting()
		d := w.asked(r.ID)
		shown := d.Digest
		d.Presentation = []byte(`{"title":"harmless"}`)
		digest, err := d.Binding()
		if err != nil {
			t.Fatal(err)
		}
		w.raw(`UPDATE decision SET presentation = ?, digest = ?`, d.Presentation, digest)
		w.refused(w.d.ApproveShown(w.ctx, r.ID, r.ApprovalID, shown, "ana", ""), "approval_changed")
		w.refused(w.d.RejectShown(w.ctx, r.ID, r.ApprovalID, shown, "ana", ""), "approval_changed")
		w.stands(w.run(r.ID), run.Waiting, "")
	})
}

// What can change between a yes and its resume (spec 1.6).
func TestBetweenYesAndResume(t *testing.T) {
	t.Parallel()
	ask := policy.Ruling{Outcome: policy.RequireApproval}
	for name, tt := range map[string]struct {
		change func(w *world)
		err    string
		status run.Status
		reason run.Reason
		told   string
		grant  decision.Status
		call   call.Status
		ran    string
	}{
		"nothing": {func(*world) {}, "", run.Completed, run.GoalCompleted, "done:tool_result done", decision.Consumed, call.Succeeded, `push{"n":1}`},
		"allowed": {func(w *world) { w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil) }, "", run.Completed, run.GoalCompleted, "done:tool_result done", decision.Consumed, call.Succeeded, `push{"n":1}`},
		"denied":  {func(w *world) { w.policy.always(policy.Ruling{Outcome: policy.Deny, Reason: "no more"}, nil) }, "", run.Completed, run.GoalCompleted, "failed:policy_denied done", decision.Superseded, call.Denied, ""},
		"aborted": {func(w *world) { w.policy.always(policy.Ruling{Outcome: policy.Abort, Reason: "stop"}, nil) }, "", run.Failed, run.PolicyAbort, "failed:policy_denied", decision.Superseded, call.Denied, ""},
		"unknown": {func(w *world) { w.policy.always(policy.Ruling{Outcome: "maybe"}, nil) }, "", run.Failed, run.InternalError, "failed:policy_denied", decision.Superseded, call.Denied, ""},
		"unusable": {func(w *world) {
			ru := ask
			ru.Presentation = json.RawMessage(`[]`)
			w.policy.always(ru, nil)
		}, "", run.Failed, run.InternalError, "failed:policy_denied", decision.Superseded, call.Denied, ""},
		"fails": {func(w *world) { w.policy.always(policy.Ruling{}, errors.New("no database")) }, "policy_failed", run.Waiting, "", "awaiting_approval", decision.Approved, call.Pending, ""},
		"panics": {func(w *world) {
			w.policy.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) { panic("oh") })
		}, "policy_failed", run.Waiting, "", "awaiting_approval", decision.Approved, call.Pending, ""},
		"another presentation": {func(w *world) {
			ru := ask
			ru.Presentation = json.RawMessage(`{"title":"new"}`)
			w.policy.always(ru, nil)
		}, "", run.Waiting, "", "awaiting_approval", decision.Superseded, call.Pending, ""},
		"another capability": {func(w *world) {
			ru := ask
			ru.Capability = json.RawMessage(`{"push":"all"}`)
			w.policy.always(ru, nil)
		}, "", run.Waiting, "", "awaiting_approval", decision.Superseded, call.Pending, ""},
		"another kind": {func(w *world) {
			ru := ask
			ru.Kind = "special"
			w.policy.always(ru, nil)
		}, "", run.Waiting, "", "awaiting_approval", decision.Superseded, call.Pending, ""},
		"another reason": {func(w *world) {
			ru := ask
			ru.Reason = "for other reasons"
			w.policy.always(ru, nil)
		}, "", run.Completed, run.GoalCompleted, "done:tool_result done", decision.Consumed, call.Succeeded, `push{"n":1}`},
		"spec changed": {func(w *world) {
			w.register("push", func(rt *tool.Tool) { rt.Description = "Another." })
		}, "", run.Waiting, "", "awaiting_approval", decision.Superseded, call.Pending, ""},
		"spec changed and allowed": {func(w *world) {
			w.register("push", func(rt *tool.Tool) { rt.Description = "Another." })
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
		}, "", run.Completed, run.GoalCompleted, "done:tool_result done", decision.Consumed, call.Succeeded, `push{"n":1}`},
		"schema tightened": {func(w *world) {
			w.register("push", func(rt *tool.Tool) {
				rt.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"minimum":5}}}`)
			})
		}, "", run.Completed, run.GoalCompleted, "failed:invalid_decision done", decision.Superseded, call.Denied, ""},
		"tool missing": {func(w *world) { w.use(func(c *run.Config) { c.Tools = w.without("push") }) }, "unknown_tool", run.Waiting, "", "awaiting_approval", decision.Approved, call.Pending, ""},
		"confirm": {func(w *world) {
			w.register("push", func(rt *tool.Tool) { rt.Confirm = true })
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
		}, "", run.Completed, run.GoalCompleted, "done:tool_result done", decision.Consumed, call.Succeeded, `push{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("push", `{"n":1}`))
			r := w.approved()
			asked := w.policy.asked()
			tt.change(w)
			after, err := w.d.Resume(w.ctx, r.ID)
			w.refused(err, tt.err)
			w.stands(w.run(r.ID), tt.status, tt.reason)
			if got := w.told(r.ID); got != tt.told {
				t.Errorf("steps %s, want %s", got, tt.told)
			}
			if d, c := w.decision(r.ApprovalID), w.call(r.Current.CallID); d.Status != tt.grant || c.Status != tt.call {
				t.Errorf("grant %s and call %s, want %s and %s", d.Status, c.Status, tt.grant, tt.call)
			}
			w.ran(tt.ran)
			if name == "schema tightened" && w.policy.asked() != asked {
				t.Error("the policy saw a request that does not fit the tool")
			}
			if tt.status != run.Waiting || tt.err != "" {
				return
			}
			// Asked anew: the old yes is worth nothing, a new one runs it.
			if after.ApprovalID == r.ApprovalID || w.asked(r.ID).N != 2 || w.asked(r.ID).Status != decision.Pending {
				t.Fatalf("it waits on %+v", w.asked(r.ID))
			}
			_, err = w.d.Resume(w.ctx, r.ID)
			w.refused(err, "run_state")
			w.refused(w.d.Approve(w.ctx, r.ID, r.ApprovalID, "ana", ""), "not_pending")
			w.approve(r)
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.ran(`push{"n":1}`)
		})
	}
}

// A tool that is missing does not hide what needs no tool.
func TestToolMissingAndMore(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	ttl := func(l *run.Limits) { l.ApprovalTTL, l.GrantTTL = time.Hour, time.Hour }
	pending, late, stale := w.waiting(), w.waiting(ttl), w.approved(ttl)
	w.use(func(c *run.Config) { c.Tools = w.without("push") })
	_, err := w.d.Resume(w.ctx, pending.ID)
	w.refused(err, "run_state")
	w.clock.Advance(time.Hour + time.Microsecond)
	for _, r := range []run.Run{late, stale} {
		w.stands(w.resume(r), run.Cancelled, run.ApprovalExpired)
	}
}

// What a policy answers at the first judging.
func TestRulings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ru   policy.Ruling
		err  error
		want run.Reason
		told string
	}{
		"denied":                {policy.Ruling{Outcome: policy.Deny, Reason: "no"}, nil, run.RepeatedFailures, "failed:policy_denied failed:policy_denied failed:policy_denied"},
		"aborted":               {policy.Ruling{Outcome: policy.Abort, Reason: "stop"}, nil, run.PolicyAbort, "failed:policy_denied"},
		"unknown":               {policy.Ruling{Outcome: "Allow"}, nil, run.InternalError, "failed:policy_denied"},
		"nothing":               {policy.Ruling{}, nil, run.InternalError, "failed:policy_denied"},
		"fails":                 {policy.Ruling{Outcome: policy.Allow}, errors.New("no database"), run.InternalError, "failed:policy_denied"},
		"unusable presentation": {policy.Ruling{Outcome: policy.RequireApproval, Presentation: json.RawMessage(`"x"`)}, nil, run.InternalError, "failed:policy_denied"},
		"broken capability":     {policy.Ruling{Outcome: policy.RequireApproval, Capability: json.RawMessage(`{`)}, nil, run.InternalError, "failed:policy_denied"},
		"negative time":         {policy.Ruling{Outcome: policy.RequireApproval, GrantTTL: -1}, nil, run.InternalError, "failed:policy_denied"},
		"the runtime's kind":    {policy.Ruling{Outcome: policy.RequireApproval, Kind: decision.KindInterrupted}, nil, run.InternalError, "failed:policy_denied"},
		"kind that is no text":  {policy.Ruling{Outcome: policy.RequireApproval, Kind: "\xff"}, nil, run.InternalError, "failed:policy_denied"},
		"reason that is none":   {policy.Ruling{Outcome: policy.Deny, Reason: "\x00"}, nil, run.InternalError, "failed:policy_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.agent = fresh("look")
			w.policy.always(tt.ru, tt.err)
			r := w.start()
			if got := w.told(r.ID); r.Reason != tt.want || got != tt.told {
				t.Errorf("%s: %s, want %s: %s", r.Reason, got, tt.want, tt.told)
			}
			if w.ran(""); len(w.approvals(r.ID)) != 0 {
				t.Error("something was asked")
			}
		})
	}
}

func TestPolicyThatPanics(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{}`))
	w.policy.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) { panic("oh") })
	w.stands(w.start(), run.Failed, run.InternalError)
	w.ran("")
}

// A policy that changes while it is asked is asked again, and nothing of the old
// ruling is acted on.
func TestPolicyThatMoves(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{}`))
	w.policy.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		n := w.policy.asked()
		w.policy.mu.Lock()
		defer w.policy.mu.Unlock()
		if w.policy.version = fmt.Sprint("of ", min(n, 2)); n == 1 {
			return policy.Ruling{Outcome: policy.Allow}, nil
		}
		return policy.Ruling{Outcome: policy.RequireApproval}, nil
	})
	w.stands(w.start(), run.Waiting, "")
	w.ran("")
	w.policy.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		n := w.policy.asked()
		w.policy.mu.Lock()
		defer w.policy.mu.Unlock()
		w.policy.version = fmt.Sprint(n)
		return policy.Ruling{Outcome: policy.Allow}, nil
	})
	_, err := w.d.StartWithID(w.ctx, "run_moving", "do it", run.DefaultLimits())
	w.refused(err, "run_state")
	if r := w.run("run_moving"); r.Status != run.Running || !r.LeaseUntil.IsZero() {
		t.Errorf("run %s, leased until %s", r.Status, r.LeaseUntil)
	}
	w.ran("")
}

// A full queue is a loud refusal, not a lost request.
func TestTooManyPending(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	w.waiting()
	w.raw(`UPDATE counter SET n = ? WHERE name = 'pending_approvals'`, call.DefaultMaxPending)
	r := w.start()
	if got := w.told(r.ID); got != "failed:policy_denied done" || len(w.approvals(r.ID)) != 0 {
		t.Errorf("steps %s", got)
	}
	w.ran("")
}

// Guards count per run, before the policy is asked; at a resume they leave nothing
// running.
func TestGuards(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.use(func(c *run.Config) { c.Guards = call.Guards{CallsPerRun: 2} })
	w.agent = fresh("look")
	r := w.start()
	if got := w.told(r.ID); r.Reason != run.RepeatedFailures || got != "done:tool_result done:tool_result failed:policy_denied failed:policy_denied failed:policy_denied" {
		t.Errorf("%s: %s", r.Reason, got)
	}
	if w.policy.asked() != 2 {
		t.Errorf("the policy was asked %d times", w.policy.asked())
	}
	w.use(func(c *run.Config) { c.Guards = call.Guards{CallsPerMinute: 1} })
	w.agent = fresh("push")
	a, b := w.approved(), w.approved()
	w.stands(w.resume(a), run.Failed, run.RepeatedFailures) // its first push ran, then the guard was full
	w.ran(`look{"n":1} look{"n":2} push{"n":1}`)
	before := len(w.spy.calls())
	b = w.resume(b)
	if got := w.told(b.ID); !strings.HasPrefix(got, "failed:policy_denied ") || len(w.spy.calls()) != before {
		t.Errorf("steps %s", got)
	}
	if d := w.decision(w.steps(b.ID)[0].ApprovalID); d.Status != decision.Superseded {
		t.Errorf("its grant is %s", d.Status)
	}
}
