package delivery

import "github.com/placet-dev/placet/fault"

// Errors of this package.
var (
	ErrNotFound = fault.Sentinel(fault.NotFound, "not_found", "There is no such target or delivery.")
	ErrUsage    = fault.Sentinel(fault.Invalid, "usage", "This cannot be asked for in this way.")
	// ErrTooManyTargets: more than MaxTargets would hear of one event.
	ErrTooManyTargets = fault.Sentinel(fault.TooMany, "too_many_targets", "No more targets can hear of this.")
	// ErrState: the delivery or the target is in another state than this needs.
	ErrState = fault.Sentinel(fault.Conflict, "delivery_state", "The delivery is in another state.")
	// ErrLeaseLost: what was leased is not any more, or never was by this token. Nothing
	// was changed.
	ErrLeaseLost = fault.Sentinel(fault.Conflict, "lease_lost", "This lease does not count.")
	// ErrMoved: another writer was faster; nothing was written, and asking again is fine.
	ErrMoved = fault.Sentinel(fault.Conflict, "moved", "It has changed in the meantime; nothing was written.")
)
