package store

import (
	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
)

// The errors of a guarded write that another writer was quicker than. Each matches
// decision.ErrMoved, TakenCall call.ErrCallConflict.

func MovedCall(prev call.Call) error { return decision.Moved("Call %s", prev.ID) }

func MovedAttempt(prev call.Attempt) error {
	return decision.Moved("Attempt %d at call %s", prev.N, prev.CallID)
}

func MovedRun(prev run.Run) error { return decision.Moved("Run %s", prev.ID) }

func MovedStep(prev run.Step) error {
	return decision.Moved("Step %d of run %s", prev.Index, prev.RunID)
}

func MovedJob(prev job.Job) error { return decision.Moved("Job %s", prev.ID) }

// TakenCall is for a new call whose ids are in use.
func TakenCall(c call.Call) error {
	return call.ErrCallConflict.Say("Run %s has a call %q already.", c.RunID, c.ExternalID)
}
