package run

import (
	"context"

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
