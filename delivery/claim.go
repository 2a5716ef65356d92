package delivery

import (
	"errors"

	"github.com/placet-dev/placet/event"
)

// tried is what came of a claim.
type tried struct {
	next  Delivery
	begun bool // false: it ended without being sent, or another writer was faster
}

// claimAll claims deliveries of one target that are due, with their events, judged on what
// stands in this transaction. how makes the claim of each.
func claimAll(tx Tx, ds []Delivery, es []*event.Event, how func(i int) Claim) ([]tried, error) {
	all := make([]tried, len(ds))
	var at []int // the place of each that is written
	var prev []Delivery
	var chs []Change
	for i, d := range ds {
		all[i].next = d
		c := how(i)
		c.Epoch, c.Cleaned = tx.Epoch(), es[i] == nil
		if d.Asks() {
			var err error
			if c.Settled, err = tx.Settled(d.Subject); err != nil {
				return nil, err
			}
		}
		ch, err := d.Step(c, tx.Now())
		if errors.Is(err, ErrState) {
			continue
		}
		if err != nil {
			return nil, err
		}
		at, prev, chs = append(at, i), append(prev, d), append(chs, ch)
	}
	won, err := tx.PutDeliveries(prev, chs)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		if won[k] {
			all[i] = tried{chs[k].Next, chs[k].Began != nil}
		}
	}
	return all, nil
}
