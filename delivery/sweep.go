package delivery

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

const sweepAtOnce = 100

// Sweep takes back claims whose lease has ended, of whatever process, drops what nobody
// needs any more (what it asks for is settled, or its target was removed), and gives up
// what has not arrived in its time. It returns how many it changed. A [Dispatcher] does
// it every second.
func (k Desk) Sweep(ctx context.Context) (int, error) {
	n, err := k.reclaim(ctx)
	if err != nil {
		return n, err
	}
	m, err := k.dropMoot(ctx)
	if n += m; err != nil {
		return n, err
	}
	m, err = k.giveUp(ctx)
	return n + m, err
}

func (k Desk) reclaim(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, _ string) ([]Delivery, error) { return tx.ClaimsEnded(tx.Now(), sweepAtOnce) },
		func(tx Tx, d Delivery) (Command, error) {
			t, err := tx.Target(d.TargetID)
			if err != nil { // one that cannot be read keeps nobody's claims
				t = Target{RetryDelay: DefaultRetryDelay}
			}
			return Reclaim{Target: t, Jitter: rand.Float64()}, nil
		})
}

func (k Desk) dropMoot(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, after string) ([]Delivery, error) { return tx.Moot(after, sweepAtOnce) },
		func(tx Tx, d Delivery) (Command, error) {
			t, err := tx.Target(d.TargetID)
			if err == nil && !t.RemovedAt.IsZero() {
				return Drop{targetRemoved}, nil
			}
			return Drop{isSettled}, err
		})
}

func (k Desk) giveUp(ctx context.Context) (n int, err error) {
	return k.each(ctx, func(tx Tx, _ string) ([]Delivery, error) { return tx.Overaged(tx.Now(), sweepAtOnce) },
		func(Tx, Delivery) (Command, error) { return GiveUp{}, nil })
}

// each looks without the write lock, and applies a command to each that it finds, page
// by page. One that cannot be changed keeps no other of its page back; a whole page of
// such ends the look.
func (k Desk) each(ctx context.Context, find func(tx Tx, after string) ([]Delivery, error), how func(Tx, Delivery) (Command, error)) (n int, err error) {
	for after := ""; ; {
		var ds []Delivery
		if err := txn.View(ctx, k.Store, func(tx Tx) (err error) {
			ds, err = find(tx, after)
			return err
		}); err != nil || len(ds) == 0 {
			return n, err
		}
		after = ds[len(ds)-1].ID
		changed, err := k.apply(ctx, ds, how)
		if ofStore(err) {
			return n, err
		}
		for i := 0; err != nil && i < len(ds); i++ {
			if one, err := k.apply(ctx, ds[i:i+1], how); err == nil {
				changed += one
			}
		}
		if n += changed; changed == 0 || len(ds) < sweepAtOnce {
			return n, nil
		}
	}
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
	if _, err := k.Sweep(ctx); err != nil && ctx.Err() == nil {
		w.d.Log.Error("lost deliveries could not be looked after; it is tried again", "error", err)
	}
}
