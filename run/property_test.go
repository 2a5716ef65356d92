package run_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
)

// history is a run on which anything happens in any order, as anybody may try it.
type history struct {
	run    run.Run
	now    time.Time
	last   run.Hold // what the present holder writes with
	former run.Hold // and the one before
	n      int
}

// command draws whatever can happen to a run; most of it does not fit.
func (h *history) command(t *rapid.T) run.Command {
	h.n++
	id := strconv.Itoa(h.n)
	hold := h.last
	if rapid.IntRange(0, 9).Draw(t, "who") == 0 {
		hold = h.former
	}
	hold.At, hold.Until = h.now, h.now.Add(lease)
	taken := take(h.now, rapid.Int64Range(1, 2).Draw(t, "epoch"))
	approval := ask("apr_"+id, h.run.ApprovalN+1)
	kind := rapid.SampledFrom([]run.ObservationKind{run.ToolResult, run.ToolError, run.PolicyDenied, run.InvalidDecision, run.WasInterrupted}).Draw(t, "kind")
	return rapid.SampledFrom([]run.Command{
		run.Create{Take: taken},
		run.Advance{Hold: hold, StepID: "stp_" + id},
		run.Advance{Hold: hold, StepID: "stp_" + id},
		run.Record{Hold: hold, Proposal: push, ArgsDigest: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "digest")},
		run.Judged{Ruling: run.Ruling{Outcome: policy.Allow}},
		run.Pause{Hold: hold, Approval: approval, CallID: "call_" + id},
		run.Execute{Hold: hold, CallID: "call_" + id},
		run.Observe{Hold: hold, Kind: kind},
		run.Interrupt{Hold: hold, Message: "lost"},
		run.TakeOver{Take: taken},
		run.Resume{Take: taken},
		run.Release{Hold: hold},
		run.Charge{Hold: hold, Usage: run.Usage{ModelCalls: 1, Tokens: rapid.Int64Min(0).Draw(t, "tokens")}},
		run.Cancel{By: "ana"},
		answer(rapid.SampledFrom(decision.Statuses()).Draw(t, "status")),
		run.End{Hold: hold, Status: run.Completed, Reason: run.GoalCompleted},
	}).Draw(t, "command")
}

// Whatever happens, in whatever order: a run that has ended stays so, the fence never
// falls, at most one step is open, the count of steps grows one by one, time is not
// lost, and the same input has the same answer.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := history{now: noon, run: run.Run{
			ID: "run_1", Limits: run.Limits{
				MaxSteps: rapid.Int64Range(1, 6).Draw(t, "max steps"), MaxConsecutiveToolFailures: 3, LoopThreshold: 3,
				MaxTotalTokens: rapid.Int64Range(0, 1000).Draw(t, "max tokens"), MaxActiveTime: time.Hour,
			},
		}}
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			h.now = h.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, lease, lease + time.Microsecond, time.Hour}).Draw(t, "later"))
			h.happen(t, h.command(t))
		}
	})
}

func (h *history) happen(t *rapid.T, cmd run.Command) {
	prev := h.run
	ch, err := prev.Step(cmd, h.now)
	again, err2 := prev.Step(cmd, h.now)
	if diff := cmp.Diff(ch, again); diff != "" || (err == nil) != (err2 == nil) || cmp.Diff(prev, h.run) != "" {
		t.Fatalf("%T: %v and %v:\n%s", cmd, err, err2, diff)
	}
	if err != nil {
		return
	}
	r := ch.Next
	checkRun(t, r)
	switch {
	case prev.Status.Terminal():
		t.Fatalf("%T changed a run that is %s", cmd, prev.Status)
	case r.Fence < prev.Fence || r.Fence > prev.Fence+1:
		t.Fatalf("%T: fence %d after %d", cmd, r.Fence, prev.Fence)
	case r.ActiveAt(h.now) < prev.Active || r.Usage.Tokens < prev.Usage.Tokens:
		t.Fatalf("%T: %s of work after %s, %d tokens after %d", cmd, r.ActiveAt(h.now), prev.Active, r.Usage.Tokens, prev.Usage.Tokens)
	}
	h.checkStep(t, cmd, ch)
	h.run = r
	if r.Fence != prev.Fence {
		h.former, h.last = h.last, run.Hold{Fence: r.Fence, Epoch: r.Epoch}
	}
}

// checkStep: a new step begins only where the one before has ended, which then
// comes with the change.
func (h *history) checkStep(t *rapid.T, cmd run.Command, ch run.Change) {
	prev, r := h.run, ch.Next
	claimed := r.Current.ID != prev.Current.ID
	switch {
	case r.StepCount != r.Current.Index || r.StepCount > r.Limits.MaxSteps:
		t.Fatalf("%T: %d steps, the last is %d of at most %d", cmd, r.StepCount, r.Current.Index, r.Limits.MaxSteps)
	case !claimed && r.StepCount != prev.StepCount || claimed && r.StepCount != prev.StepCount+1:
		t.Fatalf("%T: %d steps after %d", cmd, r.StepCount, prev.StepCount)
	case claimed && open(prev.Current.Status):
		t.Fatalf("%T: a step begins while %s is open", cmd, prev.Current.ID)
	case claimed && prev.Current.ID != "" && (ch.Ended == nil || *ch.Ended != prev.Current), !claimed && ch.Ended != nil:
		t.Fatalf("%T: the change ends %+v", cmd, ch.Ended)
	case r.Status == run.Waiting && r.Current.Status != run.AwaitingApproval:
		t.Fatalf("%T: it waits at a step that is %s", cmd, r.Current.Status)
	case r.Status.Terminal() && open(r.Current.Status):
		t.Fatalf("%T: it has ended, and its step is %s", cmd, r.Current.Status)
	}
}
