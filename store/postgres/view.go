package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/store"
)

// view runs fn in one read transaction of at most a second, on one picture of the store.
func (e *engine) view(ctx context.Context, fn func(*handle) error) error {
	if ctx.Err() != nil {
		return store.NotBegun(ctx)
	}
	if err := e.mayEnter(); err != nil {
		return err
	}
	arranged := false
	for stale := 0; ; {
		h, err := e.viewOnce(ctx, fn, arranged)
		switch {
		case h != nil && h.unordered:
			if err := e.arrange(ctx); err != nil && !onlyRead(err) {
				return err
			}
			arranged = true // or those without a place are for others to see
		case h != nil && (errors.Is(h.err, errStaleConn) || isStale(err)) && stale <= e.o.Conns:
			stale++
		default:
			return err
		}
	}
}

func (e *engine) viewOnce(ctx context.Context, fn func(*handle) error, arranged bool) (*handle, error) {
	c, err := e.take(ctx)
	if err != nil {
		return nil, err
	}
	defer c.release()
	h := &handle{e: e, c: c, ctx: ctx, arranged: arranged}
	returned := false
	defer func() {
		h.over = true
		if !returned {
			h.rollback()
		}
	}()
	run := func() error {
		h.began = time.Now()
		defer e.inside()()
		err := fn(h)
		e.slow(h)
		return err
	}
	if e.o.Hooks.Twice {
		_ = run() // what it said the first time does not count
		if h.err == nil && !h.unordered {
			h.frozen = false
		}
	}
	if h.err == nil && !h.unordered {
		err = run()
	}
	if h.err != nil { // it counts for more: the closure may have said something else because of it
		err = toldReader(h.err)
	}
	h.over = true
	h.rollback()
	returned = true
	return h, err
}
