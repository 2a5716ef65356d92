package placettest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store/sqlite"
)

// Scenario is a program to be killed at every place; see [EachCrash].
type Scenario struct {
	// Run is what the program does each time it is started. It has to find out by
	// itself how far an earlier process came; an error that [CrashStore] made it
	// return is expected. It returns when all it started has ended. Required.
	Run func(ctx context.Context, p *Process) error
	// Check is called after a process that came to its end. Default: nothing is
	// checked but the log's chain and that Run returned no error.
	Check func(t *testing.T, p *Process)
	// Downtime is how far the clock is moved between two processes. Default: two
	// leases, so that an attempt of the dead process counts as lost.
	Downtime time.Duration
	// Crashes is how many processes die, one after the other, before one may live.
	// The number of stories grows with its power. Default: 1.
	Crashes int
}

// Process is one life of a scenario's program.
type Process struct {
	Store *CrashStore // dies with the process
	N     int         // 1 for the first

	// What outlives a process.
	Clock   *Clock   // the store's clock
	Witness *Witness // for the scenario's tools
	Dir     string   // a temporary folder
}

// EachCrash tells a scenario once in peace, and then once for each place at which
// its process could have died: before and after every commit, and after every
// effect of a tool made with [CrashStore.Tool]. After a death the same file is
// opened again and Run is called anew, on the same witness, with the clock moved
// on. Each story is a subtest with a store of its own; they run one after the other.
func EachCrash(t *testing.T, s Scenario) {
	t.Helper()
	if s.Run == nil {
		t.Fatal("placettest.Scenario.Run is missing")
	}
	if s.Downtime == 0 {
		s.Downtime = 2 * call.DefaultLease
	}
	if s.Crashes == 0 {
		s.Crashes = 1
	}
	s.tell(t, nil)
}

// tell tells the story with these crashes, then those with one more.
func (s Scenario) tell(t *testing.T, crashes []Crash) {
	t.Helper()
	last := s.live(t, crashes)
	if t.Failed() || len(crashes) == s.Crashes {
		return
	}
	for _, c := range last.Store.Crashes() {
		t.Run(strings.ReplaceAll(c.String(), " ", "-"), func(t *testing.T) {
			s.tell(t, append(crashes[:len(crashes):len(crashes)], c))
		})
	}
}

// live starts a process for each crash, and one more that lives.
func (s Scenario) live(t *testing.T, crashes []Crash) *Process {
	t.Helper()
	dir := t.TempDir()
	p := &Process{Clock: &Clock{}, Witness: WitnessAt(t, filepath.Join(dir, "witness.jsonl")), Dir: dir}
	for _, c := range crashes {
		_ = s.start(t, p, c) // whatever a process says whose store is dead
		p.Clock.Advance(s.Downtime)
	}
	if err := s.start(t, p, Crash{}); err != nil {
		t.Fatalf("process %d, after %v: %v", p.N, crashes, err)
	}
	report, err := event.Verify(t.Context(), p.Store, nil)
	if err != nil || report.Break != nil {
		t.Fatalf("the log after %v: %+v %v", crashes, report.Break, err)
	}
	if s.Check != nil {
		s.Check(t, p)
	}
	return p
}

// start is one process from its first line to its last.
func (s Scenario) start(t *testing.T, p *Process, c Crash) error {
	t.Helper()
	store := OpenFile(t, filepath.Join(p.Dir, "placet.db"), &sqlite.Options{Now: p.Clock.Now})
	p.N++
	p.Store = NewCrashStore(store, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Run(ctx, p)
	if c != (Crash{}) {
		if !p.Store.Dead() {
			t.Logf("process %d did not come to %s this time; it dies at its end", p.N, c)
			p.Store.Die()
		}
		if err := store.Close(); err != nil {
			t.Errorf("close the store of process %d: %v", p.N, err)
		}
	}
	return err
}
