package event

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/placet-dev/placet/txn"
)

// DeliveryDropped stands in the stream of the event whose delivery was given up before
// it was sent.
const DeliveryDropped Type = "delivery.dropped"

// OutputPrefix marks the name of a printed event among the words of waits and wake
// targets: output:NAME.
const OutputPrefix = "output:"

var (
	jobTypes = []Type{
		JobQueued, JobStarted, JobCompleted, JobFailed, JobTimeout, JobCancelled, JobOrphaned, JobPaused, JobUnpaused,
		LogTruncated, LogCaptureFailed, OutputDropped, DecisionRequested, DecisionResolved, DecisionWithdrawn, DecisionExpired, DeliveryDropped,
	}
	runTypes = []Type{
		RunCreated, RunStarted, RunResumed, RunFinished, StepStarted, StepDecided, StepPolicy, StepToolStarted, StepToolFinished,
		StepFailed, StepInterrupted, LimitExceeded, LoopDetected, LeaseTakenOver,
	}
	callTypes = []Type{CallCreated, CallStarted, CallFinished, CallUnknown, CallCancelled}
	// approvalTypes stand in the streams of runs and of calls.
	approvalTypes = []Type{
		ApprovalRequested, ApprovalDecided, ApprovalExpired, ApprovalWithdrawn, ApprovalSuperseded, ApprovalConsumed, ResumeRefused,
	}
	anyTypes = []Type{DeliveryDropped}
)

// JobTypes lists the types of a job's events that are not printed.
func JobTypes() []Type { return slices.Clone(jobTypes) }

// RunTypes lists the types of the events in a run's stream.
func RunTypes() []Type { return slices.Concat(runTypes, callTypes, approvalTypes, anyTypes) }

// Types lists the types of all events that are not printed.
func Types() []Type { return slices.Concat(runTypes, callTypes, approvalTypes, jobTypes) }

// Stored lists every type that an event in a stream may have.
func Stored() []Type { return append(Types(), JobOutput, EventRedacted) }

// MaxOutputName is how long a printed event's name for itself is at most, in bytes: of a
// longer one the beginning is kept.
const MaxOutputName = 200

// OutputName is the NAME in a word output:NAME; ok is false for another word.
func OutputName(word string) (name string, ok bool) {
	name, ok = strings.CutPrefix(word, OutputPrefix)
	return name, ok && name != "" && txn.IsText(name)
}

// Printed is the name that a printed event gives itself; ok is false for any other
// event. What is printed is data: it is never a lifecycle type.
func (e *Event) Printed() (name string, ok bool) {
	if e.Type != JobOutput {
		return "", false
	}
	var p struct {
		Type string `json:"type"`
	}
	return p.Type, json.Unmarshal(e.Payload, &p) == nil
}
