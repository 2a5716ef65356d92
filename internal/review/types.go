package review

import "github.com/placet-dev/placet/event"

// TypeWords tells what events of a type are, where nothing is known of any one of them.
func TypeWords(t event.Type) string {
	if w, ok := wordsOfTypes[t]; ok {
		return w
	}
	if w, ok := wordsOfJobs[t]; ok {
		return w
	}
	return sentence(string(t))
}

var wordsOfTypes = map[event.Type]string{
	event.CallCreated: "A call was asked for", event.CallStarted: "A call started", event.CallFinished: "A call finished",
	event.CallUnknown: "A call's outcome is unknown", event.CallCancelled: "A call was cancelled", event.ResumeRefused: "A call or run was not started yet",
	event.ApprovalRequested: "A person was asked", event.ApprovalDecided: "A person decided", event.ApprovalExpired: "Nobody decided in time",
	event.ApprovalWithdrawn: "An approval was taken back", event.ApprovalSuperseded: "An approval was replaced", event.ApprovalConsumed: "A no was passed on",
	event.RunCreated: "A run was made", event.RunStarted: "A run began", event.RunResumed: "A run went on", event.RunFinished: "A run ended",
	event.StepStarted: "A step began", event.StepDecided: "An agent proposed a step", event.StepPolicy: "The policy ruled on a step",
	event.StepToolStarted: "A step's tool started", event.StepToolFinished: "A step's tool finished", event.StepFailed: "A step failed", event.StepInterrupted: "A step was interrupted",
	event.LeaseTakenOver: "Another process took over", event.EventRedacted: "Something was removed from the record",
}
