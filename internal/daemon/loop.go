package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// pulse is the sign of life of something that the daemon does again and again. What
// gives none for too long hangs, and the daemon is not ready.
type pulse struct {
	name  string
	every time.Duration // how long a turn takes where there is nothing to do
	now   func() time.Time
	came  atomic.Int64 // when it last came round or got on, in nanoseconds
	// before is called each time it comes round, before that is noted; of tests. Nil: nothing.
	before func(name string)
}

func newPulse(name string, every time.Duration, c Config) *pulse {
	p := &pulse{name: name, every: every, now: c.Now, before: c.before}
	p.came.Store(p.now().UnixNano())
	return p
}

// beat notes that it came round.
func (p *pulse) beat() {
	if p.before != nil {
		p.before(p.name)
	}
	p.getsOn()
}

// getsOn notes that there is much to do in one turn, and that it is being done.
func (p *pulse) getsOn() { p.came.Store(p.now().UnixNano()) }

// age is how long ago it came round.
func (p *pulse) age() time.Duration { return p.now().Sub(time.Unix(0, p.came.Load())) }

// patience is how much longer than usual a turn may take.
const patience = 30 * time.Second

// hangs says that it has not come round for too long; empty: it has.
func (p *pulse) hangs() string {
	age := p.age()
	if age <= p.every+patience {
		return ""
	}
	return fmt.Sprintf("the loop %s has not come round for %s", p.name, age.Round(time.Second))
}

// loop is something that the daemon does every so often, and when it is poked.
type loop struct {
	*pulse
	log  *slog.Logger
	fn   func(context.Context) error
	wake chan struct{}
}

func newLoop(name string, c Config, fn func(context.Context) error) *loop {
	return &loop{pulse: newPulse(name, c.Every, c), log: c.Log, fn: fn, wake: make(chan struct{}, 1)}
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
		l.beat()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.wake:
		}
	}
}
