package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

const sweepAtOnce = 100

// Sweep takes back claims whose lease has ended, of whatever process, drops what nobody
// needs any more (what it asks for is settled, or its target was removed), and gives up
// what has not arrived in its time. It returns how many it changed; one that cannot be
// changed keeps no other back, and is the error in the end. A [Dispatcher] does it every
// second.
func (k Desk) Sweep(ctx context.Context) (n int, failed error) {
	for _, part := range []func(context.Context) (int, error){k.reclaim, k.dropOfRemoved, k.dropSettled, k.giveUp} {
		changed, err := part(ctx)
		n += changed
		if ofStore(err) {
			return n, err
		}
		failed = cmp.Or(failed, err)
	}
	return n, failed
}

func (k Desk) reclaim(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, at place) ([]Delivery, error) { return tx.ClaimsEnded(tx.Now(), at.skip, sweepAtOnce) },
		func(tx Tx, d Delivery) (Command, error) {
			t, err := tx.Target(d.TargetID)
			if err != nil { // one that cannot be read keeps nobody's claims
				t = Target{RetryDelay: DefaultRetryDelay}
			}
			return Reclaim{Target: t, Jitter: rand.Float64()}, nil
		})
}

func (k Desk) dropOfRemoved(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, at place) ([]Delivery, error) { return tx.OfRemoved(at.skip, sweepAtOnce) },
		func(tx Tx, d Delivery) (Command, error) {
			t, err := tx.Target(d.TargetID)
			if err != nil || t.RemovedAt.IsZero() {
				return nil, err
			}
			return Drop{targetRemoved}, nil
		})
}

func (k Desk) dropSettled(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, at place) ([]Delivery, error) { return tx.AskingSettled(at.after, sweepAtOnce) },
		func(tx Tx, d Delivery) (Command, error) {
			settled, err := tx.Settled(d.Subject)
			if err != nil || !settled {
				return nil, err
			}
			return Drop{isSettled}, nil
		})
}

func (k Desk) giveUp(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, at place) ([]Delivery, error) { return tx.Overaged(tx.Now(), at.skip, sweepAtOnce) },
		func(Tx, Delivery) (Command, error) { return GiveUp{}, nil })
}

// place is how far a look has come: the last that was found, and how many were found that
// could not be changed, and are found again.
type place struct {
	after string
	skip  int
}

// each looks without the write lock, and applies a command to each that it finds, page
// by page. What was found may not hold any more, as after a restore: how judges again in
// the transaction that writes, and makes no command where there is no need for one. However many cannot be changed, they keep no other back; the error tells of
// the first of them.
func (k Desk) each(ctx context.Context, find func(Tx, place) ([]Delivery, error), how func(Tx, Delivery) (Command, error)) (n int, failed error) {
	for at := (place{}); ; {
		var ds []Delivery
		if err := txn.View(ctx, k.Store, func(tx Tx) (err error) {
			ds, err = find(tx, at)
			return err
		}); err != nil || len(ds) == 0 {
			return n, cmp.Or(err, failed)
		}
		changed, err := k.apply(ctx, ds, how)
		if ofStore(err) {
			return n, err
		}
		for i := 0; err != nil && i < len(ds); i++ {
			one, err := k.apply(ctx, ds[i:i+1], how)
			if ofStore(err) {
				return n + changed, err
			}
			changed, failed = changed+one, cmp.Or(failed, about(err, ds[i]))
		}
		if n += changed; len(ds) < sweepAtOnce {
			return n, failed
		}
		at = place{ds[len(ds)-1].ID, at.skip + len(ds) - changed}
	}
}

func about(err error, d Delivery) error {
	if err != nil {
		err = fmt.Errorf("delivery %s: %w", d.ID, err)
	}
	return err
}

// ofStore reports that the store failed, rather than that one record cannot be written.
func ofStore(err error) bool {
	return errors.Is(err, txn.ErrNotCommitted) || errors.Is(err, txn.ErrUnknown)
}

// apply does it in one transaction, and passes over what has moved in the meantime.
func (k Desk) apply(ctx context.Context, ds []Delivery, how func(Tx, Delivery) (Command, error)) (changed int, err error) {
	err = event.Update(ctx, k.Store, k.Observer, func(tx Tx) error {
		changed = 0
		for _, d := range ds {
			cmd, err := how(tx, d)
			if err != nil {
				return err
			}
			if cmd == nil {
				continue
			}
			ch, err := d.Step(cmd, tx.Now())
			if err != nil {
				continue
			}
			won, err := tx.PutDelivery(d, ch)
			if err != nil {
				return err
			}
			if won {
				changed++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

const (
	sweepEvery = time.Second
	// forgetAfter is when it is forgotten that a target failed to which nothing was sent
	// since: it may be there no more.
	forgetAfter = LongestRetryDelay + time.Hour
)

// sweep is the dispatcher's own, every second.
func (w *work) sweep(ctx context.Context) {
	if time.Since(w.swept) < sweepEvery {
		return
	}
	w.swept = time.Now()
	w.d.forget(forgetAfter)
	maps.DeleteFunc(w.bad, func(_ string, at time.Time) bool { return time.Since(at) > badFor })
	k := Desk{Store: w.d.Store, Observer: w.d.Observer}
	_, err := k.Sweep(ctx)
	if err != nil && ctx.Err() == nil && (w.sweepFailed == nil || w.sweepFailed.Error() != err.Error()) { // told once, not every second
		w.d.Log.Error("not every delivery could be looked after; it is tried again", "error", err)
	}
	w.sweepFailed = err
}
