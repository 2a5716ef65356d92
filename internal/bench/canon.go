package main

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/placet-dev/placet/canon"
)

// canonical measures the form that everything is digested in.
func canonical(_ context.Context, b *bench) error {
	b.title("canon")
	ordinary, nested := []byte(args), []byte(nestedText(1<<20))
	each, err := b.timeOf(func() error { _, err := canon.Digest(canon.DomainArgs, ordinary); return err })
	if err != nil {
		return err
	}
	b.line("digest of ordinary arguments (%d bytes): %.0f MB/s", len(ordinary), float64(len(ordinary))/each.Seconds()/1e6)
	if each, err = b.timeOf(func() error { _, err := canon.Canonical(ordinary); return err }); err != nil {
		return err
	}
	b.line("canonical form of ordinary arguments: %.0f MB/s", float64(len(ordinary))/each.Seconds()/1e6)
	if each, err = b.timeOf(func() error { _, err := canon.Canonical(nested); return err }); err != nil {
		return err
	}
	b.line("canonical form of 1 MiB, nested and out of order: %.1f ms", each.Seconds()*1e3)
	return nil
}

// nestedText is about so many bytes, as deep as is allowed, every object out of order.
func nestedText(size int) string {
	const depth = canon.MaxDepth - 3
	rows := strings.TrimSuffix(strings.Repeat(`{"y":1,"x":[2.5,"z"]},`, size/22), ",")
	return strings.Repeat(`{"b":`, depth) + `[` + rows + `]` + strings.Repeat(`,"a":null}`, depth)
}

// timeOf is the time of fn in the best of the turns: it waits for nothing, so
// whatever took longer was another program.
func (b *bench) timeOf(fn func() error) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range b.rounds {
		n, began := 0, time.Now()
		for n == 0 || time.Since(began) < b.slice/8 {
			if err := fn(); err != nil {
				return 0, err
			}
			n++
		}
		best = min(best, time.Since(began)/time.Duration(n))
	}
	return best, nil
}
