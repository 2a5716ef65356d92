package store

import (
	"errors"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
)

// hears are the targets that hear of the stream asked about last.
type hears struct {
	stream  string
	targets []delivery.Target
	known   bool
}

// match writes a delivery for each target that wants one of the events, in their
// transaction.
func (t *tx) match(es []event.Event) error {
	for i := range es {
		e := &es[i]
		targets, err := t.hearing(e)
		if err != nil {
			return err
		}
		if len(targets) == 0 {
			continue
		}
		word := delivery.Word(e)
		for j := range targets {
			if to := &targets[j]; to.Wants(word) {
				if err := t.deliver(to, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *tx) hearing(e *event.Event) ([]delivery.Target, error) {
	if h := &t.hears; h.known && h.stream == e.Stream {
		return h.targets, nil
	}
	targets, err := t.WakeTargets(e.Space, e.Stream)
	t.hears = hears{e.Stream, targets, err == nil}
	return targets, err
}

func (t *tx) deliver(to *delivery.Target, e *event.Event) error {
	d := delivery.Delivery{
		ID: id.New(id.Delivery), Space: e.Space, TargetID: to.ID, Pushed: to.Pushed(), Ordered: !to.Unordered, EventSeq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq,
		EventType: e.Type, Subject: e.Subject, Status: delivery.Pending, Due: e.At, CreatedAt: e.At, GivesUpAt: e.At.Add(to.MaxAge), Version: 1,
	}
	t.Touch(d.Woken())
	return t.InsertDelivery(d)
}

// targetsCounter counts the targets that were ever added to a space. Reading it in a
// write transaction locks it: two that add at a time count one after the other.
const targetsCounter = "wake_targets"

func (t *tx) CountTargets(space, stream string) (global, ofStream, most int64, err error) {
	if _, err := t.Count(space, targetsCounter, 0); err != nil {
		return 0, 0, 0, err
	}
	return t.Rows.CountTargets(space, stream)
}

func (t *tx) InsertTarget(to delivery.Target) (err error) {
	defer t.note(&err)
	if err := t.Rows.Add(to.Space, targetsCounter, 1); err != nil {
		return err
	}
	err = t.Rows.InsertTarget(to)
	t.hears.known = false // only now: what was held back was written, and matched, before it
	return err
}

func (t *tx) PutTarget(prev, next delivery.Target) (err error) {
	defer t.note(&err)
	won, err := t.UpdateTarget(prev, next)
	t.hears.known = false
	t.Touch(delivery.WakePushed) // what waits for it may go, or comes to its end
	t.Touch(delivery.WakeTarget(next.ID))
	if err == nil && !won {
		err = delivery.ErrMoved.Say("Target %s has changed in the meantime; nothing was written.", prev.ID)
	}
	return err
}

func (t *tx) DropTarget(id string) (err error) {
	defer t.note(&err)
	return t.Rows.DropTarget(id)
}

func (t *tx) PutDelivery(prev delivery.Delivery, ch delivery.Change) (bool, error) {
	won, err := t.PutDeliveries([]delivery.Delivery{prev}, []delivery.Change{ch})
	return err == nil && won[0], err
}

func (t *tx) PutDeliveries(prev []delivery.Delivery, chs []delivery.Change) (won []bool, err error) {
	defer t.note(&err)
	if won, err = t.UpdateDeliveries(prev, chs); err != nil {
		return nil, err
	}
	for i, ch := range chs {
		if !won[i] {
			continue
		}
		if err := t.follow(prev[i], ch); err != nil {
			return nil, err
		}
	}
	return won, nil
}

// follow does what comes with a change that was written.
func (t *tx) follow(prev delivery.Delivery, ch delivery.Change) error {
	if prev.Ordered && prev.Status.Open() && !ch.Next.Status.Open() {
		if err := t.MakeDue(prev.TargetID, prev.Stream, t.Now()); err != nil {
			return err
		}
		t.Touch(prev.Woken())
	}
	if !ch.Next.Due.IsZero() {
		t.Touch(prev.Woken())
	}
	return t.tellOf(prev.Stream, ch.Events)
}

// tellOf appends to a stream, unless that is being cleaned up.
func (t *tx) tellOf(stream string, es []event.Event) error {
	if len(es) == 0 {
		return nil
	}
	if _, err := t.Head(stream); errors.Is(err, event.ErrNoStream) {
		return nil
	}
	return t.Append(stream, es...)
}
