package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/store/sqlrows"
)

// xactStatus is what became of a transaction.
type xactStatus int

const (
	xactUnknown xactStatus = iota
	xactCommitted
	xactAborted
)

const statusSQL = `SELECT coalesce(pg_xact_status(?::text::xid8), '')`

// statusOf asks on a new connection what became of a transaction whose COMMIT was not
// answered. One that still runs is waited for, as long as ctx lasts: its server has not
// noticed yet that nobody is there. A server on another timeline may never have heard
// of it.
func (e *engine) statusOf(ctx context.Context, xid int64, was *session) xactStatus {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		if s, err := e.askStatus(ctx, xid, was); err == nil && s != xactUnknown || errors.Is(err, errElsewhere) {
			return s
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return xactUnknown
		}
	}
}

var errElsewhere = errors.New("the server is another one, or lives another life")

func (e *engine) askStatus(ctx context.Context, xid int64, was *session) (s xactStatus, err error) {
	c, err := e.where.dial(ctx)
	if err != nil {
		return xactUnknown, err
	}
	defer c.release()
	if c.place.system != was.place.system || c.place.timeline != was.place.timeline {
		return xactUnknown, errElsewhere
	}
	said := ""
	err = c.run(statusSQL, []any{decimal(xid)}, func(r sqlrows.Row) error { said = r.Str(0); return nil })
	if code(err) == invalidParameter {
		said, err = "future", nil
	}
	if err != nil {
		return xactUnknown, err
	}
	if s, err = judgeStatus(said, c.crash != was.crash); s == xactCommitted {
		return c.replicated(ctx, e.where)
	}
	return s, err
}

// replicated commits something later: where COMMIT has to wait for a standby, that has all
// that came before it then. A COMMIT whose connection was cut may have waited in vain.
func (c *conn) replicated(ctx context.Context, at place) (xactStatus, error) {
	end, _ := ctx.Deadline()
	c.warned = nil
	for _, sql := range []string{beginUpdateSQL, `UPDATE ` + quoted(at.schema) + `.meta SET id = id WHERE id = 1`, commitSQL} {
		if err := c.runFor(time.Until(end), sql, nil, nil); err != nil {
			return xactUnknown, errElsewhere
		}
	}
	if c.warned != nil {
		return xactUnknown, errElsewhere
	}
	return xactCommitted, nil
}

// judgeStatus says what the server's word means. A server that crashed has forgotten the
// numbers of transactions of which nothing had reached its disk, and gives them to others:
// so what is in the future never was committed, and what was committed may be another's.
func judgeStatus(said string, crashed bool) (xactStatus, error) {
	switch {
	case said == "committed" && crashed:
		return xactUnknown, errElsewhere
	case said == "committed":
		return xactCommitted, nil
	case said == "aborted", said == "future":
		return xactAborted, nil
	}
	return xactUnknown, nil
}

const (
	// Whoever began before a change of wake targets was committed has read the row
	// about the store, and holds a lock on its table until it ends.
	oldersSQL = `SELECT virtualtransaction FROM pg_locks WHERE relation = to_regclass(?) AND granted AND mode = 'AccessShareLock'
		AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	stillSQL = `SELECT 1 FROM pg_locks WHERE virtualtransaction = ANY (string_to_array(?, ' ')) AND relation = to_regclass(?) LIMIT 1`
)

// passed waits, after a target that hears of every stream was added or changed, for the
// transactions that began before: they do not know of it, and what they commit later
// would not reach it.
func (e *engine) passed(h *handle, c *conn) {
	if !h.toAll {
		return
	}
	end := time.Now().Add(e.o.BusyTimeout)
	olders := ""
	own := e.where.schema + ".meta"
	err := c.run(oldersSQL, []any{own}, func(r sqlrows.Row) error { olders += " " + r.Str(0); return nil })
	for still := olders != ""; still && err == nil && time.Now().Before(end); {
		still = false
		err = c.run(stillSQL, []any{olders[1:], own}, func(sqlrows.Row) error { still = true; return nil })
		if still {
			time.Sleep(retryPause)
		}
	}
	if err != nil {
		e.o.Logger.Warn("it is not known whether transactions that began before a wake target was changed have ended", "error", err)
	}
}
