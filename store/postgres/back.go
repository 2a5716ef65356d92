package postgres

import (
	"context"
	"errors"
)

// acked is the highest number of a transaction that callers of this process were told of,
// in one life of the store. A server counts on from there, also after a crash: where a
// later transaction has a lower number, or a lower epoch, its disk was put back, although it
// is the same server on the same timeline.
type acked struct{ epoch, xid int64 }

func (a acked) above(m *meta) bool {
	return a.epoch > m.epoch || a.epoch == m.epoch && a.xid >= m.xid
}

func (e *engine) acknowledge(h *handle) {
	now := &acked{h.meta.epoch, h.meta.xid}
	for {
		was := e.acked.Load()
		if was != nil && (was.epoch > now.epoch || was.epoch == now.epoch && was.xid >= now.xid) {
			return
		}
		if e.acked.CompareAndSwap(was, now) {
			return
		}
	}
}

func (e *engine) acknowledged() acked {
	if a := e.acked.Load(); a != nil {
		return *a
	}
	return acked{}
}

// putBack stands as the timeline of a store whose numbers went back: no server has it.
const putBack = -1

// markBack has every process refuse the store, until it is accepted as it is: its numbers
// will be higher again some day, and others have not seen them.
func (e *engine) markBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	back := restored(numbersBack)
	c, err := e.where.dial(ctx)
	if err != nil {
		return back.Because(err)
	}
	defer c.release()
	if err := inSchema(c, e.where, beginUpdateSQL); err != nil {
		return back.Because(err)
	}
	err = c.run(`UPDATE meta SET timeline = ? WHERE id = 1`, []any{int64(putBack)}, nil)
	if err = errors.Join(err, c.run(commitSQL, nil, nil)); err != nil {
		return back.Because(err)
	}
	return back
}
