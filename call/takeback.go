package call

import (
	"context"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// WithdrawGranted takes back a call to which a person has agreed and on which nobody
// has acted: its yes is superseded and can never run. A call that may have run already
// is then not run again. by and note are labels, as in an answer; o may be nil. A call
// that waits for a person is withdrawn through its approval: [ErrUsage]. One that was
// started, or has ended, is [ErrRunState].
func WithdrawGranted(ctx context.Context, s txn.Store, o event.Observer, callID, by, note string) (Call, error) {
	if err := decision.CheckAnswer(decision.Answer{By: by, Note: note}); err != nil {
		return Call{}, err
	}
	var after Call
	err := event.Update(ctx, s, o, func(tx Tx) error {
		after = Call{}
		c, err := tx.Call(callID)
		if err != nil {
			return err
		}
		d, err := c.unused(tx)
		if err != nil {
			return err
		}
		if err := takeBack(tx, c, d, by, note); err != nil {
			return err
		}
		after, err = tx.Call(callID)
		return err
	})
	return after, err
}

// unused is the yes to a call that nobody has acted on.
func (c Call) unused(tx Tx) (d decision.Decision, err error) {
	switch {
	case c.Hosted():
		return d, ErrUsage.Say("Call %s belongs to a step of run %s.", c.ID, c.RunID).Hint("Cancel the run: placet cancel %s.", c.RunID)
	case c.ApprovalID == "" || c.Status != Pending && c.Status != Unknown:
		return d, c.errState()
	}
	if d, err = tx.Decision(c.ApprovalID); err != nil {
		return d, err
	}
	switch d.Status {
	case decision.Approved:
		return d, nil
	case decision.Pending:
		return d, ErrUsage.Say("Call %s waits for a person still.", c.ID).Hint("Withdraw its approval: placet withdraw %s.", d.ID)
	}
	return d, d.ErrDecided()
}

func takeBack(tx Tx, c Call, d decision.Decision, by, note string) error {
	now := tx.Now()
	spent, err := d.Step(decision.Supersede{}, now)
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
	return tx.PutCall(c, ch.Next, ch.Events...)
}
