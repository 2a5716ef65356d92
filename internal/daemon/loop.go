package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// loop is something that the daemon does again and again. One that hangs makes the
// daemon not ready.
type loop struct {
	name  string
	every time.Duration
	log   *slog.Logger
	fn    func(context.Context) error
	wake  chan struct{}
	came  atomic.Int64 // when it last came round, in nanoseconds
	now   func() time.Time
}

func newLoop(name string, every time.Duration, log *slog.Logger, fn func(context.Context) error) *loop {
	l := &loop{name: name, every: every, log: log, fn: fn, wake: make(chan struct{}, 1), now: time.Now}
	l.came.Store(l.now().UnixNano())
	return l
}

// poke makes the loop come round at once.
func (l *loop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loop) run(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		if err := l.fn(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("a pass failed; it is tried again", "loop", l.name, "error", err)
		}
		l.came.Store(l.now().UnixNano())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.wake:
		}
	}
}

// patience is how much longer than usual a pass may take.
const patience = 30 * time.Second

// hangs says that the loop has not come round for too long; nil: it has.
func (l *loop) hangs() error {
	since := l.now().Sub(time.Unix(0, l.came.Load()))
	if since <= l.every+patience {
		return nil
	}
	return fmt.Errorf("the loop %s has not come round for %s", l.name, since.Round(time.Second))
}
