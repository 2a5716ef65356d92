package run

import (
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
)

// Owner lets a decision see and change the run that waits on it.
type Owner struct {
	Tx Tx
	ID string
}

var _ decision.Owner = Owner{}

// Waiting reports whether the run still waits for exactly this decision.
func (o Owner) Waiting(d decision.Decision) error {
	r, err := o.Tx.Run(o.ID)
	if err != nil {
		return err
	}
	return r.waitsFor(d)
}

func (r Run) waitsFor(d decision.Decision) error {
	if r.Status != Waiting || r.ApprovalID != d.ID || r.Current.Status != AwaitingApproval || r.Current.ApprovalID != d.ID {
		return ErrRunState.Say("Run %s is %s and does not wait for approval %s.", r.ID, r.Status, d.ID)
	}
	return nil
}

// Settled writes what the settling does to the run: a no and an expiry cancel it
// (spec 1.3). A yes does nothing to it: the run goes on when it is resumed.
func (o Owner) Settled(d decision.Decision, now time.Time) error {
	if d.Status != decision.Rejected && d.Status != decision.Expired {
		return nil
	}
	r, err := o.Tx.Run(o.ID)
	if err != nil {
		return err
	}
	if r.waitsFor(d) != nil {
		return nil // an older record, or a run that has ended: it does not wait for it
	}
	ch, err := r.Step(Answered{Decision: d}, now)
	if err != nil {
		return err
	}
	if err := o.endCall(r.Current.CallID, d); err != nil {
		return err
	}
	return o.Tx.PutRun(r, ch)
}

func (o Owner) endCall(callID string, d decision.Decision) error {
	switch {
	case callID == "": // a flow's approval has no call
		return nil
	case d.Status == decision.Rejected:
		return call.DenyHosted(o.Tx, callID, d)
	}
	return call.ExpireHosted(o.Tx, callID)
}

// Cancel ends the run: [ErrRunState] if it has ended. Its approvals stay as they
// are, and are no work any more.
func (o Owner) Cancel(by, note string, clock func() time.Time) error {
	r, err := o.Tx.Run(o.ID)
	if err != nil {
		return err
	}
	now := clock()
	ch, err := r.Step(Cancel{By: by, Note: note}, now)
	if err != nil {
		return err
	}
	if r.Status == Waiting {
		if err := o.stopWaiting(r, by, note, now); err != nil {
			return err
		}
	}
	return o.Tx.PutRun(r, ch)
}

func (o Owner) stopWaiting(r Run, by, note string, now time.Time) error {
	d, err := o.Tx.Decision(r.ApprovalID)
	if err != nil {
		return err
	}
	if d.Open {
		ch, err := d.Step(decision.Close{}, now)
		if err != nil {
			return err
		}
		if err := o.Tx.PutDecision(d, ch); err != nil {
			return err
		}
	}
	if r.Current.CallID == "" {
		return nil
	}
	return call.CancelHosted(o.Tx, r.Current.CallID, by, note)
}
