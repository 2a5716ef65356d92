package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

func follow(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"everything":             followEverything,
		"woken by itself":        func(w *world) { wokenBy(w, w) },
		"woken by another":       func(w *world) { wokenBy(w, w.with(w.open(Options{}))) },
		"a wait that was late":   waitThatWasLate,
		"a wait in time":         waitInTime,
		"stop":                   watchStop,
		"read after registering": registerThenRead,
	})
}

// followEverything: while eight writers on two handles commit, and some of their
// closures fail, followers on both handles see every event once and in order,
// by pos over all streams and by number within one.
func followEverything(w *world) {
	other := w.with(w.open(Options{}))
	worlds := []*world{w, other}
	var cs []call.Call
	for range 4 {
		cs = append(cs, w.insertCall(parkedCall()))
	}
	const writers = 8
	each := rounds(60)
	last := note("end")
	var following sync.WaitGroup
	seen := make([][]event.Event, 2*(1+len(cs)))
	for i := range seen {
		v, stream := worlds[i%2], ""
		if i >= 2 {
			stream = cs[i/2-1].Stream()
		}
		following.Go(func() { seen[i] = v.followUntil(stream, last.Subject) })
	}
	together(writers, func(i int) { worlds[i%2].scribble(cs, each) })
	for _, c := range cs { // the last one, and thus the last of all
		w.append(c.Stream(), note("pause"))
	}
	w.write(func(tx store.Tx) error {
		for _, c := range cs {
			if err := tx.Append(c.Stream(), last); err != nil {
				return err
			}
		}
		return nil
	})
	following.Wait()
	w.compareFollowers(cs, seen)
}

// scribble appends to the streams in turns, of several roots in the order of their ids;
// every fourth closure fails.
func (w *world) scribble(cs []call.Call, n int) {
	no := errors.New("no")
	for k := range n {
		err := w.update(func(tx store.Tx) error {
			var streams []string
			for j := range 1 + k%3 {
				streams = append(streams, cs[(k+j)%len(cs)].Stream())
			}
			slices.Sort(streams)
			for _, stream := range streams { // all locks before the clock
				if _, err := tx.Head(stream); err != nil {
					return err
				}
			}
			for _, stream := range streams {
				if err := tx.Append(stream, note(fmt.Sprint(k))); err != nil {
					return err
				}
			}
			if k%4 == 3 {
				return no
			}
			return nil
		})
		if err != nil && err != no {
			w.Errorf("write: %v", err)
		}
	}
}

// followUntil waits for one event after another, as a follower does.
func (w *world) followUntil(stream, subject string) (es []event.Event) {
	cursor := event.Cursor("")
	for {
		got, err := event.Wait(w.ctx, w.s, event.Waiting{Stream: stream, After: cursor})
		if err != nil {
			w.Errorf("following %q: %v", stream, err)
			return es
		}
		es, cursor = append(es, got.Event), got.Cursor
		if got.Event.Subject == subject {
			return es
		}
	}
}

func (w *world) compareFollowers(cs []call.Call, seen [][]event.Event) {
	all := w.look().Events
	ends := len(cs) - 1 // a follower of all stops at the first of the last events
	for i, es := range seen[:2] {
		for n, e := range es {
			if e.Pos != int64(n+1) {
				w.Fatalf("follower %d saw pos %d at place %d", i, e.Pos, n+1)
			}
		}
		w.same(all[:len(all)-ends], es)
	}
	for i, es := range seen[2:] {
		w.numbered(picked(all, event.Query{Stream: cs[i/2].Stream()}), es)
	}
	w.verify()
}

// wokenBy: who watches is woken soon by what a handle commits, and by nothing
// else than time if it were lost (cases 083, 092).
func wokenBy(w, by *world) {
	c, quiet := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	all, stopAll := w.s.Watch()
	one, stopOne := w.s.Watch(c.Stream(), quiet.Stream())
	defer stopAll()
	defer stopOne()
	for n := range rounds(20) {
		drain(all)
		drain(one)
		by.append(c.Stream(), note(fmt.Sprint(n)))
		w.await("the watcher of all streams", all)
		w.await("the watcher of one", one)
	}
}

// drain takes a wake that is left over: it may be late news of an earlier commit.
func drain(ch <-chan struct{}) {
	select {
	case <-ch:
	default:
	}
}

// waitThatWasLate: an event that is stored already is returned at once.
func waitThatWasLate(w *world) {
	c := w.insertCall(parkedCall())
	want := w.append(c.Stream(), note("a"), note("b"))
	for _, stream := range []string{c.Stream(), ""} {
		got, err := event.Wait(w.ctx, w.s, event.Waiting{Stream: stream, Subject: "b", Timeout: patience})
		if err != nil || got.Outcome != event.Matched {
			w.Fatalf("%+v, %v", got, err)
		}
		w.numbered(want[1:], []event.Event{got.Event})
		got, err = event.Wait(w.ctx, w.s, event.Waiting{Stream: stream, After: got.Cursor, Timeout: time.Millisecond})
		if err != nil || got.Outcome != event.TimedOut {
			w.Errorf("behind the last: %+v, %v", got, err)
		}
	}
}

// waitInTime: a waiter gets the event that it waits for, and goes on behind it.
func waitInTime(w *world) {
	by := w.with(w.open(Options{}))
	c := w.insertCall(parkedCall())
	got := make(chan event.Waited, 2)
	for _, stream := range []string{c.Stream(), ""} {
		go func() {
			waited, err := event.Wait(w.ctx, w.s, event.Waiting{Stream: stream, Types: []event.Type{event.CallUnknown}})
			if err != nil {
				w.Errorf("wait: %v", err)
			}
			got <- waited
		}()
	}
	by.append(c.Stream(), note("not this"))
	want := by.append(c.Stream(), event.New(event.CallUnknown, c.ID, "tester", struct{}{}))[0]
	for range 2 {
		w.numbered([]event.Event{want}, []event.Event{(<-got).Event})
	}
}

// watchStop: a registration can be given up twice, and others keep theirs.
func watchStop(w *world) {
	c := w.insertCall(parkedCall())
	_, stop := w.s.Watch(c.Stream())
	kept, stopKept := w.s.Watch(c.Stream())
	defer stopKept()
	stop()
	stop()
	drain(kept)
	w.append(c.Stream(), note("x"))
	w.await("the one who stayed", kept)
}

// registerThenRead: what is committed after registering wakes, also if it is
// committed before anybody looks at the channel, and by another handle.
func registerThenRead(w *world) {
	by := w.with(w.open(Options{}))
	c := w.insertCall(parkedCall())
	for n := range rounds(20) {
		woken, stop := w.s.Watch(c.Stream())
		by.append(c.Stream(), note("x"))
		w.await("the commit since registering", woken)
		w.same(n+2, len(w.events(event.Query{Stream: c.Stream()})))
		stop()
	}
}
