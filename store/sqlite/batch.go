package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// batch is one transaction that several closures share. The writer begins it; it
// is passed from caller to caller, each running its own closure; the last one
// commits it, and the writer answers the others. Whoever has it owns the
// connection.
type batch struct {
	w     *writer
	c     *conn
	meta  meta // as it stood at BEGIN
	since time.Time
	now   time.Time // as of the end of the last closure
	alone bool      // for one closure that is run again
	calls []*call

	// What the closures leave behind.
	seq     int64 // the event number to be drawn next
	at      int64 // the latest Now of a closure that wrote
	wrote   bool
	touched []string

	err     error // how it ended
	over    bool  // rolled back by us
	sent    bool  // COMMIT was sent
	culprit *call // whose statement it died under; nil: the writer's own
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

func (b *batch) query(sql string, args []any, each func(row) error) error {
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

// turn runs k's closure on its caller's goroutine and hands the batch on,
// whatever becomes of the closure: a panic or a Goexit stays its caller's.
func (b *batch) turn(k *call) {
	returned := false
	defer func() {
		if !returned {
			k.left = true
			b.undo(k)
		}
		b.handOn(k)
	}()
	if !b.alone && k.ctx.Err() != nil {
		k.left, k.err = true, notBegun(k.ctx)
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
	k.err, k.wrote, k.seq = nil, false, b.seq
	if _, err := b.exec(savepointSQL); err != nil {
		b.kill(k, err)
		return
	}
	h := b.handle()
	defer func() { h.over = true }()
	k.err = k.fn(h)
	h.over = true
	b.now = time.Now()
	b.w.e.slow(h, b.now)
	switch {
	case b.dead() != nil:
		b.blame(k, k.err)
	case k.err != nil || undo:
		b.undo(k)
	default:
		b.keep(k, h)
	}
}

// handle is made after the lock is held; so is its time.
func (b *batch) handle() *handle {
	now, began := b.w.e.clock.read()
	h := &handle{c: b.c, b: b, meta: b.meta, now: time.UnixMicro(now).UTC(), began: began}
	b.w.running.Store(h.began.UnixNano())
	return h
}

// keep makes what k's closure wrote part of the batch.
func (b *batch) keep(k *call, h *handle) {
	if _, err := b.exec(releaseSQL); err != nil {
		b.kill(k, err)
		return
	}
	k.wrote = h.wrote
	b.touched = append(b.touched, h.touched...)
	if h.wrote {
		b.wrote = true
		b.at = max(b.at, h.now.UnixMicro())
	}
}

// undo takes back what k's closure wrote and the numbers it drew.
func (b *batch) undo(k *call) {
	if b.dead() != nil {
		b.blame(k, k.err)
		return
	}
	for _, sql := range []string{undoSQL, releaseSQL} {
		if _, err := b.exec(sql); err != nil {
			b.kill(k, err)
			return
		}
	}
	b.seq = k.seq
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

// handOn gives the batch to the next caller in the queue. Whoever finds none
// commits, on the goroutine that it is on: k's, or the writer's if k is nil.
// Then the writer goes on.
func (b *batch) handOn(k *call) {
	if next := b.next(); next != nil {
		next.news <- news{batch: b}
		return
	}
	b.err = b.w.end(b)
	if k != nil && !k.left && !b.again(k) {
		k.err, k.left = b.outcome(k), true // it need not be woken to hear of it
	}
	b.w.baton <- struct{}{}
}

func (b *batch) next() *call {
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
