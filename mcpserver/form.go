package mcpserver

import (
	"context"
	"encoding/json"
	"math"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// question is what a form needs of one.
type question struct {
	JobID       string          `json:"job_id"`
	Prompt      string          `json:"prompt"`
	Options     []string        `json:"options"`
	Form        json.RawMessage `json:"form"`
	Status      string          `json:"status"`
	RequestedBy string          `json:"requested_by"`
}

// A question's form comes from an agent. It is rebuilt from the words below, so that
// neither the client nor the SDK's schema library is given what they may trip over; the
// API judges the answer by the form as it was asked.

type formField struct {
	Type        string   `json:"type"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Minimum     *float64 `json:"minimum,omitempty"`
	Maximum     *float64 `json:"maximum,omitempty"`
	MinLength   *int     `json:"minLength,omitempty"`
	MaxLength   *int     `json:"maxLength,omitempty"`
}

type formSchema struct {
	Type       string               `json:"type"`
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required"`
}

// form is the schema that a person is asked to fill in, and the name in it under which
// the choice stands.
func (q question) form() (schema formSchema, choice string, err error) {
	schema = formSchema{Properties: map[string]formField{}}
	if q.Form != nil {
		if err := json.Unmarshal(q.Form, &schema); err != nil {
			return schema, "", fault.New(fault.Invalid, "The question's form cannot be shown here.").Hint("Give choice and input.").Because(err)
		}
	}
	for choice = "choice"; ; choice += "_" {
		if _, taken := schema.Properties[choice]; !taken {
			break
		}
	}
	schema.Type = "object"
	schema.Properties[choice] = formField{Type: "string", Title: "Answer", Enum: q.Options}
	schema.Required = append([]string{choice}, schema.Required...)
	return schema, choice, nil
}

// resolve answers a question: with the choice given, or with what a person chooses.
func resolve(ctx context.Context, a *asked) (*mcp.CallToolResult, error) {
	if _, given := a.args["choice"]; given {
		if err := a.notOwn(ctx); err != nil {
			return nil, err
		}
		return a.plain(ctx, a.tool.request(a.args))
	}
	if a.args["input"] != nil {
		return nil, errArgs.Say("There is input but no choice.").Hint("Give both, or neither: then the person at this client is asked.")
	}
	return a.byForm(ctx)
}

// notOwn refuses the question that the caller asked itself. The API lets the store's own
// user answer it; what comes from a client may be an agent's.
func (a *asked) notOwn(ctx context.Context) error {
	stands, err := do(ctx, a.door, a.reading())
	if err != nil {
		return err
	}
	var q question
	if err := decode(stands, &q); err != nil {
		return err
	}
	who, err := whoami(ctx, a.door)
	if err == nil && q.RequestedBy != "" && q.RequestedBy == who.Principal {
		err = errOwn
	}
	return err
}

// reading is the operation that reads the question.
func (a *asked) reading() operation {
	return (&tool{method: http.MethodGet, path: "/v1/decisions/{token}", args: []arg{tokenID}}).request(a.args)
}

// errOwn is the API's word for it.
var errOwn = fault.Sentinel(fault.Forbidden, "self_decision", "Nobody answers their own question here.")

// byForm lets the person at the client answer, where they may and can.
func (a *asked) byForm(ctx context.Context) (*mcp.CallToolResult, error) {
	stands, q, err := a.question(ctx)
	if err != nil {
		return nil, err
	}
	who, err := whoami(ctx, a.door)
	switch {
	case err != nil:
		return nil, err
	case q.Status != "pending":
		return object(stands), nil
	case !who.reviews() || q.RequestedBy == who.Principal:
		return note(object(stands), "No form was shown: somebody else has to answer this question. It is still open; wait for it with job_wait."), nil
	case !a.canShowForms():
		return note(object(stands), "No form was shown: this client cannot show any. The question is still open; answer it with choice."), nil
	}
	schema, choice, err := q.form()
	if err != nil {
		return nil, err
	}
	got, more := a.elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: q.Prompt, RequestedSchema: schema})
	switch {
	case more != nil:
		return more, nil
	case got == nil:
		return note(object(stands), "The form was not answered. The question is still open."), nil
	case got.Action != "accept" || len(got.Content) == 0:
		return note(object(stands), "The form was closed without an answer ("+shown(got.Action)+"). The question is still open."), nil
	}
	return a.resolveWith(ctx, got.Content, choice)
}

// question reads the question, which has to be the job's.
func (a *asked) question(ctx context.Context) (stands []byte, q question, err error) {
	if stands, err = do(ctx, a.door, a.reading()); err != nil {
		return nil, q, err
	}
	if err := decode(stands, &q); err != nil {
		return nil, q, err
	}
	if q.JobID != text(a.args["job_id"]) {
		return nil, q, fault.Sentinel(fault.NotFound, "not_found", "That job has no such question.")
	}
	return stands, q, nil
}

// exactFloat bounds the whole numbers that a client's JSON carries exactly.
const exactFloat = 1 << 53

// resolveWith gives the API what was filled in; it judges it.
func (a *asked) resolveWith(ctx context.Context, content map[string]any, choice string) (*mcp.CallToolResult, error) {
	input := map[string]any{}
	for name, v := range content {
		if n, ok := v.(float64); ok && math.Abs(n) > exactFloat {
			return nil, errArgs.Say("The form's %s is a number that a form does not carry exactly.", shown(name)).Hint("Give choice and input instead.")
		}
		b, err := json.Marshal(v)
		switch {
		case err != nil:
			return nil, errArgs.Say("The form's answer cannot be read.").Because(err)
		case name == choice:
			a.args["choice"] = b
		default:
			input[name] = v
		}
	}
	if len(input) > 0 {
		b, err := json.Marshal(input)
		if err != nil {
			return nil, errArgs.Say("The form's answer cannot be read.").Because(err)
		}
		a.args["input"] = b
	}
	return a.plain(ctx, a.tool.request(a.args))
}

// canShowForms reports whether the client said that it can.
func (a *asked) canShowForms() bool {
	p := a.req.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil // neither named: as the older revisions have it, forms
}

// asksInResults are the revisions in which a form is asked for in a call's result, and
// the call is repeated with the answer.
const asksInResults = "2026-07-28"

const formName = "answer"

// elicit shows a form and returns what came of it; nil: nothing. more is a result with
// which the client is asked, for it to call again.
func (a *asked) elicit(ctx context.Context, form *mcp.ElicitParams) (got *mcp.ElicitResult, more *mcp.CallToolResult) {
	if a.req.Session.InitializeParams().ProtocolVersion >= asksInResults {
		if r, given := a.req.Params.InputResponses[formName]; given {
			got, _ = r.(*mcp.ElicitResult)
			return got, nil
		}
		return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{formName: form}}
	}
	defer a.progress(ctx, "waiting for the form")()
	ctx, cancel := context.WithTimeout(ctx, a.c.FormPatience)
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	var kept *mcp.ElicitResult
	got, err := a.req.Session.Elicit(context.WithValue(ctx, keptKey{}, &kept), form)
	if err != nil {
		// The SDK refuses content that does not fit; the API says why it does not.
		return kept, nil
	}
	return got, nil
}

type keptKey struct{}

// keepAnswers keeps the answer to a form as it came, also where the SDK refuses it.
func keepAnswers(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, err := next(ctx, method, req)
		if keep, ok := ctx.Value(keptKey{}).(**mcp.ElicitResult); ok && err == nil {
			if e, ok := r.(*mcp.ElicitResult); ok {
				*keep = e
			}
		}
		return r, err
	}
}
