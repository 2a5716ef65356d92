package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: the operation that it is, its arguments, and what a client may
// think of it before it calls.
type tool struct {
	name, title, about string
	method, path       string
	body               bool // the operation wants one, if only {}
	args               []arg
	hints              hints
	reviews            bool                                                       // only for who may answer questions
	run                func(context.Context, *asked) (*mcp.CallToolResult, error) // nil: the plain operation
}

// hints are the annotations of a tool, all of them: what is left out means something else.
type hints struct {
	readOnly, destructive, idempotent, openWorld bool
}

func (h hints) annotations(title string) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: h.readOnly, DestructiveHint: &h.destructive, IdempotentHint: h.idempotent, OpenWorldHint: &h.openWorld,
	}
}

// schema is the tool's input schema: its arguments and nothing else.
func (t *tool) schema() json.RawMessage {
	var properties, required []string
	for _, a := range t.args {
		described := a.schema
		if a.about != "" {
			described = strings.Replace(described, "{", fmt.Sprintf("{%q:%q,", "description", a.about), 1)
		}
		properties = append(properties, fmt.Sprintf("%q:%s", a.name, described))
		if a.required {
			required = append(required, fmt.Sprintf("%q", a.name))
		}
	}
	s := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false`
	if required != nil {
		s += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return json.RawMessage(s + "}")
}

// spec is the tool as clients are told of it.
func (t *tool) spec() *mcp.Tool {
	return &mcp.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: t.schema(), Annotations: t.hints.annotations(t.title)}
}

// Schemas of arguments that several tools take.
const (
	aText    = `{"type":"string"}`
	anID     = `{"type":"string","minLength":1,"maxLength":200}`
	aFlag    = `{"type":"boolean"}`
	aCursor  = `{"type":"string","maxLength":100}`
	anObject = `{"type":"object"}`
	texts    = `{"type":"array","items":{"type":"string"}}`
	textMap  = `{"type":"object","additionalProperties":{"type":"string"}}`
	someSecs = `{"type":"integer","minimum":1,"maximum":315360000}`
	aPage    = `{"type":"integer","minimum":1,"maximum":500,"default":50}`
)

var (
	jobID   = arg{name: "job_id", in: inPath, required: true, schema: anID, about: "id of the job: job_…"}
	tokenID = arg{name: "token", in: inPath, required: true, schema: anID, about: "id of the question: dec_…"}
	callID  = arg{name: "call_id", in: inPath, required: true, schema: anID, about: "id of the call: call_…"}
	by      = arg{name: "by", schema: aText, about: "a label; the token's principal where it is left out"}
	noteArg = arg{name: "note", schema: aText, about: "why"}
	after   = arg{name: "after", in: inQuery, schema: anID, about: "next of the page before"}
	limit   = arg{name: "limit", in: inQuery, schema: aPage}
)

// tools are all of them, in the order in which they are told.
func tools() []*tool {
	return append(append(jobTools(), decisionTools()...), append(deliveryTools(), callTools()...)...)
}

const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
