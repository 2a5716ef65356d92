package job

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
)

// Errors of jobs (spec 4.6). Those that decisions know too are the same values.
var (
	ErrNotFound       = decision.ErrNotFound
	ErrUsage          = decision.ErrUsage
	ErrRunState       = decision.ErrRunState
	ErrTooManyPending = decision.ErrTooManyPending
	ErrKeyConflict    = decision.ErrKeyConflict
	// ErrNotReached: the job's runner did not answer; whether it heard is not known.
	ErrNotReached = fault.Sentinel(fault.Unavailable, "runner_not_reached", "The job's runner did not answer.")
	// ErrRefused: the job's runner heard and did not do it.
	ErrRefused = fault.Sentinel(fault.Conflict, "runner_refused", "The job's runner refused.")
	// ErrOutputGone: the command has begun, so it had an output, and the file is not there
	// any more.
	ErrOutputGone = fault.Sentinel(fault.NotFound, "output_gone", "The job's output is gone.")
	// ErrClaimLost: the launch was replaced or has ended, so nothing of it is written
	// any more. Matches ErrRunState.
	ErrClaimLost = fault.Sentinel(fault.Conflict, "claim_lost", "This launch of the job does not count any more.", ErrRunState)
)

func (j Job) errState() error {
	if j.Status.Terminal() {
		return ErrRunState.Say("Job %s has ended: it is %s.", j.ID, j.Status)
	}
	return ErrRunState.Say("Job %s is %s.", j.ID, j.Status)
}

func (j Job) errClaim() error {
	return ErrClaimLost.Say("Job %s is %s and was not launched by this claim.", j.ID, j.Status)
}
