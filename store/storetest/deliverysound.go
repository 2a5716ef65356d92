package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// readDeliveries reads the targets and deliveries of every space that an event names,
// and the removed targets that deliveries name.
func (m *image) readDeliveries(ctx context.Context, s txn.Store) error {
	for space := range m.Pending {
		for after, more := "", true; more; {
			var page []delivery.Delivery
			err := txn.View(ctx, s, func(tx store.Tx) (err error) {
				if page, err = tx.Deliveries(delivery.Query{Space: space, After: after, Limit: 500}); err != nil {
					return err
				}
				return m.addDeliveries(tx, page)
			})
			if err != nil {
				return err
			}
			if more = len(page) > 0; more { // not before: the view may be run again
				after = page[len(page)-1].ID
			}
		}
		if err := txn.View(ctx, s, func(tx store.Tx) error { return m.readTargets(tx, space) }); err != nil {
			return err
		}
	}
	return nil
}

func (m *image) readTargets(tx store.Tx, space string) error {
	ts, err := tx.Targets(delivery.TargetQuery{Space: space, Limit: 500})
	for _, t := range ts {
		m.Targets[t.ID] = t
	}
	return err
}

// readDeliveriesOf reads those of one stream.
func (m *image) readDeliveriesOf(tx store.Tx, space, stream string) error {
	ds, err := tx.Deliveries(delivery.Query{Space: space, Stream: stream, Limit: 500})
	if err != nil {
		return err
	}
	return m.addDeliveries(tx, ds)
}

func (m *image) addDeliveries(tx store.Tx, ds []delivery.Delivery) error {
	for _, d := range ds {
		m.Deliveries[d.ID] = d
		as, err := tx.DeliveryAttempts(d.ID)
		if err != nil {
			return err
		}
		if len(as) > 0 {
			m.Tries[d.ID] = as
		}
		if _, known := m.Targets[d.TargetID]; known {
			continue
		}
		t, err := tx.Target(d.TargetID)
		if err != nil && !errors.Is(err, delivery.ErrNotFound) {
			return err
		}
		if err == nil {
			m.Targets[t.ID] = t
		}
	}
	return nil
}

// lane is one target's part of one stream.
type lane struct{ target, stream string }

// deliveries checks each, the order within each lane, and that whoever wanted an event
// has it once.
func (k *checker) deliveries() {
	lanes := map[lane][]delivery.Delivery{}
	of := map[string]int{} // by target and event
	for _, d := range k.Deliveries {
		k.delivery(d)
		of[fmt.Sprint(d.TargetID, d.Stream, d.StreamSeq)]++
		if d.Ordered && d.Status.Open() {
			l := lane{d.TargetID, d.Stream}
			lanes[l] = append(lanes[l], d)
		}
	}
	for l, ds := range lanes {
		k.lane(l, ds)
	}
	for _, t := range k.Targets {
		for _, e := range k.Events {
			if sure, wants := k.wants(t, e); sure && of[fmt.Sprint(t.ID, e.Stream, e.StreamSeq)] != wants {
				k.fault(t.ID, "it has %d deliveries of %s (%s), want %d", of[fmt.Sprint(t.ID, e.Stream, e.StreamSeq)], e.ID, e.Type, wants)
			}
		}
	}
}

// wants tells whether a target that never changed hears of an event. What is of the
// instant in which it was added may stand on either side of it.
func (k *checker) wants(t delivery.Target, e event.Event) (sure bool, n int) {
	if _, cleaned := k.Cleaned[e.Stream]; cleaned || t.Version != 1 || e.Redacted || e.At.Equal(t.CreatedAt) || !t.InUse() {
		return false, 0
	}
	if t.Space == e.Space && (t.Stream == "" || t.Stream == e.Stream) && e.At.After(t.CreatedAt) && t.Wants(delivery.Word(&e)) {
		n = 1
	}
	return true, n
}

// lane: the lowest that is not over is due or claimed, and no other.
func (k *checker) lane(l lane, ds []delivery.Delivery) {
	slices.SortFunc(ds, func(a, b delivery.Delivery) int { return cmp.Compare(a.StreamSeq, b.StreamSeq) })
	for i, d := range ds {
		moves := !d.Due.IsZero() || d.Status == delivery.Dispatching
		if moves != (i == 0) {
			k.fault(d.ID, "it is %s, due %s, as number %d of those that %s waits for in %s", d.Status, d.Due, i+1, l.target, l.stream)
		}
	}
}

func (k *checker) delivery(d delivery.Delivery) {
	t, ok := k.Targets[d.TargetID]
	if !ok {
		k.fault(d.ID, "its target %s does not exist", d.TargetID)
	}
	if t.Stream != "" && t.Stream != d.Stream || t.Space != d.Space || t.Pushed() != d.Pushed {
		k.fault(d.ID, "it is of %s in %s, its target of %q in %s", d.Stream, d.Space, t.Stream, t.Space)
	}
	k.ofEvent(d)
	switch open := d.Status.Open(); {
	case open != d.EndedAt.IsZero(),
		(d.Status == delivery.Dispatching) == d.LeaseUntil.IsZero(),
		!d.Due.IsZero() && (!open || d.Status == delivery.Dispatching),
		open && !d.Ordered && d.Due.IsZero() && d.Status != delivery.Dispatching,
		d.Status == delivery.Retrying && d.Due.IsZero():
		k.fault(d.ID, "it is %s, due %s, leased until %s, ended %s", d.Status, d.Due, d.LeaseUntil, d.EndedAt)
	}
	k.tries(d)
}

// ofEvent checks that a delivery is of an event that there is, and that the stream tells
// of one that was dropped.
func (k *checker) ofEvent(d delivery.Delivery) {
	es := k.streams[d.Stream]
	if _, cleaned := k.Cleaned[d.Stream]; cleaned || len(es) == 0 || es[0].StreamSeq > d.StreamSeq {
		return
	}
	i := int(d.StreamSeq - es[0].StreamSeq)
	if i >= len(es) || es[i].Type != d.EventType || es[i].Subject != d.Subject || es[i].Space != d.Space || es[i].Seq != d.EventSeq || !es[i].At.Equal(d.CreatedAt) {
		k.fault(d.ID, "event %d of %s is another one", d.StreamSeq, d.Stream)
	}
	told := 0
	if d.Status == delivery.Dropped {
		told = 1
	}
	k.count(d.ID, told, event.DeliveryDropped)
}

// tries checks that attempts fit their delivery: one for each claim, the last of them
// open while it is sent, and as many spent as it says.
func (k *checker) tries(d delivery.Delivery) {
	as := k.Tries[d.ID]
	spent, open := int64(0), 0
	for i, a := range as {
		if a.N != int64(i+1) {
			k.fault(d.ID, "attempt %d is numbered %d", i+1, a.N)
		}
		switch a.Outcome {
		case "":
			open++
		case delivery.Reclaimed, delivery.Released:
		default:
			spent++
		}
	}
	if int64(len(as)) != d.Fence || spent != d.Attempts || (open == 1) != (d.Status == delivery.Dispatching) || open > 1 {
		k.fault(d.ID, "it is %s under claim %d with %d attempts spent; %d attempts are stored, %d spent, %d open", d.Status, d.Fence, d.Attempts, len(as), spent, open)
	}
	if open == 1 && as[len(as)-1].Outcome != "" {
		k.fault(d.ID, "an attempt before its last one is open")
	}
	if d.Status == delivery.Delivered && as[len(as)-1].Outcome != delivery.AttemptOutcome(delivery.Arrived) {
		k.fault(d.ID, "it is delivered, its last attempt %s", as[len(as)-1].Outcome)
	}
}
