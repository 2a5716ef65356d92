package review_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

func approval(t *testing.T, args string) review.Approval {
	t.Helper()
	req := request.Request{RunID: "run_1", CallID: "call_1", Args: []byte(args), Tool: tool.Spec{
		Name: "refund", SideEffect: tool.RemoteMutation, InputSchema: json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string","writeOnly":true}}}`),
	}}
	body, err := req.JSON()
	if err != nil {
		t.Fatal(err)
	}
	d := decision.Decision{
		ID: "apr_1", Type: decision.Approval, RunID: "run_1", CallID: "call_1", Owner: decision.Ref{Kind: decision.OwnerCall, ID: "call_1"}, Kind: "remote_mutation", Tool: "refund",
		Capability: []byte(`{}`), Presentation: []byte(`{"title":"A refund"}`), Request: body, Reason: "the pin is 4711-x", Status: decision.Pending, Open: true,
	}
	if d.SpecDigest, err = req.Tool.Digest(); err != nil {
		t.Fatal(err)
	}
	if d.Digest, err = d.Binding(); err != nil {
		t.Fatal(err)
	}
	a := review.Approval{Decision: d}
	a.Understand()
	return a
}

// What of an approval is another than when a page was made is named, and nothing else.
func TestParts(t *testing.T) {
	t.Parallel()
	was := approval(t, `{"amount":5}`).Parts().String()
	for want, change := range map[string]func(*review.Approval){
		"":                        func(*review.Approval) {},
		"kind":                    func(a *review.Approval) { a.Kind = "harmless" },
		"tool":                    func(a *review.Approval) { a.Request.Tool.Description = "Another." },
		"arguments":               func(a *review.Approval) { a.Request.Args = []byte(`{"amount":6}`) },
		"presentation capability": func(a *review.Approval) { a.Presentation, a.Capability = nil, []byte(`{"all":true}`) },
	} {
		now := approval(t, `{"amount":5}`)
		change(&now)
		if got := strings.Join(now.Parts().Changed(was), " "); got != want {
			t.Errorf("changed is %q, want %q", got, want)
		}
	}
	if got := approval(t, `{}`).Parts().Changed("made up"); got != nil {
		t.Errorf("against what is no record of parts %q changed", got)
	}
}

// A search is held against what is shown: it finds no secret, wherever it stands.
func TestFilterShows(t *testing.T) {
	t.Parallel()
	d := approval(t, `{"amount":5,"pin":"4711-x","to":"Köhler"}`).Decision
	for f, want := range map[review.Filter]bool{
		{}:                            true,
		{Search: "köhler"}:            true,
		{Search: "refund"}:            true,
		{Search: "4711"}:              false,
		{Search: "4711-X"}:            false,
		{Search: "the pin is"}:        false, // of its reason, which may repeat what only its own page knows to be secret
		{What: review.Calls}:          true,
		{What: review.Runs}:           false,
		{What: review.Questions}:      false,
		{Tool: "refund"}:              true,
		{Tool: "wipe"}:                false,
		{Kind: "remote_mutation"}:     true,
		{Kind: "destructive"}:         false,
		{Age: 59 * time.Minute}:       true,
		{Age: time.Hour}:              false,
		{Search: "amount", Tool: "x"}: false,
	} {
		if got := f.Shows(d, d.CreatedAt.Add(time.Hour)); got != want {
			t.Errorf("%+v shows it: %t", f, got)
		}
	}
}

func TestStandingOf(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]decision.Decision{
		"waits":            {Status: decision.Pending, Open: true},
		"no longer needed": {Status: decision.Pending},
		"approved":         {Status: decision.Consumed, Choice: decision.ChoiceApprove},
		"rejected":         {Status: decision.Consumed, Choice: decision.ChoiceReject},
		"replaced":         {Status: decision.Superseded, Choice: decision.ChoiceApprove},
		"taken back":       {Status: decision.Withdrawn},
		"expired":          {Status: decision.Expired},
		"answered":         {Type: decision.Question, Status: decision.Resolved, Choice: "no"},
	} {
		if got := review.StandingOf(d, false); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
	if got := review.StandingOf(decision.Decision{Status: decision.Pending, Open: true}, true); got != "expired" {
		t.Errorf("an overdue one is %q", got)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s", 12*time.Minute + 5*time.Second: "12 min", time.Hour: "1 h",
		25*time.Hour + 5*time.Minute: "1 d 1 h", 90 * time.Minute: "1 h 30 min",
	} {
		if got := review.Span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// A line of a list says what waits and marks what a reader would not notice, wherever it
// stands. No secret is in it.
func TestRowOf(t *testing.T) {
	t.Parallel()
	plain := approval(t, `{"amount":5,"pin":"4711-x"}`).Decision
	r := review.RowOf(plain)
	if r.What != "call" || r.Title != "refund" || r.SideEffect != string(tool.RemoteMutation) || r.Unshown != "" || r.Odd {
		t.Errorf("got %+v", r)
	}
	if got := r.Args.JSON(); got != `{"amount":5,"pin":"[masked]"}` {
		t.Errorf("its arguments are %s", got)
	}
	large := approval(t, `{"note":"`+strings.Repeat("x", 64<<10)+`"}`).Decision
	if r := review.RowOf(large); !strings.Contains(r.Unshown, "shown on its own page") || r.Args.Nodes != nil || r.Odd {
		t.Errorf("a large one is %+v", r)
	}
	broken := plain
	broken.Request = []byte("{")
	if r := review.RowOf(broken); r.Unshown == "" || !r.Odd {
		t.Errorf("a broken one is %+v", r)
	}
	for name, d := range map[string]decision.Decision{
		"a name":     approval(t, `{"am\u202eount":5}`).Decision,
		"a value":    approval(t, `{"note":["a\u200bb"]}`).Decision,
		"another a":  approval(t, `{"note":"p\u0430ypal"}`).Decision,
		"the title":  {Type: decision.Approval, Tool: "refund\u200b", Request: large.Request},
		"an option":  {Type: decision.Question, Prompt: "Go on?", Options: []string{"yes", "y\u0435s"}},
		"the prompt": {Type: decision.Question, Prompt: "Go\u200b on?", Options: []string{"yes"}},
	} {
		if !review.RowOf(d).Odd {
			t.Errorf("nobody notices what is odd in %s", name)
		}
	}
	q := review.RowOf(decision.Decision{Type: decision.Question, Prompt: "Go on?", Options: []string{"yes"}})
	if q.What != "question" || q.Title != "Go on?" || q.Odd {
		t.Errorf("a question is %+v", q)
	}
}

// Each state of whatever a page shows is told in words, and one that waits for a person in
// the same word everywhere.
func TestStatusWords(t *testing.T) {
	t.Parallel()
	var all []string
	for _, s := range run.Statuses() {
		all = append(all, string(s))
	}
	for _, s := range job.Statuses() {
		all = append(all, string(s))
	}
	for _, s := range []run.StepStatus{run.Deciding, run.AwaitingApproval, run.Executing, run.Done, run.StepFailed, run.Interrupted} {
		all = append(all, string(s))
	}
	for _, s := range []call.Status{call.Pending, call.Running, call.Succeeded, call.Failed, call.Unknown, call.Denied, call.Expired, call.Cancelled, call.Invalid} {
		all = append(all, string(s))
	}
	for _, s := range all {
		if w := review.StatusWord(s); w == "" || w != strings.ToLower(w) || strings.Contains(w, "_") {
			t.Errorf("%s is told as %q", s, w)
		}
	}
	waits := review.StandingOf(decision.Decision{Type: decision.Approval, Status: decision.Pending, Open: true}, false)
	for _, s := range []string{string(call.Pending), string(run.Waiting), string(run.AwaitingApproval)} {
		if w := review.StatusWord(s); w != waits {
			t.Errorf("%s is told as %q, and not as %q", s, w, waits)
		}
	}
}
