package delivery

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

const sweepAtOnce = 100

// Sweep takes back claims whose lease has ended, of whatever process, and drops what
// asks people for something that is settled. It returns how many it changed.
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
			return Reclaim{Target: t, Jitter: rand.Float64()}, err
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
// by page. One that cannot be changed keeps no other back.
func (k Desk) each(ctx context.Context, find func(tx Tx, after string) ([]Delivery, error), how func(Tx, Delivery) (Command, error)) (n int, err error) {
	for after := ""; ; {
		var ds []Delivery
		if err := txn.View(ctx, k.Store, func(tx Tx) (err error) {
			ds, err = find(tx, after)
			return err
		}); err != nil || len(ds) == 0 {
			return n, err
		}
		changed := 0
		for _, d := range ds {
			after = d.ID
			won := false
			err := event.Update(ctx, k.Store, k.Observer, func(tx Tx) error {
				won = false
				cmd, err := how(tx, d)
				if err != nil {
					return err
				}
				ch, err := d.Step(cmd, tx.Now())
				if err != nil {
					return err
				}
				won, err = tx.PutDelivery(d, ch)
				return err
			})
			if err == nil && won {
				changed++
			} else if ctx.Err() != nil {
				return n, ctx.Err()
			}
		}
		if n += changed; changed == 0 || len(ds) < sweepAtOnce {
			return n, nil
		}
	}
}

const sweepEvery = time.Second

// sweep is the dispatcher's own, every second.
func (w *work) sweep(ctx context.Context) {
	if time.Since(w.swept) < sweepEvery {
		return
	}
	w.swept = time.Now()
	k := Desk{Store: w.d.Store, Observer: w.d.Observer}
	if _, err := k.Sweep(ctx); err != nil && ctx.Err() == nil {
		w.d.Log.Error("lost deliveries could not be looked after; it is tried again", "error", err)
	}
}
