package gallery

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

func before(d time.Duration) string { return txn.Stamp(now.Add(-d)) }

// chosen are the options of a filter, of which the first is set.
func chosen[S ~string](all string, words []S, word func(string) string) []view.Option {
	os := []view.Option{{Text: all, Chosen: true}}
	for _, w := range words {
		os = append(os, view.Option{Value: string(w), Text: word(string(w))})
	}
	return os
}

// aRun is a run that stands so.
func aRun(s run.Status, why run.Reason) run.Object {
	r := run.Object{
		RunID: runID, Status: s, Reason: why, Goal: "Refund damaged parcels, and tell each customer.", Agent: "clerk",
		Limits:    run.Limits{MaxSteps: 50, MaxConsecutiveToolFailures: 3, LoopThreshold: 3, MaxActiveTime: 10 * time.Minute, MaxElapsedTime: 24 * time.Hour, MaxModelCalls: 40, MaxTotalTokens: 100_000, MaxEstimatedCost: 2_000_000},
		StepCount: 3, Usage: run.Usage{ModelCalls: 7, Tokens: 12_345, Cost: 310_000}, ActiveMS: 93_000, CreatedAt: before(26 * time.Minute),
	}
	if s == run.Waiting {
		r.PendingApproval = approvalID
	}
	if s.Terminal() {
		r.FinishedAt = before(time.Minute)
	}
	if s == run.Failed {
		r.ReasonDetail = "max_steps: 50 steps were taken."
	}
	if s == run.Completed {
		r.Result = json.RawMessage(`"The customer has the money."`)
	}
	return r
}

// aStep is one of a run's steps.
func aStep(index int64, s run.StepStatus) run.StepObject {
	st := run.StepObject{
		StepID: fmt.Sprint(stepID[:len(stepID)-1], index), Index: index, Status: s, Tool: "refund", Args: json.RawMessage(refundArgs),
		Ruling: &run.Ruling{Outcome: policy.RequireApproval, Reason: "refunds above 50 need a person"}, ApprovalID: approvalID, CallID: callID, StartedAt: before(20 * time.Minute),
	}
	switch s {
	case run.Deciding:
		return run.StepObject{StepID: st.StepID, Index: index, Status: s, StartedAt: st.StartedAt}
	case run.Done:
		st.Observation, st.Result = &run.ObservationObject{Kind: run.ToolResult}, json.RawMessage(`{"refund_id":"r-991","state":"sent"}`)
	case run.StepFailed:
		st.Observation = &run.ObservationObject{Kind: run.ToolError, Message: "The card was closed."}
	case run.Interrupted:
		st.Observation = &run.ObservationObject{Kind: run.WasInterrupted}
	default:
		return st
	}
	st.FinishedAt = before(19 * time.Minute)
	return st
}

func (f Frame) runs() []State {
	s := f.shell(ana, view.Runs, "Runs")
	list := view.RunList{At: now, Statuses: chosen("any status", run.Statuses(), review.StatusWord), Next: "/runs?after=x", Room: view.NewRoom()}
	list.Runs = []run.Object{
		aRun(run.Running, ""), aRun(run.Waiting, ""), aRun(run.Completed, run.GoalCompleted), aRun(run.Failed, run.LimitSteps), aRun(run.Cancelled, run.ApprovalRejected),
	}
	nameless := aRun(run.Running, "")
	nameless.RunID, nameless.Goal, nameless.Agent, nameless.Flow = "orders/2026-03 "+long[:80], "", "", "nightly 2"
	strange := aRun(run.Running, "")
	strange.Goal = odd
	list.Runs = append(list.Runs, nameless, strange)
	none := view.RunList{At: now, Statuses: list.Statuses, Room: view.NewRoom()}
	filtered := none
	filtered.Filtered = true
	return append([]State{
		{"runs", view.RunsPage(s, list)}, {"runs-empty", view.RunsPage(s, none)}, {"runs-filtered-empty", view.RunsPage(s, filtered)},
	}, f.eachRun()...)
}

func (f Frame) eachRun() []State {
	page := func(name string, o run.Object, change ...func(*view.Run)) State {
		v := view.Run{Object: o, At: now, Mask: &display.Mask{}, Room: view.NewRoom()}
		for _, c := range change {
			c(&v)
		}
		return State{"run-" + name, view.RunPage(f.shell(ana, view.Runs, "A run"), v)}
	}
	of := func(r run.Object, steps ...run.StepStatus) run.Object {
		for i, s := range steps {
			r.Steps = append(r.Steps, aStep(int64(i+1), s))
		}
		return r
	}
	odder := of(aRun(run.Running, ""), run.Done)
	odder.Goal, odder.Steps[0].Args, odder.Steps[0].Ruling.Reason = odd+long, json.RawMessage(oddArgs()), odd
	return []State{
		page("new", aRun(run.Running, "")),
		page("running", of(aRun(run.Running, ""), run.Done, run.StepFailed, run.Executing)),
		page("deciding", of(aRun(run.Running, ""), run.Done, run.Deciding)),
		page("waiting", of(aRun(run.Waiting, ""), run.Done, run.AwaitingApproval)),
		page("approved", of(aRun(run.Waiting, ""), run.Done, run.AwaitingApproval), func(v *view.Run) {
			a := reviewed(decided(asked(refundArgs), decision.Approved, decision.ChoiceApprove), ofRun(run.Waiting))
			v.Granted = &a
		}),
		page("interrupted", of(aRun(run.Running, ""), run.Interrupted)),
		page("completed", of(aRun(run.Completed, run.GoalCompleted), run.Done, run.Done)),
		page("failed", of(aRun(run.Failed, run.LimitSteps), run.StepFailed), func(v *view.Run) { v.Back, v.Next = "/runs/x", "/runs/x?after=25" }),
		page("cancelled", of(aRun(run.Cancelled, run.ApprovalRejected), run.StepFailed)),
		page("odd-text", odder),
		page("one-step", of(aRun(run.Running, ""), run.Done), func(v *view.Run) { v.One, v.Next = 1, "/runs/x?step=2" }),
	}
}

// aCall is a call that stands so.
func aCall(s call.Status, attempts ...call.AttemptObject) call.Object {
	o := call.Object{
		CallID: callID, RunID: runID, Tool: "refund", Status: s, ApprovalID: approvalID, Args: json.RawMessage(refundArgs), Attempts: attempts,
		CreatedAt: before(14 * time.Minute), ExternalID: "toolu_01",
	}
	if s.Terminal() {
		o.EndedAt = before(time.Minute)
	}
	return o
}

func anAttempt(n int64, outcome call.Status) call.AttemptObject {
	a := call.AttemptObject{Attempt: n, Fence: n, StartedAt: before(2 * time.Minute), Outcome: outcome}
	if outcome != "" {
		a.EndedAt = before(time.Minute)
	}
	return a
}

func (f Frame) calls() []State {
	page := func(name string, o call.Object) State {
		v := view.Call{Object: o, Mask: &display.Mask{}, Room: view.NewRoom(), Stream: "call:" + callID}
		return State{"call-" + name, view.CallPage(f.shell(ana, view.Runs, "A call"), v)}
	}
	good := aCall(call.Succeeded, anAttempt(1, call.Succeeded))
	good.Result = json.RawMessage(`{"refund_id":"r-991","state":"sent"}`)
	bad := aCall(call.Failed, anAttempt(1, call.Failed))
	bad.Kind, bad.Message = call.KindToolError, "The card was closed."
	late := anAttempt(1, call.Succeeded)
	late.Late = true
	edited := anAttempt(2, call.Succeeded)
	edited.EditedArgs = json.RawMessage(`{"order_id":"o-7","amount":20}`)
	stuck := aCall(call.Pending)
	stuck.Stuck = "No process here has tool refund as it was approved. Start one that has it."
	strange := aCall(call.Failed, anAttempt(1, call.Failed))
	strange.Args, strange.Message, strange.ExternalID = json.RawMessage(oddArgs()), odd, odd
	grouped := view.Calls{RunID: "orders/2026-03", Next: "/runs/x?before=y"}
	for _, s := range call.Statuses() {
		grouped.Calls = append(grouped.Calls, call.Call{ID: callID, RunID: grouped.RunID, Tool: "refund", Status: s, ApprovalID: approvalID, CreatedAt: now.Add(-time.Hour)})
	}
	return []State{
		page("pending", aCall(call.Pending)),
		page("stuck", stuck),
		page("running", aCall(call.Running, anAttempt(1, ""))),
		page("succeeded", good),
		page("failed", bad),
		page("unknown", aCall(call.Unknown, anAttempt(1, call.Unknown))),
		page("edited", aCall(call.Succeeded, late, edited)),
		page("denied", aCall(call.Denied)),
		page("odd-text", strange),
		{"calls-of-a-run-id", view.CallsPage(f.shell(ana, view.Runs, "Calls"), grouped)},
	}
}
