package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// faulty is a way to the store on which one commit goes wrong.
type faulty struct {
	txn.Store
	n, at int
	mode  string
	dead  bool
}

func (f *faulty) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if f.dead {
		return errDead
	}
	if f.n++; f.n != f.at {
		return f.Store.Update(ctx, fn)
	}
	switch f.mode {
	case "killed before":
		f.dead = true
		return errDead
	case "killed after":
		err := f.Store.Update(ctx, fn)
		f.dead = true
		return errors.Join(err, errDead)
	case "not committed":
		return txn.ErrNotCommitted.Say("the disk is full")
	case "unknown, committed":
		if err := f.Store.Update(ctx, fn); err != nil {
			return err
		}
	}
	return txn.ErrUnknown
}

func (f *faulty) View(ctx context.Context, fn func(txn.Tx) error) error {
	if f.dead {
		return errDead
	}
	return f.Store.View(ctx, fn)
}

// Whichever commit of a run's life fails, and however: nothing starts on a commit that
// is not known, an outcome that can still be stored is stored, and in the end each
// action had its effect once, or a person agreed to a repeat.
func TestFailedCommits(t *testing.T) {
	t.Parallel()
	const want = `look{"n":1} push{"n":2} write{"n":3}`
	for _, mode := range []string{"killed before", "killed after", "not committed", "unknown, committed", "unknown, lost"} {
		for at := 1; at <= 12; at++ {
			if at%max(raceFactor/3, 1) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", at, mode), func(t *testing.T) {
				t.Parallel()
				w := quick(t, calls("look", `{"n":1}`), calls("push", `{"n":2}`), calls("write", `{"n":3}`))
				f := &faulty{Store: w.st, at: at, mode: mode}
				agreed := w.liveOn(t, f)
				got := w.spy.ran()
				count := func(s string) int { return strings.Count(got, s) }
				for _, action := range strings.Fields(want) {
					n := count(action)
					if action == `look{"n":1}` {
						if n < 1 {
							t.Errorf("%s ran %d times", action, n)
						}
						continue
					}
					if n < 1 || n > 1+agreed[action] {
						t.Errorf("%s ran %d times, with %d repeats agreed to", action, n, agreed[action])
					}
				}
			})
		}
	}
}

// liveOn brings one run to its end, through processes of which the first ones share the
// faulty way to the store, and counts the repeats that people agreed to.
func (w *world) liveOn(t *testing.T, f *faulty) map[string]int {
	t.Helper()
	agreed := map[string]int{}
	d := w.driver(func(c *run.Config) { c.Store = f })
	_, err := d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
	for range 20 {
		r, readErr := stored(w.ctx, w.st, "run_x")
		switch {
		case word(readErr) == "not_found":
			_, err = w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
			continue
		case readErr != nil:
			t.Fatal(readErr)
		case r.Status.Terminal():
			w.stands(r, run.Completed, run.GoalCompleted)
			return agreed
		case r.Status == run.Waiting && w.decision(r.ApprovalID).Status == decision.Pending:
			if w.decision(r.ApprovalID).Kind == decision.KindInterrupted {
				agreed[r.Current.Tool+r.Current.Args]++
			}
			w.approve(r)
			continue
		}
		if err != nil { // whoever was told of a failure does not come back at once
			w.clock.Advance(run.DefaultLease + time.Microsecond)
		}
		use := d
		if f.dead {
			use = w.d
		}
		_, err = use.Resume(w.ctx, "run_x")
	}
	t.Fatalf("it came to no end: %s, %v", w.told("run_x"), err)
	return agreed
}
