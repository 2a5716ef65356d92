package run_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/run"
)

// move applies a command that has to be accepted.
func move(t *testing.T, r run.Run, cmd run.Command, now time.Time) run.Run {
	t.Helper()
	ch, err := r.Step(cmd, now)
	if err != nil {
		t.Fatalf("%T: %v", cmd, err)
	}
	checkChange(t, r, ch)
	return ch.Next
}

func types(es []event.Event) []event.Type {
	var ts []event.Type
	for _, e := range es {
		ts = append(ts, e.Type)
	}
	return ts
}

// advance claims the next step of a run whose step has ended.
func advance(r run.Run, now time.Time) (run.Change, error) {
	return r.Step(run.Advance{Hold: hold(noon), StepID: "stp_2"}, now)
}

// Each limit on its own (spec 1.1): exactly at it is allowed, one beyond is not, and
// the run then ends with its reason and its event.
func TestLimits(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	tests := []struct {
		reason run.Reason
		limit  string // as the event names it
		at     func(r *run.Run, beyond int64) (now time.Time)
	}{
		{run.LimitSteps, "max_steps", func(r *run.Run, n int64) time.Time {
			r.StepCount, r.Limits.MaxSteps = 6+n, 7
			return noon
		}},
		{run.RepeatedFailures, "max_consecutive_tool_failures", func(r *run.Run, n int64) time.Time {
			r.Failures = 2 + n
			return noon
		}},
		{run.LimitActiveTime, "max_active_time", func(r *run.Run, n int64) time.Time {
			r.Active, r.ActiveSince, r.Limits.MaxActiveTime = 40*time.Second, noon, time.Minute
			return noon.Add(20*time.Second + time.Duration(n)*us)
		}},
		{run.LimitElapsedTime, "max_elapsed_time", func(r *run.Run, n int64) time.Time {
			r.CreatedAt, r.Limits.MaxElapsedTime = noon.Add(-time.Hour), time.Hour
			return noon.Add(time.Duration(n) * us)
		}},
		{run.LoopDetected, "", func(r *run.Run, n int64) time.Time {
			r.Repeats = 2 + n
			return noon
		}},
		{run.LimitModelCalls, "max_model_calls", func(r *run.Run, n int64) time.Time {
			r.Usage.ModelCalls, r.Limits.MaxModelCalls = 4+n, 5
			return noon
		}},
		{run.LimitTokens, "max_total_tokens", func(r *run.Run, n int64) time.Time {
			r.Usage.Tokens, r.Limits.MaxTotalTokens = 99+n, 100
			return noon
		}},
		{run.LimitCost, "max_estimated_cost", func(r *run.Run, n int64) time.Time {
			r.Usage.Cost, r.Limits.MaxEstimatedCost = 2_499_999+run.Cost(n), 2_500_000
			return noon
		}},
	}
	for i, tt := range tests {
		t.Run(string(tt.reason), func(t *testing.T) {
			t.Parallel()
			r := inState(run.Running, run.Done)
			now := tt.at(&r, 0)
			if ch, err := advance(r, now); err != nil || ch.Next.Status != run.Running || ch.Next.Current.ID != "stp_2" {
				t.Errorf("at the limit: %v, %s (%s)", err, ch.Next.Status, ch.Next.Detail)
			}
			r = inState(run.Running, run.Done)
			now = tt.at(&r, 1)
			for _, later := range tests[i+1:] { // of several the first is the reason
				if at := later.at(&r, 1); at.After(now) {
					now = at
				}
			}
			ch, err := advance(r, now)
			if err != nil {
				t.Fatal(err)
			}
			checkChange(t, r, ch)
			if ch.Next.Status != run.Failed || ch.Next.Reason != tt.reason || ch.Next.Current.ID != "stp_1" || ch.Ended != nil {
				t.Errorf("beyond it: %s, %s, step %s", ch.Next.Status, ch.Next.Reason, ch.Next.Current.ID)
			}
			checkLimitEvent(t, ch, tt.limit)
		})
	}
}

func checkLimitEvent(t *testing.T, ch run.Change, limit string) {
	t.Helper()
	told := event.LimitExceeded
	if limit == "" {
		told = event.LoopDetected
	}
	if diff := cmp.Diff([]event.Type{told, event.RunFinished}, types(ch.Events)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	var p struct{ Limit, Value, Max, Tool string }
	if err := json.Unmarshal(ch.Events[0].Payload, &p); err != nil || p.Limit != limit || (limit == "") != (p.Tool == "push") || (limit == "") != (p.Max == "") {
		t.Errorf("the event tells of %+v: %v", p, err)
	}
	if limit != "" && (!strings.Contains(ch.Next.Detail, limit) || !strings.Contains(ch.Next.Detail, p.Max) || !strings.Contains(ch.Next.Detail, p.Value)) {
		t.Errorf("the detail %q does not name %s, %s and %s", ch.Next.Detail, limit, p.Value, p.Max)
	}
}

// Limits that are 0 are off, whatever was used.
func TestLimitsOff(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Done)
	r.Usage = run.Usage{ModelCalls: math.MaxInt64 - 1, Tokens: math.MaxInt64, Cost: math.MaxInt64}
	r.Active = math.MaxInt64 / 2
	ch, err := advance(r, noon.AddDate(100, 0, 0))
	if err != nil || ch.Next.Status != run.Running {
		t.Errorf("%v: %s %s", err, ch.Next.Status, ch.Next.Detail)
	}
}

// A failure or a denial lengthens the streak, a result ends it, and the rest leaves it.
func TestFailureStreak(t *testing.T) {
	t.Parallel()
	for kind, want := range map[run.ObservationKind]int64{
		run.ToolError: 3, run.PolicyDenied: 3, run.ToolResult: 0, run.InvalidDecision: 2, run.WasInterrupted: 2,
	} {
		r := inState(run.Running, run.Executing)
		r.Failures = 2
		if got := move(t, r, run.Observe{Hold: hold(noon), Kind: kind}, noon).Failures; got != want {
			t.Errorf("after %s: %d, want %d", kind, got, want)
		}
	}
}

// Only the same tool with the same arguments, one right after the other, is a repeat.
func TestRepeats(t *testing.T) {
	t.Parallel()
	call := func(tool, digest string) run.Record {
		return run.Record{Hold: hold(noon), Proposal: run.Proposal{Kind: run.CallTool, Tool: tool}, ArgsDigest: digest}
	}
	r := inState(run.Running, run.Done)
	for i, s := range []struct {
		cmd  run.Record
		want int64
	}{
		{call("push", "a"), 1},
		{call("push", "a"), 2},
		{call("push", "b"), 1},
		{call("pull", "b"), 1},
		{call("pull", "b"), 2},
		{run.Record{Hold: hold(noon), Proposal: run.Proposal{Kind: "nonsense"}, ArgsDigest: "b"}, 0},
		{call("pull", "b"), 1},
		{call("pull", ""), 0}, // arguments that have no digest are like nothing
		{call("pull", ""), 0},
		{call("pull b", "c"), 1},
		{call("pull", "b c"), 2}, // no tool has a space in its name
	} {
		r = move(t, r, run.Advance{Hold: hold(noon), StepID: string(rune('a' + i))}, noon)
		r = move(t, r, s.cmd, noon)
		if r.Repeats != s.want {
			t.Errorf("%d: %d repeats, want %d", i, r.Repeats, s.want)
		}
		r = move(t, r, run.Observe{Hold: hold(noon), Kind: run.ToolResult}, noon)
	}
}

func TestRecordOnce(t *testing.T) {
	t.Parallel()
	p := run.Proposal{
		Kind: run.CallTool, Tool: "push", Args: json.RawMessage(` {"a":1.0}`), Text: "why", Raw: []byte("\xff raw"), Node: "n",
	}
	r := move(t, inState(run.Running, run.Deciding), run.Record{Hold: hold(noon), Proposal: p, ArgsDigest: "d"}, noon)
	s := r.Current
	if s.Kind != p.Kind || s.Tool != "push" || s.Args != string(p.Args) || s.ArgsDigest != "d" || s.Said != "why" || s.Raw != "\xff raw" || s.Node != "n" {
		t.Errorf("recorded as %+v", s)
	}
	p.Args[0], p.Raw[0] = 'x', 'x' // what the agent gave is its own
	if s.Args != ` {"a":1.0}` || s.Raw != "\xff raw" {
		t.Errorf("the record shares memory: %q, %q", s.Args, s.Raw)
	}
	if _, err := r.Step(run.Record{Hold: hold(noon), Proposal: p}, noon); !errors.Is(err, run.ErrRunState) {
		t.Errorf("recorded twice: %v", err)
	}
}

// What is reserved counts at once, up to the limit and not beyond.
func TestCharge(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Deciding)
	r.Limits.MaxModelCalls, r.Limits.MaxTotalTokens, r.Limits.MaxEstimatedCost = 3, 100, 5
	charge := func(c run.Charge) (run.Usage, error) {
		c.Hold = hold(noon)
		ch, err := r.Step(c, noon)
		if err == nil {
			r = ch.Next
		}
		return r.Usage, err
	}
	for i, s := range []struct {
		charge run.Charge
		want   run.Usage
		reason string
	}{
		{run.Charge{Usage: run.Usage{ModelCalls: 2, Tokens: 100, Cost: 5}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, ""},
		{run.Charge{Usage: run.Usage{ModelCalls: 1}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, "limit_model_calls"},
		{run.Charge{Usage: run.Usage{Tokens: 1}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, "limit_tokens"},
		{run.Charge{Usage: run.Usage{Cost: 1}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, "limit_cost"},
		{run.Charge{Usage: run.Usage{Tokens: math.MaxInt64}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, "limit_tokens"},
		{run.Charge{Usage: run.Usage{Cost: math.MaxInt64}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 5}, "limit_cost"},
		{ // less was taken
			run.Charge{Usage: run.Usage{Tokens: 30, Cost: 1}, Refund: run.Usage{Tokens: 90, Cost: 4}, Corrects: true},
			run.Usage{ModelCalls: 3, Tokens: 40, Cost: 2},
			"",
		},
		{run.Charge{Usage: run.Usage{Tokens: 60}}, run.Usage{ModelCalls: 3, Tokens: 100, Cost: 2}, ""},
		{ // more was taken than the limit: it is noted all the same
			run.Charge{Usage: run.Usage{Tokens: 70, Cost: 9}, Refund: run.Usage{Tokens: 60}, Corrects: true},
			run.Usage{ModelCalls: 3, Tokens: 110, Cost: 11},
			"",
		},
		{ // what nobody can count any more stays above every limit
			run.Charge{Usage: run.Usage{Tokens: math.MaxInt64, Cost: math.MaxInt64}, Corrects: true},
			run.Usage{ModelCalls: 3, Tokens: math.MaxInt64, Cost: math.MaxInt64},
			"",
		},
	} {
		got, err := charge(s.charge)
		if got != s.want || err == nil != (s.reason == "") || err != nil && (word(err) != s.reason || !errors.Is(err, run.ErrLimit)) {
			t.Errorf("%d: %+v, %v; want %+v, %s", i, got, err, s.want, s.reason)
		}
	}
}

// Work counts, also over a pause and up to the end of a lost process's lease; waiting
// for people does not.
func TestActiveTime(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	check := func(r run.Run, s int, want time.Duration) {
		t.Helper()
		if got := r.ActiveAt(at(s)); got != want*time.Second {
			t.Errorf("after %d s: %s, want %d s", s, got, want)
		}
	}
	r := inState(run.Running, run.Deciding)
	check(r, -5, 0) // a clock that went back takes nothing away
	check(r, 3, 3)
	r = move(t, r, run.Pause{Hold: hold(at(10)), Approval: ask("apr_1", 1), CallID: "call_1"}, at(10))
	check(r, 1000, 10)
	r = move(t, r, run.Pause{Approval: ask("apr_2", 2), CallID: "call_1"}, at(500)) // asked anew while nobody works
	check(r, 1000, 10)
	r = move(t, r, run.Resume{Take: take(at(1000), 1)}, at(1000)) // a lease until 1030
	check(r, 1005, 15)
	r = move(t, r, run.TakeOver{Take: take(at(2000), 1)}, at(2000)) // lost at 1030 at the latest; a lease until 2030
	check(r, 2001, 41)
	r = move(t, r, run.TakeOver{Take: take(at(2010), 2)}, at(2010)) // another life: the lease had not ended
	check(r, 2010, 50)
	h := hold(at(2011))
	h.Fence, h.Epoch = r.Fence, r.Epoch
	r = move(t, r, run.Execute{Hold: h, CallID: "call_1"}, at(2011))
	r = move(t, r, run.Observe{Hold: h, Kind: run.ToolResult}, at(2015))
	r = move(t, r, run.Release{Hold: h}, at(2020))
	check(r, 3000, 60)
	r = move(t, r, run.TakeOver{Take: take(at(3000), 2)}, at(3000))
	check(r, 3001, 61)
	r = move(t, r, run.Cancel{By: "ana"}, at(3005))
	check(r, 9000, 65)
}

// The engine's clock may stand anywhere beside the store's, which judges leases.
func TestActiveTimeByTwoClocks(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Deciding) // by the store's clock leased until noon and 30 s
	r.ActiveSince = noon.AddDate(1, 0, 0)
	now := r.ActiveSince.Add(50 * time.Second)
	r = move(t, r, run.TakeOver{Take: take(noon.Add(40*time.Second), 1)}, now) // 10 s after the lease ended
	if got := r.ActiveAt(now); got != 40*time.Second {
		t.Errorf("the lost process worked for %s, want 40s", got)
	}
	r = inState(run.Running, run.Deciding)
	r.Active = time.Second
	r = move(t, r, run.TakeOver{Take: take(noon.Add(time.Hour), 1)}, noon.Add(time.Second)) // dead for longer than it was at work
	if got := r.ActiveAt(noon.Add(time.Second)); got != time.Second {
		t.Errorf("the lost process worked for %s, want 1s", got)
	}
}

// A lease can be taken when it has ended, was given back, or is of another life.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Executing)
	_, err := r.Step(run.TakeOver{Take: take(r.LeaseUntil, 1)}, noon)
	want := run.Leased{RunID: "run_1", Owner: "me", ExpiresAt: r.LeaseUntil}
	if got, ok := run.LeasedOf(err); !errors.Is(err, run.ErrRunLeased) || !errors.Is(err, run.ErrRunState) || !ok || got != want {
		t.Errorf("at the last instant: %v, %+v", err, got)
	}
	released := move(t, inState(run.Running, run.Done), run.Release{Hold: hold(noon)}, noon)
	for name, tt := range map[string]struct {
		from run.Run
		take run.Take
		want []event.Type
	}{
		"ended":       {r, take(r.LeaseUntil.Add(time.Microsecond), 1), []event.Type{event.LeaseTakenOver}},
		"earlier":     {r, take(noon, 2), []event.Type{event.LeaseTakenOver}},
		"later":       {r, take(noon, 0), []event.Type{event.LeaseTakenOver}}, // of a life that is gone
		"given back":  {released, take(noon, 1), []event.Type{event.RunResumed}},
		"of deciding": {inState(run.Running, run.Deciding), take(lost, 1), []event.Type{event.LeaseTakenOver, event.StepInterrupted}},
	} {
		ch, err := tt.from.Step(run.TakeOver{Take: tt.take}, noon)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkChange(t, tt.from, ch)
		n := ch.Next
		if n.Fence != tt.from.Fence+1 || n.LeaseOwner != "you" || !n.LeaseUntil.Equal(tt.take.Until) || n.Epoch != tt.take.Epoch {
			t.Errorf("%s: %+v", name, n)
		}
		if diff := cmp.Diff(tt.want, types(ch.Events)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

// Who gave a lease back, lost it, or never had it writes nothing, whatever it is.
func TestFence(t *testing.T) {
	t.Parallel()
	released := move(t, inState(run.Running, run.Done), run.Release{Hold: hold(noon)}, noon)
	taken := move(t, inState(run.Running, run.Interrupted), run.TakeOver{Take: take(lost, 1)}, lost)
	of := func(h run.Hold) []run.Command {
		return []run.Command{
			run.Advance{Hold: h, StepID: "stp_2"},
			run.Record{Hold: h},
			run.Pause{Hold: h},
			run.Execute{Hold: h},
			run.Observe{Hold: h, Kind: run.ToolResult},
			run.Interrupt{Hold: h},
			run.End{Hold: h, Status: run.Completed, Reason: run.GoalCompleted},
			run.Release{Hold: h},
			run.Charge{Hold: h},
		}
	}
	future := hold(noon)
	future.Fence = 7
	for name, tt := range map[string]struct {
		run  run.Run
		hold run.Hold
	}{
		"given back":       {released, hold(noon)},
		"taken by another": {taken, hold(noon)},
		"old fence":        {inState(run.Running, run.Deciding), stale},
		"other life":       {inState(run.Running, run.Deciding), another},
		"never given":      {inState(run.Running, run.Deciding), future},
	} {
		for _, cmd := range of(tt.hold) {
			if _, err := tt.run.Step(cmd, noon); !errors.Is(err, run.ErrLeaseLost) || !errors.Is(err, run.ErrRunState) {
				t.Errorf("%s: %T: %v", name, cmd, err)
			}
		}
	}
}

// What is written extends the lease, and never brings back one that has ended.
func TestLeaseIsExtended(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Executing)
	if got := move(t, r, run.Observe{Hold: hold(last), Kind: run.ToolResult}, noon); !got.LeaseUntil.Equal(last.Add(lease)) {
		t.Errorf("leased until %v", got.LeaseUntil)
	}
	if got := move(t, r, run.Observe{Hold: hold(lost), Kind: run.ToolResult}, noon); !got.LeaseUntil.Equal(r.LeaseUntil) {
		t.Errorf("a lease that had ended lasts until %v", got.LeaseUntil)
	}
}

// Several commands are one change: their events in order, and the step that ended.
func TestThen(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Executing)
	ch, err := run.Change{Next: r}.Then(run.Observe{Hold: hold(noon), Kind: run.PolicyDenied, Message: "no"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	first := ch
	ch, err = ch.Then(run.Advance{Hold: hold(noon), StepID: "stp_2"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]event.Type{event.StepFailed, event.StepStarted}, types(ch.Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if ch.Ended == nil || ch.Ended.ID != "stp_1" || ch.Ended.Status != run.StepFailed || ch.Next.Current.ID != "stp_2" || ch.Next.StepCount != 2 {
		t.Errorf("ended %+v, then %+v", ch.Ended, ch.Next.Current)
	}
	ch, err = ch.Then(run.Record{Hold: hold(noon), Proposal: push}, noon)
	if err != nil || ch.Ended == nil || ch.Ended.ID != "stp_1" || len(ch.Events) != 3 {
		t.Errorf("%v: ended %+v, %v", err, ch.Ended, types(ch.Events))
	}
	if got, err := ch.Then(run.Release{Hold: stale}, noon); !errors.Is(err, run.ErrLeaseLost) || cmp.Diff(run.Change{}, got) != "" {
		t.Errorf("a refusal leaves %+v, %v", got, err)
	}
	// Two that go on from one change share nothing.
	a, _ := first.Then(run.Release{Hold: hold(noon)}, noon)
	b, _ := first.Then(run.Advance{Hold: hold(noon), StepID: "stp_3"}, noon)
	if len(a.Events) != 1 || len(b.Events) != 2 || len(first.Events) != 1 {
		t.Errorf("%v, %v, %v", types(first.Events), types(a.Events), types(b.Events))
	}
	ch, _ = ch.Then(run.Observe{Hold: hold(noon), Kind: run.ToolError}, noon)
	panics(t, "two steps that end in one change", func() { _, _ = ch.Then(run.Advance{Hold: hold(noon), StepID: "stp_3"}, noon) })
}

func panics(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}

func TestUnknownCommandPanics(t *testing.T) {
	t.Parallel()
	panics(t, "a command that nobody knows", func() { _, _ = inState(run.Running, run.Deciding).Step(nil, noon) })
}

// Whoever ends a run is named in it, with their note.
func TestEndedByPeople(t *testing.T) {
	t.Parallel()
	answered := func(s decision.Status, note string) run.Command {
		return run.Answered{Decision: decision.Decision{ID: "apr_1", Status: s, DecidedBy: "ana", Note: note}}
	}
	for name, tt := range map[string]struct {
		cmd    run.Command
		reason run.Reason
		kind   run.ObservationKind
		actor  string
		detail string
	}{
		"cancel":        {run.Cancel{By: "ana"}, run.OperatorCancelled, run.WasInterrupted, "ana", "Cancelled by ana."},
		"cancel, note":  {run.Cancel{By: "ana", Note: "enough"}, run.OperatorCancelled, run.WasInterrupted, "ana", "Cancelled by ana: enough"},
		"no":            {answered(decision.Rejected, ""), run.ApprovalRejected, run.PolicyDenied, "ana", "Approval apr_1 was rejected by ana."},
		"no, note":      {answered(decision.Rejected, "too much"), run.ApprovalRejected, run.PolicyDenied, "ana", "Approval apr_1 was rejected by ana: too much"},
		"nobody":        {answered(decision.Expired, ""), run.ApprovalExpired, run.WasInterrupted, event.System, "Approval apr_1 expired: nobody agreed, or acted on a yes, in time."},
		"a yes too old": {answered(decision.Expired, "fine"), run.ApprovalExpired, run.WasInterrupted, event.System, "Approval apr_1 expired: nobody agreed, or acted on a yes, in time."},
	} {
		ch, err := inState(run.Waiting, run.AwaitingApproval).Step(tt.cmd, noon)
		r := ch.Next
		if err != nil || r.Status != run.Cancelled || r.Reason != tt.reason || r.Detail != tt.detail || r.Current.Observation != tt.kind || r.Current.Message != tt.detail {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
		for _, e := range ch.Events {
			if e.Actor != tt.actor {
				t.Errorf("%s: %s is by %q", name, e.Type, e.Actor)
			}
		}
	}
	for _, s := range []decision.Status{decision.Pending, decision.Approved, decision.Withdrawn, decision.Superseded, decision.Consumed} {
		if _, err := inState(run.Waiting, run.AwaitingApproval).Step(answered(s, ""), noon); !errors.Is(err, run.ErrRunState) {
			t.Errorf("an approval that is %s ended its run: %v", s, err)
		}
	}
}

// A flow's approval has no tool that could tell of its end.
func TestApprovalWithoutToolTells(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Deciding)
	r = move(t, r, run.Record{Hold: hold(noon), Proposal: run.Proposal{Kind: run.AskApproval, Node: "publish"}}, noon)
	r = move(t, r, run.Pause{Hold: hold(noon), Approval: ask("apr_1", 1)}, noon)
	r = move(t, r, run.Resume{Take: take(noon, 1)}, noon)
	h := hold(noon)
	h.Fence = r.Fence
	ch, err := r.Step(run.Observe{Hold: h, Kind: run.ToolResult}, noon)
	if diff := cmp.Diff([]event.Type{event.StepToolFinished}, types(ch.Events)); err != nil || diff != "" {
		t.Fatalf("%v: events (-want +got):\n%s", err, diff)
	}
	var p map[string]string
	if err := json.Unmarshal(ch.Events[0].Payload, &p); err != nil || p["node"] != "publish" || p["kind"] != "tool_result" || p["step_id"] != "stp_1" {
		t.Errorf("it tells of %v: %v", p, err)
	}
}

// Who holds a run is known also behind HTTP.
func TestLeasedOf(t *testing.T) {
	t.Parallel()
	r := inState(run.Running, run.Deciding)
	_, err := r.Step(run.TakeOver{Take: take(noon, 1)}, noon)
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	decoded := new(fault.Error)
	if err := json.Unmarshal(b, decoded); err != nil {
		t.Fatal(err)
	}
	got, ok := run.LeasedOf(decoded)
	if want := (run.Leased{RunID: "run_1", Owner: "me", ExpiresAt: r.LeaseUntil}); !ok || !got.ExpiresAt.Equal(want.ExpiresAt) || got.Owner != want.Owner || got.RunID != want.RunID {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, err := range map[string]error{
		"nothing":        nil,
		"another error":  errors.New("x"),
		"no details":     run.ErrRunLeased,
		"other details":  run.ErrRunLeased.With(map[string]int{"run_id": 1}),
		"no run":         run.ErrRunLeased.With(run.Leased{Owner: "me"}),
		"another fault":  run.ErrRunState.With(got),
		"the lease lost": run.ErrLeaseLost.With(got),
	} {
		if l, ok := run.LeasedOf(err); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
