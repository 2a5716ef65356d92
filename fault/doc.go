// Package fault is the one shape of an error that leaves Placet: a code for
// programs, a reason that names the rule, a sentence for people and, where we
// know it, what to do about it.
//
// A noun declares its sentinels with [Sentinel]; callers ask with [errors.Is].
// Matching compares reasons, so it holds for an error that was encoded as JSON
// by one process and decoded by another:
//
//	var ErrNotPending = fault.Sentinel(fault.Conflict, "not_pending", "This approval is already decided.")
//
//	err := ErrNotPending.Say("Approval %s is already %s.", id, status).Hint("Run placet show %s.", id)
//	errors.Is(err, ErrNotPending) // true, here and behind HTTP
//
// A sentinel may stand under another: errors.Is(ErrApprovalExpired, ErrNotPending).
package fault
