package review

import (
	"encoding/json"

	"github.com/placet-dev/placet/event"
)

// EventWords tells in plain words what an event of that type and payload means; the payload may
// be empty.
func EventWords(t event.Type, payload []byte) string {
	var d told
	_ = json.Unmarshal(payload, &d) // what has another shape tells nothing more
	switch {
	case t == event.ApprovalDecided && d.Status != "":
		return sentence(d.Status)
	case (t == event.CallFinished || t == event.StepToolFinished) && d.Status != "":
		return TypeWords(t) + ": " + orUnknown(d.Status)
	case t == event.StepPolicy && d.Outcome != "":
		return TypeWords(t) + ": " + orUnknown(d.Outcome)
	}
	return TypeWords(t)
}

// wordsOfJobs are those of what happens to jobs, their questions and deliveries, where more
// is shown than what belongs to one decision.
var wordsOfJobs = map[event.Type]string{
	event.JobQueued: "The job was queued", event.JobStarted: "The command began", event.JobCompleted: "The job completed",
	event.JobFailed: "The job failed", event.JobTimeout: "The job's time was over", event.JobCancelled: "The job was cancelled",
	event.JobOrphaned: "The job's runner or machine was lost", event.JobPaused: "Paused", event.JobUnpaused: "Goes on after a pause",
	event.JobOutput: "The job told something", event.LogTruncated: "More was printed than is kept", event.LogCaptureFailed: "Something that was printed was lost",
	event.OutputDropped: "The job told more than is kept", event.DeliveryDropped: "A message was not needed any more",
	event.DecisionRequested: "A question was asked", event.DecisionResolved: "The question was answered",
	event.DecisionExpired: "Nobody answered the question in time", event.DecisionWithdrawn: "The question was taken back",
	event.LimitExceeded: "A limit was reached", event.LoopDetected: "The agent went in circles",
}
