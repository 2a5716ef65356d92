package run

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
)

// Errors of runs (spec 1.3, 1.7, 4.6). Those that decisions and calls know too are
// the same values.
var (
	ErrNotFound        = decision.ErrNotFound
	ErrUsage           = decision.ErrUsage
	ErrRunState        = decision.ErrRunState
	ErrApprovalHash    = decision.ErrApprovalHash
	ErrApprovalExpired = decision.ErrApprovalExpired
	// ErrRunLeased: another process holds the run's lease. Matches ErrRunState.
	// [LeasedOf] reads who, and until when.
	ErrRunLeased = fault.Sentinel(fault.Conflict, "run_leased", "Another process is working on this run.", ErrRunState)
	// ErrEnded: the run has ended; its status and reason say how. Matches ErrRunState.
	ErrEnded = fault.Sentinel(fault.Conflict, "run_ended", "The run has ended.", ErrRunState)
	// ErrLeaseLost: the lease ended, so this process writes nothing more. Matches ErrRunState.
	ErrLeaseLost = call.ErrLeaseLost
	// ErrStopped: the driver was told to stop; the run's lease was given back.
	ErrStopped = fault.Sentinel(fault.Unavailable, "stopped", "The process is stopping; the run goes on when it is resumed.")
	// ErrModelUnavailable is what an agent answers when its model cannot be asked:
	// the run fails as model_unavailable, not as agent_error.
	ErrModelUnavailable = fault.Sentinel(fault.Unavailable, "model_unavailable", "The model could not be asked.")
	// ErrLimit: a charge would pass one of the run's limits; nothing was charged, and
	// the model is not to be asked.
	ErrLimit = fault.Sentinel(fault.TooMany, "run_limit", "A limit of the run is reached.")

	errModelCalls = fault.Sentinel(fault.TooMany, string(LimitModelCalls), "The run's model calls are used up.", ErrLimit)
	errTokens     = fault.Sentinel(fault.TooMany, string(LimitTokens), "The run's tokens are used up.", ErrLimit)
	errCost       = fault.Sentinel(fault.TooMany, string(LimitCost), "The run's money is used up.", ErrLimit)
)

// Leased says who works on a run.
type Leased struct {
	RunID     string    `json:"run_id"`
	Owner     string    `json:"owner"`
	ExpiresAt time.Time `json:"expires_at"`
}

// LeasedOf reads the lease out of an [ErrRunLeased], also behind HTTP.
func LeasedOf(err error) (Leased, bool) {
	var e *fault.Error
	if !errors.Is(err, ErrRunLeased) || !errors.As(err, &e) {
		return Leased{}, false
	}
	var l Leased
	return l, json.Unmarshal(e.Details, &l) == nil && l.RunID != ""
}

func (r Run) errLeased() error {
	return ErrRunLeased.Say("Run %s is worked on by %s until %s.", r.ID, r.LeaseOwner, r.LeaseUntil.UTC().Format(time.RFC3339)).
		Hint("Try again after that.").With(Leased{r.ID, r.LeaseOwner, r.leaseEnd()})
}

// lastYear is the last that JSON can tell of.
const lastYear = 9999

// leaseEnd is when the lease ends, as anybody can be told.
func (r Run) leaseEnd() time.Time {
	if r.LeaseUntil.Year() > lastYear {
		return time.Date(lastYear, time.December, 31, 0, 0, 0, 0, time.UTC)
	}
	return r.LeaseUntil
}

func (r Run) errState() error {
	if r.Status.Terminal() {
		return ErrRunState.Say("Run %s is %s (%s).", r.ID, r.Status, r.Reason)
	}
	return ErrRunState.Say("Run %s is %s.", r.ID, r.Status)
}

func (r Run) errLost() error {
	return ErrLeaseLost.Say("The lease on run %s was lost.", r.ID).Hint("Look at it: placet show %s.", r.ID)
}
