package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

func events(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":      eventReadBack,
		"payloads":       eventPayloads,
		"texts":          eventTexts,
		"time":           eventTime,
		"streams":        eventStreams,
		"filters":        eventFilters,
		"limits":         eventLimits,
		"cursors":        eventCursors,
		"heads":          eventHeads,
		"many at once":   eventMany,
		"inside":         eventInside,
		"redact":         eventRedact,
		"redact at once": eventRedactAtOnce,
	})
}

// numbered compares events as a closure saw them with those that are stored: a backend
// may number them later.
func (w *world) numbered(seen, stored []event.Event) {
	w.Helper()
	seen, stored = slices.Clone(seen), slices.Clone(stored)
	for i := range min(len(seen), len(stored)) {
		if seen[i].Seq == 0 {
			seen[i].Seq = stored[i].Seq
		}
		if seen[i].Pos == 0 || stored[i].Pos == 0 {
			seen[i].Pos = stored[i].Pos
		}
	}
	w.same(seen, stored)
}

// append writes events in one closure and returns them as the closure saw them.
func (w *world) append(stream string, es ...event.Event) []event.Event {
	w.Helper()
	var sealed []event.Event
	w.write(func(tx store.Tx) error {
		err := tx.Append(stream, es...)
		sealed = tx.Appended()
		return err
	})
	return sealed
}

func (w *world) events(q event.Query) []event.Event {
	w.Helper()
	return read(w, func(tx store.Tx) ([]event.Event, error) { return tx.Events(q) })
}

func note(subject string) event.Event {
	return event.New(event.ResumeRefused, subject, "tester", map[string]string{"n": subject})
}

func (w *world) verify() event.Report {
	w.Helper()
	r, err := event.Verify(w.ctx, w.s, nil)
	if err != nil || r.Break != nil {
		w.Fatalf("verify: %v %+v", err, r.Break)
	}
	return r
}

func eventReadBack(w *world) {
	a, b := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	es := w.append(a.Stream(), note("one"), note("two"))
	es = append(es, w.append(b.Stream(), note("three"))...)
	w.numbered(es[:2], w.events(event.Query{Stream: a.Stream(), After: 1}))
	w.numbered(es[2:], w.events(event.Query{Stream: b.Stream(), After: 1}))
	all := w.events(event.Query{After: 2})
	w.numbered(es, all)
	whole(w, append(all, event.Event{Redacted: true})...)
	for i, e := range all {
		if e.Pos != int64(i+3) || e.Space != event.MainSpace {
			w.Errorf("event %d has pos %d in space %q", i, e.Pos, e.Space)
		}
	}
	w.same(5, w.verify().Events)
	w.reopen()
	w.same(all, w.events(event.Query{After: 2}))
	w.same(5, w.verify().Events)
}

// eventPayloads: bytes that are hashed are stored as they are (case 103).
func eventPayloads(w *world) {
	c := w.insertCall(parkedCall())
	for name, b := range blobs() {
		e := note(name)
		e.Payload = b
		if b == nil { // that would say that it was redacted
			w.refused(nil, func(tx store.Tx) error { return tx.Append(c.Stream(), e) })
			continue
		}
		sealed := w.append(c.Stream(), e)
		got := w.events(event.Query{Stream: c.Stream(), After: sealed[0].StreamSeq - 1})
		if len(got) != 1 || string(got[0].Payload) != string(b) || got[0].Redacted {
			w.Errorf("the payload %q came back as another", name)
		}
	}
	w.verify()
}

func eventTexts(w *world) {
	c := parkedCall()
	c.Space = hard[0]
	c = w.insertCall(c)
	for _, s := range append([]string{""}, hard...) {
		e := note(s)
		e.Type, e.Actor = event.Type(s), s
		sealed := w.append(c.Stream(), e)
		w.numbered(sealed, w.events(event.Query{Stream: c.Stream(), After: sealed[0].StreamSeq - 1}))
	}
	w.verify()
}

// eventTime: an event carries the closure's one time (case 061).
func eventTime(w *world) {
	c := w.insertCall(parkedCall())
	var now time.Time
	var es []event.Event
	w.write(func(tx store.Tx) error {
		if _, err := tx.Head(c.Stream()); err != nil { // the lock before the clock
			return err
		}
		now, es = tx.Now(), nil
		for range 3 {
			if err := tx.Append(c.Stream(), note("x")); err != nil {
				return err
			}
		}
		es = tx.Appended()
		if later := tx.Now(); later != now {
			return fmt.Errorf("the closure's time went from %s to %s", now, later)
		}
		return nil
	})
	if now != now.UTC().Truncate(w.b.Precision) {
		w.Errorf("the store's time %s is finer than what it stores, or not UTC", now)
	}
	for _, e := range append(es, w.events(event.Query{Stream: c.Stream(), After: 1})...) {
		w.same(now, e.At)
	}
}

func eventStreams(w *world) {
	c := w.insertCall(parkedCall())
	for stream, want := range map[string]error{
		"call:call_none": event.ErrNoStream, "call:": event.ErrNoStream, "run:run_1": event.ErrNoStream, "job:job_1": event.ErrNoStream,
		"call:" + strings.ToUpper(c.ID): event.ErrNoStream,
		"":                              event.ErrBadStream, "call": event.ErrBadStream, "Call:x": event.ErrBadStream, c.ID: event.ErrBadStream,
	} {
		w.Logf("stream %q", stream)
		w.refused(want, func(tx store.Tx) error { return tx.Append(stream, note("x")) })
		if _, err := try(w, func(tx store.Tx) (event.Head, error) { return tx.Head(stream) }); !errors.Is(err, want) {
			w.Errorf("the head of %q: %v", stream, err)
		}
	}
	for _, stream := range []string{"call:call_none", "run:run_1", "nothing"} {
		if es := w.events(event.Query{Stream: stream}); len(es) != 0 {
			w.Errorf("%q has %d events", stream, len(es))
		}
	}
}

func eventFilters(w *world) {
	a, b := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	for i := range 30 {
		c := []call.Call{a, b}[i%2]
		e := note(fmt.Sprint("s", i%3))
		e.Type = []event.Type{event.CallStarted, event.CallFinished, "call.Started"}[i%5%3]
		w.append(c.Stream(), e)
	}
	all := w.events(event.Query{})
	w.same(32, len(all))
	for _, q := range []event.Query{
		{Types: []event.Type{event.CallStarted}},
		{Types: []event.Type{event.CallFinished, "call.Started"}},
		{Types: []event.Type{"none"}},
		{Subject: "s1"},
		{Subject: "S1"},
		{Stream: a.Stream(), Subject: "s1"},
		{Stream: a.Stream(), Subject: "s2", Limit: 2},
		{Stream: b.Stream(), Types: []event.Type{event.CallStarted}, Subject: "s0"},
		{Stream: a.Stream(), After: 5, Limit: 3},
		{After: 7, Limit: 4},
		{After: 7, Types: []event.Type{event.CallFinished}, Limit: 3},
		{After: 32},
		{Stream: a.Stream(), After: 16},
		{Stream: a.Stream(), Limit: 1},
		{Limit: 1, Subject: "s2"},
		{Newest: true},
		{Newest: true, After: 9, Limit: 4},
		{Newest: true, After: 1},
		{Newest: true, Types: []event.Type{event.CallFinished}, Limit: 3},
		{Newest: true, Stream: a.Stream()},
		{Newest: true, Stream: b.Stream(), After: 9, Subject: "s1", Limit: 2},
		{Newest: true, Stream: a.Stream(), After: 1},
	} {
		w.Logf("%+v", q)
		w.same(picked(all, q), w.events(q))
	}
}

// picked is what q should find, in its order. all is oldest first.
func picked(all []event.Event, q event.Query) (es []event.Event) {
	if q.Newest {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	for _, e := range all {
		n := e.Pos
		if q.Stream != "" {
			n = e.StreamSeq
		}
		within := n > q.After
		if q.Newest {
			within = q.After == 0 || n < q.After
		}
		if (q.Stream == "" || e.Stream == q.Stream) && within && (q.Subject == "" || e.Subject == q.Subject) &&
			(len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && (q.Limit == 0 || len(es) < q.Limit) {
			es = append(es, e)
		}
	}
	return es
}

func eventLimits(w *world) {
	w.skipRace()
	c := w.insertCall(parkedCall())
	es := make([]event.Event, 1100)
	for i := range es {
		es[i] = note("x")
	}
	w.append(c.Stream(), es...)
	for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000, 1001: 1000} {
		for _, q := range []event.Query{{}, {Stream: c.Stream()}, {Stream: c.Stream(), Subject: "x"}, {Types: []event.Type{event.ResumeRefused}}} {
			q.Limit = limit
			if n := len(w.events(q)); n != want {
				w.Errorf("%+v: %d events, want %d", q, n, want)
			}
		}
	}
	w.same(1101, w.verify().Events)
}

// eventCursors: a cursor goes on exactly behind its event, and one that names no
// event here is refused.
func eventCursors(w *world) {
	a, b := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	for range 12 {
		w.append(a.Stream(), note("a"))
		w.append(b.Stream(), note("b"))
	}
	all := w.events(event.Query{})
	for _, stream := range []string{"", a.Stream(), b.Stream()} {
		w.same(picked(all, event.Query{Stream: stream}), w.pages(stream))
	}
	for name, c := range map[string]struct {
		stream string
		cursor event.Cursor
	}{
		"of another stream":   {a.Stream(), event.CursorOf(all[len(all)-1])},
		"of all streams":      {a.Stream(), event.PosCursorOf(all[4])},
		"of one stream":       {"", event.CursorOf(all[4])},
		"beyond the end":      {a.Stream(), beyond(event.CursorOf(all[4]))},
		"no cursor":           {a.Stream(), "x"},
		"another event there": {a.Stream(), event.CursorOf(event.Event{StreamSeq: 2, Hash: make([]byte, 32)})},
	} {
		if _, err := event.Read(w.ctx, w.s, c.stream, c.cursor, 5); !errors.Is(err, event.ErrCursor) {
			w.Errorf("a cursor %s: %v", name, err)
		}
	}
	if _, err := event.Read(w.ctx, w.s, "call:call_none", "", 5); !errors.Is(err, event.ErrNoStream) {
		w.Errorf("reading a stream that is not there: %v", err)
	}
	head := read(w, func(tx store.Tx) (event.Head, error) { return tx.Head(a.Stream()) })
	page, err := event.Read(w.ctx, w.s, a.Stream(), event.CursorAt(head), 5)
	if err != nil || len(page.Events) != 0 || page.Cursor != event.CursorAt(head) {
		w.Errorf("behind the end: %d events, cursor %q, %v", len(page.Events), page.Cursor, err)
	}
}

// beyond moves a cursor beyond the end.
func beyond(c event.Cursor) event.Cursor {
	_, hash, _ := strings.Cut(string(c), "-")
	return event.Cursor("s99-" + hash)
}

// pages reads a stream five at a time.
func (w *world) pages(stream string) (es []event.Event) {
	w.Helper()
	cursor := event.Cursor("")
	for {
		page, err := event.Read(w.ctx, w.s, stream, cursor, 5)
		if err != nil {
			w.Fatal(err)
		}
		if len(page.Events) == 0 {
			return es
		}
		if es, cursor = append(es, page.Events...), page.Cursor; len(es) > 10_000 {
			w.Fatal("the pages do not end")
		}
	}
}

func eventHeads(w *world) {
	var want []event.Head
	for range 7 {
		c := w.insertCall(parkedCall())
		e := w.append(c.Stream(), note("x"))[0]
		want = append(want, event.NextHead(e))
	}
	heads := func(after string, limit int) []event.Head {
		return read(w, func(tx store.Tx) ([]event.Head, error) { return tx.Heads(after, limit) })
	}
	w.same(want, heads("", 100))
	w.same(want[:3], heads("", 3))
	w.same(want[3:5], heads(want[2].Stream, 2))
	w.same(0, len(heads(want[6].Stream, 10)))
	r, err := event.Verify(w.ctx, w.s, want)
	if err != nil || r.Break != nil || r.Streams != 7 {
		w.Errorf("verify against the heads: %+v %v", r, err)
	}
	for _, h := range []event.Head{
		{Stream: want[0].Stream, Seq: 3, Hash: want[0].Hash}, {Stream: want[0].Stream, Seq: 2, Hash: want[1].Hash}, {Stream: "call:call_none", Seq: 1},
	} {
		if r, err := event.Verify(w.ctx, w.s, []event.Head{h}); err != nil || r.Break == nil {
			w.Errorf("verify does not miss %s: %v", h, err)
		}
	}
}

// eventMany appends to several streams in one closure, in turns.
func eventMany(w *world) {
	cs := []call.Call{w.insertCall(parkedCall()), w.insertCall(parkedCall()), w.insertCall(parkedCall())}
	var es []event.Event
	w.write(func(tx store.Tx) error {
		for _, c := range cs { // all locks before the clock
			if _, err := tx.Head(c.Stream()); err != nil {
				return err
			}
		}
		for i := range 30 {
			if err := tx.Append(cs[i%3].Stream(), note(fmt.Sprint(i))); err != nil {
				return err
			}
		}
		es = tx.Appended()
		return nil
	})
	w.numbered(es, w.events(event.Query{After: 3}))
	for i, c := range cs {
		got := w.events(event.Query{Stream: c.Stream(), After: 1})
		w.same(10, len(got))
		w.same(fmt.Sprint(i), got[0].Subject)
		w.same(event.NextHead(got[9]), w.call(c.ID).Head)
	}
	w.verify()
}

// eventInside: a closure sees what it appended itself.
func eventInside(w *world) {
	c := w.insertCall(parkedCall())
	w.write(func(tx store.Tx) error {
		for n := range 3 {
			if err := tx.Append(c.Stream(), note("x")); err != nil {
				return err
			}
			es, err := tx.Events(event.Query{Stream: c.Stream(), After: 1})
			if err != nil {
				return err
			}
			w.numbered(tx.Appended(), es)
			head, err := tx.Head(c.Stream())
			w.same(int64(n+2), head.Seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.same(4, w.verify().Events)
}

// eventRedact: a body can be emptied once, and the chain still holds.
func eventRedact(w *world) {
	c := w.insertCall(parkedCall())
	e := w.append(c.Stream(), note("secret"))[0]
	if err := event.Redact(w.ctx, w.s, c.Stream(), 2, "Ana", "it named a customer"); err != nil {
		w.Fatal(err)
	}
	want := e
	want.Redacted, want.Payload, want.Actor, want.Salt = true, nil, "", nil
	got := w.events(event.Query{Stream: c.Stream(), After: 1})
	w.numbered([]event.Event{want}, got[:1])
	w.same(event.EventRedacted, got[1].Type)
	r := w.verify()
	w.same([]int{3, 1}, []int{r.Events, r.Redacted})
	for _, seq := range []int64{2, 99, 0} {
		before := w.look()
		if err := event.Redact(w.ctx, w.s, c.Stream(), seq, "Ana", ""); !errors.Is(err, event.ErrNoEvent) {
			w.Errorf("redact event %d: %v", seq, err)
		}
		w.same(before, w.look())
	}
	if err := event.Redact(w.ctx, w.s, "call:call_none", 1, "Ana", ""); !errors.Is(err, event.ErrNoStream) {
		w.Errorf("redact in no stream: %v", err)
	}
}

// eventRedactAtOnce: also an event that the same closure appended.
func eventRedactAtOnce(w *world) {
	c := w.insertCall(parkedCall())
	w.write(func(tx store.Tx) error {
		if err := tx.Append(c.Stream(), note("secret")); err != nil {
			return err
		}
		done, err := tx.Redact(c.Stream(), 2)
		if err == nil && !done {
			err = errors.New("the event is not there yet")
		}
		return err
	})
	w.same(true, w.events(event.Query{Stream: c.Stream(), After: 1})[0].Redacted)
	w.verify()
}
