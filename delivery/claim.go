package delivery

import (
	"github.com/placet-dev/placet/event"
)

// claimOne claims a delivery that is due, judged on what stands in this transaction. No
// event without an error: it ended without being sent, or another writer was faster.
func claimOne(tx Tx, d Delivery, c Claim) (next Delivery, e *event.Event, err error) {
	c.Epoch = tx.Epoch()
	if d.Asks() {
		if c.Settled, err = tx.Settled(d.Subject); err != nil {
			return d, nil, err
		}
	}
	es, err := tx.Events(event.Query{Stream: d.Stream, After: d.StreamSeq - 1, Limit: 1})
	if err != nil {
		return d, nil, err
	}
	c.Cleaned = len(es) == 0 || es[0].StreamSeq != d.StreamSeq
	ch, err := d.Step(c, tx.Now())
	if err != nil {
		return d, nil, err
	}
	won, err := tx.PutDelivery(d, ch)
	if err != nil || !won {
		return d, nil, err
	}
	if ch.Began == nil {
		return ch.Next, nil, nil
	}
	return ch.Next, &es[0], nil
}
