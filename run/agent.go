package run

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
)

// Agent decides what a run does next. It is the only thing that the model's side
// supplies, and has no say in what is allowed.
//
// Decide is called outside every transaction, once for each step. What it is given
// is its own copy. An error ends the run as agent_error, or as model_unavailable
// where it matches [ErrModelUnavailable].
type Agent interface {
	Decide(ctx context.Context, in StepInput) (Proposal, error)
}

// AgentFunc lets a function be an Agent.
type AgentFunc func(ctx context.Context, in StepInput) (Proposal, error)

// Decide calls f.
func (f AgentFunc) Decide(ctx context.Context, in StepInput) (Proposal, error) { return f(ctx, in) }

// StepInput is what an agent sees before it decides.
type StepInput struct {
	Run       Run
	Steps     []Step              // all before this one, oldest first
	Approvals []decision.Decision // of the run, oldest first
	Tools     []tool.Spec         // that may be proposed
	// Meter charges what the model costs. The first call of each step is charged already.
	Meter Meter
}

// ProposalKind is what an agent proposes.
type ProposalKind string

// The kinds. AskApproval is only a flow's: a person's yes, with no tool.
const (
	CallTool    ProposalKind = "tool_call"
	Complete    ProposalKind = "complete"
	Fail        ProposalKind = "fail"
	AskApproval ProposalKind = "approval"
)

// Proposal is an agent's decision.
type Proposal struct {
	Kind   ProposalKind
	Tool   string
	Args   json.RawMessage // exactly what runs; never reformatted
	Result json.RawMessage // of complete: one JSON value; nil: none
	Text   string          // why, or the message of fail
	// Raw is the whole answer as the model gave it, kept before anything else is
	// looked at. nil: it did not come as bytes.
	Raw []byte
	// Node names the flow's node that this is. Presentation is what people see of one
	// that asks for an approval, a JSON object. Default: {node, args}.
	Node         string
	Presentation json.RawMessage
}

// clone is a copy that shares no memory with p: what an agent does to its own after
// it answered changes nothing.
func (p Proposal) clone() Proposal {
	p.Args, p.Result, p.Raw = bytes.Clone(p.Args), bytes.Clone(p.Result), bytes.Clone(p.Raw)
	p.Presentation = bytes.Clone(p.Presentation)
	return p
}

func (p Proposal) size() int {
	return len(p.Kind) + len(p.Tool) + len(p.Args) + len(p.Result) + len(p.Text) + len(p.Raw) + len(p.Node) + len(p.Presentation)
}

// Usage is what was charged for asking a model.
type Usage struct {
	ModelCalls int64 `json:"model_calls"`
	Tokens     int64 `json:"tokens,omitempty"`
	Cost       Cost  `json:"cost,omitempty"`
}

// Meter charges model calls to the run before they are made, so that one whose
// answer never came is counted too.
type Meter interface {
	// Charge reserves for one attempt at asking the model: [ErrLimit] if that would
	// pass a limit of the run, and then the model is not to be asked. Tokens and cost
	// are an upper estimate. Of the first attempt of a step the call itself is charged already.
	Charge(ctx context.Context, tokens int64, cost Cost) error
	// Settle replaces the estimate of the last attempt by what it really took.
	Settle(ctx context.Context, tokens int64, cost Cost) error
}
