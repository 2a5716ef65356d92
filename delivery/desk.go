package delivery

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Desk is what people and programs do with targets and deliveries. It needs a store
// and nothing else.
type Desk struct {
	Store    txn.Store
	Space    string
	Channels Channels
	Observer event.Observer // hears of each event after its commit; nil: nobody
}

// target reads one of the space that is still there.
func (k Desk) target(tx Tx, id string) (Target, error) {
	t, err := tx.Target(id)
	if err == nil && (t.Space != k.Space || !t.RemovedAt.IsZero()) {
		err = ErrNotFound.Say("There is no target %s.", id)
	}
	return t, err
}

// Target reads one. [ErrNotFound].
func (k Desk) Target(ctx context.Context, id string) (t Target, err error) {
	err = txn.View(ctx, k.Store, func(tx Tx) error {
		t, err = k.target(tx, id)
		return err
	})
	return t, err
}

// Add adds a target that hears of every root in the space, or, where stream names one,
// of that root. stays is asked in the transaction whether the root is there and has not
// ended; nil for none. Errors: [ErrUsage], [ErrTooManyTargets], those of stays.
func (k Desk) Add(ctx context.Context, stream, principal string, a Adding, stays func(tx txn.Tx) error) (Target, error) {
	t, err := k.Channels.Target(k.Space, stream, principal, a)
	if err != nil {
		return t, err
	}
	err = txn.Update(ctx, k.Store, func(tx Tx) error {
		if stays != nil {
			if err := stays(tx); err != nil {
				return err
			}
		}
		return Add(tx, &t)
	})
	return t, err
}

// Remove takes a target away: nothing more is sent to it, and what was not sent is
// dropped. [ErrNotFound].
func (k Desk) Remove(ctx context.Context, id string) (Target, error) {
	var t Target
	err := txn.Update(ctx, k.Store, func(tx Tx) error {
		prev, err := k.target(tx, id)
		if err != nil {
			return err
		}
		t = prev
		t.RemovedAt, t.Version = tx.Now(), prev.Version+1
		if err := tx.PutTarget(prev, t); err != nil {
			return err
		}
		return tx.DropTarget(id)
	})
	return t, err
}

// Enable puts a disabled target in use again. One that is in use stays so. Errors:
// [ErrNotFound], [ErrTooManyTargets] where others have taken its place.
func (k Desk) Enable(ctx context.Context, id string) (Target, error) {
	return k.change(ctx, id, func(tx Tx, t *Target) error {
		if t.InUse() {
			return nil
		}
		if t.Events == nil {
			return ErrState.Say("Target %s cannot be used: %s", t.ID, t.Disabled)
		}
		t.DisabledAt, t.Disabled = time.Time{}, ""
		return fits(tx, *t)
	})
}

// Rotate gives a webhook a new secret; an empty text has one made. Messages are signed
// with both for [RotationOverlap]. While the one before the present one still signs, only
// endOld does it again. Errors: [ErrNotFound], [ErrUsage], [ErrState].
func (k Desk) Rotate(ctx context.Context, id, secret string, endOld bool) (Target, error) {
	return k.change(ctx, id, func(tx Tx, t *Target) error {
		old := t.Secret
		if t.Kind != KindWebhook {
			return ErrUsage.Say("A target of type %s has no secret.", t.Kind)
		}
		if len(t.Signing(tx.Now())) > 1 && !endOld {
			return ErrState.Say("The secret of target %s was rotated already: the one before it still signs until %s.", t.ID, txn.Stamp(t.OldUntil)).
				Hint("Change the receiver's secret and wait until then, or rotate with end_old (--end-old): that one ends at once.")
		}
		if err := t.setSecret(secret); err != nil {
			return err
		}
		t.OldSecret, t.OldUntil = old, tx.Now().Add(RotationOverlap)
		return nil
	})
}

func (k Desk) change(ctx context.Context, id string, how func(Tx, *Target) error) (t Target, err error) {
	err = txn.Update(ctx, k.Store, func(tx Tx) error {
		prev, err := k.target(tx, id)
		if err != nil {
			return err
		}
		t = prev
		if err := how(tx, &t); err != nil {
			return err
		}
		t.Version = prev.Version + 1
		return tx.PutTarget(prev, t)
	})
	return t, err
}

// MaxBy bounds who wants a delivery tried again, in characters.
const MaxBy = 200

// Retry tries a dead delivery again, out of its order, or one that is retrying at once, in
// its order. by is text of 1 to [MaxBy] characters. Errors: [ErrUsage], [ErrNotFound],
// [ErrState] where it has not failed or its target is not in use.
func (k Desk) Retry(ctx context.Context, id, by string) (d Delivery, err error) {
	if n := utf8.RuneCountInString(by); n == 0 || n > MaxBy || !txn.IsText(by) {
		return d, ErrUsage.Say("Who wants it tried again is text of 1 to %d characters.", MaxBy)
	}
	err = event.Update(ctx, k.Store, k.Observer, func(tx Tx) error {
		prev, err := tx.Delivery(id)
		if err == nil && prev.Space != k.Space {
			err = ErrNotFound.Say("There is no delivery %s.", id)
		}
		if err != nil {
			return err
		}
		t, err := tx.Target(prev.TargetID)
		if err != nil {
			return err
		}
		ch, err := prev.Step(Retry{Target: t, By: by}, tx.Now())
		if err != nil {
			return err
		}
		d = ch.Next
		return put(tx, prev, ch)
	})
	return d, err
}

// put writes a change, or says that another writer was faster.
func put(tx Tx, prev Delivery, ch Change) error {
	won, err := tx.PutDelivery(prev, ch)
	if err == nil && !won {
		err = ErrMoved.Say("Delivery %s has changed in the meantime; nothing was written.", prev.ID)
	}
	return err
}
