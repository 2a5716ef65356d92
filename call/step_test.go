package call_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
)

const lease = 30 * time.Second

// inStatus brings a call where the table wants it, by the machine's own doors. ""
// is a call that is not stored yet.
func inStatus(t *testing.T, s call.Status) call.Call {
	t.Helper()
	return bring(t, call.Call{ID: "call_1", Space: event.MainSpace, RunID: "run_1", Tool: "refund", Args: []byte(`{}`), Version: 1}, s)
}

// hostedIn does so with a call that hangs below a run's step.
func hostedIn(t *testing.T, s call.Status) call.Call {
	t.Helper()
	return bring(t, call.Call{ID: "call_1", Space: event.MainSpace, RunID: "run_1", StepID: "stp_1", Tool: "refund", Args: []byte(`{}`), Version: 1}, s)
}

func bring(t *testing.T, c call.Call, s call.Status) call.Call {
	t.Helper()
	if s == "" {
		return c
	}
	c = move(t, c, park("apr_1", 1))
	switch s {
	case call.Pending:
		return c
	case call.Denied:
		return move(t, c, call.Refuse{Kind: call.KindApprovalDenied, Actor: "ana"})
	case call.Expired:
		return move(t, c, call.Lapse{})
	case call.Cancelled:
		return move(t, c, call.TakeBack{By: "bot"})
	}
	c = move(t, c, begin(0))
	switch s {
	case call.Running:
		return c
	case call.Unknown:
		return move(t, c, call.End{Fence: 1, Epoch: 1, Outcome: call.Outcome{Status: call.Unknown}})
	case call.Succeeded, call.Failed:
		return move(t, c, call.End{Fence: 1, Epoch: 1, Outcome: call.Outcome{Status: s}})
	}
	t.Fatalf("no way to %q", s)
	return c
}

func move(t *testing.T, c call.Call, cmd call.Command) call.Call {
	t.Helper()
	ch, err := c.Step(cmd, noon)
	if err != nil {
		t.Fatalf("%T: %v", cmd, err)
	}
	return ch.Next
}

func park(id string, n int64) call.Park {
	return call.Park{Approval: decision.Decision{ID: id, N: n, SpecDigest: "spec"}}
}

func begin(attempts int64) call.Begin {
	return call.Begin{ApprovalID: "apr_1", GrantDigest: "g", SpecDigest: "spec", Owner: "me", Epoch: 1, Lease: lease, Attempts: attempts}
}

func end(fence int64, s call.Status) call.End {
	return call.End{Fence: fence, Epoch: 1, Outcome: call.Outcome{Status: s, Kind: call.KindToolError, Message: "m"}}
}

var (
	inTime = noon.Add(lease)
	late   = noon.Add(lease + time.Microsecond)
)

// The commands of the table. Calls that were tried were tried once, with fence 1.
var commands = []struct {
	name string
	cmd  call.Command
	now  time.Time
}{
	{"park", park("apr_2", 2), noon},
	{"begin first", begin(0), noon},
	{"begin again", begin(1), noon},
	{"refuse", call.Refuse{Kind: call.KindPolicyDenied, Actor: event.System}, noon},
	{"lapse", call.Lapse{}, noon},
	{"take back", call.TakeBack{By: "bot"}, noon},
	{"end succeeded", end(1, call.Succeeded), inTime},
	{"end failed, late", end(1, call.Failed), late},
	{"end unknown", end(1, call.Unknown), inTime},
	{"end of no such attempt", end(9, call.Succeeded), inTime},
	{"end of an earlier attempt", end(0, call.Succeeded), inTime},
	{"end of another life", call.End{Fence: 1, Epoch: 2, Outcome: call.Outcome{Status: call.Succeeded}}, inTime},
	{"lose in time", call.Lose{Epoch: 1}, inTime},
	{"lose", call.Lose{Epoch: 1}, late},
	{"lose of an earlier life", call.Lose{Epoch: 2}, inTime},
	{"doubt", call.Doubt{Message: "restored"}, noon},
	{"learn", call.Learn{Outcome: call.Outcome{Status: call.Succeeded}}, noon},
	{"end, its run over", call.End{Fence: 1, Epoch: 1, Late: true, Outcome: call.Outcome{Status: call.Succeeded}}, inTime},
	{"lose, its run taken over", call.Lose{Epoch: 1, TakenOver: true}, inTime},
}

// Rows that several statuses share: nothing changes a call that has ended, and what
// an attempt says too late is only noted.
var (
	noted      = "unchanged, late [call.finished]"
	notedInRun = "unchanged, late [step.tool_finished]"
	ended      = endedRow(noted)
	neverTried = endedRow("lease_lost") // there is no attempt that could say anything
)

func endedRow(told string) []string {
	return []string{
		"run_state", "run_state", "run_state", "run_state", "run_state", "run_state",
		told, told, told, "lease_lost", told, "lease_lost",
		"run_state", "run_state", "run_state", "run_state", "run_state",
		told, "run_state",
	}
}

// Every status × every command (spec 2.3).
var steps = map[call.Status][]string{
	"": {
		"pending [call.created]", "running [call.created call.started]", "moved", "denied [call.created call.finished]", "run_state", "run_state",
		"lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost",
		"run_state", "run_state", "run_state", "run_state", "run_state",
		"lease_lost", "run_state",
	},
	call.Pending: {
		"pending []", "running [call.started]", "moved", "denied [call.finished]", "expired [call.finished]", "cancelled [call.cancelled]",
		"lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost",
		"run_state", "run_state", "run_state", "unknown [call.unknown]", "run_state",
		"lease_lost", "run_state",
	},
	call.Running: {
		"call_running", "call_running", "call_running", "call_running", "call_running", "call_running",
		"succeeded [call.finished]", "failed, late [call.finished]", "unknown [call.unknown]", "lease_lost", noted, "lease_lost",
		"call_running", "unknown [call.unknown]", "unknown [call.unknown]", "call_running", "call_running",
		"succeeded, late [call.finished]", "unknown [call.unknown]",
	},
	call.Unknown: {
		"unknown []", "moved", "running [call.started]", "unknown []", "unknown []", "unknown []",
		"succeeded, late [call.finished]", "failed, late [call.finished]", noted, "lease_lost", noted, "lease_lost",
		"run_state", "run_state", "run_state", "run_state", "succeeded, late [call.finished]",
		"succeeded, late [call.finished]", "run_state",
	},
	call.Succeeded: ended,
	call.Failed:    ended,
	call.Denied:    neverTried,
	call.Expired:   neverTried,
	call.Cancelled: neverTried,
}

// The same below a run's step: the statuses are the same, the events are the run's.
// What ended before the tool is told by the step itself.
var hosted = map[call.Status][]string{
	"": {
		"pending []", "running [step.tool_started]", "moved", "denied []", "run_state", "run_state",
		"lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost",
		"run_state", "run_state", "run_state", "run_state", "run_state",
		"lease_lost", "run_state",
	},
	call.Pending: {
		"pending []", "running [step.tool_started]", "moved", "denied []", "expired []", "cancelled []",
		"lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost", "lease_lost",
		"run_state", "run_state", "run_state", "unknown [step.interrupted]", "run_state",
		"lease_lost", "run_state",
	},
	call.Running: {
		"call_running", "call_running", "call_running", "call_running", "call_running", "call_running",
		"succeeded [step.tool_finished]", "failed, late [step.tool_finished]", "unknown [step.interrupted]", "lease_lost", notedInRun, "lease_lost",
		"call_running", "unknown [step.interrupted]", "unknown [step.interrupted]", "call_running", "call_running",
		"succeeded, late [step.tool_finished]", "unknown [step.interrupted]",
	},
	call.Unknown: {
		"unknown []", "moved", "running [step.tool_started]", "unknown []", "unknown []", "unknown []",
		"succeeded, late [step.tool_finished]", "failed, late [step.tool_finished]", notedInRun, "lease_lost", notedInRun, "lease_lost",
		"run_state", "run_state", "run_state", "run_state", "succeeded, late [step.tool_finished]",
		"succeeded, late [step.tool_finished]", "run_state",
	},
	call.Succeeded: endedRow(notedInRun),
	call.Failed:    endedRow(notedInRun),
	call.Denied:    neverTried,
	call.Expired:   neverTried,
	call.Cancelled: neverTried,
}

func TestStep(t *testing.T) {
	t.Parallel()
	checkTable(t, steps, inStatus)
}

func TestStepBelowARun(t *testing.T) {
	t.Parallel()
	checkTable(t, hosted, hostedIn)
}

func checkTable(t *testing.T, table map[call.Status][]string, in func(*testing.T, call.Status) call.Call) {
	t.Helper()
	cells := 0
	for _, from := range append([]call.Status{""}, call.Statuses()...) {
		if len(table[from]) != len(commands) {
			t.Fatalf("the row of %q has %d cells, not %d", from, len(table[from]), len(commands))
		}
		for i, k := range commands {
			cells++
			want := table[from][i]
			t.Run(fmt.Sprintf("%s/%s", from, k.name), func(t *testing.T) {
				t.Parallel()
				checkCell(t, in(t, from), k.cmd, k.now, want)
			})
		}
	}
	if want := 9 * 19; cells != want {
		t.Errorf("the table has %d cells, want %d", cells, want)
	}
}

func checkCell(t *testing.T, c call.Call, cmd call.Command, now time.Time, want string) {
	t.Helper()
	before := c
	ch, err := c.Step(cmd, now)
	if got := outcome(c, ch, err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err == nil {
		checkChange(t, c, ch, cmd)
	}
	again, err2 := c.Step(cmd, now)
	if diff := cmp.Diff(ch, again) + cmp.Diff(fmt.Sprint(err), fmt.Sprint(err2)); diff != "" {
		t.Errorf("the same command gave another answer (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("Step changed its call (-before +after):\n%s", diff)
	}
}

// The tables have a column for whatever command and a row for whatever status the package knows.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	known, err := source.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	for _, c := range commands {
		inTable[strings.TrimPrefix(fmt.Sprintf("%T", c.cmd), "call.")] = true
	}
	if got := slices.Sorted(maps.Keys(inTable)); !slices.Equal(got, known) {
		t.Errorf("the tables have the commands %v, the package %v", got, known)
	}
	values, err := source.Values(".", "Status")
	if err != nil {
		t.Fatal(err)
	}
	listed := append(call.Statuses(), call.Invalid) // which is only a result's
	if len(values) != len(listed) || len(steps) != len(listed) || len(hosted) != len(listed) {
		t.Fatalf("the package has %d statuses, lists %d, and the tables have %d and %d rows", len(values), len(listed), len(steps), len(hosted))
	}
	for i, v := range values {
		if v.Text != string(listed[i]) {
			t.Errorf("status %d is %s, listed as %s", i, v.Text, listed[i])
		}
	}
}

func outcome(prev call.Call, ch call.Change, err error) string {
	if err != nil {
		return reason(err)
	}
	s := string(ch.Next.Status)
	if ch.Ignored {
		if diff := cmp.Diff(prev, ch.Next); diff != "" {
			return "an outcome that is ignored changed the call: " + diff
		}
		s = "unchanged"
	}
	if ch.Late {
		s += ", late"
	}
	types := []event.Type{}
	for _, e := range ch.Events {
		types = append(types, e.Type)
	}
	return fmt.Sprint(s, " ", types)
}

// checkChange holds what every change has in common, whatever it was.
func checkChange(t *testing.T, prev call.Call, ch call.Change, cmd call.Command) {
	t.Helper()
	c := ch.Next
	running := c.Status == call.Running
	if running != !c.LeaseUntil.IsZero() || running != (c.LeaseOwner != "") {
		t.Errorf("%s with a lease until %v of %q", c.Status, c.LeaseUntil, c.LeaseOwner)
	}
	if c.Status.Terminal() != !c.EndedAt.IsZero() {
		t.Errorf("%s, ended at %v", c.Status, c.EndedAt)
	}
	if prev.Status.Terminal() && !ch.Ignored {
		t.Errorf("a call that was %s changed", prev.Status)
	}
	if c.Fence < prev.Fence || c.Attempts < prev.Attempts {
		t.Errorf("the fence or the count of attempts fell")
	}
	_, begins := cmd.(call.Begin)
	if begins != (ch.Attempt != nil) || begins && (c.Fence != prev.Fence+1 || c.Attempts != prev.Attempts+1) {
		t.Errorf("attempt %+v, fence %d after %d", ch.Attempt, c.Fence, prev.Fence)
	}
	if begins && (ch.Attempt.Fence != c.Fence || ch.Attempt.N != c.Attempts) {
		t.Errorf("the attempt is not the call's: %+v", ch.Attempt)
	}
	if c.Status == call.Unknown && c.Kind != call.KindUnknownOutcome {
		t.Errorf("unknown with kind %q", c.Kind)
	}
	subject := c.ID
	if c.Hosted() {
		subject = c.StepID
	}
	for _, e := range ch.Events {
		if e.Subject != subject || e.Actor == "" {
			t.Errorf("event %s of %q by %q", e.Type, e.Subject, e.Actor)
		}
		var told struct {
			StepID string `json:"step_id"`
			CallID string `json:"call_id"`
		}
		if err := json.Unmarshal(e.Payload, &told); err != nil || told.StepID != c.StepID || told.CallID != c.ID {
			t.Errorf("event %s tells of %+v: %v", e.Type, told, err)
		}
	}
}

// Below a run it is the run's lease that counts: a call whose run was taken over is
// lost however long its own lease lasts.
func TestLostWithItsRun(t *testing.T) {
	t.Parallel()
	c := hostedIn(t, call.Running)
	ch, err := c.Step(call.Lose{Epoch: 1, TakenOver: true}, noon)
	if err != nil || ch.Next.Status != call.Unknown || ch.Next.Message != "The process that ran the tool was lost." {
		t.Errorf("%v: %+v", err, ch.Next)
	}
	if ch, err = c.Step(call.Lose{Epoch: 2, TakenOver: true}, noon); err != nil || !strings.Contains(ch.Next.Message, "back in time") {
		t.Errorf("%v: %+v", err, ch.Next)
	}
	// An outcome after the run's end is late, and of an unknown call it is still the truth.
	for _, c := range []call.Call{c, hostedIn(t, call.Unknown)} {
		ch, err := c.Step(call.End{Fence: 1, Epoch: 1, Late: true, Outcome: call.Outcome{Status: call.Failed}}, noon)
		if err != nil || !ch.Late || ch.Ignored || ch.Next.Status != call.Failed {
			t.Errorf("%s: %v, %+v", c.Status, err, ch)
		}
	}
}

// A lease is judged like every limit: at the instant it still holds (spec 1.5).
func TestLeaseInstant(t *testing.T) {
	t.Parallel()
	c := inStatus(t, call.Running)
	if _, err := c.Step(call.Lose{Epoch: 1}, c.LeaseUntil); !errors.Is(err, call.ErrRunning) {
		t.Errorf("lost at the instant: %v", err)
	}
	if _, err := c.Step(call.Lose{Epoch: 1}, c.LeaseUntil.Add(time.Microsecond)); err != nil {
		t.Errorf("a microsecond later: %v", err)
	}
}

func TestUnknownCommandPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a command that nobody knows was taken")
		}
	}()
	_, _ = call.Call{}.Step(nil, noon)
}
