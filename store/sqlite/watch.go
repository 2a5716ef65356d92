package sqlite

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
)

const (
	versionSQL = `PRAGMA data_version`
	newRowsMax = 4096
	newRowsSQL = `
SELECT
	seq,
	stream
FROM event
WHERE seq > ?
ORDER BY seq
LIMIT 4097`
	lastRowSQL = `SELECT coalesce(max(seq), 0) FROM event`
)

// watcher wakes those who wait for news of a stream: at once for what this
// process commits, within 50 ms for what others do. It looks at one figure on
// one connection kept for it, and reads new rows once for all who wait. It
// rests while nobody does.
type watcher struct {
	e    *engine
	kick chan struct{} // somebody came, or there is news
	quit chan struct{}
	done chan struct{}

	wakes store.Wakes

	mu     sync.Mutex
	fresh  bool  // somebody came while nobody else watched
	cursor int64 // up to here everything has been told

	// Of the goroutine alone.
	c       *conn
	version int64
	epoch   int64
}

func newWatcher(e *engine) *watcher {
	return &watcher{e: e, kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// watch registers for news of the streams, of all if none is named.
func (w *watcher) watch(streams []string) (<-chan struct{}, func()) {
	woken, stop, alone := w.wakes.Watch(streams)
	if alone {
		w.mu.Lock()
		w.fresh = true
		w.mu.Unlock()
	}
	store.Hint(w.kick)
	return woken, stop
}

// committed tells of this process's own commit: events after from, up to to. If
// another process has written up to from, the cursor stays, and those rows are
// still read.
func (w *watcher) committed(from, to int64, streams []string) {
	if !w.wakes.Busy() {
		return
	}
	w.mu.Lock()
	if w.cursor == from {
		w.cursor = to
	}
	w.mu.Unlock()
	w.wakes.Wake(streams...)
}

// loop is the watcher's goroutine.
func (w *watcher) loop() {
	defer close(w.done)
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	for {
		tick := t.C
		if !w.wakes.Busy() {
			tick = nil
		}
		select {
		case <-w.quit:
			return
		case <-w.kick:
		case <-tick:
		}
		if w.wakes.Busy() {
			w.look()
			t.Reset(pollEvery)
		}
	}
}

// look finds out whether anything was committed, and by which streams. Where it
// cannot find out, all are woken: they look for themselves.
func (w *watcher) look() {
	if err := w.tryLook(); err != nil {
		w.e.o.Logger.Warn("looking for other processes' events failed", "path", w.e.path, "error", err)
		w.wakes.WakeAll()
	}
}

func (w *watcher) tryLook() error {
	changed, err := w.changed()
	if err != nil {
		return err
	}
	if w.tookFresh() {
		return w.start()
	}
	if !changed {
		return nil
	}
	return w.news()
}

// changed asks on a connection that does nothing else: the figure counts what
// other connections have committed since this one last asked.
func (w *watcher) changed() (bool, error) {
	if w.c == nil {
		c, err := w.e.readers.open()
		if err != nil {
			return false, err
		}
		w.c = c
	}
	var v int64
	err := w.c.query(context.Background(), versionSQL, nil, func(r sqlrows.Row) error { v = r.Int(0); return nil })
	changed := v != w.version
	w.version = v
	return changed, err
}

func (w *watcher) tookFresh() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = false
	return fresh
}

// start sets the cursor for those who came while nobody watched. What was
// committed between their coming and now would be passed over, hence the wake.
func (w *watcher) start() error {
	var last int64
	epoch, err := w.read(lastRowSQL, nil, func(r sqlrows.Row) error { last = r.Int(0); return nil })
	if err != nil {
		return err
	}
	w.epoch = epoch
	w.mu.Lock()
	w.cursor = last
	w.mu.Unlock()
	w.wakes.WakeAll()
	return nil
}

func (w *watcher) news() error {
	w.mu.Lock()
	from := w.cursor
	w.mu.Unlock()
	last, rows := from, 0
	streams := map[string]struct{}{}
	epoch, err := w.read(newRowsSQL, []any{from}, func(r sqlrows.Row) error {
		last = r.Int(0)
		rows++
		streams[r.Str(1)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	if epoch != w.epoch || rows > newRowsMax { // everything is new, or more than is worth reading
		return w.start()
	}
	w.mu.Lock()
	w.cursor = max(w.cursor, last)
	w.mu.Unlock()
	w.wakes.Wake(slices.Collect(maps.Keys(streams))...)
	w.wakes.WakeDeliveries()
	return nil
}

func (w *watcher) read(sql string, args []any, each func(sqlrows.Row) error) (epoch int64, err error) {
	err = w.e.readers.read(context.Background(), func(h *handle) error {
		epoch = h.Epoch()
		return h.Query(sql, args, each)
	})
	return epoch, err
}

func (w *watcher) stop() {
	close(w.quit)
	<-w.done
}

// close closes the connection of a watcher that has stopped.
func (w *watcher) close() error {
	if w.c == nil {
		return nil
	}
	return w.c.close()
}
