package decision_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const reviewer = "ana"

// asked is a pending approval of a call, sealed with its digest.
func asked(t *testing.T) decision.Decision {
	t.Helper()
	req := request.Request{
		RunID: "run_1", CallID: "call_1",
		Tool: tool.Spec{Name: "refund", InputSchema: []byte(`{"type":"object"}`), SideEffect: tool.RemoteMutation, TimeoutMS: 1000},
		Args: []byte(`{"amount": 5}`),
	}
	d := decision.Decision{
		ID: "apr_1", Space: event.MainSpace, Type: decision.Approval, Owner: decision.Ref{Kind: decision.OwnerCall, ID: "call_1"}, N: 1,
		Kind: "remote_mutation", Capability: []byte(`{"may":"refund"}`), Presentation: []byte(`{"title":"Refund"}`),
		RunID: "run_1", CallID: "call_1", Tool: "refund", RequestedBy: "bot",
		CreatedAt: noon.Add(-time.Minute), ExpiresAt: noon.Add(time.Hour), GrantTTL: 10 * time.Minute,
		Status: decision.Pending, Open: true, Needs: 1, Version: 1, Epoch: 1,
	}
	var err error
	if d.Request, err = req.JSON(); err != nil {
		t.Fatal(err)
	}
	d.Digest = must(t)(d.Binding())
	d.SpecDigest = must(t)(req.Tool.Digest())
	d.ArgsDigest = must(t)(request.ArgsDigest(req.Args))
	return d
}

func must(t *testing.T) func(string, error) string {
	return func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func step(t *testing.T, d decision.Decision, cmd decision.Command, now time.Time) decision.Decision {
	t.Helper()
	ch, err := d.Step(cmd, now)
	if err != nil || ch.Refuse != nil {
		t.Fatalf("%T: %v, refused %v", cmd, err, ch.Refuse)
	}
	return ch.Next
}

func approve() decision.Decide {
	return decision.Decide{Answer: decision.Answer{Approved: true, By: reviewer}}
}

func reject() decision.Decide {
	return decision.Decide{Answer: decision.Answer{By: reviewer, Note: "no"}}
}

// closed is the state of an approval whose owner ended while it was open.
const closed = ", closed"

// states are those of the table.
func states() []string {
	var all []string
	for _, s := range decision.Statuses() {
		all = append(all, string(s))
	}
	return append(all, string(decision.Pending)+closed, string(decision.Approved)+closed)
}

// inState brings an approval where the table wants it.
func inState(t *testing.T, state string) decision.Decision {
	t.Helper()
	if s, ok := strings.CutSuffix(state, closed); ok {
		return step(t, inStatus(t, decision.Status(s)), decision.Close{}, noon)
	}
	return inStatus(t, decision.Status(state))
}

// inStatus brings an approval into a status, by the machine's own doors.
func inStatus(t *testing.T, s decision.Status) decision.Decision {
	t.Helper()
	d := asked(t)
	switch s {
	case decision.Pending:
		return d
	case decision.Approved:
		return step(t, d, approve(), noon)
	case decision.Rejected:
		return step(t, d, reject(), noon)
	case decision.Expired:
		return step(t, d, decision.Expire{}, noon.Add(2*time.Hour))
	case decision.Withdrawn:
		return step(t, d, decision.Withdraw{By: "bot"}, noon)
	case decision.Superseded:
		return step(t, step(t, d, approve(), noon), decision.Supersede{}, noon)
	case decision.Consumed:
		return step(t, step(t, d, approve(), noon), decision.Consume{Attempt: 1}, noon)
	}
	t.Fatalf("no way to %q", s)
	return d
}

// command is a column of a table: each command alone and where it differs in time.
type command struct {
	name string
	cmd  decision.Command
	now  time.Time
}

var commands = []command{
	{"approve", approve(), noon},
	{"approve late", approve(), noon.Add(time.Hour + time.Microsecond)},
	{"reject", reject(), noon},
	{"expire early", decision.Expire{}, noon},
	{"expire", decision.Expire{}, noon.Add(time.Hour + time.Microsecond)},
	{"withdraw", decision.Withdraw{By: "bot"}, noon},
	{"consume", decision.Consume{Attempt: 2}, noon},
	{"consume late", decision.Consume{Attempt: 2}, noon.Add(10*time.Minute + time.Microsecond)},
	{"return denial", decision.Consume{}, noon},
	{"supersede", decision.Supersede{}, noon},
	{"close", decision.Close{}, noon},
	{"resolve", decision.Resolve{Choice: "yes", By: reviewer}, noon},
}

// Every state × every command (spec 2.3). A cell is the state that follows with
// the events, or the refusal; "+" joins a refusal that is committed.
var steps = map[string][]string{
	"pending": {
		"approved [approval.decided]", "expired [approval.expired] + approval_expired", "rejected [approval.decided]",
		"not_pending", "expired [approval.expired]", "withdrawn [approval.withdrawn]",
		"already_decided", "already_decided", "already_decided", "superseded [approval.superseded]", "pending, closed []", "usage",
	},
	"approved": {
		"not_pending", "not_pending", "not_pending",
		"not_pending", "expired [approval.expired]", "not_pending",
		"consumed []", "expired [approval.expired] + approval_expired", "already_decided", "superseded [approval.superseded]", "approved, closed []", "usage",
	},
	"rejected": {
		"not_pending", "not_pending", "not_pending",
		"not_pending", "not_pending", "not_pending",
		"already_decided", "already_decided", "consumed [approval.consumed]", "not_pending", "not_pending", "usage",
	},
	"expired": {
		"approval_expired", "approval_expired", "approval_expired",
		"not_pending", "not_pending", "approval_expired",
		"approval_expired", "approval_expired", "approval_expired", "approval_expired", "approval_expired", "usage",
	},
	"withdrawn": {
		"not_pending", "not_pending", "not_pending",
		"not_pending", "not_pending", "not_pending",
		"already_decided", "already_decided", "already_decided", "not_pending", "not_pending", "usage",
	},
	"superseded": {
		"not_pending", "not_pending", "not_pending",
		"not_pending", "not_pending", "not_pending",
		"already_decided", "already_decided", "already_decided", "not_pending", "not_pending", "usage",
	},
	"consumed": {
		"not_pending", "not_pending", "not_pending",
		"not_pending", "not_pending", "not_pending",
		"already_decided", "already_decided", "already_decided", "not_pending", "not_pending", "usage",
	},
	"pending, closed": {
		"run_state", "run_state", "run_state",
		"run_state", "run_state", "run_state",
		"run_state", "run_state", "run_state", "run_state", "run_state", "usage",
	},
	"approved, closed": {
		"not_pending", "not_pending", "not_pending",
		"run_state", "run_state", "not_pending",
		"run_state", "run_state", "run_state", "run_state", "run_state", "usage",
	},
}

func TestStep(t *testing.T) {
	t.Parallel()
	cells := 0
	for _, from := range states() {
		for i, c := range commands {
			if len(steps[from]) != len(commands) {
				t.Fatalf("the row of %s has %d cells, not %d", from, len(steps[from]), len(commands))
			}
			cells++
			want := steps[from][i]
			t.Run(fmt.Sprintf("%s/%s", from, c.name), func(t *testing.T) {
				t.Parallel()
				checkCell(t, inState(t, from), c.cmd, c.now, want)
			})
		}
	}
	if want := 9 * 12; cells != want {
		t.Errorf("the table has %d cells, want %d", cells, want)
	}
}

func checkCell(t *testing.T, d decision.Decision, cmd decision.Command, now time.Time, want string) {
	t.Helper()
	before := d.Clone()
	ch, err := d.Step(cmd, now)
	if got := outcome(ch, err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err == nil && !ch.Repeated {
		checkChange(t, d, ch, now)
	}
	again, err2 := d.Step(cmd, now)
	if diff := cmp.Diff(ch, again, errorTexts) + cmp.Diff(err, err2, errorTexts); diff != "" {
		t.Errorf("the same command gave another answer (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("Step changed its decision (-before +after):\n%s", diff)
	}
}

// The same for questions (spec 3.2); the deadline is an hour away.
var questionCommands = []command{
	{"resolve", decision.Resolve{Choice: "yes", By: reviewer}, noon},
	{"resolve otherwise", decision.Resolve{Choice: "no", By: reviewer}, noon},
	{"resolve late", decision.Resolve{Choice: "yes", By: reviewer}, noon.Add(time.Hour + time.Microsecond)},
	{"expire early", decision.Expire{}, noon},
	{"expire", decision.Expire{}, noon.Add(time.Hour + time.Microsecond)},
	{"withdraw", decision.Withdraw{By: "bot"}, noon},
	{"withdraw late", decision.Withdraw{By: "bot"}, noon.Add(time.Hour + time.Microsecond)},
	{"withdraw by runtime, late", decision.Withdraw{By: "bot", ByRuntime: true}, noon.Add(time.Hour + time.Microsecond)},
	{"close", decision.Close{}, noon},
	{"approve", approve(), noon},
	{"consume", decision.Consume{Attempt: 1}, noon},
	{"supersede", decision.Supersede{}, noon},
}

var questionSteps = map[string][]string{
	"pending": {
		"resolved [decision_resolved]", "resolved [decision_resolved]", "expired [decision_expired] + expired",
		"not_pending", "expired [decision_expired]",
		"withdrawn [decision_withdrawn]", "expired [decision_expired] + expired", "withdrawn [decision_withdrawn]",
		"pending, closed []", "usage", "usage", "usage",
	},
	"resolved": {
		"resolved [], repeated", "choice_conflict", "resolved [], repeated",
		"not_pending", "not_pending",
		"not_pending", "not_pending", "not_pending",
		"not_pending", "usage", "usage", "usage",
	},
	"withdrawn": {
		"withdrawn", "withdrawn", "withdrawn",
		"not_pending", "not_pending",
		"withdrawn [], repeated", "withdrawn [], repeated", "withdrawn [], repeated",
		"withdrawn", "usage", "usage", "usage",
	},
	"expired": {
		"expired", "expired", "expired",
		"not_pending", "not_pending",
		"expired", "expired", "expired",
		"expired", "usage", "usage", "usage",
	},
	"pending, closed": {
		"run_state", "run_state", "run_state",
		"run_state", "run_state",
		"run_state", "run_state", "run_state",
		"run_state", "usage", "usage", "usage",
	},
}

// questionIn brings a question where the table wants it.
func questionIn(t *testing.T, state string) decision.Decision {
	t.Helper()
	d := question(t)
	d.Form = nil // which input is held against is not the table's
	switch state {
	case "pending":
		return d
	case "resolved":
		return step(t, d, yes(d), noon)
	case "withdrawn":
		return step(t, d, decision.Withdraw{By: "bot"}, noon)
	case "expired":
		return step(t, d, decision.Expire{}, noon.Add(2*time.Hour))
	}
	return step(t, d, decision.Close{}, noon)
}

func TestStepOfQuestions(t *testing.T) {
	t.Parallel()
	cells := 0
	for from, row := range questionSteps {
		if len(row) != len(questionCommands) {
			t.Fatalf("the row of %s has %d cells, not %d", from, len(row), len(questionCommands))
		}
		for i, c := range questionCommands {
			cells++
			t.Run(fmt.Sprintf("%s/%s", from, c.name), func(t *testing.T) {
				t.Parallel()
				checkCell(t, questionIn(t, from), c.cmd, c.now, row[i])
			})
		}
	}
	if want := 5 * 12; cells != want {
		t.Errorf("the table has %d cells, want %d", cells, want)
	}
}

func outcome(ch decision.Change, err error) string {
	if err != nil {
		return reason(err)
	}
	types := []event.Type{}
	for _, e := range ch.Events {
		types = append(types, e.Type)
	}
	s := fmt.Sprint(stateOf(ch.Next), " ", types)
	if ch.Repeated {
		s += ", repeated"
	}
	if ch.Refuse != nil {
		s += " + " + reason(ch.Refuse)
	}
	return s
}

func stateOf(d decision.Decision) string {
	if !d.Open && (d.Status == decision.Pending || d.Status == decision.Approved) {
		return string(d.Status) + closed
	}
	return string(d.Status)
}

// The table has a row for whatever the package knows.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	known, err := source.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range [][]command{commands, questionCommands} {
		inTable := map[string]bool{}
		for _, c := range table {
			inTable[strings.TrimPrefix(fmt.Sprintf("%T", c.cmd), "decision.")] = true
		}
		if got := slices.Sorted(maps.Keys(inTable)); !slices.Equal(got, known) {
			t.Errorf("a table has the commands %v, the package %v", got, known)
		}
	}
	values, err := source.Values(".", "Status")
	if err != nil {
		t.Fatal(err)
	}
	listed := append(decision.Statuses(), decision.Resolved) // which is only a question's
	if len(values) != len(listed) {
		t.Fatalf("the package has %d statuses and lists %d", len(values), len(listed))
	}
	for i, v := range values {
		if v.Text != string(listed[i]) {
			t.Errorf("status %d is %s, listed as %s", i, v.Text, listed[i])
		}
	}
	if len(steps) != len(states()) {
		t.Errorf("the table has %d rows, there are %d states", len(steps), len(states()))
	}
}

// checkChange holds what every change has in common, whatever it was.
func checkChange(t *testing.T, prev decision.Decision, ch decision.Change, now time.Time) {
	t.Helper()
	d := ch.Next
	if d.Status == prev.Status && d.Open == prev.Open {
		t.Errorf("a change that changes nothing: %s", d.Status)
	}
	if (d.Status == decision.Pending) != d.SettledAt.IsZero() {
		t.Errorf("%s, settled at %v", d.Status, d.SettledAt)
	}
	if live := d.Status == decision.Pending || d.Status == decision.Approved; d.Open && !live || !d.Open && live && d.Status != prev.Status {
		t.Errorf("%s, open %v", d.Status, d.Open)
	}
	if (d.Status == decision.Consumed) != !d.ConsumedAt.IsZero() {
		t.Errorf("%s, consumed at %v", d.Status, d.ConsumedAt)
	}
	if (d.Status == decision.Withdrawn) != (d.WithdrawnBy != "") {
		t.Errorf("%s, withdrawn by %q", d.Status, d.WithdrawnBy)
	}
	if got := ch.Vote != nil; got != (prev.Status == decision.Pending && d.Choice != "") {
		t.Errorf("vote: %v", got)
	}
	for _, e := range ch.Events {
		if e.Subject != d.ID || e.Actor == "" {
			t.Errorf("event %s of %q by %q", e.Type, e.Subject, e.Actor)
		}
	}
	// What was asked never changes; what was answered stays after the status moved on.
	fixed := func(d decision.Decision) decision.Decision {
		d.Status, d.Open, d.SettledAt, d.ConsumedAt, d.ConsumedBy = "", false, time.Time{}, time.Time{}, 0
		if prev.Status == decision.Pending {
			d.Choice, d.DecidedBy, d.DecidedPrincipal, d.DecidedAt, d.Note, d.GrantExpiresAt, d.Epoch = "", "", "", time.Time{}, "", time.Time{}, 0
			d.WithdrawnBy, d.WithdrawnPrincipal = "", ""
		}
		return d
	}
	if diff := cmp.Diff(fixed(prev), fixed(d)); diff != "" {
		t.Errorf("the change touched what is fixed (-before +after):\n%s", diff)
	}
}

// Two clocks (spec 1.5): exactly at the instant is in time, a microsecond later is not.
func TestTwoClocks(t *testing.T) {
	t.Parallel()
	d := asked(t)
	for _, cmd := range []decision.Command{approve(), reject(), decision.Withdraw{By: "bot"}} {
		if ch, err := d.Step(cmd, d.ExpiresAt); err != nil || ch.Refuse != nil {
			t.Errorf("%T at the instant: %v, %v", cmd, err, ch.Refuse)
		}
		ch, err := d.Step(cmd, d.ExpiresAt.Add(time.Microsecond))
		if err != nil || !errors.Is(ch.Refuse, decision.ErrApprovalExpired) || ch.Next.Status != decision.Expired {
			t.Errorf("%T a microsecond later: %v, %v", cmd, err, ch.Refuse)
		}
	}
	g := step(t, d, approve(), noon)
	if want := noon.Add(d.GrantTTL); !g.GrantExpiresAt.Equal(want) {
		t.Fatalf("the grant expires at %v, want %v", g.GrantExpiresAt, want)
	}
	if ch, err := g.Step(decision.Consume{Attempt: 1}, g.GrantExpiresAt); err != nil || ch.Refuse != nil {
		t.Errorf("consume at the instant: %v, %v", err, ch.Refuse)
	}
	ch, err := g.Step(decision.Consume{Attempt: 1}, g.GrantExpiresAt.Add(time.Microsecond))
	if err != nil || ch.Next.Status != decision.Expired || ch.Next.DecidedBy != reviewer || ch.Next.Choice != decision.ChoiceApprove || !ch.Next.DecidedAt.Equal(noon) {
		t.Errorf("consume a microsecond later: %v, %+v", err, ch.Next)
	}
	for _, e := range []error{ch.Refuse, g.ErrDecided()} {
		if st, ok := decision.StandingOf(e); !ok || st.By != reviewer || st.Choice != decision.ChoiceApprove {
			t.Errorf("the refusal does not carry who decided: %+v", st)
		}
	}

	d.ExpiresAt, d.GrantTTL = time.Time{}, 0 // zero: never
	for _, later := range []time.Duration{0, 100 * 365 * 24 * time.Hour} {
		g := step(t, d, approve(), noon.Add(later))
		step(t, g, decision.Consume{Attempt: 1}, noon.Add(2*later))
	}
}

// The order of the checks is part of the contract (spec 1.3): each case fails in
// everything from its own check on, and the first is the answer.
func TestDecideOrder(t *testing.T) {
	t.Parallel()
	waiting := decision.ErrRunState.Say("it waits for another")
	late := noon.Add(2 * time.Hour)
	tests := []struct {
		name   string
		status decision.Status
		break_ func(d *decision.Decision, c *decision.Decide) (now time.Time)
		want   string
	}{
		{"expired before pending", decision.Expired, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Waiting, c.Shown = waiting, "x"
			return late
		}, "approval_expired"},
		{"pending before the owner", decision.Consumed, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Waiting, c.Shown = waiting, "x"
			return late
		}, "not_pending"},
		{"the owner before the showing", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Waiting, c.Shown = waiting, "x"
			return late
		}, "run_state"},
		{"the showing before the deadline", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Shown, d.Kind = "x", "altered"
			return late
		}, "approval_changed"},
		{"an empty showing where one is due", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Bound = true
			return late
		}, "approval_changed"},
		{"the deadline before the digest", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			d.Kind, c.Principal = "altered", "bot"
			return late
		}, "expired [approval.expired] + approval_expired"},
		{"who decides before the digest", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			d.Kind, c.Principal = "altered", "bot"
			return noon
		}, "self_decision"},
		{"the digest before the edits", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			d.Kind, c.EditedArgs, d.ForbidEdits = "altered", []byte(`{}`), true
			return noon
		}, "approval_hash"},
		{"whether it may be edited before how", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.EditedArgs, d.ForbidEdits, c.Unfit = []byte(`{}`), true, tool.ErrInvalidArguments
			return noon
		}, "usage"},
		{"edits checked for another request", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.EditedArgs, c.Checked, c.Unfit = []byte(`{}`), "x", tool.ErrInvalidArguments
			return noon
		}, "approval_changed"},
		{"edits that do not fit", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.EditedArgs, c.Checked, c.Unfit = []byte(`{}`), d.Digest, tool.ErrInvalidArguments
			return noon
		}, "invalid_arguments"},
		{"edits that are no JSON", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.EditedArgs, c.Checked = []byte(`{`), d.Digest
			return noon
		}, "unencodable"},
		{"a no although the content was altered", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			d.Kind, c.Approved = "altered", false
			return noon
		}, "rejected [approval.decided]"},
		{"who may decide its own", decision.Pending, func(d *decision.Decision, c *decision.Decide) time.Time {
			c.Principal, c.MayOwn = "bot", true
			return noon
		}, "approved [approval.decided]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, c := inStatus(t, tt.status), approve()
			now := tt.break_(&d, &c)
			ch, err := d.Step(c, now)
			if got := outcome(ch, err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	edit := func(d decision.Decision, args string) decision.Decide {
		c := approve()
		c.EditedArgs, c.Checked = []byte(args), d.Digest
		return c
	}
	d := asked(t)
	// An empty object is an edit, and so are the arguments as they were (case 040).
	for _, args := range []string{`{}`, `{"amount": 5}`, ` {"n":0}`} {
		g := step(t, d, edit(d, args), noon)
		if string(g.EditedArgs) != args || g.EditedDigest == "" || g.EditIntact() != nil || g.Digest != d.Digest || g.ArgsDigest != d.ArgsDigest {
			t.Errorf("edit %s: %+v", args, g)
		}
		edited, _ := request.ArgsDigest([]byte(args))
		if want, _ := request.EffectiveDigest(d.Digest, edited); g.EffectiveDigest != want {
			t.Errorf("edit %s binds %s, want %s", args, g.EffectiveDigest, want)
		}
		for _, alter := range []func(*decision.Decision){
			func(d *decision.Decision) { d.EditedArgs = []byte(`{"amount":6}`) },
			func(d *decision.Decision) { d.EditedArgs = nil },
			func(d *decision.Decision) { d.EditedDigest = d.ArgsDigest + "0" },
			func(d *decision.Decision) { d.EditedDigest = "" },
			func(d *decision.Decision) { d.EffectiveDigest = "" },
			func(d *decision.Decision) { d.Digest += "0" },
		} {
			bad := g
			if alter(&bad); !errors.Is(bad.EditIntact(), decision.ErrApprovalHash) {
				t.Errorf("an altered edit was taken: %+v", bad)
			}
		}
	}
	for name, alter := range map[string]func(*decision.Decision){
		"a run's": func(d *decision.Decision) {
			d.Owner, d.CallID, d.StepID = decision.Ref{Kind: decision.OwnerRun, ID: d.RunID}, "", "stp_1"
		},
		"an interrupted": func(d *decision.Decision) { d.Kind = decision.KindInterrupted },
		"forbidden":      func(d *decision.Decision) { d.ForbidEdits = true },
	} {
		bad := d
		alter(&bad)
		if bad.Owner.Kind == decision.OwnerRun {
			r, _ := request.Decode(bad.Request)
			r.CallID, r.StepID = "", "stp_1"
			bad.Request, _ = r.JSON()
		}
		bad.Digest = must(t)(bad.Binding())
		if _, err := bad.Step(edit(bad, `{}`), noon); !errors.Is(err, decision.ErrUsage) {
			t.Errorf("%s approval took an edit: %v", name, err)
		}
	}
}

// Everything that a yes is bound to is found when it was altered by itself.
func TestIntact(t *testing.T) {
	t.Parallel()
	d := asked(t)
	if err := d.Intact(); err != nil {
		t.Fatal(err)
	}
	otherSpec := must(t)(tool.Spec{Name: "refund", InputSchema: []byte(`{}`)}.Digest())
	for name, alter := range map[string]func(*decision.Decision){
		"kind":         func(d *decision.Decision) { d.Kind = "destructive" },
		"capability":   func(d *decision.Decision) { d.Capability = []byte(`{"may":"all"}`) },
		"presentation": func(d *decision.Decision) { d.Presentation = nil },
		"request":      func(d *decision.Decision) { d.Request = []byte(`{}`) },
		"request text": func(d *decision.Decision) { d.Request = []byte(`{`) },
		"args":         func(d *decision.Decision) { d.Request = replaced(d.Request, `5`, `6`) },
		"digest":       func(d *decision.Decision) { d.Digest = d.SpecDigest },
		"no digest":    func(d *decision.Decision) { d.Digest = "" },
		"spec digest":  func(d *decision.Decision) { d.SpecDigest = otherSpec },
		"run id":       func(d *decision.Decision) { d.RunID = "run_2" },
		"call id":      func(d *decision.Decision) { d.CallID = "call_2" },
		"step id":      func(d *decision.Decision) { d.StepID = "stp_2" },
		"node":         func(d *decision.Decision) { d.Node = "publish" },
		"tool":         func(d *decision.Decision) { d.Tool = "pay" },
		"owner":        func(d *decision.Decision) { d.Owner.ID = "call_2" },
	} {
		bad := d
		if alter(&bad); !errors.Is(bad.Intact(), decision.ErrApprovalHash) {
			t.Errorf("%s altered: %v", name, bad.Intact())
		}
		if _, err := bad.Step(approve(), noon); !errors.Is(err, decision.ErrApprovalHash) {
			t.Errorf("%s altered and approved: %v", name, err)
		}
	}
	// Case 098, 101, 103: how it is spelt is not what it says.
	same := d
	same.Request = replaced(d.Request, `{"amount": 5}`, `{"am\u006funt":5.0}`)
	if err := same.Intact(); err != nil {
		t.Errorf("the same request in other words: %v", err)
	}
}

func TestWithdrawByWhomAsked(t *testing.T) {
	t.Parallel()
	d := asked(t)
	for _, tt := range []struct {
		cmd  decision.Withdraw
		want string
	}{
		{decision.Withdraw{By: "x"}, "withdrawn [approval.withdrawn]"},
		{decision.Withdraw{By: "x", Principal: "bot"}, "withdrawn [approval.withdrawn]"},
		{decision.Withdraw{By: "x", Principal: "eve", MayOwn: true}, "withdrawn [approval.withdrawn]"},
		{decision.Withdraw{By: "x", Principal: "eve"}, "forbidden"},
		{decision.Withdraw{By: "x", Principal: "eve", Waiting: decision.ErrRunState}, "run_state"},
	} {
		ch, err := d.Step(tt.cmd, noon)
		if got := outcome(ch, err); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.cmd, got, tt.want)
		}
	}
	d.Owner.Kind = decision.OwnerRun
	if _, err := d.Step(decision.Withdraw{By: "x"}, noon); !errors.Is(err, decision.ErrUsage) {
		t.Errorf("a run's approval was withdrawn: %v", err)
	}
}

// A grant that says of itself that it was spent is not spent again.
func TestConsumeOnce(t *testing.T) {
	t.Parallel()
	g := inStatus(t, decision.Approved)
	by, at := g, g
	by.ConsumedBy, at.ConsumedAt = 1, noon
	no := g
	no.Choice = decision.ChoiceReject // and what was answered no is no grant, whatever its status says
	for _, d := range []decision.Decision{by, at, no} {
		if _, err := d.Step(decision.Consume{Attempt: 2}, noon); !errors.Is(err, decision.ErrAlreadyDecided) {
			t.Errorf("spent again: %v", err)
		}
	}
	denial := inStatus(t, decision.Rejected)
	denial.Choice = decision.ChoiceApprove
	if _, err := denial.Step(decision.Consume{}, noon); !errors.Is(err, decision.ErrAlreadyDecided) {
		t.Errorf("a yes was returned as a no: %v", err)
	}
}

// What an approval was when its owner ended it stays, whoever comes late.
func TestClosedStays(t *testing.T) {
	t.Parallel()
	for _, s := range []decision.Status{decision.Pending, decision.Approved} {
		d := inState(t, string(s)+closed)
		for _, now := range []time.Time{noon, d.ExpiresAt.Add(time.Hour)} {
			for _, cmd := range []decision.Command{decision.Expire{}, decision.Consume{Attempt: 1}, decision.Consume{}, decision.Supersede{}, decision.Close{}} {
				_, err := d.Step(cmd, now)
				if st, ok := decision.StandingOf(err); !errors.Is(err, decision.ErrRunState) || !ok || st.Status != s {
					t.Errorf("%T of a closed %s one: %v (%+v)", cmd, s, err, st)
				}
			}
		}
	}
	d := inState(t, "pending"+closed) // what the owner says comes first
	for _, cmd := range []decision.Command{decision.Decide{Waiting: decision.ErrMoved}, decision.Withdraw{Waiting: decision.ErrMoved}} {
		if _, err := d.Step(cmd, noon); !errors.Is(err, decision.ErrMoved) {
			t.Errorf("%T: %v", cmd, err)
		}
	}
}

func TestUnknownCommandPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a command that nobody knows was taken")
		}
	}()
	_, _ = asked(t).Step(nil, noon)
}

// What is stored of an answer has to be what an answer leaves, one by one.
func TestSoundGrant(t *testing.T) {
	t.Parallel()
	g := inStatus(t, decision.Approved)
	if err := g.SoundGrant(); err != nil {
		t.Fatal(err)
	}
	never := asked(t)
	never.GrantTTL = 0
	never = step(t, never, approve(), noon)
	if err := never.SoundGrant(); err != nil {
		t.Fatal(err)
	}
	for name, alter := range map[string]func(*decision.Decision){
		"status":         func(d *decision.Decision) { d.Status = decision.Consumed },
		"choice":         func(d *decision.Decision) { d.Choice = decision.ChoiceReject },
		"nobody":         func(d *decision.Decision) { d.DecidedBy = "" },
		"no time":        func(d *decision.Decision) { d.DecidedAt, d.GrantTTL, d.GrantExpiresAt = time.Time{}, 0, time.Time{} },
		"a later yes":    func(d *decision.Decision) { d.DecidedAt = d.DecidedAt.Add(time.Microsecond) },
		"a longer life":  func(d *decision.Decision) { d.GrantExpiresAt = d.GrantExpiresAt.Add(time.Microsecond) },
		"no end":         func(d *decision.Decision) { d.GrantExpiresAt = time.Time{} },
		"no limit":       func(d *decision.Decision) { d.GrantTTL = 0 },
		"spent on":       func(d *decision.Decision) { d.ConsumedBy = 1 },
		"spent at":       func(d *decision.Decision) { d.ConsumedAt = noon },
		"content":        func(d *decision.Decision) { d.Kind = "altered" },
		"an edit":        func(d *decision.Decision) { d.EditedArgs = []byte(`{}`) },
		"edit's digest":  func(d *decision.Decision) { d.EditedDigest = "x" },
		"edit's binding": func(d *decision.Decision) { d.EffectiveDigest = "x" },
	} {
		for _, bad := range []decision.Decision{g, never} {
			was := bad.Clone()
			if alter(&bad); cmp.Diff(was, bad) == "" || name == "a later yes" && bad.GrantTTL == 0 {
				continue // it was so before, or nothing hangs on it
			}
			if err := bad.SoundGrant(); !errors.Is(err, decision.ErrApprovalHash) {
				t.Errorf("%s altered: %v", name, err)
			}
		}
	}
}

// A flow's node has no tool; its approval is bound by its node. A run's names a step.
func TestIntactOfOthers(t *testing.T) {
	t.Parallel()
	seal := func(r request.Request) decision.Decision {
		d := asked(t)
		d.Owner = decision.Ref{Kind: decision.OwnerRun, ID: r.RunID}
		d.RunID, d.CallID, d.StepID, d.Node, d.Tool, d.SpecDigest = r.RunID, r.CallID, r.StepID, r.Node, r.Tool.Name, ""
		if r.Node == "" {
			d.SpecDigest = must(t)(r.Tool.Digest())
		}
		var err error
		if d.Request, err = r.JSON(); err != nil {
			t.Fatal(err)
		}
		d.Digest = must(t)(d.Binding())
		return d
	}
	spec := tool.Spec{Name: "refund", InputSchema: []byte(`{}`)}
	node := seal(request.Request{RunID: "run_1", Flow: "f", Version: "1", Node: "publish", Args: []byte(`{}`)})
	ofStep := seal(request.Request{RunID: "run_1", StepID: "stp_1", Tool: spec, Args: []byte(`{}`)})
	for _, d := range []decision.Decision{node, ofStep} {
		if err := d.Intact(); err != nil {
			t.Error(err)
		}
		for name, alter := range map[string]func(*decision.Decision){
			"run":  func(d *decision.Decision) { d.RunID = "run_2" },
			"call": func(d *decision.Decision) { d.CallID = "call_1" },
			"step": func(d *decision.Decision) { d.StepID += "x" },
			"node": func(d *decision.Decision) { d.Node += "x" },
			"tool": func(d *decision.Decision) { d.Tool += "x" },
		} {
			bad := d
			if alter(&bad); !errors.Is(bad.Intact(), decision.ErrApprovalHash) {
				t.Errorf("%s altered: %v", name, bad.Intact())
			}
		}
	}
}
