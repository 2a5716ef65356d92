package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/fault"
)

// SideEffect says what a tool may change. Policy starts from it.
type SideEffect string

// The classes, from harmless to irreversible (spec 1.1).
const (
	ReadOnly       SideEffect = "read_only"       // changes nothing
	LocalMutation  SideEffect = "local_mutation"  // changes things on this machine
	RemoteMutation SideEffect = "remote_mutation" // changes things elsewhere
	Destructive    SideEffect = "destructive"     // removes what cannot be brought back
)

// Words says it as the end of a sentence that begins with the tool, to whoever never
// registered one. What is no class is said as it is.
func (e SideEffect) Words() string {
	switch e {
	case ReadOnly:
		return "only reads"
	case LocalMutation:
		return "changes things on this machine"
	case RemoteMutation:
		return "changes things elsewhere"
	case Destructive:
		return "deletes or overwrites things"
	}
	return string(e)
}

// SideEffects lists the classes.
func SideEffects() []SideEffect {
	return []SideEffect{ReadOnly, LocalMutation, RemoteMutation, Destructive}
}

// Limits of a tool and its calls.
const (
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 24 * time.Hour
	MaxArgs        = 1 << 20 // bytes of arguments
	MaxResult      = 1 << 20 // bytes of a result
)

// Spec is what a reviewer's yes is bound to, besides the arguments: the tool as registered.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	SideEffect  SideEffect      `json:"side_effect"`
	TimeoutMS   int64           `json:"timeout_ms"`
	// Implementation names what runs: the program and its arguments, the method
	// and URL, or a version that a Go tool declares. Empty: not part of the spec.
	Implementation string `json:"implementation,omitempty"`
}

// Timeout is how long one attempt may take.
func (s Spec) Timeout() time.Duration { return time.Duration(s.TimeoutMS) * time.Millisecond }

// Tool is a registered tool: its spec, what we may do when an outcome is
// unknown, and what carries it out.
type Tool struct {
	Spec
	Confirm    bool   // always ask a person, whatever the policy says
	Idempotent bool   // a repeat with the same call id has no second effect
	CancelSafe bool   // a timed-out, killed or panicked call had no effect; says nothing of one that ended by itself
	Cost       int64  // what one call adds to the guard `cost`; 0 or more
	Run        Runner // required
	Probe      Prober // nil: the tool cannot be asked what became of a call

	sealed *seal // set when the tool is registered
}

// Masked is what doors show where the arguments of a call have a secret.
const Masked = "[masked]"

// Call is one attempt at a call, as a tool sees it.
type Call struct {
	CallID  string // the same for every attempt: the idempotency key
	RunID   string
	Tool    string
	Attempt int    // 1 for the first
	Args    []byte // exactly the recorded bytes; not to be changed
}

// Runner carries out a call. It must be safe for concurrent use.
//
// Run may be given a ctx with a check (see [WithStartCheck]): one that needs a while
// before it begins something calls [StartCheck] at the last moment.
//
// Run returns one JSON value of at most [MaxResult] bytes; a tool with nothing to
// say returns null. An error is the tool saying that it failed; one that matches
// [ErrOutcomeUnknown] says that it does not know, one that matches [ErrNotStarted]
// that nothing was begun. After ctx ended only these two are believed: any other
// error may be the end of ctx in other words, and counts as a time-out.
type Runner interface {
	Run(ctx context.Context, c Call) (json.RawMessage, error)
}

// RunnerFunc lets a function be a Runner.
type RunnerFunc func(ctx context.Context, c Call) (json.RawMessage, error)

// Run calls f.
func (f RunnerFunc) Run(ctx context.Context, c Call) (json.RawMessage, error) { return f(ctx, c) }

// Elsewhere is the Runner of a tool that is carried out by whoever reserves its calls
// (run.OpenStep.Reserve): nothing is begun here.
var Elsewhere Runner = RunnerFunc(func(context.Context, Call) (json.RawMessage, error) {
	return nil, ErrNotStarted.Say("The tool was not started: its caller carries it out, and has to reserve the call.")
})

// Prober finds out what became of a call whose outcome is unknown. An error settles nothing.
type Prober interface {
	Probe(ctx context.Context, c Call) (ProbeResult, error)
}

// ProberFunc lets a function be a Prober.
type ProberFunc func(ctx context.Context, c Call) (ProbeResult, error)

// Probe calls f.
func (f ProberFunc) Probe(ctx context.Context, c Call) (ProbeResult, error) { return f(ctx, c) }

// ProbeOutcome is what a probe found.
type ProbeOutcome string

// What a probe may answer (spec 4.2). Anything else settles nothing.
const (
	ProbeSucceeded ProbeOutcome = "succeeded"
	ProbeFailed    ProbeOutcome = "failed"
	ProbeNotFound  ProbeOutcome = "not_found"
)

// ProbeResult is a probe's answer.
type ProbeResult struct {
	Outcome ProbeOutcome    `json:"outcome"`
	Result  json.RawMessage `json:"result,omitempty"`  // of succeeded
	Message string          `json:"message,omitempty"` // of failed
}

// Errors of this package.
var (
	// ErrUnknown: no tool of that name is registered in this process.
	ErrUnknown = fault.Sentinel(fault.NotFound, "unknown_tool", "No tool of that name is registered here.")
	// ErrInvalidArguments: the arguments do not fit the tool's schema, or are not acceptable JSON.
	ErrInvalidArguments = fault.Sentinel(fault.Invalid, "invalid_arguments", "The arguments do not fit the tool's schema.")
	// ErrInvalidTool: the tool itself cannot be registered.
	ErrInvalidTool = fault.Sentinel(fault.Invalid, "invalid_tool", "The tool cannot be registered.")
	// ErrOutcomeUnknown: the tool may or may not have had its effect (spec 1.1).
	ErrOutcomeUnknown = fault.Sentinel(fault.Unknown, "unknown_outcome", "It is not known whether the tool had its effect.")
	// ErrNotStarted: the tool was never begun, so it had no effect.
	ErrNotStarted = fault.Sentinel(fault.Unavailable, "not_started", "The tool was not started.")
	// ErrAbort: the tool failed, and an agent's run shall end with it (tool_abort).
	ErrAbort = fault.Sentinel(fault.Closed, "tool_abort", "The tool ended the run.")
)
