package run

import (
	"time"

	"github.com/placet-dev/placet/decision"
)

// Command is what can happen to a run.
type Command interface{ command() }

// Hold is how a process shows that the run is still its own, and extends its lease
// with what it writes.
type Hold struct {
	Fence int64
	Epoch int64     // life of the store now
	At    time.Time // the store's clock: judges leases
	Until time.Time // new end of the lease
}

// Take is a taking of the lease.
type Take struct {
	Owner string
	Epoch int64
	At    time.Time
	Until time.Time
}

// hold is what the taking gives, once its fence is drawn.
func (t Take) hold(fence int64) Hold { return Hold{fence, t.Epoch, t.At, t.Until} }

// Create makes a new run.
type Create struct{ Take }

// Advance claims the next step, unless a limit ends the run.
type Advance struct {
	Hold
	StepID string
}

// Record notes what the agent decided, as it said it, before anything looks at it.
type Record struct {
	Hold
	Proposal   Proposal
	ArgsDigest string // empty: the arguments have none
}

// Judged notes what the policy said.
type Judged struct{ Ruling Ruling }

// Pause makes the run wait for an approval.
type Pause struct {
	Hold
	Approval decision.Decision
	CallID   string
}

// Execute starts the step's tool.
type Execute struct {
	Hold
	CallID string
}

// Observe ends the step with what the agent is told of it.
type Observe struct {
	Hold
	Kind    ObservationKind
	Message string
	Result  string
}

// Interrupt notes that the outcome of the step's tool is not known.
type Interrupt struct {
	Hold
	Message string
}

// TakeOver takes a running run whose process was lost, or gave its lease back.
type TakeOver struct{ Take }

// Resume takes a waiting run.
type Resume struct{ Take }

// End ends the run on the loop's word.
type End struct {
	Hold
	Status Status
	Reason Reason
	Detail string
	Result string
	// Of the open step, if there is one. Without a kind it is done: it said so itself.
	Kind    ObservationKind
	Message string
}

// Release gives the lease back at the end of a step.
type Release struct{ Hold }

// Charge reserves for asking the model, or corrects the last reservation.
type Charge struct {
	Hold
	Usage    Usage // to add
	Refund   Usage // tokens and cost to take back first
	Corrects bool  // what was really taken: it is noted also where it passes a limit
}

// Cancel ends the run on an operator's word.
type Cancel struct{ By, Note string }

// Answered ends a waiting run on a no, or because nobody answered or acted in time.
type Answered struct{ Decision decision.Decision }

func (Create) command() {}

func (Advance) command() {}

func (Record) command() {}

func (Judged) command() {}

func (Pause) command() {}

func (Execute) command() {}

func (Observe) command() {}

func (Interrupt) command() {}

func (TakeOver) command() {}

func (Resume) command() {}

func (End) command() {}

func (Release) command() {}

func (Charge) command() {}

func (Cancel) command() {}

func (Answered) command() {}
