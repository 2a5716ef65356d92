package call

import (
	"context"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// WithdrawGranted takes back a yes to a call on which nobody has acted: it is superseded
// and can never run; the call is cancelled. A call that may have run already stays
// unknown and is not run again. op is who does it, by and note are labels, as in an
// answer. An approval that waits for a person is withdrawn by
// [decision.Operator.Withdraw]: [ErrUsage]. One on which somebody has acted is
// [decision.ErrAlreadyDecided], one that another replaced meanwhile
// [decision.ErrMoved]; a call that was started, or has ended, is [ErrRunState].
func WithdrawGranted(ctx context.Context, op decision.Operator, approvalID, by, note string) (Call, error) {
	if err := decision.CheckAnswer(decision.Answer{By: by, Note: note}); err != nil {
		return Call{}, err
	}
	var after Call
	err := event.Update(ctx, op.Store, op.Observer, func(tx Tx) error {
		after = Call{}
		c, d, err := unused(tx, approvalID)
		if err != nil {
			return err
		}
		now := txn.Clock(op.Now, tx)
		spent, err := d.Step(decision.Supersede{By: by, Principal: op.Principal}, now)
		if err != nil {
			return err
		}
		if err := tx.PutDecision(d, spent); err != nil {
			return err
		}
		ch, err := c.Step(TakeBack{By: by, Note: note}, now)
		if err != nil {
			return err
		}
		if err := tx.PutCall(c, ch.Next, ch.Events...); err != nil {
			return err
		}
		after, err = tx.Call(c.ID)
		return err
	})
	return after, err
}

// unused is a call, locked, and exactly that yes to it, on which nobody has acted.
func unused(tx Tx, approvalID string) (c Call, d decision.Decision, err error) {
	if d, err = tx.Decision(approvalID); err != nil {
		return c, d, err
	}
	if d.Owner.Kind != decision.OwnerCall || d.Type != decision.Approval {
		return c, d, ErrUsage.Say("Approval %s belongs to a step of run %s.", d.ID, d.RunID).Hint("Cancel the run: placet cancel %s.", d.RunID)
	}
	if c, err = tx.Call(d.Owner.ID); err != nil {
		return c, d, err
	}
	if d, err = tx.Decision(approvalID); err != nil { // again, now that its call is locked
		return c, d, err
	}
	switch {
	case d.Status == decision.Pending:
		err = ErrUsage.Say("Call %s waits for a person still.", c.ID).Hint("Withdraw its approval: placet withdraw %s.", d.ID)
	case d.Status != decision.Approved:
		err = d.ErrDecided()
	case c.ApprovalID != d.ID:
		err = decision.Moved("The approval of call %s", c.ID)
	case c.Status != Pending && c.Status != Unknown:
		err = c.errState()
	}
	return c, d, err
}
