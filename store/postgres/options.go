package postgres

import (
	"log/slog"
	"time"
)

// Options tune one use of a database. The zero value is right for most.
type Options struct {
	// BusyTimeout bounds the wait for rows that others have locked, and for a free
	// connection to begin with. A longer wait is [txn.ErrBusy], and nothing was
	// written. Default: 5 s.
	BusyTimeout time.Duration
	// ReadOnly is for commands that only look: nothing is created, migrated or
	// written, and a missing store is an error. Default: false.
	ReadOnly bool
	// Conns bounds the connections of this process, besides the one that listens.
	// Default: what pool_max_conns in the URL says, else 16.
	Conns int
	// Logger hears of what no caller can be told. Default: slog.Default().
	Logger *slog.Logger
	// Now replaces the database's clock in tests. Default: none.
	Now func() time.Time
	// Hooks are for tests of the store itself; nil in production.
	Hooks *Hooks
}

// Hooks let a test stand where a failure would.
type Hooks struct {
	// BeforeStatement is called before each statement of a transaction that writes,
	// BEGIN and COMMIT among them. An error stands in for the statement, which is then
	// not run. kill ends the connection.
	BeforeStatement func(sql string, kill func()) error
	// LoseCommit is asked when a COMMIT was queued: true loses its answer for good.
	LoseCommit func() bool
	// Twice runs every closure twice: once, undone, and again. What only works
	// the first time shows.
	Twice bool
	// Strict refuses an update or a view called inside a closure.
	Strict bool
	// LateLock hears of a lock that is taken once the clock was read (design §4, rule 8).
	LateLock func(sql string)
	// UpdateLimit bounds one statement that writes. 0: 30 s.
	UpdateLimit time.Duration
	// Quiet: nothing is sent to other processes; they have to look.
	Quiet bool
	// Blind: nobody looks for what others commit; only what they tell is heard.
	Blind bool
}

// Bounds that no one has had a reason to change.
const (
	viewLimit     = time.Second            // life of a read transaction
	viewMillis    = "1000"                 // the same, in the server's words
	updateLimit   = 30 * time.Second       // of one statement that writes
	idleLimit     = 30 * time.Second       // of a transaction in which nothing happens: its closure hangs, or its process is gone
	answerLimit   = 5 * time.Second        // for an answer, beyond what the statement may take
	slowClosure   = 2 * time.Second        // reported when longer
	pollEvery     = time.Second            // look for other processes' commits
	gatherNews    = 5 * time.Millisecond   // commits that are told of together
	pingEvery     = 10 * time.Second       // by which a listener notices that nothing arrives
	settleLimit   = 5 * time.Second        // to find out what became of a COMMIT
	maxConflicts  = 10                     // runs of one closure that others were quicker than
	maxLost       = 3                      // the same where its own guard says so
	outMax        = 64 << 10               // bytes of memory that a connection keeps for what it sends
	maxStatements = 400                    // prepared on one connection
	roomEach      = 4                      // by which each connection may count up without looking what others do
	nearFor       = time.Second            // for how long it is remembered that a counter was near its limit
	counterSlots  = 16                     // rows of one counter
	cancelAgain   = 50 * time.Millisecond  // between two attempts to end a wait for a lock
	retryPause    = 2 * time.Millisecond   // before a closure is run again, times a random factor
	reconnectMin  = 100 * time.Millisecond // between two attempts of the listener to connect
	reconnectMax  = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Conns <= 0 {
		o.Conns = 16
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Hooks == nil {
		o.Hooks = &Hooks{}
	}
	return o
}
