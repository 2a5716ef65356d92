package call

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Postponed is the call after a refusal on the way to a start, with its event: a
// daemon does not try again before until. It stays where it stood.
func (c Call) Postponed(reason string, until time.Time) (Call, event.Event) {
	c.NextTryAt = until
	return c, event.New(event.ResumeRefused, c.ID, event.System, refusedPayload{c.ApprovalID, reason, txn.Stamp(until)})
}

type refusedPayload struct {
	ApprovalID string `json:"approval_id,omitempty"`
	Reason     string `json:"reason"`
	NextTryAt  string `json:"next_try_at"`
}

// Postpone notes that going on with a call was refused: it is not tried again
// before wait has passed. Of a call that moved in the meantime nothing is written.
func (e *Executor) Postpone(ctx context.Context, c Call, reason string, wait time.Duration) error {
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) error {
		now, err := tx.Call(c.ID)
		if err != nil {
			return err
		}
		if now.Status != Pending && now.Status != Unknown || now.ApprovalID != c.ApprovalID {
			return nil
		}
		next, told := now.Postponed(reason, tx.Now().Add(wait))
		return tx.PutCall(now, next, told)
	})
	if errors.Is(err, decision.ErrMoved) {
		return nil
	}
	return err
}
