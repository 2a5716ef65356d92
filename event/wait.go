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
			page.Cursor = cursorIn(stream, &page.Events[k-1])
		}
		return err
	})
	return page, err
}

func cursorIn(stream string, e *Event) Cursor {
	if stream == "" {
		return makeCursor('p', e.Pos, e.Hash)
	}
	return makeCursor('s', e.StreamSeq, e.Hash)
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
	a := NewAnswer[Waited]()
	stop, err := Await(ctx, s, w, a.Take)
	if err != nil {
		return Waited{Cursor: w.After}, err
	}
	if at, gone := a.Listen(ctx, stop); gone {
		return Waited{Cursor: at}, context.Cause(ctx)
	}
	return a.Got, a.Err
}

// Answer takes the answer of an [Await] for one goroutine that listens. It lies apart
// from that one's stack: where thousands wait, stacks are what they cost.
type Answer[T any] struct {
	Got T
	Err error

	came chan struct{}
}

// NewAnswer makes one that has not come.
func NewAnswer[T any]() *Answer[T] { return &Answer[T]{came: make(chan struct{})} }

// Take is what Await calls once.
func (a *Answer[T]) Take(got T, err error) {
	a.Got, a.Err = got, err
	close(a.came)
}

// Listen returns once the answer has come. If ctx ends before, it stops the wait and
// says from where to go on; gone is true then.
func (a *Answer[T]) Listen(ctx context.Context, stop func() (Cursor, bool)) (at Cursor, gone bool) {
	select {
	case <-a.came:
		return "", false
	case <-ctx.Done():
	}
	if at, stopped := stop(); stopped {
		return at, true
	}
	<-a.came // it came at that very moment
	return "", false
}

// Await is [Wait] for many: it returns once what is stored was read, and done is called
// once, here or later, with how the wait ended. Meanwhile nothing runs for it. done is
// quick and does not wait. stop ends the wait without an answer and says from where to
// go on; stopped is false where it was answered. ctx is for the reading alone.
func Await(ctx context.Context, s txn.Store, w Waiting, done func(Waited, error)) (stop func() (at Cursor, stopped bool), err error) {
	h, err := join(s)
	if err != nil {
		return nil, err
	}
	f := h.enter(w.Stream)
	kept := &waiter{Waiting: w, done: done}
	for at := w.After; ; {
		skipped := h.skipped(f)
		e, end, err := next(ctx, s, &w, at)
		if err != nil {
			h.exit(w.Stream)
			return nil, err
		}
		if e != nil {
			h.exit(w.Stream)
			done(Waited{Outcome: Matched, Event: *e, Cursor: end}, nil)
			return func() (Cursor, bool) { return "", false }, nil
		}
		at = end
		kept.After, kept.n = at, at.number()
		if h.settle(f, kept, skipped) {
			return func() (Cursor, bool) { return h.stop(f, kept) }, nil
		}
	}
}

// next is the first stored event after a cursor that matches, nil for none, and where
// to go on from.
func next(ctx context.Context, s txn.Store, w *Waiting, after Cursor) (*Event, Cursor, error) {
	for {
		page, err := Read(ctx, s, w.Stream, after, 0)
		if err != nil {
			return nil, after, err
		}
		for i := range page.Events {
			e := &page.Events[i]
			after = cursorIn(w.Stream, e)
			if w.matches(e) {
				return e, after, nil
			}
		}
		if len(page.Events) == 0 {
			return nil, after, nil
		}
	}
}

func (w *Waiting) matches(e *Event) bool {
	if w.Subject != "" && e.Subject != w.Subject {
		return false
	}
	if len(w.Types) > 0 && !slices.Contains(w.Types, e.Type) {
		return false
	}
	return w.Match == nil || w.Match(*e)
}
