package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/store"
)

// engine is one process's use of one database file: one writer that groups
// commits, a few readers, one watcher.
type engine struct {
	path   string
	o      Options
	schema int64 // the newest this program knows
	file   dbFile
	clock  clock

	writer  *writer // nil when opened for reading only
	readers *readers
	gate    gate
	watcher *watcher
	strict  store.Strict

	metaSQL string // by which the writer reads the store's row about itself
	hears   atomic.Pointer[hearing]

	once  sync.Once // for close
	ended error
}

// openEngine opens the database at path, creates it if need be, and brings its
// schema up to the newest of migrations. It returns once the store can be used.
func openEngine(ctx context.Context, path string, o Options, migrations fs.FS) (*engine, error) {
	if ctx.Err() != nil {
		return nil, store.NotBegun(ctx)
	}
	steps, err := migrate.Load(migrations)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	p, err := prepare(ctx, path, o.withDefaults(), steps)
	if err != nil {
		return nil, err
	}
	e := &engine{path: p.path, o: p.o, schema: int64(len(steps)), file: p.file, clock: clock{wall: p.o.Now}, metaSQL: p.metaSQL}
	e.clock.saw(p.meta.lastAt)
	e.readers = newReaders(e)
	e.watcher = newWatcher(e)
	if !o.ReadOnly {
		e.writer = newWriter(e, p.conn, p.lock, p.mark, p.seen)
		go e.writer.loop()
	}
	go e.watcher.loop()
	return e, nil
}

// update runs fn in a write transaction that others may share, and returns once
// that is durable. See [txn.Store].
func (e *engine) update(ctx context.Context, fn func(*handle) error) error {
	return e.run(&call{ctx: ctx, fn: fn})
}

// run is update for a closure that may hold back what it writes.
func (e *engine) run(k *call) error {
	if e.writer == nil {
		return store.ErrReadOnly
	}
	if k.ctx.Err() != nil {
		return store.NotBegun(k.ctx)
	}
	if err := e.mayEnter(); err != nil {
		return err
	}
	k.since, k.news = time.Now(), make(chan news, 1)
	if !e.writer.queue.push(k) {
		return store.ErrClosed
	}
	return k.outcome()
}

// view runs fn in one read transaction of at most a second.
func (e *engine) view(ctx context.Context, fn func(*handle) error) error {
	if ctx.Err() != nil {
		return store.NotBegun(ctx)
	}
	if err := e.mayEnter(); err != nil {
		return err
	}
	return e.readers.read(ctx, fn)
}

// watch registers for news of the named streams, of all if none is named.
func (e *engine) watch(streams ...string) (<-chan struct{}, func()) {
	return e.watcher.watch(streams)
}

// close waits for what is in flight and leaves the database in one file if no
// other process has it open. Later updates are not committed.
func (e *engine) close() error {
	e.once.Do(func() { e.ended = e.shutdown() })
	return e.ended
}

func (e *engine) shutdown() error {
	if e.writer != nil {
		e.writer.refuseNew()
	}
	e.watcher.stop()
	err := e.readers.close()
	e.watcher.wakes.WakeAll() // only now: who waits reads once more, and has to find the store closed
	err = errors.Join(err, e.watcher.close())
	if e.writer != nil {
		err = errors.Join(err, e.writer.close()) // last: SQLite's last connection folds the log back
	}
	return err
}

// slow reports a closure that kept the store for too long by now.
func (e *engine) slow(h *handle, now time.Time) {
	took := now.Sub(h.began)
	if took <= e.o.Hooks.slow() {
		return
	}
	if e.o.Hooks.SlowPanics {
		panic(fmt.Sprintf("store/sqlite: a closure took %v; nothing slow belongs inside Update or View", took))
	}
	e.o.Logger.Warn("a closure kept the store for long", "path", e.path, "took", took, "writes", h.writable())
}
