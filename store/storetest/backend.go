package storetest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/placet-dev/placet/store"
)

// Backend says what one backend is.
type Backend struct {
	Name string
	// Precision is that of a stored time. What is finer is cut off, never rounded.
	Precision time.Duration
	// Twice: closures are run twice, undone the first time, unless Options.Once.
	Twice bool
	// Strict: Update and View refuse to be called inside a closure.
	Strict bool
	// Clock: Options.Now is the store's clock.
	Clock bool
	// Blows are the ways in which [Options.Before] can hurt.
	Blows []Blow
	// Processes: several processes may have one store open. It needs At.
	Processes bool

	// New makes a place for one store: empty, and this test's own.
	New func(t testing.TB) Instance
	// At is the place that another process of this test made.
	At func(t testing.TB, address string) Instance
}

// Instance is a place for one store.
type Instance struct {
	// Address is how another process finds it.
	Address string
	// Open opens the store, as another process would; the first creates it. It
	// is closed when the test ends, unless that happened before.
	Open func(t testing.TB, o Options) *store.Store
	// Keep copies the store while nobody has it open, as somebody would who
	// copies files or disks, and returns what puts that copy back. Nil: not here.
	Keep func(t testing.TB) (putBack func())
	// Quiet waits until what killed processes had sent to a server is done or undone. Nil:
	// with a process ends all that it wanted to write.
	Quiet func(t testing.TB)
	// Accept is the command that accepts a store which went back in time.
	Accept func(ctx context.Context) error
	// Backup is the command that makes a backup while others have the store open,
	// and returns the one that restores it. Nil: not here.
	Backup func(ctx context.Context) (restore func(ctx context.Context) error, err error)
}

// Options are what a test wants of one handle on a store.
type Options struct {
	// Before is called before each statement of a write transaction, BEGIN and
	// COMMIT among them. What it returns is what becomes of the statement.
	Before func(statement string) Blow
	// Once runs closures once, and need not look for nested ones: it is quicker.
	Once bool
	// Busy bounds the wait for a lock. Default: the backend's.
	Busy time.Duration
	// Now is the store's clock, for backends that declare Clock.
	Now func() time.Time
}

// Blow is what becomes of a statement.
type Blow int

// The blows.
const (
	None  Blow = iota
	Fail       // the statement is not run, and its answer is the store's failure: txn.ErrNotCommitted
	Sever      // the transaction is gone before the statement is run: full disk, lost connection
	Lose       // of COMMIT: it is sent, and it cannot be told what became of it
)

func (b Blow) String() string { return [...]string{"none", "fail", "sever", "lose"}[b] }

// childEnv tells a copy of the test binary that it is to play a process.
const childEnv = "PLACET_STORETEST_CHILD"

// Run runs the suite. Call it from one top-level test that does nothing else:
// the processes of the suite are copies of that test.
func Run(t *testing.T, b Backend) {
	if role := os.Getenv(childEnv); role != "" {
		playRole(t, b, role)
		return
	}
	for _, group := range []struct {
		name string
		run  func(*testing.T, Backend)
	}{
		{"Decisions", decisions},
		{"Queue", queue},
		{"Decided", decided},
		{"Calls", calls},
		{"Attempts", attempts},
		{"Runs", runs},
		{"Guards", guards},
		{"Keys", keys},
		{"Daemon's work", daemonsWork},
		{"Jobs", jobs},
		{"Questions", questions},
		{"Homes", homes},
		{"Tokens", tokens},
		{"Sign-ins", signIns},
		{"Targets", targets},
		{"Deliveries", deliveries},
		{"Counters", counters},
		{"Events", events},
		{"Commit", commit},
		{"Concurrency", concurrency},
		{"Question races", questionRaces},
		{"Follow", follow},
		{"Failure", failure},
		{"Order", order},
		{"Processes", processes},
		{"Restore", restore},
		{"Regressions", regressions},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t, b)
		})
	}
}

// cases runs one parallel test for each function, by its name.
func cases(t *testing.T, b Backend, fs map[string]func(*world)) {
	t.Helper()
	for name, f := range fs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(setup(t, b))
		})
	}
}
