package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

const (
	beginSQL     = `BEGIN IMMEDIATE`
	savepointSQL = `SAVEPOINT closure`
	undoSQL      = `ROLLBACK TO closure`
	releaseSQL   = `RELEASE closure`
	commitSQL    = `COMMIT`
	rollbackSQL  = `ROLLBACK`
)

// batch is one transaction that several closures share, run one after the other
// by the writer.
type batch struct {
	w     *writer
	c     *conn
	meta  meta // as it stood at BEGIN
	since time.Time
	now   time.Time // as of the end of the last closure
	alone bool      // for one closure that is run again
	only  *call     // that closure, until it is its turn
	calls []*call

	// What the closures leave behind.
	seq     int64 // the event number to be drawn next
	at      int64 // the latest Now of a closure that wrote
	wrote   bool
	touched []string
	counters

	targetsMoved bool // a closure changed wake targets: what is kept of them is not asked

	err     error // how it ended
	over    bool  // rolled back by us
	sent    bool  // COMMIT was sent
	culprit *call // whose statement it died under; nil: the writer's own, or anybody's
	cause   error // why it died
}

// dead is not nil once the transaction is gone, with everything that was in it.
func (b *batch) dead() error {
	if b.over || b.c.dead {
		return b.notCommitted(b.cause)
	}
	return nil
}

func (b *batch) notCommitted(cause error) error {
	if cause == nil {
		cause = errors.New("the transaction was rolled back")
	}
	if errors.Is(cause, txn.ErrNotCommitted) {
		return cause
	}
	return txn.ErrNotCommitted.Because(cause)
}

// exec runs one statement of the transaction, unless that is gone.
func (b *batch) exec(sql string, args ...any) (int64, error) {
	if err := b.may(sql); err != nil {
		return 0, err
	}
	return b.c.exec(context.Background(), sql, args...)
}

func (b *batch) query(sql string, args []any, each func(sqlrows.Row) error) error {
	if err := b.may(sql); err != nil {
		return err
	}
	return b.c.query(context.Background(), sql, args, each)
}

// may looks at the mark on both sides of the hook, which can end the
// transaction too.
func (b *batch) may(sql string) error {
	if err := b.dead(); err != nil {
		return err
	}
	if err := b.w.before(sql); err != nil {
		return err
	}
	return b.dead()
}

// turn runs k's closure and sends a panic of its, or a Goexit, on to its caller,
// who goes on with it at once. A Goexit then ends this goroutine too.
func (b *batch) turn(k *call) {
	defer b.w.e.inside()()
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p != nil {
			b.w.e.o.Logger.Error("a closure panicked", "panic", p, "stack", string(debug.Stack()))
		}
		k.left = true
		b.undo(k)
		k.news <- news{left: true, panic: p}
	}()
	if !b.alone && k.ctx.Err() != nil {
		k.left = true
		k.news <- news{err: store.NotBegun(k.ctx)}
	} else {
		b.runTwice(k)
	}
	returned = true
}

// runTwice runs the closure; in tests of the store it undoes it and runs it again.
func (b *batch) runTwice(k *call) {
	if b.w.e.o.Hooks.Twice {
		b.run(k, true)
		if b.dead() != nil {
			return
		}
	}
	b.run(k, false)
}

func (b *batch) run(k *call, undo bool) {
	h := b.handle()
	k.err, k.wrote, k.h = nil, false, h
	if k.write == nil || b.alone || undo {
		if k.err = h.save(); k.err != nil {
			return
		}
		h.began = time.Now() // a savepoint's time is not the closure's
	}
	defer func() { h.over = true }()
	h.before = k.write
	k.err = k.fn(h)
	b.now = time.Now()
	b.w.e.slow(h, b.now)
	if k.err == nil {
		k.err = b.writeRest(k)
	}
	h.over = true
	switch {
	case b.dead() != nil:
		b.blame(k, k.err)
	case k.err != nil || undo:
		b.undo(k)
	default:
		b.keep(k)
	}
}

// writeRest writes what k's closure held back. Where it wrote nothing before,
// that needs no savepoint: if the first of it fails there is nothing to take back,
// and there is hardly a reason for which another would.
func (b *batch) writeRest(k *call) error {
	h := k.h
	h.before, h.returned = nil, true
	if k.write != nil {
		if err := k.write(true); err != nil {
			return err
		}
	}
	if h.saved {
		return h.writeAdds()
	}
	b.hold(h)
	return nil
}

// handle is made after the lock is held; so is its time.
func (b *batch) handle() *handle {
	now, began := b.w.e.clock.read()
	h := &handle{c: b.c, b: b, meta: b.meta, now: time.UnixMicro(now).UTC(), began: began}
	b.w.running.Store(h.began.UnixNano())
	return h
}

// keep makes what k's closure wrote part of the batch.
func (b *batch) keep(k *call) {
	h := k.h
	if h.saved {
		if _, err := b.exec(releaseSQL); err != nil {
			b.kill(k, err)
			return
		}
	}
	k.wrote = h.wrote || len(h.adds) > 0
	b.touched = append(b.touched, h.touched...)
	if k.wrote {
		b.wrote = true
		b.at = max(b.at, h.now.UnixMicro())
	}
}

// undo takes back what k's closure wrote and the numbers it drew. Without a
// savepoint all has to be taken back: each closure is run again by itself then.
func (b *batch) undo(k *call) {
	h := k.h
	b.forget(h)
	switch {
	case b.dead() != nil:
		b.blame(k, k.err)
		return
	case !h.saved && h.wrote:
		b.kill(nil, k.err)
		return
	case !h.saved:
		return
	}
	for _, sql := range []string{undoSQL, releaseSQL} {
		if _, err := b.exec(sql); err != nil {
			b.kill(k, err)
			return
		}
	}
	b.seq = h.seq
}

// kill ends a transaction of which it can no longer be told what is in it. k is
// the closure that was at it; nil for a statement of the writer's own.
func (b *batch) kill(k *call, err error) {
	b.blame(k, err)
	b.rollback()
}

// blame notes, the first time, under whom and of what the transaction died.
func (b *batch) blame(k *call, err error) {
	if b.culprit == nil {
		b.culprit = k
	}
	if b.cause == nil {
		b.cause = err
	}
}

// rollback ends the transaction and reports whether SQLite said so. If it did
// not, the connection is given up: closing it takes back what it had open.
func (b *batch) rollback() bool {
	b.over = true
	if b.c.dead {
		return true
	}
	err := b.w.before(rollbackSQL)
	if err == nil && !b.c.dead {
		_, err = b.c.exec(context.Background(), rollbackSQL)
	}
	if !b.c.dead {
		b.w.discard(fmt.Errorf("roll back: %w", err))
	}
	return b.c.dead
}

// next begins the closure whose turn it is; nil where the batch is to end.
func (b *batch) next() *call {
	if k := b.only; k != nil {
		b.only, b.calls = nil, []*call{k}
		return k
	}
	if b.alone || len(b.calls) >= batchCalls || b.dead() != nil || b.now.Sub(b.since) > b.w.maxWork {
		return nil
	}
	k := b.w.queue.next()
	if k != nil {
		b.calls = append(b.calls, k)
	}
	return k
}

// commit ends the batch. Its error is nil once everything is durable,
// txn.ErrUnknown if that cannot be told; else nothing was written.
func (b *batch) commit() error {
	if err := b.dead(); err != nil {
		return err
	}
	if b.wrote {
		if err := b.writeCounters(); err != nil || b.dead() != nil {
			b.kill(nil, err)
			return b.dead()
		}
		b.at = max(b.at, b.meta.lastAt)
		if _, err := b.exec(writeMetaSQL, b.seq, b.at); err != nil || b.dead() != nil {
			b.kill(nil, err)
			return b.dead()
		}
	}
	if err := b.may(commitSQL); err != nil {
		b.kill(nil, err)
		return b.dead()
	}
	b.sent = true
	if _, err := b.c.exec(context.Background(), commitSQL); err != nil {
		return b.failedCommit(err)
	}
	return nil
}

// failedCommit finds out what a failed COMMIT left behind.
func (b *batch) failedCommit(err error) error {
	b.blame(nil, err)
	if sure := b.rollback(); sure && isCertain(err) || !b.wrote {
		return b.notCommitted(err)
	}
	return txn.ErrUnknown.Because(err)
}
