package call

import (
	"fmt"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
)

// Errors of calls (spec 2.2, 4.6). Those that decisions know too are the same values.
var (
	ErrNotFound         = decision.ErrNotFound
	ErrApprovalNotFound = fault.Sentinel(fault.NotFound, "not_found", "There is no such approval.")
	ErrUsage            = decision.ErrUsage
	ErrRunState         = decision.ErrRunState
	ErrAlreadyDecided   = decision.ErrAlreadyDecided
	ErrApprovalExpired  = decision.ErrApprovalExpired
	ErrApprovalHash     = decision.ErrApprovalHash
	ErrTooManyPending   = decision.ErrTooManyPending
	// ErrCallConflict: the ids are in use for another tool or other arguments.
	ErrCallConflict = fault.Sentinel(fault.Conflict, "call_conflict", "These ids belong to another call.")
	// ErrRunning: an attempt at this call holds its lease.
	ErrRunning = fault.Sentinel(fault.Conflict, "call_running", "The call is still running.")
	// ErrLeaseLost: the attempt's lease ended, so its writes are refused. Matches ErrRunState.
	ErrLeaseLost = fault.Sentinel(fault.Conflict, "lease_lost", "The attempt's lease ended.", ErrRunState)
	// ErrGuardRefused: a guard of spec 4.7 is at its limit; nothing was written.
	ErrGuardRefused = fault.Sentinel(fault.TooMany, "guard_refused", "A guard is at its limit; nothing was started.")
)

// PendingError says that a call is parked until a person agrees. Its text is
// short, since a model may read it; [PendingError.Help] tells people how to go on.
type PendingError struct {
	ApprovalID string
	CallID     string
	RunID      string
	Tool       string
	Digest     string    // of the approval; what a reviewer's yes is bound to
	ExpiresAt  time.Time // zero: never
	Kind       string    // of the approval; decision.KindInterrupted is the runtime's own
	// MayHaveRun: an earlier attempt's outcome is unknown, so what waits is
	// whether to run the call again.
	MayHaveRun bool
}

// Error is the short text.
func (e *PendingError) Error() string {
	if e.MayHaveRun {
		return fmt.Sprintf("%s may have run already; running it again waits for approval %s.", e.Tool, e.ApprovalID)
	}
	return fmt.Sprintf("%s waits for approval %s.", e.Tool, e.ApprovalID)
}

// Help tells people what to do.
func (e *PendingError) Help() string {
	run := "Run it:     "
	if e.MayHaveRun {
		run = "Run again:  "
	}
	return fmt.Sprintf("Look at it: placet show %[1]s\nAgree:      placet approve %[1]s\n%[2]splacet resume %[1]s", e.ApprovalID, run)
}

func pendingError(d decision.Decision, mayHaveRun bool) *PendingError {
	return &PendingError{
		ApprovalID: d.ID, CallID: d.CallID, RunID: d.RunID, Tool: d.Tool, Digest: d.Digest, ExpiresAt: d.ExpiresAt,
		Kind: d.Kind, MayHaveRun: mayHaveRun || d.Kind == decision.KindInterrupted,
	}
}
