package main

import (
	"context"
	"fmt"
	"time"
)

// The targets, with the floor's rate by the transactions of one cycle as 1.0.
var cycleTargets = []struct {
	callers int
	ratio   float64
}{{1, 0.60}, {16, 0.50}, {256, 0.33}}

const (
	cycleTransactions   = 4
	allowedTransactions = 2
)

// rates compares full cycles with the floor.
func rates(ctx context.Context, b *bench) error {
	b.title("rate: cycles against a quarter of the floor's transactions")
	for _, t := range cycleTargets {
		if b.callers != 0 && b.callers != t.callers {
			continue
		}
		sides, closeAll, err := b.openSides(ctx, fmt.Sprintf("rate-%d", t.callers), t.callers == 1)
		if err != nil {
			return err
		}
		got, err := b.turns(ctx, t.callers, sides...)
		closeAll()
		if err != nil {
			return err
		}
		b.report(t.callers, t.ratio, cycleTransactions, "cycles", got)
	}
	return nil
}

// openSides opens the floor and the product, each on a file of its own, and the
// bare loop too where that means anything.
func (b *bench) openSides(ctx context.Context, name string, withBare bool) ([]side, func(), error) {
	f, err := openFloor(ctx, b.path(name+"-floor.db"))
	if err != nil {
		return nil, nil, err
	}
	w, err := openWorld(ctx, b.path(name+".db"), nil)
	if err != nil {
		return nil, nil, err
	}
	sides := []side{{"floor", f.once}, {"cycle", w.cycle}}
	closeAll := func() { _ = f.world.store.Close(); _ = w.store.Close() }
	if withBare {
		loop, err := openBare(b.dir)
		if err != nil {
			return nil, nil, err
		}
		sides = append(sides, side{"bare", loop.once})
	}
	return sides, closeAll, nil
}

// report prints floor and product, and the bare loop where it was measured.
func (b *bench) report(callers int, target, part float64, what string, got []sample) {
	floor, product := &got[0], &got[1]
	b.line("%3d callers: %7.0f %s/s, floor %7.0f/s, ratio %.2f (target %.2f); by processor time %.2f (%s against %s)",
		callers, product.rate(), what, floor.rate(), product.ratio(floor, part), target,
		part*float64(floor.each())/float64(product.each()), micro(product.each()), micro(floor.each()))
	b.line("             p50 %s, p99 %s, p99/p50 %.1f; %s", micro(product.percentile(50)), micro(product.percentile(99)),
		float64(product.percentile(99))/float64(product.percentile(50)), load())
	if len(got) > 2 {
		b.line("             a bare loop around the driver: %.0f/s, ratio %.2f", got[2].rate(), product.ratio(&got[2], part))
	}
}

func micro(d time.Duration) string { return d.Round(time.Microsecond).String() }

// allowed compares calls that need nobody.
func allowed(ctx context.Context, b *bench) error {
	b.title("allowed: calls without an approval against half of the floor's transactions")
	for _, callers := range []int{1, 16, 256} {
		if b.callers != 0 && b.callers != callers {
			continue
		}
		f, err := openFloor(ctx, b.path(fmt.Sprintf("allowed-%d-floor.db", callers)))
		if err != nil {
			return err
		}
		w, err := openWorld(ctx, b.path(fmt.Sprintf("allowed-%d.db", callers)), nil)
		if err != nil {
			return err
		}
		got, err := b.turns(ctx, callers, side{"floor", f.once}, side{"allowed", w.allowed})
		_, _ = f.world.store.Close(), w.store.Close()
		if err != nil {
			return err
		}
		floor, product := &got[0], &got[1]
		b.line("%3d callers: %7.0f calls/s, floor %7.0f/s, ratio %.2f; p50 %s, p99 %s", callers, product.rate(), floor.rate(),
			product.ratio(floor, allowedTransactions), micro(product.percentile(50)), micro(product.percentile(99)))
	}
	return nil
}
