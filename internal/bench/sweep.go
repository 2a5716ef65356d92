package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/store/sqlite"
)

const (
	sweptIn  = 20 * time.Millisecond
	heldFor  = 5 * time.Millisecond
	overdue  = time.Hour
	atOnce   = 64
	sweepMax = 1000
)

// locks notes how long the writer holds its lock: from BEGIN until COMMIT is sent.
type locks struct {
	mu    sync.Mutex
	since time.Time
	held  []time.Duration
}

func (l *locks) see(_ int, sql string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.HasPrefix(sql, "BEGIN"):
		l.since = time.Now()
	case strings.HasPrefix(sql, "COMMIT"):
		l.held = append(l.held, time.Since(l.since))
	}
	return nil
}

func (l *locks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
}

func (l *locks) longest() (n int, p99, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		return 0, 0, 0
	}
	slices.Sort(l.held)
	return len(l.held), l.held[len(l.held)*99/100], l.held[len(l.held)-1]
}

// sweep measures a sweep of a long file in which nothing is overdue, and one in which
// everything that is pending has become so at once.
func sweep(ctx context.Context, b *bench) error {
	pending := int(min(b.records, 10_000))
	b.title("sweep: a file with %d decided and %d pending records (targets: a sweep under %s, the write lock held under %s at a time)", b.records, pending, sweptIn, heldFor)
	path := b.path("sweep.db")
	if err := b.makeLong(ctx, path); err != nil {
		return err
	}
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	l := &locks{}
	w, err := openWorldWith(ctx, path, &sqlite.Options{Now: now, Hooks: &sqlite.Hooks{BeforeStatement: l.see}}, func(c *call.Config) { c.ApprovalTTL = overdue })
	if err != nil {
		return err
	}
	defer w.store.Close()
	if err := w.parkAll(ctx, pending); err != nil {
		return err
	}
	each, err := b.timeOf(func() error { _, err := w.exec.Sweep(ctx, sweepMax); return err })
	if err != nil {
		return err
	}
	b.line("nothing overdue: %s a sweep", micro(each))
	ahead.Store(int64(2 * overdue))
	l.forget()
	began, swept := time.Now(), 0
	for {
		n, err := w.exec.Sweep(ctx, sweepMax)
		if err != nil {
			return err
		}
		if swept += n; n == 0 {
			break
		}
	}
	if swept != pending {
		return fmt.Errorf("%d of %d expired", swept, pending)
	}
	n, p99, longest := l.longest()
	b.line("all %d overdue at once: ended in %s by %d transactions; the lock was held for %s at the longest, p99 %s",
		pending, time.Since(began).Round(time.Millisecond), n, micro(longest), micro(p99))
	return nil
}

// parkAll parks so many calls, several at a time.
func (w *world) parkAll(ctx context.Context, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, atOnce)
	for range atOnce {
		go func() {
			for left.Add(-1) >= 0 {
				if _, err := w.park(ctx); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var failed error
	for range atOnce {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}
