package view

// tone is how a status looks: what waits, went well, went wrong, or is over.
func tone(word string) string {
	switch word {
	case "waits", "pending", "queued", "launching", "WAITING_FOR_APPROVAL", "awaiting_approval", "retrying", "unknown", "interrupted", "paused":
		return "waits"
	case "approved", "consumed", "resolved", "answered", "succeeded", "completed", "COMPLETED", "done", "delivered":
		return "good"
	case "rejected", "denied", "failed", "FAILED", "dead", "orphaned", "timeout":
		return "bad"
	case "running", "RUNNING", "executing", "deciding", "dispatching":
		return "busy"
	}
	return "over"
}
