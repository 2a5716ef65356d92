package event

import (
	"context"
	"slices"
	"time"

	"github.com/placet-dev/placet/txn"
)

// Update runs fn in one write transaction and, once it is committed, tells o of
// each event that fn appended. o may be nil.
func Update[T Tx](ctx context.Context, s txn.Store, o Observer, fn func(T) error) error {
	var seen []Event
	err := txn.Update(ctx, s, func(tx T) error {
		seen = nil
		if err := fn(tx); err != nil {
			return err
		}
		if o != nil {
			seen = tx.Appended()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range seen {
		tell(o, e)
	}
	return nil
}

func tell(o Observer, e Event) {
	defer func() { _ = recover() }() // an observer's panic must not undo what is committed
	o.Observe(e)
}

// Page is a stretch of a stream and where it ends.
type Page struct {
	Events []Event
	Cursor Cursor // after the last one read, matching or not
}

// Read returns the events after a cursor, oldest first. An unknown cursor is
// [ErrCursor], an unknown stream [ErrNoStream].
func Read(ctx context.Context, s txn.Store, stream string, after Cursor, limit int) (Page, error) {
	var page Page
	err := txn.View(ctx, s, func(tx Tx) error {
		page = Page{Cursor: after}
		if stream != "" {
			if _, err := tx.Head(stream); err != nil {
				return err
			}
		}
		n, err := resolve(tx, stream, after)
		if err != nil {
			return err
		}
		page.Events, err = tx.Events(Query{Stream: stream, After: n, Limit: limit})
		if k := len(page.Events); k > 0 {
			page.Cursor = cursorIn(stream, page.Events[k-1])
		}
		return err
	})
	return page, err
}

func cursorIn(stream string, e Event) Cursor {
	if stream == "" {
		return PosCursorOf(e)
	}
	return CursorOf(e)
}

// Outcome says how a wait ended.
type Outcome string

// A wait ends with an event or with its time.
const (
	Matched  Outcome = "event"
	TimedOut Outcome = "timeout"
)

// Waiting says what to wait for.
type Waiting struct {
	Stream  string // empty: all streams, by pos
	After   Cursor // empty: from the stream's first event
	Types   []Type // empty: any
	Subject string // empty: any
	// Match says which of these events it is. It is quick and calls nothing of the
	// store. Default: any.
	Match   func(Event) bool
	Timeout time.Duration // 0: until the context ends
}

// Waited is how a wait ended and where to go on from.
type Waited struct {
	Outcome Outcome
	Event   Event // of Matched
	Cursor  Cursor
}

// Wait returns the first event after the cursor that matches; one that is stored
// already is returned at once. It registers first, then reads, then sleeps, so
// that nothing is missed in between. A context that ends is the context's error.
func Wait(ctx context.Context, s txn.Store, w Waiting) (Waited, error) {
	type answer struct {
		Waited
		err error
	}
	answered := make(chan answer, 1)
	stop, err := Await(ctx, s, w, func(got Waited, err error) { answered <- answer{got, err} })
	if err != nil {
		return Waited{Cursor: w.After}, err
	}
	select {
	case a := <-answered:
		return a.Waited, a.err
	case <-ctx.Done():
	}
	if at, stopped := stop(); stopped {
		return Waited{Cursor: at}, context.Cause(ctx)
	}
	a := <-answered // it was answered at that very moment
	return a.Waited, a.err
}

// Await is [Wait] for many: it returns once what is stored was read, and done is called
// once, here or later, with how the wait ended. Meanwhile nothing runs for it. done is
// quick and does not wait. stop ends the wait without an answer and says from where to
// go on; stopped is false where it was answered. ctx is for the reading alone.
func Await(ctx context.Context, s txn.Store, w Waiting, done func(Waited, error)) (stop func() (at Cursor, stopped bool), err error) {
	answered := func() (Cursor, bool) { return "", false }
	got, err := next(ctx, s, w, w.After)
	if err != nil {
		return nil, err
	}
	if got.Outcome == Matched {
		done(got, nil)
		return answered, nil
	}
	h, err := join(s)
	if err != nil {
		return nil, err
	}
	f := h.enter(w.Stream)
	kept := &waiter{Waiting: w, done: done}
	for {
		skipped := h.skipped(f)
		if got, err = next(ctx, s, w, got.Cursor); err != nil {
			h.exit(w.Stream)
			return nil, err
		}
		if got.Outcome == Matched {
			h.exit(w.Stream)
			done(got, nil)
			return answered, nil
		}
		kept.After, kept.n = got.Cursor, got.Cursor.number()
		if h.settle(f, kept, skipped) {
			return func() (Cursor, bool) { return h.stop(f, kept) }, nil
		}
	}
}

func next(ctx context.Context, s txn.Store, w Waiting, after Cursor) (Waited, error) {
	for {
		page, err := Read(ctx, s, w.Stream, after, 0)
		if err != nil {
			return Waited{Cursor: after}, err
		}
		for _, e := range page.Events {
			after = cursorIn(w.Stream, e)
			if w.matches(e) {
				return Waited{Outcome: Matched, Event: e, Cursor: after}, nil
			}
		}
		if len(page.Events) == 0 {
			return Waited{Cursor: after}, nil
		}
	}
}

func (w Waiting) matches(e Event) bool {
	if w.Subject != "" && e.Subject != w.Subject {
		return false
	}
	if len(w.Types) > 0 && !slices.Contains(w.Types, e.Type) {
		return false
	}
	return w.Match == nil || w.Match(e)
}
