package call

import (
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// Owner lets a decision see and change the call that waits on it.
type Owner struct {
	Tx Tx
	ID string
}

var _ decision.Owner = Owner{}

// Waiting reports whether the call still waits for exactly this decision.
func (o Owner) Waiting(d decision.Decision) error {
	c, err := o.Tx.Call(o.ID)
	if err != nil {
		return err
	}
	return c.waitsFor(d)
}

func (c Call) waitsFor(d decision.Decision) error {
	if c.ApprovalID != d.ID || c.Status != Pending && c.Status != Unknown {
		return ErrRunState.Say("Call %s is %s and does not wait for approval %s.", c.ID, c.Status, d.ID)
	}
	return nil
}

// Settled writes what the settling does to the call. A yes does nothing to it:
// the call runs when it is resumed.
func (o Owner) Settled(d decision.Decision, now time.Time) error {
	var cmd Command
	switch d.Status {
	case decision.Rejected:
		cmd = Refuse{Kind: KindApprovalDenied, Message: denial(d), Actor: d.DecidedBy}
	case decision.Expired:
		cmd = Lapse{}
	case decision.Withdrawn:
		cmd = TakeBack{By: event.System, Note: d.Note} // approval.withdrawn says who
	default: // approved, consumed, superseded: the resume that acts on it writes the call
		return nil
	}
	c, err := o.Tx.Call(o.ID)
	if err != nil {
		return err
	}
	if c.ApprovalID != d.ID || c.Status.Terminal() || c.Status == Running {
		return nil // an older record: the call does not wait for it
	}
	ch, err := c.Step(cmd, now)
	if err != nil {
		return err
	}
	return o.Tx.PutCall(c, ch.Next, ch.Events...)
}

// Cancel is for runs and jobs; a call is withdrawn through its approval.
func (o Owner) Cancel(string, string, func() time.Time) error {
	return ErrUsage.Say("Call %s cannot be cancelled by its id.", o.ID).Hint("Withdraw its approval: placet withdraw APPROVAL.")
}

// denial is what the asker reads: who said no, and their words.
func denial(d decision.Decision) string {
	if d.Note == "" {
		return "Rejected by " + d.DecidedBy + "."
	}
	return "Rejected by " + d.DecidedBy + ": " + d.Note
}
