package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// handle is one closure's use of a connection. It is void once the closure has
// returned.
type handle struct {
	c    *conn
	meta meta
	now  time.Time

	began time.Time
	over  bool

	// Of a closure that writes.
	b        *batch
	wrote    bool
	touched  []string
	before   func(all bool) error // what the closure holds back is written before a statement of its own
	saved    bool                 // there is a savepoint to go back to
	seq      int64                // the event number at the savepoint
	returned bool                 // the closure has
	adds     []add                // to counters
	held     bool                 // the batch has noted adds

	// Of a closure that reads.
	ctx  context.Context
	ends time.Time
}

// Now is the store's clock, read after the lock was held and frozen for this
// closure. UTC, whole microseconds, never earlier than a commit this process saw.
func (h *handle) Now() time.Time { return h.now }

// StoreID is the store's id.
func (h *handle) StoreID() string { return h.meta.store }

// epoch is which life of the store this is.
func (h *handle) Epoch() int64 { return h.meta.epoch }

// restored says when the store last went back in time and to what moment; zero
// times if it never did.
func (h *handle) restored() (at, to time.Time) { return h.meta.restoredAt, h.meta.restoredTo }

// writable reports whether exec works.
func (h *handle) writable() bool { return h.b != nil }

// exec runs one writing statement and says how many rows it changed. sql is a
// constant: it is prepared once for each connection.
func (h *handle) Exec(sql string, args ...any) (changed int64, err error) {
	if err := h.ready(); err != nil {
		return 0, err
	}
	if h.b == nil {
		return 0, fmt.Errorf("%s: a view cannot write", brief(sql))
	}
	if err := h.writeFirst(true); err != nil {
		return 0, err
	}
	n, err := h.b.exec(sql, args...)
	if err := h.settle(sql, err); err != nil {
		return 0, err
	}
	h.wrote = h.wrote || n > 0
	return n, nil
}

// writeFirst writes what the closure has held back so far, and sees to it that
// what it writes itself can be taken back.
func (h *handle) writeFirst(saves bool) error {
	if write := h.before; write != nil {
		h.before = nil // its statements are not the closure's own
		err := write(false)
		h.before = write
		if err != nil {
			return err
		}
	}
	if saves {
		return h.save()
	}
	return nil
}

// save makes sure that what is written from now on can be taken back.
func (h *handle) save() error {
	if h.saved || h.returned {
		return nil
	}
	if _, err := h.b.exec(savepointSQL); err != nil {
		h.b.kill(nil, err)
		return h.b.dead()
	}
	h.saved, h.seq = true, h.b.seq
	return nil
}

// query runs sql and calls each for every row; each may use the handle.
func (h *handle) Query(sql string, args []any, each func(r sqlrows.Row) error) error {
	if err := h.ready(); err != nil {
		return err
	}
	var own error // of each: the caller's, to be handed back as it is
	rows := 0
	if h.b != nil {
		if err := h.writeFirst(!reads(sql)); err != nil {
			return err
		}
	}
	err := h.run(sql, args, func(r sqlrows.Row) error {
		rows++
		if own = each(r); own == nil && h.b == nil && rows%256 == 0 {
			own = h.ready()
		}
		return own
	})
	h.wrote = h.wrote || h.b != nil && rows > 0 && !reads(sql)
	if own != nil {
		return own
	}
	return h.settle(sql, err)
}

// queryRow runs sql and calls scan for its first row; found is false if it has none.
func (h *handle) queryRow(sql string, args []any, scan func(r sqlrows.Row) error) (found bool, err error) {
	err = h.Query(sql, args, func(r sqlrows.Row) error {
		if found {
			return nil
		}
		found = true
		return scan(r)
	})
	return found, err
}

// nextSeq draws the next event number. Numbers are dense: those of a closure
// that is rolled back are drawn again.
func (h *handle) nextSeq() (int64, error) {
	if err := h.ready(); err != nil {
		return 0, err
	}
	if h.b == nil {
		return 0, fmt.Errorf("a view cannot draw an event number")
	}
	if err := h.writeFirst(true); err != nil {
		return 0, err
	}
	h.b.seq++
	h.wrote = true
	return h.b.seq - 1, nil
}

// touch wakes those who watch stream, if and when the closure is committed.
func (h *handle) Touch(stream string) { h.touched = append(h.touched, stream) }

func (h *handle) run(sql string, args []any, each func(sqlrows.Row) error) error {
	if h.b != nil {
		return h.b.query(sql, args, each)
	}
	return h.c.query(context.Background(), sql, args, each)
}

// ready refuses a statement that must not run.
func (h *handle) ready() error {
	switch {
	case h.over:
		return store.ErrOver
	case h.b != nil:
		return h.b.dead()
	case h.ctx.Err() != nil:
		return store.NotBegun(h.ctx)
	case time.Now().After(h.ends):
		return store.ErrLong
	}
	return nil
}

// settle turns a statement's error into what its caller is told. A transaction
// that ended under the statement is said first: nothing in it will last.
func (h *handle) settle(sql string, err error) error {
	if err != nil {
		err = &statementError{sql, err}
	}
	if h.b != nil && h.b.dead() != nil {
		h.b.blame(nil, err)
		return h.b.dead()
	}
	switch {
	case err == nil:
		return nil
	case isBusy(err):
		return txn.ErrBusy.Because(err)
	case isStore(err) && h.b != nil:
		return txn.ErrNotCommitted.Because(err)
	case isStore(err):
		return store.ErrUnreadable.Because(err)
	}
	return err
}
