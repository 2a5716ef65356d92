package postgres

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// engine is one process's use of one store: a few connections that are all alike, one
// that listens, and a watcher.
type engine struct {
	where  place
	o      Options
	schema int64 // the newest this program knows
	pool   *pgxpool.Pool
	clock  clock
	strict store.Strict
	hears  atomic.Pointer[hearing]

	nearUntil atomic.Int64 // until when counters are counted one after the other, in nanoseconds

	news    *news
	watcher *watcher
	acked   atomic.Pointer[acked]
	order   sync.Mutex // of whoever gives events their order

	slots chan struct{} // one for each transaction that writes

	ctx  context.Context // ends when the store is closed
	quit func()
	once sync.Once
}

var _ store.Backend = (*engine)(nil)

// Update is [txn.Store]'s.
func (e *engine) Update(ctx context.Context, fn func(store.Rows) error, write func(all bool) error) error {
	return e.update(ctx, fn, write)
}

// View is [txn.Store]'s.
func (e *engine) View(ctx context.Context, fn func(store.Rows) error) error {
	return e.view(ctx, func(h *handle) error { return fn(sqlrows.Of(h)) })
}

// Watch is [txn.Store]'s.
func (e *engine) Watch(streams ...string) (<-chan struct{}, func()) { return e.watcher.watch(streams) }

// take is a connection for one transaction.
func (e *engine) take(ctx context.Context) (*conn, error) {
	select {
	case <-e.ctx.Done(): // first: where both are ready, a select takes either
		return nil, store.ErrClosed
	default:
	}
	wait, cancel := context.WithTimeoutCause(ctx, e.o.BusyTimeout+answerLimit, errNoneFree)
	defer cancel()
	held, err := e.pool.Acquire(wait)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, store.NotBegun(ctx)
	case e.isClosed():
		return nil, store.ErrClosed
	case errors.Is(context.Cause(wait), errNoneFree):
		return nil, txn.ErrBusy.Because(errors.Join(errNoneFree, err))
	default:
		return nil, unreachable(e.where, err)
	}
	c := connOf(held.Conn())
	c.held = held
	c.tidy()
	return c, nil
}

// slot is room for one transaction that writes: they leave connections for those that
// read, however many wait for rows that others have locked.
func (e *engine) slot(ctx context.Context) (leave func(), err error) {
	leave = func() { <-e.slots }
	select {
	case e.slots <- struct{}{}:
		return leave, nil
	default:
	}
	patience := time.NewTimer(e.o.BusyTimeout)
	defer patience.Stop()
	select {
	case e.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, store.NotBegun(ctx)
	case <-e.ctx.Done():
		return nil, store.ErrClosed
	case <-patience.C:
		return nil, txn.ErrBusy.Because(errNoneFree)
	}
}

// kept are the connections that those who write leave to those who read.
const kept = 2

var errNoneFree = errors.New("all connections to PostgreSQL stayed in use")

// connKey is where a connection keeps what is known of it.
const connKey = "placet"

func connOf(raw *pgx.Conn) *conn {
	pg := raw.PgConn()
	return pg.CustomData()[connKey].(*conn)
}

func (e *engine) isClosed() bool { return e.ctx.Err() != nil }

// updateLimit bounds one statement that writes.
func (e *engine) updateLimit() time.Duration {
	if e.o.Hooks.UpdateLimit > 0 {
		return e.o.Hooks.UpdateLimit
	}
	return updateLimit
}

// settings are what a session is told, or a transaction behind a pooler.
func (e *engine) settings(c *conn) []any {
	return []any{e.where.searchPath(), millis(e.o.BusyTimeout), millis(e.updateLimit()), millis(idleLimit), c.durable()}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

// admit refuses a transaction that the store as it is now does not allow.
func (e *engine) admit(h *handle) error {
	if !h.writes {
		return h.meta.mayRead(e.schema)
	}
	if err := h.meta.mayWrite(e.schema); err != nil {
		return err
	}
	if h.place.timeline == 0 { // a standby took over since this connection was made
		h.c.broken = true
		return errStaleConn
	}
	if h.floor.above(&h.meta) {
		return e.markBack()
	}
	return h.meta.mayGoOn(h.place)
}

// mayEnter refuses an update or a view called inside a closure, in tests only.
func (e *engine) mayEnter() error {
	if !e.o.Hooks.Strict {
		return nil
	}
	return e.strict.Enter()
}

// inside marks this goroutine as being in a closure until the returned function is called.
func (e *engine) inside() func() {
	if !e.o.Hooks.Strict {
		return func() {}
	}
	return e.strict.Inside()
}

// slow reports a closure that kept its locks for too long.
func (e *engine) slow(h *handle) {
	if took := time.Since(h.began); took > slowClosure {
		e.o.Logger.Warn("a closure kept its locks for long", "store", e.where.String(), "took", took, "writes", h.writes)
	}
}

// committed tells those who wait, here and elsewhere.
func (e *engine) committed(h *handle) {
	e.acknowledge(h)
	if len(h.touched) == 0 {
		return
	}
	e.watcher.wakes.Wake(h.touched...)
	if !e.o.Hooks.Quiet {
		e.news.tell(h.touched)
	}
}

// close waits for what is in flight. Later updates are not committed.
func (e *engine) Close() error {
	e.once.Do(func() {
		e.news.stop() // first: it tells what was committed last
		e.quit()
		e.watcher.stop()
		e.pool.Close()            // waits for those in use
		e.watcher.wakes.WakeAll() // only now: who waits reads once more, and has to find the store closed
	})
	return nil
}
