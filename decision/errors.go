package decision

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Errors of deciding (spec 1.3, 4.6). Engines downstream use the same values.
var (
	ErrNotFound        = fault.Sentinel(fault.NotFound, "not_found", "Nothing has that id.")
	ErrUsage           = fault.Sentinel(fault.Invalid, "usage", "This cannot be asked for in this way.")
	ErrRunState        = fault.Sentinel(fault.Conflict, "run_state", "What waited on this approval does not wait for it any more.")
	ErrNotPending      = fault.Sentinel(fault.Conflict, "not_pending", "This approval is not pending any more.")
	ErrAlreadyDecided  = fault.Sentinel(fault.Conflict, "already_decided", "This approval is already decided.", ErrNotPending)
	ErrApprovalExpired = fault.Sentinel(fault.Expired, "approval_expired", "This approval has expired.", ErrNotPending)
	ErrApprovalHash    = fault.Sentinel(fault.Conflict, "approval_hash", "The stored approval does not match its digest.")
	ErrApprovalChanged = fault.Sentinel(fault.Conflict, "approval_changed", "The approval is not the one that was shown.")
	ErrSelfDecision    = fault.Sentinel(fault.Forbidden, "self_decision", "Nobody decides what they asked for themselves.")
	ErrForbidden       = fault.Sentinel(fault.Forbidden, "forbidden", "This is not for you to do.")
	ErrTooManyPending  = fault.Sentinel(fault.TooMany, "too_many_pending", "Too many approvals are pending.")
	// ErrMoved: another writer changed the record in between. Engines judge again. Matches ErrRunState.
	ErrMoved = fault.Sentinel(fault.Conflict, "moved", "The record changed in the meantime; nothing was written.", ErrRunState)
)

// Moved is an [ErrMoved] that says what changed: a format and its arguments.
func Moved(format string, args ...any) error {
	return ErrMoved.Say(format+" changed in the meantime; nothing was written.", args...)
}

// Standing is the decision that stands, as an error carries it: an approval or a
// question, whose id is in ApprovalID or DecisionID.
type Standing struct {
	ApprovalID string    `json:"approval_id,omitempty"`
	DecisionID string    `json:"decision_id,omitempty"`
	Status     Status    `json:"status"`
	Choice     Choice    `json:"choice,omitempty"`
	By         string    `json:"decided_by,omitempty"`
	Principal  string    `json:"decided_principal,omitempty"`
	At         time.Time `json:"decided_at,omitzero"`
	Note       string    `json:"note,omitempty"`
	// Input is what was given with the answer to a question; nil: nothing.
	Input json.RawMessage `json:"input,omitempty"`
}

// MarshalJSON writes the time as every door does: UTC, always six decimals.
func (s Standing) MarshalJSON() ([]byte, error) {
	type plain Standing
	return json.Marshal(struct {
		plain
		At string `json:"decided_at,omitempty"`
	}{plain(s), txn.Stamp(s.At)})
}

// Standing is what stands of d.
func (d Decision) Standing() Standing {
	at := d.DecidedAt
	if y := at.Year(); y < 0 || y > 9999 { // altered by hand: JSON has no such time
		at = time.Time{}
	}
	s := Standing{
		Status: d.Status, Choice: d.Choice, By: d.DecidedBy, Principal: d.DecidedPrincipal, At: at, Note: d.Note, Input: document(d.Input),
	}
	if d.Type == Question {
		s.DecisionID = d.ID
	} else {
		s.ApprovalID = d.ID
	}
	return s
}

// StandingOf reads the standing decision out of an error such as
// [ErrNotPending] or [ErrAlreadyDecided], also behind HTTP.
func StandingOf(err error) (Standing, bool) {
	var e *fault.Error
	if !errors.As(err, &e) || len(e.Details) == 0 {
		return Standing{}, false
	}
	var s Standing
	if json.Unmarshal(e.Details, &s) != nil || s.ApprovalID == "" && s.DecisionID == "" {
		return Standing{}, false
	}
	return s, true
}

func (d Decision) errNotPending() *fault.Error {
	if d.Type == Question {
		return d.errAnswered()
	}
	if d.Status == Expired {
		return d.errExpired()
	}
	if d.Status == Approved && d.Open {
		return d.notPending().Hint("That yes stands until it is used%s.", d.orUntil())
	}
	return d.notPending()
}

// orUntil says when an unspent yes ends by itself.
func (d Decision) orUntil() string {
	if d.GrantExpiresAt.IsZero() {
		return ""
	}
	return ", or until " + d.GrantExpiresAt.UTC().Format(time.RFC3339)
}

func (d Decision) notPending() *fault.Error {
	return ErrNotPending.Say("Approval %s is already %s%s.", d.ID, d.Status, byWhom(d)).With(d.Standing())
}

// errAnswered names how a question ended otherwise.
func (d Decision) errAnswered() *fault.Error {
	switch d.Status {
	case Withdrawn:
		return ErrWithdrawn.Say("Question %s was withdrawn%s.", d.ID, byWhom(d)).With(d.Standing())
	case Expired:
		return d.errExpired()
	}
	return ErrNotPending.Say("Question %s is %s%s.", d.ID, d.Status, byWhom(d)).With(d.Standing())
}

func (d Decision) errClosed() *fault.Error {
	show := "placet show"
	if d.Owner.Kind == OwnerJob {
		show = "placet job show"
	}
	return ErrRunState.Say("%s is %s and closed: what waited on it has ended.", d.ID, d.Status).
		Hint("Look at it: %s %s.", show, d.Owner.ID).With(d.Standing())
}

func (d Decision) errExpired() *fault.Error {
	if d.Type == Question {
		return ErrExpired.Say("Question %s expired at %s.", d.ID, d.ExpiresAt.UTC().Format(time.RFC3339Nano)).
			Hint("Ask again.").With(d.Standing())
	}
	at := d.ExpiresAt
	if d.Choice == ChoiceApprove {
		at = d.GrantExpiresAt
	}
	return ErrApprovalExpired.Say("Approval %s expired at %s.", d.ID, at.UTC().Format(time.RFC3339Nano)).
		Hint("Make the call again to ask again.").With(d.Standing())
}

func byWhom(d Decision) string {
	switch {
	case d.WithdrawnBy != "":
		return " (by " + quote(d.WithdrawnBy) + " at " + d.SettledAt.UTC().Format(time.RFC3339) + ")"
	case d.DecidedBy == "":
		return ""
	}
	return " (decided by " + quote(d.DecidedBy) + " at " + d.DecidedAt.UTC().Format(time.RFC3339) + ")"
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
