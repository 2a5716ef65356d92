package event

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

const (
	hubPage  = 1000
	hubBatch = 8 * hubPage // more new events than this, and each stream is read for itself
	hubFew   = 16          // with so few streams each is read for itself
	hubRest  = time.Millisecond
	hubTries = 3

	// hubPatience is for a store that cannot be reached: longer than a server takes to start.
	hubPatience = 30 * time.Second
)

// hub hands new events of one store to those who wait for them in this process. It
// watches once and reads once for all of them; whoever comes reads what is stored
// already, and then costs nothing but its entry here.
type hub struct {
	s       txn.Store
	started sync.Once
	err     error // why it could not start

	mu    sync.Mutex
	feeds map[string]*feed // by stream; "" is all of them
	users int              // guarded by hubs
	quit  chan struct{}
	at    int64 // position up to which it has read; its goroutine's alone
	epoch int64 // the life of the store that it has read in; its goroutine's alone
}

// feed is a stream that somebody waits for.
type feed struct {
	n       int64  // number of the last event handed out; 0: none yet
	cursor  Cursor // behind it
	waiters map[*waiter]struct{}
	skipped int // times that it was not read, since nobody waited yet
	users   int
}

// waiter is one wait that has read what was stored.
type waiter struct {
	Waiting
	n     int64 // number up to which it has read for itself
	timer *time.Timer
	done  func(Waited, error)
	over  bool
}

// hubs are those that somebody waits at, by their store.
var hubs = struct {
	sync.Mutex
	of map[txn.Store]*hub
}{of: map[txn.Store]*hub{}}

// join finds the store's hub. Each join needs a leave.
func join(s txn.Store) (*hub, error) {
	hubs.Lock()
	var h *hub
	if reflect.ValueOf(s).Comparable() {
		h = hubs.of[s]
	}
	if h == nil {
		h = &hub{s: s, feeds: map[string]*feed{}, quit: make(chan struct{})}
		if reflect.ValueOf(s).Comparable() {
			hubs.of[s] = h
		}
	}
	h.users++
	hubs.Unlock()
	h.started.Do(h.start)
	if h.err != nil {
		h.leave()
		return nil, h.err
	}
	return h, nil
}

func (h *hub) leave() {
	hubs.Lock()
	defer hubs.Unlock()
	h.users--
	if h.users > 0 {
		return
	}
	if reflect.ValueOf(h.s).Comparable() && hubs.of[h.s] == h {
		delete(hubs.of, h.s)
	}
	close(h.quit)
}

// start watches first, then notes where the log ends: what comes later is handed out,
// what is there already each waiter reads for itself.
func (h *hub) start() {
	woken, stop := h.s.Watch()
	if h.err = h.end(&h.at); h.err != nil {
		stop()
		return
	}
	go h.loop(woken, stop)
}

func (h *hub) end(to *int64) error {
	return h.view(func(tx Tx) (err error) {
		*to, err = tx.LastPos()
		return err
	})
}

// errAnotherLife: what was handed out is of an earlier life of the store.
var errAnotherLife = txn.ErrRestored.Say("The store went back in time while this waited.").
	Hint("Read again what you wait for, and wait without a cursor.")

// view reads, as long as the store's life is the one that was read in before.
func (h *hub) view(fn func(Tx) error) error {
	return txn.View(context.Background(), h.s, func(tx Tx) error {
		now := tx.Epoch()
		if h.epoch != 0 && h.epoch != now {
			return errAnotherLife
		}
		h.epoch = now
		return fn(tx)
	})
}

// begin begins anew in another life of the store: places in the streams of the earlier
// one say nothing here, so whoever has one is told.
func (h *hub) begin() error {
	h.fail(errAnotherLife)
	h.epoch = 0
	h.mu.Lock()
	for _, f := range h.feeds {
		f.n, f.cursor, f.skipped = 0, "", f.skipped+1
	}
	h.mu.Unlock()
	return h.end(&h.at)
}

func (h *hub) loop(woken <-chan struct{}, stop func()) {
	defer stop()
	for {
		select {
		case <-h.quit:
			return
		case <-woken:
		}
		found, err := h.passAgain()
		if err != nil {
			h.fail(err)
		}
		if !found { // others write, and nobody here waits for it: do not look after each commit
			time.Sleep(hubRest)
		}
	}
}

// passAgain is pass, tried again where it fails: a few times, and for a while where the
// store cannot be reached, as when its server starts anew. Whoever waits keeps waiting.
func (h *hub) passAgain() (found bool, err error) {
	found, err = h.pass()
	for n, rest, end := 1, hubRest, time.Now().Add(hubPatience); err != nil; n, rest = n+1, min(2*rest, time.Second) {
		if n >= hubTries && (!outOfReach(err) || time.Now().After(end)) {
			return found, err
		}
		if errors.Is(err, errAnotherLife) {
			err = h.begin()
			continue
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-h.quit:
			timer.Stop()
			return found, nil
		}
		found, err = h.pass()
	}
	return found, nil
}

func outOfReach(err error) bool {
	return fault.From(err).Code == fault.Unavailable && !errors.Is(err, txn.ErrClosed)
}

// pass hands out what is new. It reports whether anybody waited for any of it.
func (h *hub) pass() (found bool, err error) {
	few, all := h.shape()
	if few {
		return h.jump()
	}
	for read := 0; ; {
		es, err := h.read(Query{After: h.at, Limit: hubPage})
		if err != nil {
			return found, err
		}
		if len(es) == 0 {
			more, err := h.checkEnd()
			return found || more, err
		}
		h.at = es[len(es)-1].Pos
		found = h.deal(es) || found
		if read += len(es); read >= hubBatch && !all {
			more, err := h.jump()
			return found || more, err
		}
	}
}

// shape reports whether so few streams are waited for that each is read for itself,
// and whether somebody waits for all.
func (h *hub) shape() (few, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, all = h.feeds[""]
	return !all && len(h.feeds) <= hubFew, all
}

// jump goes to the end of the log and reads each stream that is waited for. The
// streams are listed after the end was read: who comes later sees what lies before it.
func (h *hub) jump() (found bool, err error) {
	if err := h.end(&h.at); err != nil {
		return false, err
	}
	h.mu.Lock()
	streams := slices.Collect(maps.Keys(h.feeds))
	h.mu.Unlock()
	for _, name := range streams {
		more, err := h.each(name)
		found = found || more
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// checkEnd notices a log that is shorter than what was read of it: the store went back
// in time, and every stream is looked at for itself.
func (h *hub) checkEnd() (found bool, err error) {
	now := int64(0)
	if err := h.end(&now); err != nil || now >= h.at {
		return false, err
	}
	return h.jump()
}

func (h *hub) read(q Query) (es []Event, err error) {
	err = h.view(func(tx Tx) error {
		es, err = tx.Events(q)
		return err
	})
	return es, err
}

// each reads one stream from where it was handed out.
func (h *hub) each(stream string) (found bool, err error) {
	for {
		after, ok := h.place(stream)
		if !ok {
			return found, nil
		}
		es, err := h.read(Query{Stream: stream, After: after, Limit: hubPage})
		if err != nil || len(es) == 0 {
			return found, err
		}
		for _, e := range es {
			n := e.StreamSeq
			if stream == "" {
				n = e.Pos
			}
			found = h.one(stream, n, e) || found
		}
	}
}

// place is up to where every waiter of the stream has seen it.
func (h *hub) place(name string) (n int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[name]
	if f == nil {
		return 0, false
	}
	if len(f.waiters) == 0 {
		f.skipped++ // who is about to wait reads once more
		return 0, false
	}
	if f.n > 0 {
		return f.n, true
	}
	n = -1
	for w := range f.waiters {
		if n < 0 || w.n < n {
			n = w.n
		}
	}
	return n, true
}

// deal hands events to the waiters of their streams.
func (h *hub) deal(es []Event) (found bool) {
	for _, e := range es {
		found = h.one(e.Stream, e.StreamSeq, e) || found
		found = h.one("", e.Pos, e) || found
	}
	return found
}

func (h *hub) one(stream string, n int64, e Event) bool {
	waiting, at, waited := h.whoWaits(stream, n, &e)
	for _, w := range waiting {
		ends, err := w.ends(&e)
		if !ends || !h.takeOut(stream, w) {
			continue
		}
		if err != nil {
			h.finish(w, Waited{Cursor: w.After}, err)
			continue
		}
		h.finish(w, Waited{Outcome: Matched, Event: e, Cursor: at}, nil)
	}
	return waited
}

// whoWaits notes that the stream has come to e, and lists who has not seen it.
func (h *hub) whoWaits(stream string, n int64, e *Event) (ws []*waiter, at Cursor, waited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[stream]
	if f == nil || n <= f.n {
		return nil, "", f != nil
	}
	f.n, f.cursor = n, cursorIn(stream, e)
	for w := range f.waiters {
		if n > w.n {
			ws = append(ws, w)
		}
	}
	return ws, f.cursor, true
}

// ends reports whether the wait ends with e. What is asked is the waiter's own: it runs
// without the hub's lock, and a panic of it ends that wait alone.
func (w *waiter) ends(e *Event) (ends bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			ends, err = true, fault.New(fault.Internal, "What was waited for could not be compared with an event: %v.", p)
		}
	}()
	return w.matches(e), nil
}

// takeOut is false where somebody else ended the wait meanwhile.
func (h *hub) takeOut(stream string, w *waiter) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.over {
		return false
	}
	w.over = true
	delete(h.feeds[stream].waiters, w)
	return true
}

// fail tells everybody that the store cannot be read. Who is about to wait reads once
// more, and finds out as well.
func (h *hub) fail(err error) {
	h.mu.Lock()
	var all []*waiter
	for _, f := range h.feeds {
		f.skipped++
		for w := range f.waiters {
			w.over = true
			delete(f.waiters, w)
			all = append(all, w)
		}
	}
	h.mu.Unlock()
	for _, w := range all {
		h.finish(w, Waited{Cursor: w.After}, err)
	}
}

// enter makes the stream's feed before its waiter reads, so that nothing is handed out
// in between without being noticed.
func (h *hub) enter(stream string) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[stream]
	if f == nil {
		f = &feed{waiters: map[*waiter]struct{}{}}
		h.feeds[stream] = f
	}
	f.users++
	return f
}

func (h *hub) skipped(f *feed) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f.skipped
}

// settle makes w wait, unless more than it has read was handed out, or passed over,
// since it began to read.
func (h *hub) settle(f *feed, w *waiter, skipped int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.n > w.n || f.skipped != skipped {
		return false
	}
	f.waiters[w] = struct{}{}
	if w.Timeout > 0 {
		w.timer = time.AfterFunc(w.Timeout, func() { h.expire(f, w) })
	}
	return true
}

func (h *hub) expire(f *feed, w *waiter) {
	if at, mine := h.withdraw(f, w); mine {
		h.finish(w, Waited{Outcome: TimedOut, Cursor: at}, nil)
	}
}

// withdraw takes w out and says up to where it has seen its stream; mine is false
// where somebody else ended it.
func (h *hub) withdraw(f *feed, w *waiter) (at Cursor, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.over {
		return "", false
	}
	w.over = true
	delete(f.waiters, w)
	if f.n > w.n {
		return f.cursor, true
	}
	return w.After, true
}

// finish answers a waiter that was taken out.
func (h *hub) finish(w *waiter, got Waited, err error) {
	h.exit(w.Stream)
	if w.timer != nil {
		w.timer.Stop()
	}
	w.done(got, err)
}

// exit is the end of an enter.
func (h *hub) exit(stream string) {
	h.mu.Lock()
	if f := h.feeds[stream]; f != nil {
		if f.users--; f.users == 0 {
			delete(h.feeds, stream)
		}
	}
	h.mu.Unlock()
	h.leave()
}

// stop takes a waiter out that nobody listens to any more.
func (h *hub) stop(f *feed, w *waiter) (at Cursor, stopped bool) {
	at, stopped = h.withdraw(f, w)
	if stopped {
		if w.timer != nil {
			w.timer.Stop()
		}
		h.exit(w.Stream)
	}
	return at, stopped
}
