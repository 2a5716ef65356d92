package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/placet-dev/placet/store"
)

// gate lets reads through. The log can only be cut back in a moment without a
// read, and overlapping reads leave none: then it grew by 1.3 GiB in 20 s. So
// the writer shuts the gate now and then for the few milliseconds it needs.
type gate struct {
	mu     sync.Mutex
	inside int
	opened chan struct{} // nil while the gate is open
	empty  chan struct{} // closed by the last read to leave a shut gate
}

// enter waits for an open gate.
func (g *gate) enter(ctx context.Context) error {
	for {
		opened := g.pass()
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return store.NotBegun(ctx)
		}
	}
}

// pass goes through an open gate, or returns what to wait for.
func (g *gate) pass() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.inside++
	}
	return g.opened
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// shut stops new reads and waits for the open ones, at most for d. It reports
// whether they are gone; open has to be called in either case.
func (g *gate) shut(d time.Duration) bool {
	g.mu.Lock()
	g.opened = make(chan struct{})
	if g.inside == 0 {
		g.mu.Unlock()
		return true
	}
	empty := make(chan struct{})
	g.empty = empty
	g.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-empty:
		return true
	case <-t.C:
		return false
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
	g.opened, g.empty = nil, nil
}
