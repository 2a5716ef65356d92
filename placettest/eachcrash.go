package placettest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
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
	// default leases, so that an attempt of the dead process counts as lost.
	Downtime time.Duration
	// Crashes is how many processes die, one after the other, before one may live.
	// There are as many stories as ways to choose their places. Default: 1.
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
	places := s.live(t, crashes)
	switch {
	case t.Failed() || len(crashes) == s.Crashes:
		return
	case len(places) == 0 && len(crashes) == 0:
		t.Fatal("the scenario made no commit, so there is no place to crash at; does it use Process.Store?")
	}
	for _, c := range places {
		t.Run(strings.ReplaceAll(c.String(), " ", "-"), func(t *testing.T) {
			s.tell(t, append(crashes[:len(crashes):len(crashes)], c))
		})
	}
}

// live starts a process for each crash, and one more that lives. It returns the
// places at which that one could have died.
func (s Scenario) live(t *testing.T, crashes []Crash) []Crash {
	t.Helper()
	dir := t.TempDir()
	p := &Process{Clock: &Clock{}, Witness: WitnessAt(t, filepath.Join(dir, "witness.jsonl")), Dir: dir}
	for _, c := range crashes {
		p = s.die(t, p, c)
		p.Clock.Advance(s.Downtime)
	}
	p, _ = p.next(t, Crash{})
	if err := s.run(t, p); err != nil {
		t.Fatalf("process %d, after %v: %v", p.N, crashes, err)
	}
	places := p.Store.Crashes() // before Check, which may use the store too
	report, err := event.Verify(t.Context(), p.Store, nil)
	if err != nil || report.Break != nil {
		t.Fatalf("the log after %v: %+v %v", crashes, report.Break, err)
	}
	if s.Check != nil {
		s.Check(t, p)
	}
	return places
}

// die is a process that dies at c, or at its end if it does not come so far.
func (s Scenario) die(t *testing.T, before *Process, c Crash) *Process {
	t.Helper()
	p, store := before.next(t, c)
	err := s.run(t, p)
	if p.Store.Dead() {
		t.Logf("process %d died %s: %v", p.N, c, err)
	} else {
		t.Logf("process %d did not come to %s this time: %v", p.N, c, err)
		p.Store.Die()
	}
	if err := store.Close(); err != nil {
		t.Errorf("close the store of process %d: %v", p.N, err)
	}
	return p
}

func (s Scenario) run(t *testing.T, p *Process) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return s.Run(ctx, p)
}

// next is the process after p: another value, since what p left running must not
// come upon a store that lives.
func (p *Process) next(t *testing.T, c Crash) (*Process, *store.Store) {
	t.Helper()
	st := OpenFile(t, filepath.Join(p.Dir, "placet.db"), &sqlite.Options{Now: p.Clock.Now, Hooks: strict()})
	q := *p
	q.N++
	q.Store = NewCrashStore(st, c)
	return &q, st
}
