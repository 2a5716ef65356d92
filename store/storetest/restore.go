package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// restore is about stores that go back in time: design §4, rule 9.
func restore(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"older copy":             olderCopy,
		"accepted":               acceptedCopy,
		"own command":            restoredByCommand,
		"late from before":       lateFromBefore,
		"nothing to accept":      nothingToAccept,
		"cursors of lost events": lostCursors,
		"it keeps its id":        keepsItsID,
	})
}

// past is what stands in a store at the moment of its copy.
type past struct {
	unspent *call.PendingError // a yes, not acted on
	keyed   *call.PendingError // the same, for a tool that may be repeated
	waiting *call.PendingError // not decided yet
	running *call.PendingError // an attempt holds a long lease
	lost    *call.PendingError // an attempt's lease has ended
	seen    image
}

func (w *world) past() past {
	w.Helper()
	p := w.openShop(w.s, nil)
	x := past{
		unspent: p.mustGrant(refund), keyed: p.mustGrant(keyed), waiting: p.mustPark(refund),
		running: p.mustGrant(refund), lost: p.mustGrant(refund),
	}
	for a, lease := range map[*call.PendingError]time.Duration{x.running: time.Hour, x.lost: time.Microsecond} {
		if err := p.die(w.ctx, w.s, a, call.RecoverByPerson, lease); err != nil {
			w.Fatal(err)
		}
	}
	w.until(w.call(x.lost.CallID).LeaseUntil)
	x.seen = w.look()
	return x
}

// goBack lets the store live on after the copy, and puts the copy back.
func (w *world) goBack() past {
	w.Helper()
	w.skipWithout(w.place.Keep != nil, "how to keep a copy")
	x := w.past()
	w.close()
	putBack := w.place.Keep(w.T)
	w.s = w.open(Options{})
	p := w.openShop(w.s, nil)
	for _, a := range []*call.PendingError{x.unspent, x.keyed} {
		if res, err := p.Resume(w.ctx, a.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
			w.Fatalf("resume: %s, %v", res.Status, err)
		}
	}
	if err := p.approve(w.ctx, x.waiting); err != nil {
		w.Fatal(err)
	}
	w.close()
	putBack()
	w.s = w.open(Options{})
	return x
}

// olderCopy: a store that holds less than was acknowledged is read and listed,
// and nothing else.
func olderCopy(w *world) {
	x := w.goBack()
	p := w.openShop(w.s, nil)
	for range 2 { // opening it once more changes nothing
		p = w.openShop(w.s, nil)
		for name, do := range map[string]func() error{
			"update":  func() error { return w.update(park1) }, // a closure may begin before the store is asked
			"approve": func() error { return p.approve(w.ctx, x.waiting) },
			"reject":  func() error { return p.op.Reject(w.ctx, "", x.waiting.ApprovalID, "Bo", "") },
			"resume":  func() error { _, err := p.Resume(w.ctx, x.unspent.ApprovalID, nil); return err },
			"repeat":  func() error { _, err := p.Resume(w.ctx, x.keyed.ApprovalID, nil); return err },
			"ask":     func() error { _, err := p.Call(w.ctx, refund, []byte(`{}`)); return err },
			"start":   func() error { _, err := p.Call(w.ctx, jot, []byte(`{}`)); return err },
			"sweep":   func() error { _, err := p.Sweep(w.ctx, 10); return err },
			"redact":  func() error { return event.Redact(w.ctx, w.s, "call:"+x.waiting.CallID, 1, "Ana", "") },
			"continue": func() error {
				return txn.Update(w.ctx, w.s, func(tx store.Tx) error { return call.Renew(tx, x.running.CallID, 1, 1, time.Hour) })
			},
		} {
			if err := do(); !errors.Is(err, txn.ErrRestored) {
				w.Errorf("%s: %v", name, err)
			}
		}
		w.same(0, p.ran.times(x.unspent.CallID)+p.ran.times(x.keyed.CallID))
		w.same(x.seen, w.look())
		CheckInvariants(w.T, w.s)
		w.reopen()
	}
}

// accept ends the refusal, as an operator does.
func (w *world) accept() {
	w.Helper()
	w.close()
	if err := w.place.Accept(w.ctx); err != nil {
		w.Fatalf("accept: %v", err)
	}
	w.s = w.open(Options{})
}

func acceptedCopy(w *world) {
	x := w.goBack()
	w.accept()
	w.newLife(x)
}

// newLife checks that what was granted or running before counts no longer.
func (w *world) newLife(x past) {
	w.Helper()
	p := w.openShop(w.s, nil)
	epoch := read(w, func(tx store.Tx) (int64, error) { return tx.Epoch(), nil })
	if epoch <= x.seen.Epoch {
		w.Errorf("epoch %d after %d", epoch, x.seen.Epoch)
	}
	b := p.askedAnew(x.unspent)
	w.stands(x.unspent.CallID, call.Unknown, decision.Superseded, decision.Pending)
	w.same(0, p.ran.times(x.unspent.CallID))
	if _, err := p.Resume(w.ctx, x.unspent.ApprovalID, nil); !errors.Is(err, call.ErrAlreadyDecided) {
		w.Errorf("the old yes once more: %v", err)
	}
	if err := p.approve(w.ctx, b); err != nil {
		w.Fatal(err)
	}
	if res, err := p.Resume(w.ctx, b.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		w.Errorf("after a new yes: %s, %v", res.Status, err)
	}
	p.once(x.unspent.CallID)
	w.oldWork(p, x)
	CheckInvariants(w.T, w.s)
}

// oldWork: an attempt of an earlier life is unknown whatever its lease says, what
// may be repeated is, and a yes to what was asked then is asked about once more.
func (w *world) oldWork(p *shop, x past) {
	w.Helper()
	if n, err := p.Sweep(w.ctx, 100); err != nil || n != 2 {
		w.Errorf("swept %d: %v", n, err)
	}
	for _, a := range []*call.PendingError{x.running, x.lost} {
		w.stands(a.CallID, call.Unknown, decision.Consumed, decision.Pending)
		p.restoredNotice(w.call(a.CallID).ApprovalID)
	}
	if res, err := p.Resume(w.ctx, x.keyed.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		w.Errorf("what may be repeated: %s, %v", res.Status, err)
	}
	if err := p.approve(w.ctx, x.waiting); err != nil {
		w.Errorf("what was not decided: %v", err)
	}
	again := p.askedAnew(x.waiting)
	w.same(0, p.ran.times(x.waiting.CallID))
	if err := p.approve(w.ctx, again); err != nil {
		w.Fatal(err)
	}
	if res, err := p.Resume(w.ctx, again.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		w.Errorf("what is decided now: %s, %v", res.Status, err)
	}
}

// askedAnew resumes by a yes of an earlier life, and returns the question that
// this opens.
func (p *shop) askedAnew(a *call.PendingError) *call.PendingError {
	p.Helper()
	_, err := p.Resume(p.ctx, a.ApprovalID, nil)
	b, err := pending(err)
	if err != nil || b.ApprovalID == a.ApprovalID || b.CallID != a.CallID {
		p.Fatalf("a yes of an earlier life: asked %+v, %v", b, err)
	}
	p.restoredNotice(b.ApprovalID)
	return b
}

// restoredNotice wants a question that says why it is asked.
func (p *shop) restoredNotice(approvalID string) {
	p.Helper()
	d := p.decision(approvalID)
	to := read(p.world, func(tx store.Tx) (time.Time, error) { return tx.RestoredTo(), nil })
	var shown struct{ Notice string }
	if err := json.Unmarshal(d.Presentation, &shown); err != nil {
		p.Errorf("the presentation of %s: %v", d.ID, err)
	}
	if d.Kind != decision.KindInterrupted || to.IsZero() || !strings.Contains(shown.Notice, "restored to "+to.Format(time.RFC3339)) {
		p.Errorf("asked for %q, restored to %s, with the notice %q", d.Kind, to, shown.Notice)
	}
}

// restoredByCommand goes back by the backend's own command, while others have the
// store open: they go on with what it is now.
func restoredByCommand(w *world) {
	w.skipWithout(w.place.Backup != nil, "a command for backups")
	x := w.past()
	restoreIt, err := w.place.Backup(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	p := w.openShop(w.s, nil)
	if _, err := p.Resume(w.ctx, x.unspent.ApprovalID, nil); err != nil {
		w.Fatal(err)
	}
	es := w.look().Events
	last := es[len(es)-1].Pos
	if err := restoreIt(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.newLife(x)
	for _, e := range w.events(event.Query{After: x.seen.Events[len(x.seen.Events)-1].Pos, Limit: 1000}) {
		if e.Pos <= last {
			w.Errorf("pos %d is given a second time", e.Pos)
		}
	}
}

// movable is the store of a process that outlives the store it began with.
type movable struct{ now atomic.Pointer[store.Store] }

func (m *movable) Update(ctx context.Context, fn func(txn.Tx) error) error {
	return m.now.Load().Update(ctx, fn)
}

func (m *movable) View(ctx context.Context, fn func(txn.Tx) error) error {
	return m.now.Load().View(ctx, fn)
}

func (m *movable) Watch(streams ...string) (<-chan struct{}, func()) {
	return m.now.Load().Watch(streams...)
}

// lateFromBefore: a tool that was started in an earlier life ends while the same
// call runs again, under the same attempt and fence. What it reports changes nothing.
func lateFromBefore(w *world) {
	w.skipWithout(w.place.Keep != nil, "how to keep a copy")
	m := &movable{}
	m.now.Store(w.s)
	before := w.openShop(m, func(c *call.Config) { c.Lease = time.Hour })
	a := before.mustGrant(held)
	w.close()
	putBack := w.place.Keep(w.T)
	w.s = w.open(Options{})
	m.now.Store(w.s)
	old := before.resumeAside(a)
	w.close()
	putBack()
	w.s = w.open(Options{})
	w.accept()
	m.now.Store(w.s)

	now := w.openShop(w.s, nil)
	b := now.askedAnew(a)
	if err := now.approve(w.ctx, b); err != nil {
		w.Fatal(err)
	}
	fresh := now.resumeAside(b)
	seen := w.look()
	close(before.held)
	if err := <-old; !errors.Is(err, call.ErrLeaseLost) {
		w.Errorf("the one from before was told %v", err)
	}
	w.same(seen, w.look())
	close(now.held)
	if err := <-fresh; err != nil {
		w.Errorf("the one that runs now: %v", err)
	}
	w.stands(a.CallID, call.Succeeded, decision.Superseded, decision.Consumed)
	CheckInvariants(w.T, w.s)
}

// resumeAside resumes on another goroutine, and returns once the tool runs.
func (p *shop) resumeAside(a *call.PendingError) (told chan error) {
	p.Helper()
	told = make(chan error, 1)
	go func() {
		_, err := p.Resume(p.ctx, a.ApprovalID, nil)
		told <- err
	}()
	p.await("the tool", p.begun)
	return told
}

// nothingToAccept: a store that did not go back cannot begin a new life by accident.
func nothingToAccept(w *world) {
	w.skipWithout(w.place.Accept != nil, "a command to accept a restore")
	w.write(park1)
	before := w.look()
	w.close()
	if err := w.place.Accept(w.ctx); err == nil {
		w.Error("there was nothing to accept")
	}
	w.s = w.open(Options{})
	w.same(before, w.look())
	w.write(park1)
}

// placed is an event with its place among all, which it may get only after its commit.
func (w *world) placed(e event.Event) event.Event {
	w.Helper()
	for _, p := range w.events(event.Query{Limit: 1000}) {
		if p.ID == e.ID {
			return p
		}
	}
	w.Fatalf("event %s has no place", e.ID)
	return e
}

// lostCursors: a place behind events that are gone is no place any more.
func lostCursors(w *world) {
	w.skipWithout(w.place.Keep != nil, "how to keep a copy")
	c := w.insertCall(parkedCall())
	kept := w.placed(w.append(c.Stream(), note("kept"))[0])
	w.close()
	putBack := w.place.Keep(w.T)
	w.s = w.open(Options{})
	lost := w.placed(w.append(c.Stream(), note("lost"))[0])
	w.close()
	putBack()
	w.s = w.open(Options{})
	w.accept()
	w.append(c.Stream(), note("new"))
	for stream, cursor := range map[string]event.Cursor{"": event.PosCursorOf(lost), c.Stream(): event.CursorOf(lost)} {
		if _, err := event.Read(w.ctx, w.s, stream, cursor, 10); !errors.Is(err, event.ErrCursor) {
			w.Errorf("behind a lost event of %q: %v", stream, err)
		}
	}
	page, err := event.Read(w.ctx, w.s, "", event.PosCursorOf(kept), 10)
	if err != nil || len(page.Events) != 1 || page.Events[0].Subject != "new" || page.Events[0].Pos <= lost.Pos {
		w.Errorf("behind a kept event: %+v, %v", page.Events, err)
	}
}

// keepsItsID: whoever opens the store finds the id that it was made with, also once it
// went back in time; another store has another.
func keepsItsID(w *world) {
	life := func(s *store.Store) (string, int64) {
		id, epoch, err := s.Life(w.ctx)
		if err != nil || id == "" || epoch < 1 {
			w.Fatalf("%q, life %d, %v", id, epoch, err)
		}
		return id, epoch
	}
	was, epoch := life(w.s)
	id, same := life(w.open(Options{}))
	w.same(was, id)
	w.same(epoch, same)
	w.goBack()
	id, _ = life(w.s)
	w.same(was, id)
	if other, _ := life(w.b.New(w.T).Open(w.T, Options{})); other == was {
		w.Errorf("another store has the same id, %s", was)
	}
}
