package delivery

import (
	"github.com/placet-dev/placet/event"
)

// claimOne claims a delivery that is due, judged on what stands in this transaction. A
// nil body without an error: it ended without being sent, or another writer was faster.
func claimOne(tx Tx, d Delivery, c Claim) (next Delivery, body []byte, err error) {
	c.Epoch = tx.Epoch()
	if d.Asks() {
		if c.Settled, err = tx.Settled(d.Subject); err != nil {
			return d, nil, err
		}
	}
	es, err := tx.Events(event.Query{Stream: d.Stream, After: d.StreamSeq - 1, Limit: 1})
	if err != nil || len(es) == 0 || es[0].StreamSeq != d.StreamSeq {
		return d, nil, err // its root is being cleaned up, and the delivery with it
	}
	ch, err := d.Step(c, tx.Now())
	if err != nil {
		return d, nil, err
	}
	won, err := tx.PutDelivery(d, ch)
	if err != nil || !won || ch.Began == nil {
		return ch.Next, nil, err
	}
	return ch.Next, d.Body(es[0]), nil
}
