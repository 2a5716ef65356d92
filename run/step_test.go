package run_test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const lease = 30 * time.Second

// none is a run that has no status yet, or no step.
const none = "-"

// inState is a run of a status and a status of its step, as the loop leaves it:
// with fence 1 of epoch 1, and while it is RUNNING with a lease until noon and 30 s.
// Some of these cannot be; the table says what happens then.
func inState(status run.Status, step run.StepStatus) run.Run {
	r := run.Run{
		ID: "run_1", Space: event.MainSpace, Goal: "do it", Limits: run.DefaultLimits(), Principal: "bot",
		Status: status, Fence: 1, Epoch: 1, CreatedAt: noon, Version: 1,
	}
	switch {
	case status == "":
		r.Fence, r.Epoch = 0, 0
	case status == run.Running:
		r.LeaseUntil, r.LeaseOwner, r.ActiveSince = noon.Add(lease), "me", noon
	case status == run.Waiting:
		r.ApprovalID, r.ApprovalN = "apr_1", 1
	default:
		r.Reason, r.FinishedAt = run.OperatorCancelled, noon
	}
	if step == "" {
		return r
	}
	r.StepCount, r.Usage.ModelCalls = 1, 1
	r.Current = run.Step{ID: "stp_1", RunID: r.ID, Index: 1, Status: step, StartedAt: noon}
	if step != run.Deciding {
		r.Current.Kind, r.Current.Tool, r.Current.Args, r.Current.CallID = run.CallTool, "push", "{}", "call_1"
	}
	if step == run.AwaitingApproval {
		r.Current.ApprovalID = "apr_1"
	}
	if step == run.Done || step == run.StepFailed || step == run.Interrupted {
		r.Current.FinishedAt = noon
	}
	return r
}

// hold is what the process writes with that took the lease last.
func hold(at time.Time) run.Hold { return run.Hold{Fence: 1, Epoch: 1, At: at, Until: at.Add(lease)} }

func take(at time.Time, epoch int64) run.Take {
	return run.Take{Owner: "you", Epoch: epoch, At: at, Until: at.Add(lease)}
}

func ask(id string, n int64) decision.Decision { return decision.Decision{ID: id, N: n} }

func answer(s decision.Status) run.Answered {
	return run.Answered{Decision: decision.Decision{ID: "apr_1", Status: s, DecidedBy: "ana", Note: "no"}}
}

var (
	last    = noon.Add(lease) // the last instant of the lease
	lost    = noon.Add(lease + time.Microsecond)
	stale   = run.Hold{Fence: 0, Epoch: 1, At: noon, Until: noon.Add(lease)} // of before the last taking
	another = run.Hold{Fence: 1, Epoch: 2, At: noon, Until: noon.Add(lease)} // of another life of the store
	push    = run.Proposal{Kind: run.CallTool, Tool: "push", Args: []byte(`{}`)}
)

// commands of the table, each alone and where it differs.
var commands = []struct {
	name string
	cmd  run.Command
}{
	{"create", run.Create{Take: take(noon, 1)}},
	{"advance", run.Advance{Hold: hold(last), StepID: "stp_2"}},
	{"advance, lease ended", run.Advance{Hold: hold(lost), StepID: "stp_2"}},
	{"advance, old fence", run.Advance{Hold: stale, StepID: "stp_2"}},
	{"advance, other life", run.Advance{Hold: another, StepID: "stp_2"}},
	{"record", run.Record{Hold: hold(last), Proposal: push, ArgsDigest: "d"}},
	{"record, old fence", run.Record{Hold: stale, Proposal: push, ArgsDigest: "d"}},
	{"judged", run.Judged{Ruling: run.Ruling{Outcome: policy.Allow}}},
	{"pause", run.Pause{Hold: hold(last), Approval: ask("apr_2", 2), CallID: "call_1"}},
	{"pause, old fence", run.Pause{Hold: stale, Approval: ask("apr_2", 2), CallID: "call_1"}},
	{"execute", run.Execute{Hold: hold(last), CallID: "call_1"}},
	{"execute, lease ended", run.Execute{Hold: hold(lost), CallID: "call_1"}},
	{"execute, old fence", run.Execute{Hold: stale, CallID: "call_1"}},
	{"observe result", run.Observe{Hold: hold(last), Kind: run.ToolResult}},
	{"observe error", run.Observe{Hold: hold(last), Kind: run.ToolError}},
	{"observe denial", run.Observe{Hold: hold(last), Kind: run.PolicyDenied}},
	{"observe invalid", run.Observe{Hold: hold(last), Kind: run.InvalidDecision}},
	{"observe, old fence", run.Observe{Hold: stale, Kind: run.ToolResult}},
	{"interrupt", run.Interrupt{Hold: hold(last), Message: "lost"}},
	{"interrupt, old fence", run.Interrupt{Hold: stale, Message: "lost"}},
	{"take over in time", run.TakeOver{Take: take(last, 1)}},
	{"take over", run.TakeOver{Take: take(lost, 1)}},
	{"take over, other life", run.TakeOver{Take: take(last, 2)}},
	{"resume", run.Resume{Take: take(last, 1)}},
	{"end completed", run.End{Hold: hold(last), Status: run.Completed, Reason: run.GoalCompleted}},
	{"end failed", run.End{Hold: hold(last), Status: run.Failed, Reason: run.PolicyAbort, Kind: run.PolicyDenied}},
	{"end, old fence", run.End{Hold: stale, Status: run.Completed, Reason: run.GoalCompleted}},
	{"release", run.Release{Hold: hold(last)}},
	{"release, old fence", run.Release{Hold: stale}},
	{"charge", run.Charge{Hold: hold(last), Usage: run.Usage{Tokens: 1}}},
	{"charge, old fence", run.Charge{Hold: stale, Usage: run.Usage{Tokens: 1}}},
	{"cancel", run.Cancel{By: "ana"}},
	{"answered no", answer(decision.Rejected)},
	{"answered too late", answer(decision.Expired)},
	{"answered yes", answer(decision.Approved)},
}

// row is one state of the table: what each command comes to.
type row struct {
	states []string          // "STATUS step"
	cells  map[string]string // by command
}

// readTable reads testdata/states.txt: a line without indent names the states, the
// indented ones below it a command and what it comes to.
func readTable(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("testdata/states.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch name, cell, ok := strings.Cut(strings.TrimSpace(line), "  "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			rows = append(rows, row{states: statesOf(line), cells: map[string]string{}})
		case !ok || len(rows) == 0:
			t.Fatalf("%q says of no command what it comes to", line)
		default:
			r := &rows[len(rows)-1]
			if _, twice := r.cells[name]; twice {
				t.Fatalf("%v has two cells for %s", r.states, name)
			}
			r.cells[name] = strings.TrimSpace(cell)
		}
	}
	return rows
}

// statesOf multiplies a line such as "DONE FAILED: done failed".
func statesOf(line string) []string {
	statuses, steps, _ := strings.Cut(line, ":")
	var all []string
	for _, s := range strings.Fields(statuses) {
		for _, step := range strings.Fields(steps) {
			all = append(all, s+" "+step)
		}
	}
	return all
}

func runIn(state string) run.Run {
	status, step, _ := strings.Cut(state, " ")
	return inState(run.Status(strings.TrimPrefix(status, none)), run.StepStatus(strings.TrimPrefix(step, none)))
}

func TestStep(t *testing.T) {
	t.Parallel()
	cells := 0
	seen := map[string]bool{}
	for _, r := range readTable(t) {
		for _, state := range r.states {
			if seen[state] {
				t.Errorf("the table has %s twice", state)
			}
			seen[state] = true
			for _, c := range commands {
				want, ok := r.cells[c.name]
				if !ok {
					t.Errorf("%s has no cell for %s", state, c.name)
				}
				cells++
				t.Run(state+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					checkCell(t, runIn(state), c.cmd, want)
				})
			}
			if len(r.cells) != len(commands) {
				t.Errorf("%s has %d cells, there are %d commands", state, len(r.cells), len(commands))
			}
		}
	}
	for _, state := range allStates() {
		if !seen[state] {
			t.Errorf("the table has no row for %s", state)
		}
	}
	if want := 6 * 7 * 35; cells != want {
		t.Errorf("the table has %d cells, want %d", cells, want)
	}
}

// allStates is every pair of a status and a status of the step, with none of either.
func allStates() []string {
	var all []string
	for _, s := range append([]run.Status{none}, run.Statuses()...) {
		for _, step := range append([]run.StepStatus{none}, run.StepStatuses()...) {
			all = append(all, string(s)+" "+string(step))
		}
	}
	return all
}

// The table has a row and a column for whatever the package knows.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	known, err := source.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	for _, c := range commands {
		inTable[strings.TrimPrefix(fmt.Sprintf("%T", c.cmd), "run.")] = true
	}
	if diff := cmp.Diff(known, slices.Sorted(maps.Keys(inTable))); diff != "" {
		t.Errorf("commands of the package and of the table (-package +table):\n%s", diff)
	}
	for typ, listed := range map[string][]string{"Status": texts(run.Statuses()), "StepStatus": texts(run.StepStatuses())} {
		values, err := source.Values(".", typ)
		if err != nil {
			t.Fatal(err)
		}
		var declared []string
		for _, v := range values {
			declared = append(declared, v.Text)
		}
		if diff := cmp.Diff(declared, listed); diff != "" {
			t.Errorf("%s (-declared +listed):\n%s", typ, diff)
		}
	}
}

func texts[S ~string](all []S) []string {
	var ss []string
	for _, s := range all {
		ss = append(ss, string(s))
	}
	return ss
}

func checkCell(t *testing.T, r run.Run, cmd run.Command, want string) {
	t.Helper()
	before := r.Clone()
	ch, err := r.Step(cmd, noon)
	if got := outcome(r, ch, err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err == nil {
		checkChange(t, r, ch)
	} else if diff := cmp.Diff(run.Change{}, ch); diff != "" {
		t.Errorf("a refusal that changes something:\n%s", diff)
	}
	again, err2 := r.Step(cmd, noon)
	if diff := cmp.Diff(ch, again) + cmp.Diff(fmt.Sprint(err), fmt.Sprint(err2)); diff != "" {
		t.Errorf("the same command gave another answer (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, r); diff != "" {
		t.Errorf("Step changed its run (-before +after):\n%s", diff)
	}
}

// outcome is a cell: the refusal, or the state that follows and the events. A dot
// stands for what stays.
func outcome(prev run.Run, ch run.Change, err error) string {
	if err != nil {
		return word(err)
	}
	r := ch.Next
	status, step := string(r.Status), string(r.Current.Status)
	if r.Status == prev.Status {
		status = "·"
	}
	switch {
	case r.Current.ID != prev.Current.ID:
		step = "new " + step
	case r.Current.Status == prev.Current.Status:
		step = "·"
	}
	types := []event.Type{}
	for _, e := range ch.Events {
		types = append(types, e.Type)
	}
	return fmt.Sprint(status, " ", step, " ", types)
}

// checkChange holds what every change has in common, whatever it was.
func checkChange(t *testing.T, prev run.Run, ch run.Change) {
	t.Helper()
	r := ch.Next
	checkRun(t, r)
	if prev.Status.Terminal() {
		t.Errorf("a run that was %s changed", prev.Status)
	}
	if r.Fence < prev.Fence || r.StepCount < prev.StepCount || r.StepCount > prev.StepCount+1 {
		t.Errorf("fence %d after %d, %d steps after %d", r.Fence, prev.Fence, r.StepCount, prev.StepCount)
	}
	if claimed := r.Current.ID != prev.Current.ID; claimed != (r.StepCount > prev.StepCount) || claimed && open(prev.Current.Status) {
		t.Errorf("step %q (%s) follows %q (%s)", r.Current.ID, r.Current.Status, prev.Current.ID, prev.Current.Status)
	}
	for _, e := range ch.Events {
		if e.Subject != r.ID && e.Subject != r.Current.ID || e.Actor == "" {
			t.Errorf("event %s of %q by %q", e.Type, e.Subject, e.Actor)
		}
	}
	// What a run was made with never changes.
	fixed := func(r run.Run) []any {
		return []any{r.ID, r.Space, r.Goal, r.Limits, r.Agent, r.Flow, r.Principal, r.Metadata, r.ContinueBy, r.Version, r.Head}
	}
	if diff := cmp.Diff(fixed(prev), fixed(r)); diff != "" {
		t.Errorf("the change touched what is fixed (-before +after):\n%s", diff)
	}
}

// checkRun holds what is true of every run.
func checkRun(t interface{ Errorf(string, ...any) }, r run.Run) {
	if (r.Reason != "") != r.Status.Terminal() || r.FinishedAt.IsZero() == r.Status.Terminal() {
		t.Errorf("%s, reason %q, finished %v", r.Status, r.Reason, r.FinishedAt)
	}
	if r.Status != run.Running && (!r.LeaseUntil.IsZero() || r.LeaseOwner != "" || !r.ActiveSince.IsZero()) {
		t.Errorf("%s with a lease until %v of %q, at work since %v", r.Status, r.LeaseUntil, r.LeaseOwner, r.ActiveSince)
	}
	if r.LeaseUntil.IsZero() != (r.LeaseOwner == "") || r.LeaseUntil.IsZero() != r.ActiveSince.IsZero() {
		t.Errorf("leased until %v to %q, at work since %v", r.LeaseUntil, r.LeaseOwner, r.ActiveSince)
	}
	if ended := !open(r.Current.Status) && r.Current.ID != ""; ended == r.Current.FinishedAt.IsZero() {
		t.Errorf("the step is %s, finished %v", r.Current.Status, r.Current.FinishedAt)
	}
}

func open(s run.StepStatus) bool {
	return s == run.Deciding || s == run.AwaitingApproval || s == run.Executing
}
