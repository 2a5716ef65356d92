package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// update is one call of Update: its closure, run as often as it takes.
type update struct {
	e     *engine
	fn    func(store.Rows) error
	write func(all bool) error

	conflicts, losses, dead int

	exact bool // a counter was near its limit
}

// run is Update. See [txn.Store].
func (e *engine) update(ctx context.Context, fn func(store.Rows) error, write func(all bool) error) error {
	if e.o.ReadOnly {
		return store.ErrReadOnly
	}
	if ctx.Err() != nil {
		return store.NotBegun(ctx)
	}
	if err := e.mayEnter(); err != nil {
		return err
	}
	leave, err := e.slot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	u := &update{e: e, fn: fn, write: write}
	for {
		c, err := e.take(ctx)
		if err != nil {
			return err
		}
		err = u.once(ctx, c)
		failed := errRetry{}
		if !errors.As(err, &failed) {
			return err
		}
		if !u.again(failed.error) {
			return told(failed.error)
		}
	}
}

// errRetry is what a transaction itself failed with. Nothing is left of it, and it may go
// better.
type errRetry struct{ error }

func (e errRetry) Unwrap() error { return e.error }

// once runs the closure in one transaction.
func (u *update) once(ctx context.Context, c *conn) (err error) {
	defer c.release()
	if u.e.o.Hooks.Twice {
		if err := u.attempt(ctx, c, true); errors.Is(err, errDead) {
			return err
		}
	}
	return u.attempt(ctx, c, false)
}

// attempt runs the closure, and keeps what it wrote unless undo says otherwise. A panic
// of the closure goes on to its caller.
func (u *update) attempt(ctx context.Context, c *conn, undo bool) (err error) {
	h := &handle{e: u.e, c: c, ctx: ctx, writes: true, exact: u.exact, began: time.Now(), floor: u.e.acknowledged()}
	returned := false
	defer func() {
		h.over = true
		if !returned {
			h.rollback()
		}
	}()
	err = u.closure(h)
	u.e.slow(h)
	switch {
	case err == nil && undo:
		h.rollback()
	case err == nil:
		err = h.commit()
	default:
		err = u.give(h, err)
		h.rollback()
	}
	returned = true
	return err
}

func (u *update) closure(h *handle) error {
	defer u.e.inside()()
	h.before = u.write
	err := u.fn(sqlrows.Of(h))
	h.before = nil
	if err == nil && u.write != nil {
		err = u.write(true)
	}
	if err == nil {
		err = h.writeAdds()
	}
	if err == nil && h.moved { // nothing is locked without the clock that belongs to it
		err = h.flush()
	}
	if err == nil {
		err = h.err
	}
	return err
}

// give is a closure's error as its caller is told it. What the transaction itself
// failed with counts for more: the closure may have gone on, or have said something
// else because of it.
func (u *update) give(h *handle, err error) error {
	if h.err == nil {
		return err
	}
	return errRetry{h.err}
}

// again reports whether a failed attempt is to be followed by another one: where
// others were quicker, where the server has forgotten a statement, and where a
// connection turned out to be gone before anything came of it.
func (u *update) again(err error) bool {
	lost := lostGuard{}
	switch {
	case isConflict(err):
		u.conflicts++
		return u.pause(u.conflicts, maxConflicts)
	case errors.Is(err, errNear) && !u.exact:
		u.exact = true
		u.e.near()
		return true
	case errors.As(err, &lost):
		u.losses++
		return u.pause(u.losses, maxLost)
	case isStale(err), errors.Is(err, errStaleConn):
		u.dead++
		return u.dead <= u.e.o.Conns
	}
	return false
}

func (u *update) pause(n, most int) bool {
	if n >= most {
		return false
	}
	time.Sleep(time.Duration(rand.Int64N(int64(n) * int64(retryPause))))
	return true
}

// commit sends what is still to be written and ends the transaction. Its outcome is known
// afterwards, or ErrUnknown.
func (h *handle) commit() error {
	if !h.wrote {
		h.rollback()
		return nil
	}
	var err error
	if h.guarded > 0 {
		err = h.c.send(request{sql: checkSQL}, []any{decimal(h.guarded)})
	}
	if err == nil {
		err = h.send(request{sql: commitSQL})
	}
	if err != nil { // the last moment at which nothing can have come of it
		h.rollback()
		return errRetry{err}
	}
	if lose := h.e.o.Hooks.LoseCommit; lose != nil && lose() {
		return h.loseAnswer()
	}
	h.c.warned = nil
	err = h.c.flush(h.e.updateLimit() + answerLimit)
	switch {
	case err != nil:
		return h.settle(err)
	case h.c.warned != nil: // it is committed here, and a standby that has to have it may not
		return txn.ErrUnknown.Because(h.c.warned)
	}
	h.e.committed(h)
	h.e.passed(h, h.c)
	return nil
}

// settle finds out what became of a COMMIT that was not answered with yes. Where a
// statement before it failed, or it was refused, it was not carried out.
func (h *handle) settle(err error) error {
	failed := &statementError{}
	switch refused := errors.As(err, &failed) && failed.sql != commitSQL && !errors.Is(err, errDead); {
	case errors.As(err, &lostGuard{}), refused, isConflict(err), errors.Is(err, errRolledBack), strings.HasPrefix(code(err), "23"):
		h.rollback()
		return errRetry{err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	switch h.e.statusOf(ctx, h.meta.xid, h.c.session) {
	case xactCommitted:
		h.e.committed(h)
		if c, err := h.e.where.dial(ctx); err == nil {
			h.e.passed(h, c)
			c.release()
		}
		return nil
	case xactAborted:
		return txn.ErrNotCommitted.Because(err)
	}
	return txn.ErrUnknown.Because(err)
}

// loseAnswer is for tests: COMMIT is sent, and nobody will ever know.
func (h *handle) loseAnswer() error {
	err := h.c.write(answerLimit)
	h.c.kill()
	return txn.ErrUnknown.Because(err)
}

// rollback leaves the connection free for the next one, or closed.
func (h *handle) rollback() {
	h.c.discard()
	if !h.heard || errors.Is(h.err, errDead) {
		return
	}
	h.err = nil
	h.before = nil
	if h.c.send(request{sql: rollbackSQL}, nil) != nil || h.c.flush(answerLimit) != nil {
		h.c.kill()
	}
}
