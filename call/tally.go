package call

import (
	"context"
	"sync"
)

// tally counts tools that are at work, so that a process can wait for those
// that outlived their time limit before it ends. Counting up while somebody
// waits is fine, unlike with a sync.WaitGroup.
type tally struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n falls to 0; nil: nobody waits
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

func (t *tally) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
