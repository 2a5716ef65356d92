package sqlite

import (
	"database/sql/driver"
	"log/slog"
	"time"
)

// Options tune one use of a database file. The zero value is right for most.
type Options struct {
	// BusyTimeout bounds the wait for other processes that write. A longer wait
	// is [txn.ErrBusy], and nothing ran. Default: 5 s.
	BusyTimeout time.Duration
	// ReadOnly is for commands that only look: nothing is created, migrated or
	// written, and a missing file is an error. Default: false.
	ReadOnly bool
	// Readers bounds the read transactions that run at one time. Default: 4.
	Readers int
	// Logger hears of what no caller can be told. Default: slog.Default().
	Logger *slog.Logger
	// Now replaces the wall clock in tests. Default: time.Now.
	Now func() time.Time
	// Hooks are for tests of the store itself; nil in production.
	Hooks *Hooks
}

// Hooks let a test stand where a failure would.
type Hooks struct {
	// Opened is given the writer's connection each time it is opened.
	Opened func(conn driver.Conn)
	// BeforeStatement is called before the n-th statement of the writer, counted
	// from 1 over the engine's life, BEGIN, SAVEPOINT, RELEASE and COMMIT
	// included. An error stands in for the statement, which is then not run.
	BeforeStatement func(n int, sql string) error
	// Twice runs every closure twice: once, undone, and again. What only works
	// the first time shows.
	Twice bool
	// Strict refuses an update or a view called inside a closure.
	Strict bool
	// SlowPanics makes a closure that took longer than Slow panic.
	SlowPanics bool
	// Slow is how long a closure may take before it is reported. Default: 2 s.
	Slow time.Duration
}

// Bounds that no one has had a reason to change.
const (
	batchCalls  = 512                   // closures in one commit
	batchWork   = 5 * time.Millisecond  // work in one commit
	slowClosure = 2 * time.Second       // reported when longer
	viewLimit   = time.Second           // life of a read transaction
	pollEvery   = 50 * time.Millisecond // look for other processes' commits
	walLimit    = 16 << 20              // bytes of log before it is folded back
)

func (o Options) withDefaults() Options {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Hooks == nil {
		o.Hooks = &Hooks{}
	}
	return o
}

func (h *Hooks) slow() time.Duration {
	if h.Slow > 0 {
		return h.Slow
	}
	return slowClosure
}
