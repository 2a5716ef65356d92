package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// handle is one closure's use of a connection. It is void once the closure has
// returned.
//
// Nothing is sent before an answer is needed: BEGIN, the row about the store, locks
// and the first question go together, and so do the writes.
type handle struct {
	e      *engine
	c      *conn
	writes bool
	began  time.Time
	over   bool
	err    error // the transaction cannot be committed any more

	meta     meta
	place    identity
	floor    acked // what was acknowledged before it began
	known    bool  // meta is
	begun    bool  // BEGIN was sent, or is queued
	heard    bool  // the server has answered in this transaction
	now      int64 // microseconds; 0: not read yet
	moved    bool  // locks were taken since
	lateLock bool  // one of them once somebody was told what time it is
	latest   int64 // after the last lock
	frozen   bool  // somebody was told what time it is

	// Of a closure that writes.
	before   func(all bool) error // what the closure holds back is written before a statement of its own
	wrote    bool
	guarded  int64 // writes that have to change a row each
	adds     []add
	exact    bool                 // what it counts it counts alone
	rooms    map[counterKey]int64 // up to where the sum of a counter may be for this transaction to add to it
	touched  []string
	retarget bool     // wake targets change
	toAll    bool     // and some of them hear of every stream
	locked   []string // ids
	owners   int      // in tests
	run      bool     // in tests: one is locked

	ctx context.Context // of the caller: until something is written, or for all of a view

	// Of a closure that reads.
	arranged  bool // events have been given their order before it began
	unordered bool // some wait for it
}

var _ sqlrows.Conn = (*handle)(nil)

func (h *handle) Dialect() *sqlrows.Dialect {
	if h.writes {
		return &updateDialect
	}
	return &viewDialect
}

// errStaleConn: the connection was gone before the transaction began.
var errStaleConn = errors.New("the connection had been closed meanwhile")

const (
	beginUpdateSQL = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	beginViewSQL   = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	commitSQL      = `COMMIT`
	rollbackSQL    = `ROLLBACK`
	// poolerSQL tells a transaction what a session is told once where no pooler is between.
	poolerSQL = `SELECT set_config('search_path', ?, true), set_config('lock_timeout', ?, true),
		set_config('statement_timeout', ?, true), set_config('idle_in_transaction_session_timeout', ?, true), set_config('synchronous_commit', ?, true)`
)

// begin queues what opens the transaction.
func (h *handle) begin() error {
	if h.begun {
		return nil
	}
	h.begun = true
	first, own := beginViewSQL, viewMetaSQL
	if h.writes {
		first, own = beginUpdateSQL, beginMetaSQL
	}
	if err := h.send(request{sql: first}); err != nil {
		return err
	}
	if h.c.pooled {
		if err := h.send(request{sql: poolerSQL}, h.e.settings(h.c)...); err != nil {
			return err
		}
	}
	h.place = h.c.place
	if h.c.pooled && h.writes { // which connects again, to another server too, without a word
		if err := h.send(request{sql: whereSQL, each: func(r sqlrows.Row) error {
			h.place.system, h.place.timeline = r.Str(0), r.Int(1)
			return nil
		}}); err != nil {
			return err
		}
	}
	return h.send(request{sql: own, each: func(r sqlrows.Row) error {
		h.meta.scan(r, h.writes)
		h.known, h.now = true, h.meta.clock
		return nil
	}})
}

// send queues a statement. In tests something may happen to it.
func (h *handle) send(r request, args ...any) error {
	if h.err != nil {
		return h.err
	}
	if strike := h.e.o.Hooks.BeforeStatement; strike != nil && h.writes {
		if err := strike(r.sql, h.c.kill); err != nil {
			return h.fail(err)
		}
	}
	if err := h.c.send(r, args); err != nil {
		return h.fail(err)
	}
	return nil
}

// fail notes that the transaction is of no use any more.
func (h *handle) fail(err error) error {
	if h.err == nil {
		h.err = err
	}
	return h.err
}

// flush sends what is queued and reads the answers. Nothing is written before it is
// known that it may be.
func (h *handle) flush() error {
	if h.err != nil || len(h.c.queue) == 0 {
		return h.err
	}
	knew := h.known
	if err := h.exchange(); err != nil {
		if !errors.Is(err, errDead) {
			h.heard = true
		} else if !h.heard && !errors.Is(err, os.ErrDeadlineExceeded) { // on a silent network the next one is no better
			err = errors.Join(errStaleConn, err)
		}
		return h.fail(err)
	}
	h.heard = true
	if knew {
		return nil
	}
	if !h.known {
		return h.fail(errNoMeta)
	}
	if err := h.e.admit(h); err != nil {
		return h.fail(err)
	}
	return nil
}

// exchange sends and reads. While nothing is written the wait for a lock ends with the
// caller's context, and with the store.
func (h *handle) exchange() error {
	if !h.moved {
		return h.c.flush(h.patience())
	}
	h.moved = false
	if err := h.send(request{sql: afterLockSQL, each: h.afterLock}); err != nil {
		return err
	}
	if h.wrote || h.ctx == nil {
		return h.c.flush(h.patience())
	}
	if h.ctx.Err() != nil {
		h.c.discard()
		return store.NotBegun(h.ctx)
	}
	calm := h.c.cancelWith(h.ctx, h.e.ctx)
	err := h.c.flush(h.patience())
	if calm() {
		return err
	}
	h.c.broken = true // the cancellation may come late, and meet the next statement
	if h.e.isClosed() {
		return store.ErrClosed
	}
	return store.NotBegun(h.ctx)
}

// afterLock takes what may have moved while a lock was waited for: the time, and the
// wake targets of what is locked now.
func (h *handle) afterLock(r sqlrows.Row) error {
	h.latest = r.(*row).clock(0)
	if !h.frozen {
		h.now = h.latest
	}
	h.meta.targets = r.Int(1)
	return nil
}

func (h *handle) patience() time.Duration {
	if h.writes {
		return h.e.updateLimit() + answerLimit
	}
	return viewLimit + answerLimit
}

// open sees to it that the transaction has begun and is known to be allowed.
func (h *handle) open() error {
	if h.known {
		return nil
	}
	if err := h.begin(); err != nil {
		return err
	}
	return h.flush()
}

// ready refuses a statement that must not run.
func (h *handle) ready() error {
	switch {
	case h.over:
		return store.ErrOver
	case h.err != nil:
		return h.told(h.err)
	case h.writes:
		return nil
	case h.ctx.Err() != nil:
		return store.NotBegun(h.ctx)
	case time.Since(h.began) > viewLimit:
		return store.ErrLong
	}
	return nil
}

func (h *handle) told(err error) error {
	if h.writes {
		return told(err)
	}
	return toldReader(err)
}

// Now is the store's clock, read after the locks that were taken and frozen for this
// closure. UTC, whole microseconds, never earlier than a commit this process saw.
func (h *handle) Now() time.Time {
	if !h.frozen {
		if err := h.open(); err == nil && h.moved {
			_ = h.flush() // an error stays, and is the next statement's
		}
		h.now = h.e.clock.at(h.now)
		h.frozen = true
	}
	return time.UnixMicro(h.now).UTC()
}

// Latest is Now, or when the last lock was taken.
func (h *handle) Latest() time.Time {
	now := h.Now()
	if h.moved {
		_ = h.flush() // an error stays, and is the next statement's
	}
	if !h.lateLock {
		return now
	}
	h.latest = h.e.clock.at(h.latest)
	return time.UnixMicro(max(h.now, h.latest)).UTC()
}

// Epoch is which life of the store this is; 0 if the store cannot be reached, of which
// the next statement tells.
func (h *handle) Epoch() int64 {
	_ = h.open()
	return h.meta.epoch
}

// StoreID is the store's id; empty where Epoch is 0.
func (h *handle) StoreID() string {
	_ = h.open()
	return h.meta.store
}

// RestoredTo is the moment to which the store last went back in time; zero if it never did.
func (h *handle) RestoredTo() time.Time {
	_ = h.open()
	return h.meta.restoredTo
}

// Touch wakes those who watch stream, if and when the closure is committed.
func (h *handle) Touch(stream string) { h.touched = append(h.touched, stream) }

// writeFirst writes what the closure has held back so far.
func (h *handle) writeFirst() error {
	write := h.before
	if write == nil {
		return nil
	}
	h.before = nil // its statements are not the closure's own
	err := write(false)
	h.before = write
	return err
}

// Query runs sql and calls each for every row.
func (h *handle) Query(sql string, args []any, each func(r sqlrows.Row) error) error {
	if err := h.ready(); err != nil {
		return err
	}
	if err := h.writeFirst(); err != nil {
		return err
	}
	if err := h.begin(); err != nil {
		return h.told(err)
	}
	if h.wrote && !h.known {
		if err := h.flush(); err != nil {
			return h.told(err)
		}
	}
	if h.writes && (strings.HasSuffix(sql, updateDialect.Locking) || strings.HasSuffix(sql, updateDialect.Claiming)) {
		h.lockAhead(sql, args)
	}
	var own error
	err := h.send(request{sql: sql, each: func(r sqlrows.Row) error {
		if own == nil {
			own = each(r)
		}
		return nil
	}}, args...)
	if err == nil {
		err = h.flush()
	}
	if err != nil {
		return h.told(err)
	}
	if h.writes && !reads(sql) {
		h.wrote = true
	}
	return own
}

// reads reports whether sql only looks.
func reads(sql string) bool {
	return strings.HasPrefix(sql, "SELECT") || strings.HasPrefix(sql, "WITH")
}

// Exec runs one writing statement and says how many rows it changed.
func (h *handle) Exec(sql string, args ...any) (changed int64, err error) {
	if err := h.push(request{sql: sql, count: &changed}, args); err != nil {
		return 0, err
	}
	if err := h.flush(); err != nil {
		return 0, h.told(err)
	}
	return changed, nil
}

// Write sends w later.
func (h *handle) Write(w sqlrows.Write) error {
	args := w.Args
	if id, ok := first(args); ok && strings.HasPrefix(w.SQL, "INSERT") {
		h.locked = append(h.locked, id) // what is new is nobody else's
	}
	w.Args = nil // they are bound now, and its owner may use them again
	return h.push(request{sql: w.SQL, write: &w}, args)
}

// push queues a statement that writes.
func (h *handle) push(r request, args []any) error {
	if err := h.ready(); err != nil {
		return err
	}
	if !h.writes {
		return fmt.Errorf("%s: a view cannot write", brief(r.sql))
	}
	if err := h.writeFirst(); err != nil {
		return err
	}
	if err := h.open(); err != nil {
		return h.told(err)
	}
	if err := h.send(r, args...); err != nil {
		return h.told(err)
	}
	h.wrote = true
	if r.write != nil && r.write.Lost != nil {
		h.guarded++
	}
	return nil
}

// Lock locks what sql finds, and has the clock read anew.
func (h *handle) Lock(each func(sqlrows.Row) error, sql string, args ...any) error {
	if !h.writes {
		return nil
	}
	if err := h.ready(); err != nil {
		return err
	}
	if err := h.begin(); err != nil {
		return h.told(err)
	}
	h.lockAhead(sql, args)
	return h.send(request{sql: sql, each: each}, args...)
}

// first is the first argument, if that is a text.
func first(args []any) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	s, ok := args[0].(string)
	return s, ok
}

// lockAhead has the clock read after the lock that comes next. What is locked already is
// none.
func (h *handle) lockAhead(sql string, args []any) {
	if id, ok := first(args); ok && strings.Contains(sql, ` WHERE id = ?`) {
		if slices.Contains(h.locked, id) {
			return
		}
		h.locked = append(h.locked, id)
	}
	h.moved, h.lateLock = true, h.lateLock || h.frozen
	if late := h.e.o.Hooks.LateLock; late != nil {
		h.lookLate(late, sql)
	}
}

// lookLate is for tests: no root may be locked once somebody was told what time it is
// (design §4, rule 8), but for the one that a decision was locked by.
func (h *handle) lookLate(late func(sql string), sql string) {
	h.run = h.run || strings.Contains(sql, "FROM run ")
	switch {
	case sql == lockNameSQL, strings.Contains(sql, "FROM delivery"), strings.HasPrefix(sql, "SELECT head_seq"):
	case strings.Contains(sql, "THEN owner_id"):
		h.owners++ // its name is not known here: it is the next one
	case !h.frozen:
	case h.run && strings.Contains(sql, "FROM call"): // it hangs below the run
	case h.owners > 0:
		h.owners = 0
	default:
		late(sql)
	}
}

const lockNameSQL = `SELECT pg_advisory_xact_lock(?)`

// LockName locks a name within this store: two names of one hash only wait more.
func (h *handle) LockName(name string) error {
	if !h.writes {
		return nil
	}
	if err := h.open(); err != nil {
		return h.told(err)
	}
	return h.Lock(nil, lockNameSQL, h.nameKey(name))
}

// nameKey is a name of this store as a number that can be locked.
func (h *handle) nameKey(name string) int64 {
	sum := sha256.Sum256([]byte(h.meta.store + "\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Number has nothing to do: the database draws numbers as the events are written.
func (h *handle) Number([]event.Event) error { return nil }

const unorderedSQL = `SELECT 1 FROM event WHERE pos IS NULL LIMIT 1`

// errUnordered ends a view that is begun anew once events have their order.
var errUnordered = txn.ErrNotCommitted.Say("New events have not got their order yet.")

// Arrange ends a view in which events show that have no place in the public order yet;
// they are given one, and it begins again.
func (h *handle) Arrange() error {
	if h.writes || h.arranged {
		return nil
	}
	if err := h.Query(unorderedSQL, nil, func(sqlrows.Row) error { h.unordered = true; return nil }); err != nil {
		return err
	}
	h.arranged = true
	if h.unordered {
		return errUnordered
	}
	return nil
}

const targetsChangedSQL = `UPDATE meta SET targets = targets + 1 WHERE id = 1`

// hearing is what is remembered of wake targets, as of one value of meta.targets in one
// life of the store.
type hearing struct {
	targets, epoch int64
	*sqlrows.Hearing
}

func (h *handle) Hearing(read func() (*sqlrows.Hearing, error)) (*sqlrows.Hearing, error) {
	if err := h.open(); err != nil {
		return nil, h.told(err)
	}
	kept := &h.e.hears
	if k := kept.Load(); !h.retarget && k != nil && k.targets == h.meta.targets && k.epoch == h.meta.epoch {
		return k.Hearing, nil
	}
	now, err := read()
	if err == nil && !h.retarget {
		kept.Store(&hearing{h.meta.targets, h.meta.epoch, now})
	}
	return now, err
}

// TargetsMove is noted before the change: this transaction asks anew from now on.
func (h *handle) TargetsMove(stream string) error {
	h.retarget, h.toAll = true, h.toAll || stream == ""
	return h.Write(sqlrows.Write{SQL: targetsChangedSQL})
}
