package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func deliveries(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":    deliveryReadBack,
		"guard":        deliveryGuard,
		"several":      deliveriesAtOnce,
		"order":        deliveryOrder,
		"unordered":    deliveryUnordered,
		"out of order": deliveryOutOfOrder,
		"lists":        deliveryLists,
		"due":          deliveriesDue,
		"due targets":  dueTargets,
		"lost":         deliveriesLost,
		"moot":         deliveriesMoot,
		"closed":       deliveriesClosed,
		"too old":      deliveriesTooOld,
		"clean":        deliveriesCleaned,
		"relays race":  relaysRace,
	})
}

// lanes is a job, a target that hears of its pauses, and what was told to it.
func (w *world) lanes(t delivery.Target, n int) (job.Job, []delivery.Delivery) {
	w.Helper()
	j := queuedJob()
	w.insertJob(j)
	w.addTarget(t)
	w.pauses(j, n)
	return j, w.deliveriesOf(t)
}

// pauses tells so many events, each in a transaction of its own.
func (w *world) pauses(j job.Job, n int) {
	w.Helper()
	for range n {
		w.write(func(tx store.Tx) error { return tx.Append(j.Stream(), tells(event.JobPaused, j, nil)) })
	}
}

// deliveriesOf are a target's, the oldest first.
func (w *world) deliveriesOf(t delivery.Target) []delivery.Delivery {
	w.Helper()
	ds := read(w, func(tx store.Tx) ([]delivery.Delivery, error) {
		return tx.Deliveries(delivery.Query{Space: t.Space, TargetID: t.ID, Limit: 500})
	})
	slices.Reverse(ds)
	return ds
}

func (w *world) delivery(id string) delivery.Delivery {
	w.Helper()
	return read(w, func(tx store.Tx) (delivery.Delivery, error) { return tx.Delivery(id) })
}

func (w *world) tries(id string) []delivery.Attempt {
	w.Helper()
	return read(w, func(tx store.Tx) ([]delivery.Attempt, error) { return tx.DeliveryAttempts(id) })
}

// does applies a command to a delivery as it stands.
func (w *world) does(id string, cmd delivery.Command) delivery.Delivery {
	w.Helper()
	w.write(func(tx store.Tx) error {
		d, err := tx.Delivery(id)
		if err != nil {
			return err
		}
		ch, err := d.Step(cmd, tx.Now())
		if err != nil {
			return err
		}
		won, err := tx.PutDelivery(d, ch)
		if err == nil && !won {
			err = errors.New("another writer won")
		}
		return err
	})
	return w.delivery(id)
}

// claims and arrives are what a dispatcher writes.
func (w *world) claims(t delivery.Target, id string) delivery.Delivery {
	w.Helper()
	return w.does(id, delivery.Claim{Target: t, Owner: "me", Lease: time.Hour, Token: []byte("t"), Epoch: 1})
}

func (w *world) ends(t delivery.Target, d delivery.Delivery, r delivery.Result) delivery.Delivery {
	w.Helper()
	return w.does(d.ID, delivery.Settle{Target: t, Fence: d.Fence, Outcome: delivery.Outcome{Result: r, Status: 200, Message: "m"}})
}

func deliveryReadBack(w *world) {
	t := relay("")
	j, ds := w.lanes(t, 3)
	first := ds[0]
	w.same([]string{j.Stream(), j.ID, event.MainSpace, t.ID}, []string{first.Stream, first.Subject, first.Space, first.TargetID})
	w.same([]any{delivery.Pending, true, false, first.CreatedAt, first.CreatedAt.Add(t.MaxAge), int64(1)},
		[]any{first.Status, first.Ordered, first.Pushed, first.Due, first.GivesUpAt, first.Version})
	full := first
	full.Ordered, full.OutOfOrder, full.Status, full.Attempts, full.Due, full.Message = false, true, delivery.Retrying, 4, moment(1), "é\u2028"
	full.Fence, full.Owner, full.Token, full.Epoch, full.GivesUpAt, full.Budget = 5, "host", []byte{0, 255}, 6, moment(3), 3
	held := ds[1]
	held.Status, held.Due, held.Fence, held.LeaseUntil = delivery.Dispatching, time.Time{}, 1, moment(9)
	ended := ds[2]
	ended.Status, ended.Due, ended.EndedAt = delivery.Dead, time.Time{}, moment(7)
	pushed := hook()
	w.addTarget(pushed)
	w.pauses(j, 1)
	whole(w, append(w.deliveriesOf(pushed), full, held, ended)...)
	for i, next := range []delivery.Delivery{full, held, ended} {
		w.write(func(tx store.Tx) error {
			ch := delivery.Change{Next: next}
			if next.Fence > 0 {
				ch.Began = &delivery.Attempt{DeliveryID: next.ID, N: next.Fence, Owner: next.Owner, StartedAt: moment(1)}
			}
			won, err := tx.PutDelivery(ds[i], ch)
			if err == nil && !won {
				err = errors.New("nothing was written")
			}
			return err
		})
		next.Version++
		w.same(next, w.delivery(next.ID))
	}
	w.pauses(j, 1)
	all := w.deliveriesOf(t)
	w.attemptsReadBack(all[len(all)-1].ID)
	if _, err := try(w, func(tx store.Tx) (delivery.Delivery, error) { return tx.Delivery("dlv_none") }); !errors.Is(err, delivery.ErrNotFound) {
		w.Errorf("no such delivery: %v", err)
	}
}

// attemptsReadBack begins and ends two attempts; each ends once.
func (w *world) attemptsReadBack(id string) {
	w.Helper()
	var want []delivery.Attempt
	put := func(change func(prev delivery.Delivery) delivery.Change) {
		w.Helper()
		w.write(func(tx store.Tx) error {
			prev, err := tx.Delivery(id)
			if err != nil {
				return err
			}
			ch := change(prev)
			won, err := tx.PutDelivery(prev, ch)
			if err == nil && !won {
				err = errors.New("nothing was written")
			}
			if won, err := tx.PutDelivery(prev, ch); won || err != nil { // it has moved
				w.Errorf("written again: %t %v", won, err)
			}
			return err
		})
		w.same(want, w.tries(id))
	}
	for n := int64(1); n <= 3; n++ {
		a := delivery.Attempt{DeliveryID: id, N: n, Owner: fmt.Sprint("host/", n), StartedAt: moment(n)}
		want = append(want, a)
		put(func(d delivery.Delivery) delivery.Change {
			d.Status, d.Due, d.Fence, d.Owner, d.LeaseUntil = delivery.Dispatching, time.Time{}, n, a.Owner, moment(9)
			return delivery.Change{Next: d, Began: &a}
		})
		a.EndedAt, a.Outcome, a.Status, a.Message = moment(n+1), delivery.AttemptOutcome(delivery.Failed), 503, "why"
		if n == 2 { // nothing was answered
			a.Outcome, a.Status, a.Message = delivery.Reclaimed, 0, ""
		} else {
			whole(w, a)
		}
		want[n-1] = a
		put(func(d delivery.Delivery) delivery.Change {
			d.Status, d.Due, d.LeaseUntil = delivery.Retrying, moment(8), time.Time{}
			return delivery.Change{Next: d, Ended: &a}
		})
	}
}

// deliveryGuard: whoever judged on another version, status, claim or life of the store writes nothing: no
// attempt and no event either, and the next does not become due.
func deliveryGuard(w *world) {
	t := relay("")
	_, ds := w.lanes(t, 2)
	d := ds[0]
	for name, change := range map[string]func(*delivery.Delivery){
		"version": func(d *delivery.Delivery) { d.Version++ }, "status": func(d *delivery.Delivery) { d.Status = delivery.Retrying },
		"fence": func(d *delivery.Delivery) { d.Fence++ }, "epoch": func(d *delivery.Delivery) { d.Epoch++ }, "id": func(d *delivery.Delivery) { d.ID = "dlv_none" },
	} {
		prev := d
		change(&prev)
		before := w.look()
		for _, cmd := range []delivery.Command{delivery.Claim{Target: t, Lease: time.Hour}, delivery.Drop{Message: "why"}} {
			w.write(func(tx store.Tx) error {
				ch, err := prev.Step(cmd, tx.Now())
				if err != nil {
					return err
				}
				won, err := tx.PutDelivery(prev, ch)
				if won {
					w.Errorf("%s: it was written", name)
				}
				return err
			})
		}
		w.same(before, w.look())
	}
}

// deliveriesAtOnce: of several that are written together each is guarded by itself, and
// each that is won stands as if it had been written alone.
func deliveriesAtOnce(w *world) {
	t := relay("")
	t.Unordered = true
	j, _ := w.lanes(t, 0)
	w.pauses(j, 70) // more than one statement takes
	again := w.ends(t, w.claims(t, w.deliveriesOf(t)[3].ID), delivery.Failed)
	w.until(again.Due)
	prev := w.deliveriesOf(t)
	stale := map[int]func(*delivery.Delivery){
		0: func(d *delivery.Delivery) { d.Version++ }, 5: func(d *delivery.Delivery) { d.Status = delivery.Retrying },
		9: func(d *delivery.Delivery) { d.Fence++ }, 20: func(d *delivery.Delivery) { d.Epoch++ }, 40: func(d *delivery.Delivery) { d.ID = "dlv_none" },
		69: func(d *delivery.Delivery) { *d = prev[68] }, // twice
	}
	for i, change := range stale {
		change(&prev[i])
	}
	var want []delivery.Delivery
	for round, command := range []func(i int, d delivery.Delivery) delivery.Command{
		func(i int, _ delivery.Delivery) delivery.Command {
			c := delivery.Claim{Target: t, Owner: fmt.Sprint("host/", i/30), Lease: time.Hour, Epoch: 1}
			if i%10 == 0 {
				c.Token = []byte{byte(i)}
			}
			return c
		},
		func(i int, d delivery.Delivery) delivery.Command {
			o := delivery.Outcome{Result: delivery.Arrived, Status: 200 + i%2}
			if i%7 == 0 {
				o = delivery.Outcome{Result: delivery.Failed, Message: "why"}
			}
			return delivery.Settle{Target: t, Fence: d.Fence, Outcome: o}
		},
	} {
		var won []bool
		w.write(func(tx store.Tx) (err error) {
			want = nil
			var chs []delivery.Change
			for i, d := range prev {
				ch, err := d.Step(command(i, d), tx.Now())
				if err != nil {
					return fmt.Errorf("%d: %w", i, err)
				}
				chs, want = append(chs, ch), append(want, ch.Next)
			}
			won, err = tx.PutDeliveries(prev, chs)
			return err
		})
		var kept []delivery.Delivery
		for i, d := range want {
			if _, lost := stale[i]; won[i] == (lost && round == 0) {
				w.Errorf("round %d: number %d was written: %t", round, i, won[i])
			}
			if won[i] {
				w.same(d, w.delivery(d.ID))
				kept = append(kept, d)
			}
		}
		prev = kept
		CheckInvariants(w.T, w.s)
	}
	es := read(w, func(tx store.Tx) ([]*event.Event, error) { return tx.EventsOf(prev) })
	for i, e := range es {
		w.same([]any{prev[i].Stream, prev[i].StreamSeq, prev[i].EventSeq}, []any{e.Stream, e.StreamSeq, e.Seq})
	}
}

// due lists a target's that may be claimed, by their place.
func (w *world) due(t delivery.Target) (places []int64) {
	w.Helper()
	for _, d := range read(w, func(tx store.Tx) ([]delivery.Delivery, error) { return tx.DueOf(t, tx.Now(), 100) }) {
		places = append(places, d.StreamSeq)
	}
	slices.Sort(places)
	return places
}

// deliveryOrder: of a target and a stream only the lowest that is not over is due. Its
// end, whatever that is, makes the next due, in the same transaction.
func deliveryOrder(w *world) {
	t := relay("")
	j, ds := w.lanes(t, 6)
	other, _ := w.lanes(relay(""), 0) // of another lane, all goes on beside it
	w.pauses(other, 1)
	places := func(n int64) []int64 { return []int64{2, n}[:] }
	w.same(places(2), w.due(t)[:2])
	if d := w.claims(t, ds[0].ID); !slices.Equal(w.due(t), []int64{2}) || d.Status != delivery.Dispatching {
		w.Errorf("while the first is sent, due is %v", w.due(t))
	}
	again := w.ends(t, w.delivery(ds[0].ID), delivery.Failed)
	w.until(again.Due)
	w.same([]int64{2, 2}, w.due(t)) // it is tried again before the next
	for i, end := range []func(d delivery.Delivery){
		func(d delivery.Delivery) { w.ends(t, w.claims(t, d.ID), delivery.Arrived) },
		func(d delivery.Delivery) { w.ends(t, w.claims(t, d.ID), delivery.Refused) },
		func(d delivery.Delivery) { w.ends(t, w.claims(t, d.ID), delivery.Gone) },
		func(d delivery.Delivery) { w.does(d.ID, delivery.Drop{Message: "why"}) },
		func(d delivery.Delivery) {
			w.does(d.ID, delivery.Claim{Target: delivery.Target{DisabledAt: moment(1)}, Lease: time.Hour})
		},
	} {
		end(ds[i])
		CheckInvariants(w.T, w.s)
		w.same([]int64{2, ds[i+1].StreamSeq}, w.due(t))
	}
	w.ends(t, w.claims(t, ds[5].ID), delivery.Arrived)
	w.same([]int64{2}, w.due(t))
	w.pauses(j, 1) // with nothing before it, it is due at once
	w.same(2, len(w.due(t)))
	CheckInvariants(w.T, w.s)
}

func deliveryUnordered(w *world) {
	t := relay("")
	t.Unordered = true
	_, ds := w.lanes(t, 4)
	w.same([]int64{2, 3, 4, 5}, w.due(t))
	w.claims(t, ds[2].ID)
	w.same([]int64{2, 3, 5}, w.due(t))
	CheckInvariants(w.T, w.s)
}

// deliveryOutOfOrder: one that a person tries again waits for no other, and no other
// for it.
func deliveryOutOfOrder(w *world) {
	t := relay("")
	j, ds := w.lanes(t, 3)
	w.ends(t, w.claims(t, ds[0].ID), delivery.Refused)
	w.claims(t, ds[1].ID)
	d := w.does(ds[0].ID, delivery.Retry{Target: t, By: "ana"})
	w.same([]any{true, false, delivery.Retrying}, []any{d.OutOfOrder, d.Ordered, d.Status})
	w.same([]int64{2}, w.due(t))
	w.ends(t, w.claims(t, d.ID), delivery.Refused)
	w.same([]int64(nil), w.due(t)) // the third waits for the second, not for the first
	w.ends(t, w.delivery(ds[1].ID), delivery.Arrived)
	w.same([]int64{4}, w.due(t))
	w.does(ds[0].ID, delivery.Retry{Target: t, By: "ana"})
	w.pauses(j, 1)
	w.same([]int64{2, 4}, w.due(t))
	CheckInvariants(w.T, w.s)
}

func deliveryLists(w *world) {
	ana, bo := relay(""), relay("")
	bo.Principal, bo.Unordered = "bo", true
	j, _ := w.lanes(ana, 0)
	k, _ := w.lanes(bo, 0)
	w.pauses(j, 4)
	w.pauses(k, 4)
	ds := w.deliveriesOf(bo)
	w.claims(bo, ds[0].ID)
	w.ends(bo, w.claims(bo, ds[1].ID), delivery.Arrived)
	w.ends(bo, w.claims(bo, ds[2].ID), delivery.Failed)
	w.ends(bo, w.claims(bo, ds[3].ID), delivery.Refused)
	w.does(ds[4].ID, delivery.Drop{Message: "why"})
	all := read(w, func(tx store.Tx) ([]delivery.Delivery, error) {
		return tx.Deliveries(delivery.Query{Space: event.MainSpace, Limit: 500})
	})
	w.same(16, len(all))
	queries := map[string]struct {
		q    delivery.Query
		want func(delivery.Delivery) bool
	}{
		"all":       {delivery.Query{}, func(delivery.Delivery) bool { return true }},
		"target":    {delivery.Query{TargetID: ana.ID}, func(d delivery.Delivery) bool { return d.TargetID == ana.ID }},
		"stream":    {delivery.Query{Stream: j.Stream()}, func(d delivery.Delivery) bool { return d.Stream == j.Stream() }},
		"principal": {delivery.Query{Principal: "bo"}, func(d delivery.Delivery) bool { return d.TargetID == bo.ID }},
		"after":     {delivery.Query{After: all[5].ID}, func(d delivery.Delivery) bool { return d.ID < all[5].ID }},
		"prefix":    {delivery.Query{Prefix: all[3].ID}, func(d delivery.Delivery) bool { return d.ID == all[3].ID }},
		"both": {delivery.Query{TargetID: bo.ID, Status: delivery.Pending, Stream: k.Stream()}, func(d delivery.Delivery) bool {
			return d.TargetID == bo.ID && d.Status == delivery.Pending && d.Stream == k.Stream()
		}},
		"space": {delivery.Query{Space: "other"}, func(delivery.Delivery) bool { return false }},
	}
	counted := map[delivery.Status]int64{}
	for _, s := range delivery.Statuses() {
		queries[string(s)] = struct {
			q    delivery.Query
			want func(delivery.Delivery) bool
		}{delivery.Query{Status: s}, func(d delivery.Delivery) bool { return d.Status == s }}
	}
	for _, d := range all {
		if d.Status != delivery.Delivered {
			counted[d.Status]++
		}
	}
	for name, c := range queries {
		if c.q.Space == "" {
			c.q.Space = event.MainSpace
		}
		want := slices.DeleteFunc(slices.Clone(all), func(d delivery.Delivery) bool { return !c.want(d) })
		for _, page := range []int{0, 1, 7} {
			got := pages(w, page, func(tx store.Tx, after string, limit int) ([]delivery.Delivery, error) {
				q := c.q
				if q.Limit = limit; after != "" {
					q.After = after
				}
				return tx.Deliveries(q)
			}, func(d delivery.Delivery) string { return d.ID })
			if !slices.EqualFunc(got, want, func(a, b delivery.Delivery) bool { return a.ID == b.ID }) {
				w.Errorf("%s by %d: %d, want %d", name, page, len(got), len(want))
			}
		}
	}
	got := read(w, func(tx store.Tx) (map[delivery.Status]int64, error) { return tx.CountDeliveries(event.MainSpace) })
	if !maps.Equal(got, counted) {
		w.Errorf("counted %v, want %v", got, counted)
	}
}

// deliveriesDue: what has been due longest comes first, nothing before its time, and
// only of what the target is.
func deliveriesDue(w *world) {
	t := relay("")
	t.Unordered = true
	_, ds := w.lanes(t, 5)
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	for i, due := range []time.Time{now.Add(time.Hour), now.Add(-time.Second), now.Add(-time.Hour), now, now.Add(time.Microsecond)} {
		w.write(func(tx store.Tx) error {
			next := ds[i]
			next.Due = due
			_, err := tx.PutDelivery(ds[i], delivery.Change{Next: next})
			return err
		})
	}
	list := func(t delivery.Target, limit int) (places []int64) {
		for _, d := range read(w, func(tx store.Tx) ([]delivery.Delivery, error) { return tx.DueOf(t, now, limit) }) {
			places = append(places, d.StreamSeq)
		}
		return places
	}
	w.same([]int64{4, 3, 5}, list(t, 10))
	w.same([]int64{4, 3}, list(t, 2))
	t.Kind = delivery.KindWebhook
	w.same([]int64(nil), list(t, 10))
}

// dueTargets walks over all targets of which something pushed is due, in pages, and
// tells when the next of the others is.
func dueTargets(w *world) {
	j := queuedJob()
	w.insertJob(j)
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	var want []string
	for i := range 20 {
		t := hook()
		t.ID = fmt.Sprintf("tgt_%02d", i)
		if i%5 == 4 {
			t.Kind = delivery.KindRelay
		}
		w.addTarget(t)
		if i%5 < 3 {
			want = append(want, t.ID)
		}
	}
	w.pauses(j, 3)
	for i := 3; i < 20; i += 5 { // of these nothing is due yet
		for _, d := range w.deliveriesOf(delivery.Target{ID: fmt.Sprintf("tgt_%02d", i), Space: event.MainSpace}) {
			w.write(func(tx store.Tx) error {
				next := d
				next.Due = now.Add(time.Duration(100-i)*time.Hour + time.Duration(d.StreamSeq))
				next.Due = next.Due.Truncate(time.Microsecond)
				_, err := tx.PutDelivery(d, delivery.Change{Next: next})
				return err
			})
		}
	}
	type step struct {
		ids  []string
		at   string
		next time.Time
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		var soonest time.Time
		for at, more := "", true; more; more = at != "" {
			s := read(w, func(tx store.Tx) (s step, err error) {
				s.ids, s.at, s.next, err = tx.DueTargets(now.Add(time.Hour), at, limit)
				return s, err
			})
			got, at = append(got, s.ids...), s.at
			if soonest.IsZero() || !s.next.IsZero() && s.next.Before(soonest) {
				soonest = s.next
			}
		}
		w.same(want, got)
		w.same(now.Add(82*time.Hour), soonest)
	}
}

// deliveriesLost: a claim whose lease has ended is found, the one that ended first before
// the others, and none whose lease goes on.
func deliveriesLost(w *world) {
	t := relay("")
	t.Unordered = true
	_, ds := w.lanes(t, 4)
	for i, lease := range []time.Duration{3 * time.Microsecond, time.Microsecond, time.Hour} {
		d := w.does(ds[i].ID, delivery.Claim{Target: t, Lease: lease})
		if i < 2 {
			w.until(d.LeaseUntil)
		}
	}
	find := func(limit int) (places []int64) {
		for _, d := range read(w, func(tx store.Tx) ([]delivery.Delivery, error) { return tx.ClaimsEnded(tx.Now(), 0, limit) }) {
			places = append(places, d.StreamSeq)
		}
		return places
	}
	w.same(2, len(find(10)))
	w.same(1, len(find(1)))
	if n, err := w.wakeDesk().Sweep(w.ctx); n != 2 || err != nil {
		w.Errorf("swept %d, %v", n, err)
	}
	w.same([]int64(nil), find(10))
	for _, d := range ds[:2] {
		d = w.delivery(d.ID)
		if as := w.tries(d.ID); d.Status != delivery.Retrying || d.Attempts != 0 || len(as) != 1 || as[0].Outcome != delivery.Reclaimed {
			w.Errorf("%+v: %+v", d, as)
		}
	}
	CheckInvariants(w.T, w.s)
}

// deliveriesMoot: what asks for something that is settled, and what a removed target
// waits for, is dropped, and its stream tells.
func deliveriesMoot(w *world) {
	p := w.openShop(w.s, nil)
	all := relay("")
	all.Events = []string{string(event.ApprovalRequested), string(event.CallCreated)}
	goes, pushed := relay(""), hook()
	goes.Unordered = true
	for _, t := range []delivery.Target{all, goes, pushed} {
		w.addTarget(t)
	}
	a, b := p.mustPark(refund), p.mustPark(refund)
	j := queuedJob()
	w.insertJob(j)
	w.pauses(j, 3)
	if err := p.approve(w.ctx, a); err != nil {
		w.Fatal(err)
	}
	if n, err := w.wakeDesk().Sweep(w.ctx); n != 1 || err != nil { // also behind one that is not over
		w.Errorf("swept %d, %v", n, err)
	}
	settled := func(id string) bool {
		return read(w, func(tx store.Tx) (bool, error) { return tx.Settled(id) })
	}
	w.same([]bool{true, false, false}, []bool{settled(a.ApprovalID), settled(b.ApprovalID), settled("apr_none")})
	for _, d := range w.deliveriesOf(all) {
		if want := d.EventType == event.ApprovalRequested && d.Subject == a.ApprovalID; (d.Status == delivery.Dropped) != want {
			w.Errorf("%s of %s is %s", d.EventType, d.Subject, d.Status)
		}
	}
	for _, id := range []string{goes.ID, pushed.ID} {
		if _, err := w.wakeDesk().Remove(w.ctx, id); err != nil {
			w.Fatal(err)
		}
	}
	if n, err := w.wakeDesk().Sweep(w.ctx); n != 6 || err != nil {
		w.Errorf("swept %d, %v", n, err)
	}
	for _, t := range []delivery.Target{goes, pushed} {
		for _, d := range w.deliveriesOf(t) {
			w.same(delivery.Dropped, d.Status)
		}
	}
	CheckInvariants(w.T, w.s)
}

// deliveriesClosed: what nobody waits for any more is dropped too, although nobody has
// answered it.
func deliveriesClosed(w *world) {
	t := relay("")
	t.Events = []string{string(event.ApprovalRequested)}
	w.addTarget(t)
	c := w.insertCall(parkedCall())
	d := w.insertDecision(pendingDecision(c))
	w.closeDecision(d)
	if n, err := w.wakeDesk().Sweep(w.ctx); n != 1 || err != nil {
		w.Errorf("swept %d, %v", n, err)
	}
	w.same(delivery.Dropped, w.deliveriesOf(t)[0].Status)
}

// deliveriesTooOld: only what is open and not claimed is given up, strictly after its time.
func deliveriesTooOld(w *world) {
	t := relay("")
	t.MaxAge = time.Second
	_, ds := w.lanes(t, 4)
	w.claims(t, ds[0].ID)
	find := func(at time.Time) int {
		return len(read(w, func(tx store.Tx) ([]delivery.Delivery, error) { return tx.Overaged(at, 0, 10) }))
	}
	w.same([]int{0, 0, 3}, []int{find(ds[0].GivesUpAt), find(ds[1].GivesUpAt), find(ds[3].GivesUpAt.Add(time.Microsecond))})
	w.until(ds[3].GivesUpAt)
	if n, err := w.wakeDesk().Sweep(w.ctx); n != 3 || err != nil {
		w.Errorf("swept %d, %v", n, err)
	}
	for _, d := range ds[1:] {
		w.same(delivery.Dead, w.delivery(d.ID).Status)
	}
	CheckInvariants(w.T, w.s)
}

// deliveriesCleaned: with a job go its targets, their deliveries and attempts, and what
// of its stream was for others. Nobody else loses anything.
func deliveriesCleaned(w *world) {
	j, other := endedJob(), endedJob()
	j.Home, other.Home = w.TempDir(), w.TempDir()
	w.insertJob(j)
	w.insertJob(other)
	own, all := relay(j.Stream()), relay("")
	all.Unordered = true
	w.addTarget(own)
	w.addTarget(all)
	w.pauses(j, 5)
	w.pauses(other, 2)
	w.ends(all, w.claims(all, w.deliveriesOf(all)[0].ID), delivery.Arrived)
	held := w.claims(own, w.deliveriesOf(own)[0].ID)
	w.write(func(tx store.Tx) error {
		j, err := tx.Job(j.ID)
		if err != nil {
			return err
		}
		return tx.CleanJob(j, "ana")
	})
	// While it is being deleted, what is left of it goes nowhere and holds nobody up.
	got, err := w.wakeDesk().Poll(w.ctx, delivery.Polling{TargetID: all.ID, Limit: 1})
	if err != nil || len(got) != 1 || got[0].Delivery.Stream != other.Stream() {
		w.Errorf("polled %+v, %v", got, err)
	}
	for n := 1; n > 0; {
		w.write(func(tx store.Tx) (err error) { n, err = tx.DeleteJob(j.ID, 3); return err })
	}
	w.same([]string{"paused 2", "paused 3"}, w.heard(all.ID))
	for _, id := range []string{held.ID, got[0].Delivery.ID} {
		_, err := try(w, func(tx store.Tx) (delivery.Delivery, error) { return tx.Delivery(id) })
		if gone := errors.Is(err, delivery.ErrNotFound); gone != (id == held.ID) {
			w.Errorf("%s: %v", id, err)
		}
	}
	if _, err := try(w, func(tx store.Tx) (delivery.Target, error) { return tx.Target(own.ID) }); !errors.Is(err, delivery.ErrNotFound) {
		w.Errorf("its target: %v", err)
	}
	w.same(0, len(w.tries(held.ID)))
}

// relaysRace: of many that poll one target on two handles, none holds what another
// holds; each answers, and nothing is left or told twice.
func relaysRace(w *world) {
	handles := []delivery.Desk{w.wakeDesk(), w.with(w.open(Options{Once: true})).wakeDesk()}
	t := relay("")
	t.Unordered = true
	j, _ := w.lanes(t, 0)
	n := rounds(60)
	w.pauses(j, n)
	acks := make([]map[string]int, 8)
	together(len(acks), func(i int) {
		acks[i] = map[string]int{}
		desk := handles[i%2]
		for {
			got, err := desk.Poll(w.ctx, delivery.Polling{TargetID: t.ID, Limit: 1 + i%3})
			if err != nil && !errors.Is(err, txn.ErrBusy) {
				w.Errorf("poll: %v", err)
			}
			if len(got) == 0 {
				return
			}
			for _, p := range got {
				if i == 7 && p.Delivery.Fence == 1 { // comes again
					if _, err := desk.GiveBack(w.ctx, p.Delivery.ID, p.LeaseToken); err != nil {
						w.Errorf("give back: %v", err)
					}
					continue
				}
				acks[i][p.Delivery.ID]++
				if _, err := desk.Acknowledge(w.ctx, p.Delivery.ID, p.LeaseToken); err != nil {
					w.Errorf("acknowledge: %v", err)
				}
			}
		}
	})
	times := map[string]int{}
	for _, m := range acks {
		for id, k := range m {
			times[id] += k
		}
	}
	for _, d := range w.deliveriesOf(t) {
		if d.Status != delivery.Delivered && d.Fence > 0 && d.Status != delivery.Pending || times[d.ID] > 1 {
			w.Errorf("%s was told %d times, and is %s", d.ID, times[d.ID], d.Status)
		}
	}
	CheckInvariants(w.T, w.s)
}

// deliveryStories are what targets and those who fetch do, from the first event to an
// end, told once for each statement that can fail.
func deliveryStories() map[string]func(*play) {
	return map[string]func(*play){
		"wake fetched":  tellFetched,
		"wake removed":  tellRemoved,
		"wake refused":  tellWakeRefused,
		"wake settled":  tellWakeSettled,
		"wake enabled":  tellEnabled,
		"wake register": tellRegistered,
	}
}

func (p *play) wakes() delivery.Desk { return delivery.Desk{Store: p.s, Space: event.MainSpace} }

// wake adds a relay to a new job and tells it of n events in one transaction.
func (p *play) wake(n int) (j job.Job, t delivery.Target) {
	j = p.queue()
	p.step("add a target", func(ctx context.Context) (err error) {
		t, err = p.wakes().Add(ctx, j.Stream(), "agent:ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.JobPaused)}}, nil)
		return err
	})
	p.step("tell", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) error {
			for range n {
				if err := tx.Append(j.Stream(), tells(event.JobPaused, j, nil)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if ds := p.deliveriesOf(t); len(ds) != n {
		p.Errorf("%d deliveries of %d events that were acknowledged", len(ds), n)
	}
	return j, t
}

func (p *play) fetch(t delivery.Target) (got delivery.Polled) {
	p.step("poll", func(ctx context.Context) error {
		all, err := p.wakes().Poll(ctx, delivery.Polling{TargetID: t.ID})
		// A server that was cut off holds its locks until it notices, which nobody is told of,
		// and what is locked is left out.
		for end := time.Now().Add(patience); err == nil && len(all) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			all, err = p.wakes().Poll(ctx, delivery.Polling{TargetID: t.ID})
		}
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d were fetched", len(all))
		}
		if err == nil {
			got = all[0]
		}
		return notWritten(ctx, err)
	})
	return got
}

func (p *play) acknowledge(got delivery.Polled) {
	p.step("acknowledge", func(ctx context.Context) error {
		_, err := p.wakes().Acknowledge(ctx, got.Delivery.ID, got.LeaseToken)
		return err
	})
	if d := p.delivery(got.Delivery.ID); d.Status != delivery.Delivered {
		p.Errorf("acknowledged, and %s", d.Status)
	}
}

func tellFetched(p *play) {
	_, t := p.wake(2)
	first := p.fetch(t)
	p.step("give back", func(ctx context.Context) error {
		_, err := p.wakes().GiveBack(ctx, first.Delivery.ID, first.LeaseToken)
		return err
	})
	again := p.fetch(t)
	if again.Delivery.ID != first.Delivery.ID {
		p.Errorf("given back, %s comes before it", again.Delivery.ID)
	}
	p.acknowledge(again)
	p.acknowledge(p.fetch(t))
}

func tellRemoved(p *play) {
	_, t := p.wake(3)
	p.fetch(t)
	p.step("remove", func(ctx context.Context) error {
		_, err := p.wakes().Remove(ctx, t.ID)
		return err
	})
	p.stepLoosely("sweep", p.sweeps(2))
}

// sweeps has the sweep change so many; what fails on the way stays for the next time.
func (p *play) sweeps(want int) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		n, err := p.wakes().Sweep(ctx)
		if want -= n; err == nil && want > 0 { // it may find more: what others wait for
			err = txn.ErrNotCommitted.Say("%d are left to be swept.", want)
		}
		return notWritten(ctx, err)
	}
}

func tellWakeRefused(p *play) {
	_, t := p.wake(2)
	got := p.fetch(t)
	settle := func(d delivery.Delivery, cmd delivery.Command) {
		p.step(fmt.Sprintf("%T", cmd), func(ctx context.Context) error {
			return txn.Update(ctx, p.s, func(tx store.Tx) error {
				ch, err := d.Step(cmd, tx.Now())
				if err != nil {
					return err
				}
				_, err = tx.PutDelivery(d, ch)
				return err
			})
		})
	}
	settle(got.Delivery, delivery.Settle{Target: t, Fence: 1, Outcome: delivery.Outcome{Result: delivery.Refused, Message: "why"}})
	settle(p.delivery(got.Delivery.ID), delivery.Retry{Target: t, By: "ana"})
	if d := p.delivery(got.Delivery.ID); d.Status != delivery.Retrying || !d.OutOfOrder {
		p.Errorf("%+v", d)
	}
}

func tellWakeSettled(p *play) {
	j := p.queue()
	var t delivery.Target
	p.step("add a target", func(ctx context.Context) (err error) {
		t, err = p.wakes().Add(ctx, j.Stream(), "agent:ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.DecisionRequested)}}, nil)
		return err
	})
	q := p.asksOf(j, 1)
	p.resolve(q)
	p.stepLoosely("sweep", p.sweeps(1))
	if ds := p.deliveriesOf(t); len(ds) != 1 || ds[0].Status != delivery.Dropped {
		p.Errorf("%+v", ds)
	}
	p.questionsStand(j, decision.Resolved)
}

func tellEnabled(p *play) {
	_, t := p.wake(1)
	p.step("disable", func(ctx context.Context) error {
		return txn.Update(ctx, p.s, func(tx store.Tx) error {
			off, err := tx.Target(t.ID)
			if err != nil {
				return err
			}
			prev := off
			off.DisabledAt, off.Disabled, off.Version = tx.Now(), "why", prev.Version+1
			return tx.PutTarget(prev, off)
		})
	})
	p.step("enable", func(ctx context.Context) error {
		_, err := p.wakes().Enable(ctx, t.ID)
		return err
	})
	p.acknowledge(p.fetch(t))
}

func tellRegistered(p *play) {
	j := p.queue()
	var ids []string
	for range 2 {
		var t delivery.Target
		p.step("register", func(ctx context.Context) (err error) {
			t, err = p.wakes().Register(ctx, j.Stream(), "agent:ana", delivery.Adding{Name: "mine", Events: []string{string(event.JobPaused)}}, nil)
			return err
		})
		ids = append(ids, t.ID)
	}
	if ids[0] != ids[1] {
		p.Errorf("registered as %v", ids)
	}
}
