package run

import (
	"maps"
	"slices"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
)

// Status is where a run stands.
type Status string

// The statuses (spec 1.1).
const (
	Running   Status = "RUNNING"              // its loop goes on, or waits for the next process
	Waiting   Status = "WAITING_FOR_APPROVAL" // it waits for a person
	Completed Status = "COMPLETED"            // the agent said that it is done
	Failed    Status = "FAILED"               // the agent gave up, or a limit, the policy or a fault ended it
	Cancelled Status = "CANCELLED"            // a person ended it, or nobody agreed in time
)

// Statuses lists them.
func Statuses() []Status { return []Status{Running, Waiting, Completed, Failed, Cancelled} }

// Terminal reports whether nothing changes a run of this status any more.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Reason says why a run ended.
type Reason string

// The reasons (spec 1.1).
const (
	GoalCompleted     Reason = "goal_completed"
	GoalFailed        Reason = "goal_failed"
	LimitSteps        Reason = "limit_steps"
	LimitActiveTime   Reason = "limit_active_time"
	LimitElapsedTime  Reason = "limit_elapsed_time"
	LimitModelCalls   Reason = "limit_model_calls"
	LimitTokens       Reason = "limit_tokens"
	LimitCost         Reason = "limit_cost"
	RepeatedFailures  Reason = "repeated_tool_failures"
	LoopDetected      Reason = "loop_detected"
	PolicyAbort       Reason = "policy_abort"
	ToolAbort         Reason = "tool_abort"
	ApprovalRejected  Reason = "approval_rejected"
	ApprovalExpired   Reason = "approval_expired"
	OperatorCancelled Reason = "operator_cancelled"
	ReconcileConflict Reason = "reconcile_conflict"
	AgentError        Reason = "agent_error"
	ModelUnavailable  Reason = "model_unavailable"
	InternalError     Reason = "internal_error"
)

// Reasons lists them.
func Reasons() []Reason {
	return []Reason{
		GoalCompleted, GoalFailed, LimitSteps, LimitActiveTime, LimitElapsedTime, LimitModelCalls, LimitTokens, LimitCost,
		RepeatedFailures, LoopDetected, PolicyAbort, ToolAbort, ApprovalRejected, ApprovalExpired, OperatorCancelled,
		ReconcileConflict, AgentError, ModelUnavailable, InternalError,
	}
}

// StepStatus is where a step stands.
type StepStatus string

// The statuses of a step (spec 1.1).
const (
	Deciding         StepStatus = "deciding"          // the agent is asked
	AwaitingApproval StepStatus = "awaiting_approval" // the run waits for a person
	Executing        StepStatus = "executing"         // its tool was started
	Done             StepStatus = "done"
	StepFailed       StepStatus = "failed"
	Interrupted      StepStatus = "interrupted" // its process was lost, or its tool's outcome is not known
)

// StepStatuses lists them.
func StepStatuses() []StepStatus {
	return []StepStatus{Deciding, AwaitingApproval, Executing, Done, StepFailed, Interrupted}
}

// open reports whether something of the step is still to come before the next one.
func (s StepStatus) open() bool {
	return s == Deciding || s == AwaitingApproval || s == Executing
}

// ObservationKind sorts what the agent is told of a step.
type ObservationKind string

// The kinds (spec 1.1).
const (
	ToolResult      ObservationKind = "tool_result"
	ToolError       ObservationKind = "tool_error"
	PolicyDenied    ObservationKind = "policy_denied"
	InvalidDecision ObservationKind = "invalid_decision"
	WasInterrupted  ObservationKind = "interrupted"
)

// Run is one run. Goal, Detail and Result may carry text a model chose.
type Run struct {
	ID     string
	Space  string
	Goal   string
	Limits Limits
	Agent  AgentRef // what makes its decisions
	Flow   FlowRef  // of a flow's run

	Principal  string // who started it, as proved; empty: not known
	Metadata   map[string]string
	ContinueBy call.ContinueBy
	NextTryAt  time.Time // a daemon does not try before; zero: any time

	Status Status
	Reason Reason // why it ended
	Detail string // the same in words
	Result string // one JSON value, of a completed run; empty: none

	StepCount  int64  // steps claimed so far; the index of the last
	Failures   int64  // tool failures and denials in a row
	Repeats    int64  // how often in a row the last tool call was proposed
	LastDigest string // of that call: tool and arguments
	Usage      Usage  // of the model, as charged

	Active      time.Duration // spent working, up to ActiveSince
	ActiveSince time.Time     // zero while nobody works on it

	ApprovalID string // the latest approval; only it can be a grant
	ApprovalN  int64  // how many there were

	Fence      int64     // of the last taking of the lease; only ever grows
	LeaseUntil time.Time // zero: nobody holds it
	LeaseOwner string    // for display
	Epoch      int64     // life of the store in which the lease was taken

	CreatedAt  time.Time
	FinishedAt time.Time
	Version    int64 // grows with every write but a lease's renewal
	Head       event.Head

	Current Step // the last step; without an id: there was none yet
}

// AgentRef says where a run's decisions come from, so that any process can find it
// again: a name in the configuration, or a command line. Both empty: the program
// that started the run knows.
type AgentRef struct {
	Name string   `json:"name,omitempty"`
	Argv []string `json:"argv,omitempty"`
	Dir  string   `json:"dir,omitempty"` // absolute; where the command line runs
}

// FlowRef names a flow and what it was defined as when the run started.
type FlowRef struct {
	Name    string
	Version string
	Digest  string // of the definition
}

// Step is one turn of a run. It holds no memory that could be changed: a copy is
// as good as the original, however large its result.
type Step struct {
	ID     string
	RunID  string
	Index  int64 // 1 for the first
	Status StepStatus

	// What the agent decided. Said and Raw are a model's words.
	Kind       ProposalKind // empty while it is asked
	Tool       string
	Args       string // JSON, exactly as proposed
	ArgsDigest string
	Said       string // why, or the message of a fail
	Raw        string // the whole answer as it came; empty: it did not come as bytes
	Node       string // of a flow

	Ruling      Ruling // without an outcome: the policy was not asked
	Observation ObservationKind
	Message     string // of the observation
	Result      string // JSON, of its tool; read with its call

	CallID     string
	ApprovalID string
	StartedAt  time.Time
	FinishedAt time.Time
}

// Ruling is what the policy said of a step, as it is kept.
type Ruling struct {
	Outcome policy.Outcome `json:"outcome"`
	Reason  string         `json:"reason,omitempty"`
	Kind    string         `json:"kind,omitempty"`
}

// Ref names the run as a decision's owner.
func (r Run) Ref() decision.Ref { return decision.Ref{Kind: decision.OwnerRun, ID: r.ID} }

// Stream is the run's event stream.
func (r Run) Stream() string { return r.Ref().Stream() }

// ActiveAt is how long the run was worked on, up to now. Waiting for people does
// not count.
func (r Run) ActiveAt(now time.Time) time.Duration {
	if r.ActiveSince.IsZero() || now.Before(r.ActiveSince) {
		return r.Active
	}
	return r.Active + now.Sub(r.ActiveSince)
}

// Clone is a copy that shares no memory with r.
func (r Run) Clone() Run {
	r.Metadata = maps.Clone(r.Metadata)
	r.Agent.Argv = slices.Clone(r.Agent.Argv)
	r.Head.Hash = slices.Clone(r.Head.Hash)
	return r
}

// Tx is what runs need of a transaction.
type Tx interface {
	call.Tx
	// Run reads a run with its last step and, in a write transaction, locks it; [ErrNotFound].
	Run(id string) (Run, error)
	// LockRun locks a run that is judged on as it was read before. What is appended to
	// its stream then follows the head that it was read with; PutRun holds that
	// against the row.
	LockRun(r Run) error
	// Runs lists, newest first.
	Runs(q Query) ([]Run, error)
	// InsertRun writes a new run, and its first step if it has one.
	InsertRun(ch Change) error
	// PutRun writes a change: guarded by the version, status and fence of prev;
	// decision.ErrMoved when another writer won.
	PutRun(prev Run, ch Change) error
	// RenewRun moves the end of a lease, guarded by status and fence; false: it is lost.
	// It is lost too once it has ended.
	RenewRun(id string, fence int64, until time.Time) (bool, error)
	// Steps lists a run's steps with an index above after, oldest first. limit is 1
	// to 1,000; 0 means 100.
	Steps(runID string, after int64, limit int) ([]Step, error)
	// StepCall is the id of the call that a step has led to; empty: it has led to none, or
	// there is no such step.
	StepCall(runID, stepID string) (callID string, err error)
	// ContinuableRuns lists runs of the space that a daemon is to go on with, by id
	// behind after: waiting ones that have a grant, or whose question an outcome learnt
	// late has answered, and running ones that nobody works on. One that is not to be tried before a time after now is left out.
	ContinuableRuns(space string, now time.Time, after string, limit int) ([]Run, error)
	// Adrift lists running runs of the space, by id behind after, whose lease ended
	// before now, was given back, or is of an earlier life of the store.
	Adrift(space string, now time.Time, after string, limit int) ([]Run, error)
}

// Query selects runs, newest first.
type Query struct {
	Space  string
	Status Status // empty: all
	After  string // id of the last one seen
	Limit  int    // 1 to 500; 0 means 50
	Prefix string // of the id
}

// Stays refuses a root that nothing can hear of any more: [ErrNotFound] where it is not
// there, [ErrRunState] where it has ended. It is asked in the transaction that adds a
// wake target.
func Stays(tx Tx, space, id string) error {
	r, err := tx.Run(id)
	switch {
	case err == nil && r.Space != space:
		return ErrNotFound.Say("There is no run %s.", id)
	case err == nil && r.Status.Terminal():
		return r.errState()
	}
	return err
}
