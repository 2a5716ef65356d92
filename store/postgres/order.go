package postgres

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

const (
	lockOrderSQL = `SELECT pg_advisory_xact_lock(hashtextextended(store_id || '/order', 0)) FROM meta WHERE id = 1`
	// The numbers of one stream's events rise, and so do those of any two of which one
	// was committed before the other began. A writer that is slow gets a later place, and
	// is not stepped over.
	orderSQL = `WITH new AS (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM (SELECT seq FROM event WHERE pos IS NULL ORDER BY seq LIMIT 5000) AS e),
		done AS (UPDATE event SET pos = event_order.last + new.n FROM new, event_order WHERE event.seq = new.seq RETURNING event.pos)
		SELECT count(*), max(pos) FROM done`
	keepOrderSQL   = `UPDATE event_order SET last = ?`
	orderedAtATime = 5000
)

// arrange gives all events that are committed by now a place in the public order: one
// process at a time, after their commit, and only while somebody reads by that order.
func (e *engine) arrange(ctx context.Context) error {
	e.order.Lock()
	defer e.order.Unlock()
	u := update{e: e}
	for more := true; more; {
		var err error
		if more, err = e.arrangeSome(ctx); err != nil && !u.again(err) {
			if errors.Is(err, txn.ErrUnknown) { // who reads wrote nothing that could be
				return store.ErrUnreadable
			}
			return told(err)
		}
		more = more || err != nil
	}
	return nil
}

func (e *engine) arrangeSome(ctx context.Context) (more bool, err error) {
	c, err := e.take(ctx)
	if err != nil {
		return false, err
	}
	defer c.release()
	h := &handle{e: e, c: c, writes: true}
	var n, last int64
	err = h.Lock(nil, lockOrderSQL)
	if err == nil {
		err = h.Query(orderSQL, nil, func(r sqlrows.Row) error { n, last = r.Int(0), r.Int(1); return nil })
	}
	if err == nil && n > 0 {
		err = h.push(request{sql: keepOrderSQL}, []any{last})
	}
	if err == nil {
		err = h.flush()
	}
	if err != nil {
		h.rollback()
		return false, err
	}
	return n == orderedAtATime, h.commit()
}
