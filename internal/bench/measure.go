package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// side is one of the things compared.
type side struct {
	name string
	once func(ctx context.Context) error
}

// sample is what one side did in all its turns.
type sample struct {
	rates []float64       // per second, one for each turn
	cpu   time.Duration   // of the process, all turns
	n     int64           // how often, all turns
	took  []time.Duration // each time, all turns
}

// turns measures the sides one after the other, again and again, so that what
// else the machine does meets all of them alike.
func (b *bench) turns(ctx context.Context, callers int, sides ...side) ([]sample, error) {
	got := make([]sample, len(sides))
	for r := range b.rounds + 1 {
		for i, s := range sides {
			if r == 0 { // warms up, and does not count
				if err := new(sample).turn(ctx, callers, b.slice/10, s.once); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
				continue
			}
			if err := got[i].turn(ctx, callers, b.slice, s.once); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return got, nil
}

// turn lets so many callers repeat once for a while.
func (s *sample) turn(ctx context.Context, callers int, d time.Duration, once func(context.Context) error) error {
	took, errs := make([][]time.Duration, callers), make([]error, callers)
	began, cpu := time.Now(), cpuTime()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { took[i], errs[i] = repeat(ctx, began.Add(d), once) })
	}
	wg.Wait()
	elapsed := time.Since(began)
	n := 0
	for i := range callers {
		if errs[i] != nil {
			return errs[i]
		}
		n += len(took[i])
		s.took = append(s.took, took[i]...)
	}
	s.cpu += cpuTime() - cpu
	s.n += int64(n)
	s.rates = append(s.rates, float64(n)/elapsed.Seconds())
	return ctx.Err()
}

func repeat(ctx context.Context, until time.Time, once func(context.Context) error) (took []time.Duration, err error) {
	for last := time.Now(); last.Before(until); {
		if err := once(ctx); err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	return took, nil
}

// rate is the median over the turns.
func (s *sample) rate() float64 { return median(s.rates) }

// each is the processor time of one.
func (s *sample) each() time.Duration { return s.cpu / time.Duration(max(s.n, 1)) }

// percentile is how long at most p of 100 took.
func (s *sample) percentile(p int) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[(len(s.took)-1)*p/100]
}

// ratio is the median over the turns of other's rate against s's times part:
// neighbours in time are compared with each other.
func (s *sample) ratio(floor *sample, part float64) float64 {
	var rs []float64
	for i := range s.rates {
		rs = append(rs, s.rates[i]/(floor.rates[i]/part))
	}
	return median(rs)
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}
