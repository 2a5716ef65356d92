package delivery

import (
	"errors"

	"github.com/placet-dev/placet/event"
)

// eventOf reads a delivery's event; nil: its root was cleaned up.
func eventOf(tx Tx, d Delivery) (*event.Event, error) {
	es, err := tx.Events(event.Query{Stream: d.Stream, After: d.StreamSeq - 1, Limit: 1})
	if err != nil || len(es) == 0 || es[0].StreamSeq != d.StreamSeq {
		return nil, err
	}
	return &es[0], nil
}

// claimOne claims a delivery that is due, with its event, judged on what stands in this
// transaction. begun is false where it ended without being sent, or another writer was
// faster.
func claimOne(tx Tx, d Delivery, e *event.Event, c Claim) (next Delivery, begun bool, err error) {
	c.Epoch, c.Cleaned = tx.Epoch(), e == nil
	if d.Asks() {
		if c.Settled, err = tx.Settled(d.Subject); err != nil {
			return d, false, err
		}
	}
	ch, err := d.Step(c, tx.Now())
	if errors.Is(err, ErrState) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	won, err := tx.PutDelivery(d, ch)
	if err != nil || !won {
		return d, false, err
	}
	return ch.Next, ch.Began != nil, nil
}
