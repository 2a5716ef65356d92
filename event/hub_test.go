package event_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// Waits come, are answered, run out and are given up while two handles write to forty
// streams: each is answered once, with the first event that it asked for.
func TestAwaitWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for _, streams := range []int{3, 40} { // read one by one, and all together
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			stores := []*store.Store{w.st, w.open(nil)}
			const events = 12 / raceFactor
			var names []string
			for i := range streams {
				names = append(names, w.stream(fmt.Sprintf("call_%d", i), 0))
			}
			var waits, writes sync.WaitGroup
			for i, name := range names {
				writes.Go(func() {
					for k := range events {
						w.add(stores[i%2], name, k)
					}
				})
				for k := range events {
					waits.Go(func() {
						got, err := event.Wait(w.ctx, w.st, event.Waiting{Stream: name, Subject: fmt.Sprintf("s%d", k), Timeout: time.Minute})
						if err != nil || got.Event.Subject != fmt.Sprintf("s%d", k) || got.Event.Stream != name {
							t.Errorf("%s, event %d: %+v, %v", name, k, got, err)
						}
					})
				}
			}
			waits.Go(func() {
				got, err := event.Wait(w.ctx, w.st, event.Waiting{Subject: fmt.Sprintf("s%d", events-1), Timeout: time.Minute})
				if err != nil || got.Outcome != event.Matched {
					t.Errorf("of all streams: %+v, %v", got, err)
				}
			})
			writes.Wait()
			waits.Wait()
		})
	}
}

// A wait that is stopped or runs out says from where to go on: behind all that it has
// seen, whoever read it.
func TestAwaitKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 2)
	never := func(event.Waited, error) { t.Error("it was answered") }
	stop, err := event.Await(w.ctx, w.st, event.Waiting{Stream: a, Subject: "none"}, never)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan event.Waited, 1)
	_, err = event.Await(w.ctx, w.st, event.Waiting{Stream: a, Subject: "s7"}, func(got event.Waited, _ error) { answered <- got })
	if err != nil {
		t.Fatal(err)
	}
	w.add(w.st, a, 7)
	got := <-answered // the other wait has been handed the same event
	if got.Event.StreamSeq != 3 {
		t.Errorf("%+v", got)
	}
	at, stopped := stop()
	if !stopped || at != got.Cursor {
		t.Errorf("stopped %v at %q, not %q", stopped, at, got.Cursor)
	}
	if _, stopped := stop(); stopped {
		t.Error("it was stopped twice")
	}
}

// What a wait compares events with is its own: where it panics, that wait ends with an
// error, and the others go on.
func TestAwaitSurvivesAPanic(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 1)
	page, err := event.Read(w.ctx, w.st, a, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 2)
	for _, match := range []func(event.Event) bool{
		func(event.Event) bool { panic("mine") },
		func(e event.Event) bool { return e.Subject == "s5" },
	} {
		_, err := event.Await(w.ctx, w.st, event.Waiting{Stream: a, After: page.Cursor, Match: match}, func(_ event.Waited, err error) { answers <- err })
		if err != nil {
			t.Fatal(err)
		}
	}
	w.add(w.st, a, 4)
	if err := <-answers; err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("the one that panics: %v", err)
	}
	w.add(w.st, a, 5)
	if err := <-answers; err != nil {
		t.Errorf("the other: %v", err)
	}
}

// Whoever waits is told that the store has gone back in time: places in its streams mean
// nothing any more, and the same numbers come again. The next wait goes on as usual.
func TestAwaitInAStoreThatGoesBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 2)
	backup := w.path + ".backup"
	if err := sqlite.Backup(w.ctx, w.path, backup); err != nil {
		t.Fatal(err)
	}
	w.add(w.st, a, 2)
	answers := make(chan error, 1)
	wait := func(subject string, after event.Cursor) {
		t.Helper()
		waits := event.Waiting{Stream: a, After: after, Subject: subject}
		if _, err := event.Await(w.ctx, w.st, waits, func(_ event.Waited, err error) { answers <- err }); err != nil {
			t.Fatal(err)
		}
	}
	page, err := event.Read(w.ctx, w.st, a, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	wait("s5", page.Cursor)
	if err := sqlite.Restore(w.ctx, w.path, backup); err != nil {
		t.Fatal(err)
	}
	if err := <-answers; !errors.Is(err, txn.ErrRestored) {
		t.Errorf("after the store went back: %v", err)
	}
	wait("s5", "")
	w.add(w.st, a, 5)
	if err := <-answers; err != nil {
		t.Errorf("the next wait: %v", err)
	}
}

// A store that is closed ends the waits in it: those that wait already, and those that
// begin at the same moment.
func TestAwaitInAStoreThatIsClosed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 1)
	ctx, stop := context.WithTimeout(w.ctx, 5*time.Minute)
	defer stop()
	for range 200 / raceFactor {
		st, err := sqlite.Open(w.ctx, w.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 4)
		wait := func() {
			if _, err := event.Await(context.Background(), st, event.Waiting{Stream: a, Subject: "none"}, func(_ event.Waited, err error) { answers <- err }); err != nil {
				answers <- err
			}
		}
		wait()
		barrier := make(chan struct{})
		for range 3 {
			go func() { <-barrier; wait() }()
		}
		close(barrier)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			select {
			case err := <-answers:
				if err == nil {
					t.Error("it was answered as if something had come")
				}
			case <-ctx.Done():
				t.Fatal("somebody waits in a store that is closed")
			}
		}
	}
}

// Many wait in one process, and nothing runs for them.
func TestAwaitMany(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 1)
	const waiters = 2000 / raceFactor
	var all sync.WaitGroup
	all.Add(waiters)
	for range waiters {
		_, err := event.Await(context.Background(), w.st, event.Waiting{Stream: a, Subject: "s5"}, func(got event.Waited, err error) {
			defer all.Done()
			if err != nil || got.Event.Subject != "s5" {
				t.Errorf("%+v, %v", got, err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.add(w.st, a, 4)
	w.add(w.st, a, 5)
	all.Wait()
}
