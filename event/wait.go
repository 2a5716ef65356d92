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
	Stream  string        // empty: all streams, by pos
	After   Cursor        // empty: from the stream's first event
	Types   []Type        // empty: any
	Subject string        // empty: any
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
	var streams []string // none: all
	if w.Stream != "" {
		streams = []string{w.Stream}
	}
	woken, stop := s.Watch(streams...)
	defer stop()
	var late <-chan time.Time
	if w.Timeout > 0 {
		timer := time.NewTimer(w.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	cursor := w.After
	for {
		got, err := next(ctx, s, w, cursor)
		if err != nil || got.Outcome == Matched {
			return got, err
		}
		cursor = got.Cursor
		select {
		case <-woken:
		case <-late:
			return Waited{Outcome: TimedOut, Cursor: cursor}, nil
		case <-ctx.Done():
			return Waited{Cursor: cursor}, context.Cause(ctx)
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
