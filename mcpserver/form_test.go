package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/mcpserver"
)

const pendingQuestion = `{"decision_id":"dec_1","job_id":"job_1","prompt":"Go on?","options":["yes","no"],"status":"pending","requested_by":"bot",` +
	`"form":{"type":"object","properties":{"n":{"type":"integer","$ref":"#"},"choice":{"type":"string"}},"required":["n"],"allOf":[{"$ref":"#"}]}}`

// asking is an API with one open question.
func asking(question string) func(context.Context, sent) (int, string) {
	return func(_ context.Context, s sent) (int, string) {
		if s.method == http.MethodGet {
			return http.StatusOK, question
		}
		if strings.Contains(s.body, `"yes"`) {
			return http.StatusOK, `{"decision_id":"dec_1","status":"resolved","choice":"yes"}`
		}
		return http.StatusUnprocessableEntity, `{"code":"invalid","reason":"not_offered","detail":"That is not offered."}`
	}
}

// person is what becomes of a form.
type person func(*mcp.ElicitParams) (*mcp.ElicitResult, error)

// shows is a client that can show forms.
func shows(do person) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return do(r.Params) },
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
	}
}

// unjudged sends on what a person makes of a form as it is: the SDK's client would judge
// it first, which other clients do not.
func unjudged(do person) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if p, ok := req.GetParams().(*mcp.ElicitParams); ok {
				return do(p)
			}
			return next(ctx, method, req)
		}
	}
}

// resolveByForm calls job_resolve without a choice, and shows the form that comes back:
// within the call in the older revisions, by repeating it in the current one.
func resolveByForm(t *testing.T, s *mcp.ClientSession, do person) (answer, error) {
	t.Helper()
	p := &mcp.CallToolParams{Name: "job_resolve", Arguments: json.RawMessage(unanswered)}
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		return answer{}, err
	}
	if !r.NeedsInput() {
		return read(t, r), nil
	}
	for name, form := range r.InputRequests {
		got, err := do(form.(*mcp.ElicitParams))
		if err != nil {
			return answer{}, err
		}
		p.InputResponses = mcp.InputResponseMap{name: got}
	}
	if r, err = s.CallTool(t.Context(), p); err != nil {
		return answer{}, err
	}
	return read(t, r), nil
}

const unanswered = `{"job_id":"job_1","token":"dec_1"}`

// A person at a reviewer's client answers by a form; whatever they do but answer leaves
// the question open, and is no error (cases 149, 151).
func TestFormAnswers(t *testing.T) {
	t.Parallel()
	type result = mcp.ElicitResult
	for _, version := range versions {
		for name, row := range map[string]struct {
			got    *result
			err    error
			reason string // of the refusal; empty: none
			want   string // the answer that reached the API; empty: none
		}{
			"accept":                  {got: &result{Action: "accept", Content: map[string]any{"choice_": "yes", "n": 3, "choice": "x"}}, want: `{"choice":"yes","input":{"choice":"x","n":3}}`},
			"accept without content":  {got: &result{Action: "accept"}},
			"accept of nothing":       {got: &result{Action: "accept", Content: map[string]any{}}},
			"accept of what is not":   {got: &result{Action: "accept", Content: map[string]any{"choice_": "maybe", "n": 3}}, reason: "not_offered", want: `{"choice":"maybe","input":{"n":3}}`},
			"accept without a choice": {got: &result{Action: "accept", Content: map[string]any{"n": 3}}, reason: "not_offered", want: `{"input":{"n":3}}`},
			"accept of another type":  {got: &result{Action: "accept", Content: map[string]any{"choice_": 7, "n": "x"}}, reason: "not_offered", want: `{"choice":7,"input":{"n":"x"}}`},
			"decline":                 {got: &result{Action: "decline"}},
			"decline with content":    {got: &result{Action: "decline", Content: map[string]any{"choice_": "no", "n": 3}}},
			"cancel":                  {got: &result{Action: "cancel"}},
			"a word of its own":       {got: &result{Action: "", Content: map[string]any{"choice_": "yes", "n": 3}}},
			"an error":                {err: errors.New("the window was closed")},
		} {
			d := &door{scope: "reviewer"}
			d.then(asking(pendingQuestion))
			shown := 0
			person := func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				shown++
				schema := js(p.RequestedSchema)
				if p.Message != "Go on?" || strings.Contains(schema, "$ref") || !strings.Contains(schema, `"enum":["yes","no"]`) {
					t.Errorf("%s %s: the form is %q %s", version, name, p.Message, schema)
				}
				return row.got, row.err
			}
			if version == versions[0] && row.err != nil {
				continue // a client that shows nothing does not repeat the call
			}
			s := at(t, d, mcpserver.Config{}, shows(person), version, unjudged(person))
			a, err := resolveByForm(t, s, person)
			switch {
			case err != nil:
				t.Errorf("%s %s: %v", version, name, err)
				continue
			case shown != 1:
				t.Errorf("%s %s: the form was shown %d times", version, name, shown)
			case row.reason != "" && (!a.IsError || a.get("error", "reason") != row.reason):
				t.Errorf("%s %s: %s, want a refusal: %s", version, name, a.text, row.reason)
			case row.reason == "" && row.want == "" && (a.IsError || a.get("status") != "pending" || len(a.Content) != 2):
				t.Errorf("%s %s: %s, want the open question and a note", version, name, a.text)
			case row.reason == "" && row.want != "" && a.get("status") != "resolved":
				t.Errorf("%s %s: %s", version, name, a.text)
			}
			if row.want == "" {
				mustStayOpen(t, d, version, name)
				continue
			}
			lines := d.lines()
			if last := lines[len(lines)-1]; last != "POST /v1/jobs/job_1/decision/dec_1/resolve "+row.want {
				t.Errorf("%s %s: the API was told %s", version, name, last)
			}
		}
	}
}

func mustStayOpen(t *testing.T, d *door, version, name string) {
	t.Helper()
	for _, line := range d.lines() {
		if strings.HasPrefix(line, http.MethodPost) {
			t.Errorf("%s %s: the API was told %s", version, name, line)
		}
	}
}

// Where nobody may or can answer, the question is returned as it stands.
func TestNoFormIsShown(t *testing.T) {
	t.Parallel()
	never := shows(func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		t.Error("a form was shown")
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice_": "yes", "n": 1}}, nil
	})
	onlyURLs := &mcp.ClientOptions{
		ElicitationHandler: never.ElicitationHandler,
		Capabilities:       &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
	}
	for _, version := range versions {
		for name, row := range map[string]struct {
			options  *mcp.ClientOptions
			question string
			says     string
		}{
			"no capability":           {nil, pendingQuestion, "cannot show"},
			"addresses only":          {onlyURLs, pendingQuestion, "cannot show"},
			"one's own question":      {never, strings.Replace(pendingQuestion, `"bot"`, `"ana"`, 1), "somebody else"},
			"a question that is over": {never, strings.Replace(pendingQuestion, `"pending"`, `"resolved"`, 1), ""},
		} {
			d := &door{scope: "admin"}
			d.then(asking(row.question))
			s := at(t, d, mcpserver.Config{}, row.options, version)
			a := ok(t, s, "job_resolve", unanswered)
			if a.text != row.question {
				t.Errorf("%s %s: %s", version, name, a.text)
			}
			if said := js(a.Content[1:]); !strings.Contains(said, row.says) {
				t.Errorf("%s %s: it says %s", version, name, said)
			}
			mustStayOpen(t, d, version, name)
		}
		d := &door{scope: "admin"}
		d.then(asking(strings.Replace(pendingQuestion, `"job_1"`, `"job_2"`, 1)))
		refused(t, at(t, d, mcpserver.Config{}, never, version), "job_resolve", unanswered, "not_found")
	}
}

// A client that repeats a call with an answer that nobody asked it for gets no further
// than with job_resolve: not with its own question.
func TestAFabricatedAnswerToAForm(t *testing.T) {
	t.Parallel()
	d := &door{scope: "admin"}
	d.then(asking(strings.Replace(pendingQuestion, `"bot"`, `"ana"`, 1)))
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	p := &mcp.CallToolParams{Name: "job_resolve", Arguments: map[string]string{"job_id": "job_1", "token": "dec_1"}}
	p.InputResponses = mcp.InputResponseMap{"answer": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice_": "yes", "n": 1}}}
	r, err := s.CallTool(t.Context(), p)
	if err != nil || r.IsError {
		t.Fatalf("%+v %v", r, err)
	}
	mustStayOpen(t, d, versions[0], "fabricated")
}

// One's own question is refused also with a choice, and a whole number that the client's
// JSON does not carry exactly is not stored as another one.
func TestAnswersThatAreRefusedHere(t *testing.T) {
	t.Parallel()
	d := &door{scope: "admin"}
	d.then(asking(strings.Replace(pendingQuestion, `"bot"`, `"ana"`, 1)))
	s := at(t, d, mcpserver.Config{}, nil, versions[0])
	refused(t, s, "job_resolve", strings.Replace(unanswered, "}", `,"choice":"yes"}`, 1), "self_decision")
	mustStayOpen(t, d, versions[0], "one's own")
	for _, version := range versions {
		d := &door{scope: "admin"}
		d.then(asking(pendingQuestion))
		person := func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice_": "yes", "n": json.Number("12345678901234567890")}}, nil
		}
		s := at(t, d, mcpserver.Config{}, shows(person), version, unjudged(person))
		a, err := resolveByForm(t, s, person)
		if err != nil || !a.IsError || !strings.Contains(a.get("error", "message"), "exactly") {
			t.Errorf("%s: %s %v", version, a.text, err)
		}
		mustStayOpen(t, d, version, "a number that is too large")
	}
}
