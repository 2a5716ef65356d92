package delivery

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// sent is an attempt that has ended.
type sent struct {
	d       Delivery // as it was claimed
	t       Target
	out     Outcome
	unknown bool // it was cut off by our own end: nothing is known of it
	tries   int
}

// claimed is an attempt to make.
type claimed struct {
	d Delivery
	t Target
	e event.Event
}

// lease is how long a claim of the target's deliveries lasts: twice as long as an
// attempt may take, and more.
func (t Target) lease() time.Duration { return 2*t.Timeout + leaseSpare }

// work is what the dispatcher's one goroutine holds.
type work struct {
	d           *Dispatcher
	ended       chan sent
	done        []sent    // not written yet
	at          string    // target behind which to go on; empty: a round begins
	next        time.Time // when the next becomes due of what this round has seen; zero: none will by itself
	swept       time.Time
	sweepFailed error // what the last sweep told

	looking string               // the target whose claims are being made
	bad     map[string]time.Time // targets whose records could not be read, and when
}

func (w *work) took(s sent) {
	w.d.end(s.d.TargetID, s.out.Result != Arrived)
	if !s.unknown {
		w.done = append(w.done, s)
	}
}

// takeIn takes all that has ended.
func (w *work) takeIn() {
	for {
		select {
		case s := <-w.ended:
			w.took(s)
		default:
			return
		}
	}
}

// pass writes down what has ended and claims what is due, in one transaction, and
// begins to send that. more: there may be more than was looked at.
func (w *work) pass(ctx, sending context.Context) (more bool) {
	w.sweep(ctx)
	due, at, life := w.due(ctx)
	settling := w.done[:min(len(w.done), settlesAtOnce)]
	if len(settling) == 0 && len(due) == 0 {
		w.at = at
		return at != ""
	}
	var got claims
	start := time.Now()
	err := event.Update(ctx, w.d.Store, w.d.Observer, func(tx Tx) (err error) {
		got, w.looking = claims{}, ""
		if err := settle(tx, settling); err != nil {
			return err
		}
		if tx.Epoch() != life { // what was read is of a store that went back in time since
			due, at = nil, ""
		}
		for _, o := range due {
			w.looking = o.targetID
			if err := w.claim(tx, o, &got); err != nil {
				return err
			}
		}
		w.looking = ""
		return nil
	})
	if err != nil {
		return w.failed(ctx, err)
	}
	w.done, w.at = slices.Delete(w.done, 0, len(settling)), at
	for _, c := range got.begun {
		w.d.begin(c.t.ID)
		go func() { w.ended <- w.d.send(sending, c, start) }()
	}
	return at != "" || got.over > 0 || len(got.begun) >= claimsAtOnce || len(w.done) > 0
}

// offer is what of a target is due, as far as there is room.
type offer struct {
	targetID string
	ds       []Delivery
	es       []*event.Event // of each; nil: its root was cleaned up
}

// due looks for what is due and has room, behind the last target looked at; at is where
// the next look goes on, empty when it has come round; life is the one of the store that
// was read in. All that can be read beforehand is read here: nobody waits for it.
func (w *work) due(ctx context.Context) (due []offer, at string, life int64) {
	var next time.Time
	err := txn.View(ctx, w.d.Store, func(tx Tx) error {
		life = tx.Epoch()
		if due, next = nil, w.next; w.at == "" {
			next = time.Time{}
		}
		ids, to, later, err := tx.DueTargets(tx.Now(), w.at, targetsAtOnce)
		if err != nil {
			return err
		}
		if soon := time.Now().Add(later.Sub(tx.Now())); !later.IsZero() && (next.IsZero() || soon.Before(next)) {
			next = soon
		}
		at = to
		n := 0
		for i, id := range ids {
			if n >= claimsAtOnce {
				at = ids[i-1] // the others have their turn next time
				break
			}
			o, err := w.offer(tx, id, n)
			if err != nil {
				return err
			}
			if n += len(o.ds); len(o.ds) > 0 {
				due = append(due, o)
			}
		}
		return nil
	})
	if err != nil {
		w.next = time.Time{}
		if ctx.Err() == nil {
			w.d.Log.Error("what is due could not be read; it is tried again", "error", err)
		}
		return nil, "", 0
	}
	w.next = next
	return due, at, life
}

// offer reads what of a target is due. A target that cannot be read is left alone for a
// while, and keeps no other back.
func (w *work) offer(tx Tx, targetID string, taken int) (o offer, err error) {
	o.targetID = targetID
	room := min(w.d.room(targetID, taken), claimsAtOnce-taken)
	if room <= 0 || time.Since(w.bad[targetID]) < badFor {
		return o, nil
	}
	t, err := tx.Target(targetID)
	switch {
	case errors.Is(err, ErrNotFound):
		return o, nil // its root is being cleaned up, and it with that
	case err != nil:
		w.bad[targetID] = time.Now()
		w.d.Log.Error("a target could not be read; it is left alone for a while", "target", targetID, "error", err)
		return o, nil
	case t.InUse() && w.d.Channels[t.Kind] == nil:
		return o, nil // another process may have a way to it
	case !t.InUse():
		room = claimsAtOnce - taken // nothing is sent
	}
	if o.ds, err = tx.DueOf(t, tx.Now(), room); err != nil {
		return o, err
	}
	o.es, err = tx.EventsOf(o.ds)
	return o, err
}

// badFor is how long a target is left alone whose records cannot be read.
const badFor = 5 * time.Second

// claims are what one transaction made.
type claims struct {
	begun []claimed
	over  int // came to their end without being sent
}

func (w *work) claim(tx Tx, o offer, got *claims) error {
	t, err := tx.Target(o.targetID) // as it stands now
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := claimAll(tx, o.ds, o.es, func(int) Claim { return Claim{Target: t, Owner: w.d.Owner, Lease: t.lease()} })
	if err != nil {
		return err
	}
	for i, c := range all {
		switch {
		case c.begun:
			got.begun = append(got.begun, claimed{c.next, t, *o.es[i]})
		case !c.next.Status.Open():
			got.over++
		}
	}
	return nil
}

// settle writes how attempts ended. One whose claim is lost changes nothing: it was closed
// as reclaimed.
func settle(tx Tx, some []sent) error {
	prev, chs := make([]Delivery, len(some)), make([]Change, len(some))
	for i, s := range some {
		ch, err := s.d.Step(Settle{Target: s.t, Fence: s.d.Fence, Outcome: s.out, Jitter: rand.Float64()}, tx.Now())
		if err != nil {
			return err
		}
		prev[i], chs[i] = s.d, ch
	}
	won, err := tx.PutDeliveries(prev, chs)
	if err != nil {
		return err
	}
	for i, ch := range chs {
		if won[i] && ch.Disable != "" {
			if err := disable(tx, some[i].t.ID, ch.Disable); err != nil {
				return err
			}
		}
	}
	return nil
}

func disable(tx Tx, targetID, why string) error {
	t, err := tx.Target(targetID)
	if err != nil || !t.InUse() {
		return err
	}
	next := t
	next.DisabledAt, next.Disabled, next.Version = tx.Now(), why, t.Version+1
	return tx.PutTarget(t, next)
}

// failed leaves everything for the next time round, and lets one record that cannot be
// written keep no other back: again says that this is done, and to go on at once.
func (w *work) failed(ctx context.Context, err error) (again bool) {
	if ctx.Err() != nil {
		return false
	}
	w.d.Log.Error("deliveries could not be written down; it is tried again", "error", err)
	w.next = time.Time{}
	if ofStore(err) {
		return false
	}
	if w.looking != "" {
		w.bad[w.looking] = time.Now()
		return true
	}
	w.settleEach(ctx)
	return false
}

func (w *work) settleEach(ctx context.Context) {
	var left []sent
	for i, s := range w.done {
		err := event.Update(ctx, w.d.Store, w.d.Observer, func(tx Tx) error { return settle(tx, w.done[i:i+1]) })
		if s.tries++; err != nil && s.tries < 10 {
			left = append(left, s) // in the end its lease ends, and it is tried again
		}
	}
	w.done = left
}

// rest is how long to sleep if nothing happens.
func (w *work) rest() time.Duration {
	if w.next.IsZero() || len(w.done) > 0 {
		return w.d.again
	}
	return max(min(w.d.again, time.Until(w.next)), time.Millisecond)
}

// drain lets the attempts under way end, cuts off those that take too long, and writes
// down how they ended.
func (w *work) drain(cut func()) {
	over := time.NewTimer(w.d.Drain)
	defer over.Stop()
	for w.d.AtWork() > 0 {
		select {
		case s := <-w.ended:
			w.took(s)
		case <-over.C:
			cut()
		}
	}
	w.settleRest(context.Background())
}

// settleRest writes all that has ended in few transactions, and where one fails, each
// by itself.
func (w *work) settleRest(ctx context.Context) {
	for len(w.done) > 0 {
		some := w.done[:min(len(w.done), settlesAtOnce)]
		err := event.Update(ctx, w.d.Store, w.d.Observer, func(tx Tx) error { return settle(tx, some) })
		if err != nil {
			w.settleEach(ctx)
			return
		}
		w.done = slices.Delete(w.done, 0, len(some))
	}
}
