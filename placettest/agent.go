package placettest

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/placet-dev/placet/run"
)

// Agent decides by a list, in any process that has the same one: each step gets the
// proposal behind those of the steps that came to an end. A step that was
// interrupted is proposed once more. Behind the last one it completes the run. It is
// safe for concurrent use.
type Agent struct {
	proposals []run.Proposal

	mu   sync.Mutex
	seen []run.StepInput
}

var _ run.Agent = (*Agent)(nil)

// NewAgent is an agent that proposes these, one for each step.
func NewAgent(proposals ...run.Proposal) *Agent { return &Agent{proposals: proposals} }

// Decide is run.Agent's.
func (a *Agent) Decide(_ context.Context, in run.StepInput) (run.Proposal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, in)
	n := 0
	for _, s := range in.Steps {
		if s.Observation != run.WasInterrupted {
			n++
		}
	}
	if n < len(a.proposals) {
		return a.proposals[n], nil
	}
	return Completes(`"done"`), nil
}

// Seen is what the agent was given, step by step.
func (a *Agent) Seen() []run.StepInput {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]run.StepInput(nil), a.seen...)
}

// Calls proposes a tool call.
func Calls(tool, args string) run.Proposal {
	return run.Proposal{Kind: run.CallTool, Tool: tool, Args: json.RawMessage(args)}
}

// Completes says that the goal is reached. result is one JSON value, or empty.
func Completes(result string) run.Proposal {
	return run.Proposal{Kind: run.Complete, Result: json.RawMessage(result)}
}

// Fails says that the goal cannot be reached.
func Fails(why string) run.Proposal { return run.Proposal{Kind: run.Fail, Text: why} }
