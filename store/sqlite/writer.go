package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// writer commits what callers queue: one connection, one transaction at a time,
// as many closures in it as have come in by then. It never waits for more to
// come: while it commits, the next batch gathers by itself.
type writer struct {
	e     *engine
	c     *conn // nil: to be opened again
	lock  *lockFiles
	mark  *markFile
	seen  mark  // the last state that this process knows to be committed
	main  stamp // the database file as this batch found it
	queue queue
	done  chan struct{}

	batch *batch // under way
	alarm *time.Timer
	again []*call // owed another try, each alone

	life context.Context // ends the waits for locks, never a statement with work in it
	stop context.CancelFunc

	waitFrom   time.Time    // since when other processes keep us from writing
	running    atomic.Int64 // when the closure that has the batch began, for the log
	statements int

	// Bounds of a batch and of the log; variables so that tests can move them.
	maxWork   time.Duration
	maxLog    int64
	batches   int
	foldAfter time.Time
	cutAfter  int // batches; 0: the log is to be copied back first
}

func newWriter(e *engine, c *conn, lock *lockFiles, m *markFile, seen mark) *writer {
	w := &writer{
		e: e, c: c, lock: lock, mark: m, seen: seen,
		queue: queue{woken: make(chan struct{}, 1)},
		done:  make(chan struct{}),

		maxWork: batchWork,
		maxLog:  walLimit,
	}
	w.alarm = time.AfterFunc(e.o.Hooks.slow(), w.warn)
	w.life, w.stop = context.WithCancel(context.Background())
	w.alarm.Stop()
	w.opened()
	return w
}

// loop is the writer's goroutine. A closure can end it; another one goes on then
// where it was.
func (w *writer) loop() {
	over := false
	defer func() {
		if over {
			close(w.done)
		} else {
			go w.loop()
		}
	}()
	for w.batch != nil || len(w.again) > 0 || w.queue.await() {
		w.serve()
		if len(w.again) == 0 {
			w.fold()
		}
	}
	w.queue.refuse(store.ErrClosed)
	over = true
}

// close waits for the batch that has begun and refuses the rest.
func (w *writer) close() error {
	w.refuseNew()
	<-w.done
	defer w.lock.close()
	defer w.mark.close()
	if w.c == nil {
		return nil
	}
	return w.closeConn()
}

// closeConn folds the log first, for those who still have the store open. Whoever
// has the lock for longer has it open too, and then closing folds nothing.
func (w *writer) closeConn() error {
	if w.e.file.replaced() != nil || w.lock.lock(w.patience(foldTurn)) != nil {
		return w.c.close()
	}
	defer w.lock.unlock()
	return w.mark.closeFolding(w.c, w.e.path)
}

// refuseNew ends the waits of those that have not begun.
func (w *writer) refuseNew() {
	w.queue.close()
	w.stop()
}

// serve runs one batch: one of those who are owed another try, because their
// batch died under somebody else; else all who wait. Or it goes on with the one
// that is under way.
func (w *writer) serve() {
	if w.batch == nil && !w.beginNext() {
		return
	}
	b := w.batch
	w.alarm.Reset(w.e.o.Hooks.slow())
	for k := b.next(); k != nil; k = b.next() {
		b.turn(k)
	}
	b.err = w.end(b)
	w.lock.unlock()
	w.alarm.Stop()
	w.batch = nil
	w.answer(b)
}

// warn says that a closure keeps the batch: one that waits for another update
// waits for ever.
func (w *writer) warn() {
	began := time.Unix(0, w.running.Load())
	w.e.o.Logger.Warn("the store's only write transaction stays open", "path", w.e.path, "closure began", began)
	w.alarm.Reset(10 * w.e.o.Hooks.slow())
}

func (w *writer) beginNext() bool {
	var k *call
	if len(w.again) > 0 {
		k, w.again = w.again[0], w.again[1:]
	}
	b, err := w.begin(k)
	if err != nil {
		w.refuse(k, err)
		return false
	}
	b.only, b.alone = k, k != nil
	w.batch = b
	return true
}

// refuse answers those for whom no transaction could be begun.
func (w *writer) refuse(k *call, err error) {
	switch {
	case k != nil:
		k.news <- news{err: err}
	case errors.Is(err, txn.ErrBusy):
		w.expire(err)
		if w.queue.alive() {
			return // they go on waiting
		}
	case err != errNobody:
		w.queue.refuse(err)
	}
	w.waitFrom = time.Time{}
}

var errNobody = errors.New("nobody waits any more")

// begin opens a transaction under the lock files and judges the store. Those
// who wait have not begun, so all of it can be given up.
func (w *writer) begin(k *call) (*batch, error) {
	if w.waitFrom.IsZero() || k != nil {
		w.waitFrom = time.Now()
	}
	if err := w.lock.lock(func(n int) error { return w.pause(n, k) }); err != nil {
		return nil, err
	}
	b, err := w.beginLocked(w.until(k))
	if err != nil {
		w.lock.unlock()
		return nil, err
	}
	w.waitFrom = time.Time{}
	return b, nil
}

// until is when the first of those who wait has waited for long enough.
func (w *writer) until(k *call) time.Time {
	from := w.waitFrom
	if k == nil {
		from = later(from, w.queue.oldest())
	}
	return from.Add(w.e.o.BusyTimeout)
}

// pause is one wait for the lock files.
func (w *writer) pause(n int, k *call) error {
	switch {
	case w.life.Err() != nil:
		return store.ErrClosed
	case k != nil && time.Now().After(w.until(k)):
		return txn.ErrBusy.Because(errLocked)
	case k == nil:
		w.expire(errLocked)
		if !w.queue.alive() {
			return errNobody
		}
	}
	nap(n)
	return nil
}

var errLocked = errors.New("another process has the write lock")

// expire tells those whom the lock has kept for too long. A wait behind our own
// closures does not count.
func (w *writer) expire(cause error) {
	if t := time.Now().Add(-w.e.o.BusyTimeout); !w.waitFrom.After(t) {
		w.queue.expire(t, cause)
	}
}

// nap sleeps in the kernel: an idle Go program rounds short sleeps up to 1 ms.
func nap(n int) {
	d := time.Millisecond
	switch {
	case n < 50:
		d = 100 * time.Microsecond
	case n < 200:
		d = 500 * time.Microsecond
	}
	tv := unix.NsecToTimeval(int64(d))
	_, _ = unix.Select(0, nil, nil, nil, &tv) // woken early by a signal is as good
}

func (w *writer) beginLocked(until time.Time) (*batch, error) {
	var err error
	if w.main, err = w.e.file.look(); err != nil {
		return nil, err
	}
	if err := w.reopen(); err != nil {
		return nil, err
	}
	b := &batch{w: w, c: w.c}
	if err := w.beginSQL(until); err != nil {
		return nil, err
	}
	m, err := w.judge(b)
	if err != nil {
		b.rollback()
		return nil, err
	}
	b.meta, b.seq, b.since = m, m.nextSeq, time.Now()
	return b, nil
}

// beginSQL waits for SQLite's own lock, which other programs may hold without
// our lock files. Closing the store or the end of the wait ends it.
func (w *writer) beginSQL(until time.Time) error {
	if err := w.before(beginSQL); err != nil {
		return txn.ErrNotCommitted.Because(err)
	}
	ctx := w.life
	if ctx.Err() != nil {
		return store.ErrClosed
	}
	if contended := time.Since(w.waitFrom) > time.Millisecond; contended {
		// Some of the time is used up; without this, SQLite would wait for all of it again.
		// Who has just got the lock files may try at least.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, later(until, time.Now().Add(10*time.Millisecond)))
		defer cancel()
	}
	w.c.dead = false // from here on it means this transaction
	_, err := w.c.exec(ctx, beginSQL)
	switch {
	case err == nil:
		return nil
	case isBusy(err):
		return txn.ErrBusy.Because(err)
	case ctx.Err() == nil:
		w.discard(err) // we know nothing of what it left
		return txn.ErrNotCommitted.Because(err)
	}
	_, _ = w.c.exec(context.Background(), rollbackSQL) // an ended wait may have begun it all the same
	if w.life.Err() != nil {
		return store.ErrClosed
	}
	return txn.ErrBusy.Because(err)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// judge reads the store's row about itself and decides whether this process may
// write it: it is not newer than the program, and it did not go back in time.
func (w *writer) judge(b *batch) (meta, error) {
	if err := w.before(w.e.metaSQL); err != nil {
		return meta{}, txn.ErrNotCommitted.Because(err)
	}
	m, err := readMetaBy(context.Background(), w.c, w.e.metaSQL)
	if err != nil || w.c.dead {
		return m, b.notCommitted(err)
	}
	w.e.clock.saw(m.lastAt)
	if err := m.mayWrite(w.e.schema); err != nil {
		return m, err
	}
	if err := w.checkLife(m); err != nil {
		return m, err
	}
	return m, w.e.clock.mayFollow(w.e.path, m.lastAt)
}

// checkLife compares the store with what was acknowledged, by any process (the
// mark) and by this one.
func (w *writer) checkLife(m meta) error {
	k, ok, err := w.mark.read()
	if err != nil {
		return txn.ErrNotCommitted.Because(err)
	}
	if ok && k.changed(w.main) {
		if err := w.mark.spoil(k); err != nil {
			return txn.ErrNotCommitted.Because(err)
		}
		return tampered(w.e.path)
	}
	w.seen.main = k.main
	if why := w.fallsShort(m, k, ok); why != "" {
		return restored(w.e.path, why)
	}
	if !ok { // it was lost while we had the store open
		if err := w.mark.writeDurably(w.seen); err != nil {
			return txn.ErrNotCommitted.Because(err)
		}
	}
	if m.nextSeq-1 > w.seen.seq {
		store.Hint(w.e.watcher.kick)
	}
	w.seen = m.mark()
	w.seen.main = k.main
	return nil
}

// fallsShort says in what m falls short of the mark k and of what this process saw.
func (w *writer) fallsShort(m meta, k mark, marked bool) string {
	if marked {
		raised := m.epoch > w.seen.epoch // by our own command, if the mark agrees
		if why := m.wentBack(k, true); why != "" || raised {
			return why
		}
	}
	if w.seen.store == "" { // it had no mark when it was opened
		return m.wentBack(k, marked)
	}
	if why := m.wentBack(w.seen, true); why != "" {
		w.writeMark() // so that others see it too, and accept-restore finds it
		return why
	}
	if !marked && m.mark() != w.seen.life() { // somebody wrote since: we do not know how far they came
		return noMark
	}
	return ""
}

// end commits the batch, and the mark after it and before anyone is answered.
func (w *writer) end(b *batch) error {
	if err := b.commit(); err != nil {
		return err
	}
	if !b.wrote {
		return nil
	}
	w.seen.seq, w.seen.lastAt = b.seq-1, b.at
	w.writeMark()
	w.e.watcher.committed(b.meta.nextSeq-1, b.seq-1, b.touched)
	return nil
}

// writeMark may fail: what was committed is durable all the same, and only the
// notice of a later step back is lost.
func (w *writer) writeMark() {
	if err := w.mark.write(w.seen); err != nil {
		w.e.o.Logger.Error("the mark beside the database could not be written", "path", w.mark.path, "error", err)
	}
}

// answer tells every caller how the batch ended, except those to be run again.
func (w *writer) answer(b *batch) {
	for _, k := range b.calls {
		switch {
		case k.left:
		case b.again(k):
			w.again = append(w.again, k)
		default:
			k.news <- news{err: b.outcome(k)}
		}
	}
}

// again reports whether k is owed another try: the batch died under somebody
// else, before COMMIT was sent.
func (b *batch) again(k *call) bool {
	return b.err != nil && !b.sent && !b.alone && k != b.culprit
}

// outcome is what k is told. What a closure found in a transaction that was not
// committed may have been another's, so its own error is not handed on then.
func (b *batch) outcome(k *call) error {
	switch {
	case b.err == nil:
		return k.err
	case errors.Is(b.err, txn.ErrUnknown) && !k.wrote:
		return txn.ErrNotCommitted.Because(b.cause) // it wrote nothing, so that much is known
	case k == b.culprit && errors.Is(k.err, txn.ErrNotCommitted):
		return k.err
	}
	return b.err
}

func (w *writer) before(sql string) error {
	w.statements++
	if f := w.e.o.Hooks.BeforeStatement; f != nil {
		return f(w.statements, sql)
	}
	return nil
}

// discard gives up the connection; the next batch opens another. If it was the
// last, closing it folds the log: what is left of the file then is not known. The
// write lock is held.
func (w *writer) discard(why error) {
	w.e.o.Logger.Warn("the store's write connection is opened again", "path", w.e.path, "why", why)
	if k, ok, err := w.mark.read(); err == nil && ok && k.main != spoilt {
		if err := w.mark.folding(k); err != nil {
			w.e.o.Logger.Error("the mark beside the database could not be written", "path", w.mark.path, "error", err)
		}
		w.seen.main = stamp{}
	}
	if err := w.c.close(); err != nil {
		w.e.o.Logger.Warn("close the old connection", "path", w.e.path, "error", err)
	}
	w.c = nil
}

func (w *writer) reopen() error {
	if w.c != nil {
		return nil
	}
	c, err := openConn(dsn(w.e.path, forWriting, w.e.o.BusyTimeout))
	if err != nil {
		return txn.ErrNotCommitted.Because(fmt.Errorf("open %s: %w", w.e.path, err))
	}
	w.c = c
	w.opened()
	return nil
}

func (w *writer) opened() {
	if f := w.e.o.Hooks.Opened; f != nil {
		f(w.c.raw)
	}
}
