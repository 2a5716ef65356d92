package storetest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
)

// Lived is what is known of a store that has something of every kind in it, for tests of
// what moves a store to another place.
type Lived struct {
	past    past
	run     string // that waits for a yes
	signIn  token.SignIn
	cursors map[string]event.Cursor
	after   map[string]int // events behind each of them
}

// Fill tells every story on the store at a place, and leaves work of every kind waiting
// there. The store is closed at the end.
func Fill(t *testing.T, place Instance) *Lived {
	t.Helper()
	w := at(t, Backend{}, place, place.Open(t, Options{Once: true}))
	hears := relay("")
	hears.Events = []string{string(event.ApprovalRequested), string(event.CallFinished), string(event.JobStarted)}
	w.addTarget(hears)
	for _, tell := range inPeace() {
		p := w.play(w.s, read(w, store.Tx.LastPos))
		p.mayFail = func() bool { return false }
		tell(p)
		p.endSlow()
		p.ledger()
	}
	tok := w.insertToken(func(k *token.Token) { k.Name = "O'Néil \U0001F600" })
	w.insertToken(func(k *token.Token) { k.Scope, k.RevokedAt = token.Admin, moment(2) })
	w.insertHome(func(*job.Home) {})
	l := &Lived{signIn: w.putSignIn(w.someSignIn(tok)), cursors: map[string]event.Cursor{}, after: map[string]int{}}
	g := w.play(w.s, 0).pursue()
	g.goesOn("jot, and ask for a refund")
	l.run = g.id
	l.past = w.past()
	CheckInvariants(t, w.s)
	tellCleaned(w.play(w.s, 0)) // it leaves a gap among the places of events
	l.past.seen = w.look()
	l.mark(l.past.seen.Events)
	w.close()
	return l
}

// inPeace are the stories that can follow each other on one store: those first that
// bring everything to its end which is overdue, since the others leave something.
func inPeace() (tell []func(*play)) {
	all := stories()
	maps.Copy(all, jobStories())
	maps.Copy(all, deliveryStories())
	delete(all, "job cleaned")
	delete(all, "renewed") // a call that no engine made: it is found out by the next sweep
	for _, first := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if strings.Contains(name, "expired") == first {
				tell = append(tell, all[name])
			}
		}
	}
	return tell
}

// mark takes a place in the middle of all streams, and in the middle of one.
func (l *Lived) mark(es []event.Event) {
	middle := len(es) / 2
	l.cursors[""], l.after[""] = event.PosCursorOf(es[middle]), len(es)-middle-1
	stream := es[middle].Stream
	for _, e := range es {
		if e.Stream == stream {
			l.after[stream]++
			if l.after[stream] == 1 {
				l.cursors[stream] = event.CursorOf(e)
			}
		}
	}
	l.after[stream]--
}

// GoesOn checks that the store at a place is the one that was filled, in a later life, and
// that what waited there is asked about once more and runs once.
func (l *Lived) GoesOn(t *testing.T, place Instance) {
	t.Helper()
	w := at(t, Backend{}, place, place.Open(t, Options{Once: true}))
	defer w.close()
	CheckInvariants(t, w.s)
	w.same(l.past.seen.plain(), w.look().plain())
	for stream, cursor := range l.cursors {
		page, err := event.Read(w.ctx, w.s, stream, cursor, 1000)
		if err != nil || len(page.Events) != min(l.after[stream], 1000) {
			w.Errorf("behind %s of %q: %d events, want %d: %v", cursor, stream, len(page.Events), l.after[stream], err)
		}
	}
	g := w.play(w.s, 0).pursue()
	g.id = l.run
	for n := 0; w.run(g.id).Status == run.Waiting && n < 4; n++ { // once more for what was asked in the life before
		g.answered("approve", g.yes)
		g.goesOn("go on")
	}
	g.stands(run.GoalCompleted)
	w.newLife(l.past)
	w.noSignIn("in a later life", l.signIn.Key)
	w.same(0, w.dropSignIns(l.signIn.ExpiresAt.Add(time.Hour), 0)) // nor did any come along
	w.goesBehind()
}

// goesBehind: what is written now comes behind everything else.
func (w *world) goesBehind() {
	w.Helper()
	es := w.look().Events
	last := es[len(es)-1]
	w.write(park1)
	fresh := w.events(event.Query{After: last.Pos, Limit: 10})
	if len(fresh) == 0 || fresh[0].Pos <= last.Pos {
		w.Errorf("behind %d come %d events", last.Pos, len(fresh))
	}
}

// plain is the image without what a store numbers for itself.
func (m image) plain() image {
	m.Epoch = 0
	m.Events = slices.Clone(m.Events)
	for i := range m.Events {
		m.Events[i].Seq = 0
	}
	m.Deliveries = maps.Clone(m.Deliveries)
	for id, d := range m.Deliveries {
		d.EventSeq = 0
		m.Deliveries[id] = d
	}
	return m
}

// GoesBack checks that the store at a place is as it was when it was filled, and goes on in
// the same life.
func (l *Lived) GoesBack(t *testing.T, place Instance) {
	t.Helper()
	w := at(t, Backend{}, place, place.Open(t, Options{Once: true}))
	defer w.close()
	w.same(l.past.seen, w.look())
	w.same(l.signIn, w.signIn(l.signIn.Key))
	p := w.openShop(w.s, nil)
	if res, err := p.Resume(w.ctx, l.past.unspent.ApprovalID, nil); err != nil || res.Status != call.Succeeded {
		w.Errorf("a yes of this life: %s, %v", res.Status, err)
	}
	p.once(l.past.unspent.CallID)
}

// ReadOnly checks that the store at a place is as it was, and takes no writes: they fail
// with want.
func (l *Lived) ReadOnly(t *testing.T, place Instance, want error) {
	t.Helper()
	w := at(t, Backend{}, place, place.Open(t, Options{Once: true}))
	defer w.close()
	p := w.openShop(w.s, nil)
	if _, err := p.Resume(w.ctx, l.past.unspent.ApprovalID, nil); !errors.Is(err, want) {
		w.Errorf("resume: %v, want %v", err, want)
	}
	w.same(0, p.ran.times(l.past.unspent.CallID))
	w.same(l.past.seen.Calls, w.look().Calls)
}
