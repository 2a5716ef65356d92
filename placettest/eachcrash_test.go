package placettest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// once checks that the tool ran once for every call.
func once(calls int) func(*testing.T, *placettest.Process) {
	return func(t *testing.T, p *placettest.Process) {
		for i := range calls {
			if n := ran(p, i); n != 1 {
				t.Errorf("the tool ran %d times for call %d", n, i)
			}
		}
	}
}

// ran is how often the tool ran for the i-th call.
func ran(p *placettest.Process, i int) int {
	n := 0
	for _, l := range p.Witness.Lines() {
		if string(l.Args) == fmt.Sprintf(`{"amount":%d}`, i) {
			n++
		}
	}
	return n
}

// honest is a person who looks before saying that a call may run again.
func honest(p *placettest.Process) placettest.Reviewer {
	return placettest.Reviewer{Store: p.Store, By: "ana"}.
		Approve(placettest.Any).
		Approve(p.Witness.Missing).
		Reject(p.Witness.Done, "It was done.")
}

// work goes on with the i-th call until it has ended, as the worker of a queue
// does. Where the outcome is unknown it asks once more, since a probe is believed
// only when the dead process can be at work no more.
func work(ctx context.Context, p *placettest.Process, calls *call.Executor, person placettest.Reviewer, i int) error {
	message := fmt.Appendf(nil, `{"v":1,"run_id":"r","call_id":"c%d","tool":"refund","args":{"amount":%[1]d}}`, i)
	for unknown := 0; ; {
		res, err := calls.Handle(ctx, message)
		var waits *call.PendingError
		switch {
		case errors.As(err, &waits):
			if _, err := person.Decide(ctx); err != nil {
				return err
			}
		case err == nil && res.Status == call.Unknown && unknown == 0:
			unknown++
			p.Clock.Advance(call.DefaultLease)
		default:
			return err
		}
	}
}

func TestEachCrash(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*tool.Tool, *placettest.Witness){
		"person": func(*tool.Tool, *placettest.Witness) {},
		"probe":  func(tl *tool.Tool, w *placettest.Witness) { tl.Probe = w.Probe() },
		"both":   func(tl *tool.Tool, w *placettest.Witness) { tl.Probe, tl.Idempotent = w.Probe(), true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashes := 1
			if name == "person" && raceFactor == 1 && !testing.Short() {
				crashes = 2 // some 130 stories
			}
			placettest.EachCrash(t, placettest.Scenario{
				Crashes: crashes,
				Run: func(ctx context.Context, p *placettest.Process) error {
					refund := p.Witness.Tool("refund")
					declare(&refund, p.Witness)
					return work(ctx, p, shop(t, p.Store, p.Store.Tool(refund)), honest(p), 0)
				},
				Check: once(1),
			})
		})
	}
}

func TestEachCrashOfSeveralAtOnce(t *testing.T) {
	t.Parallel()
	together := 3
	if raceFactor > 1 {
		together = 2
	}
	placettest.EachCrash(t, placettest.Scenario{
		Run: func(ctx context.Context, p *placettest.Process) error {
			calls := shop(t, p.Store, p.Store.Tool(p.Witness.Tool("refund")))
			var all sync.WaitGroup
			errs := make([]error, together)
			for i := range together {
				all.Go(func() { errs[i] = work(ctx, p, calls, honest(p), i) })
			}
			all.Wait()
			return errors.Join(errs...)
		},
		Check: once(together),
	})
}

func TestEachCrashOfSeveralInARow(t *testing.T) {
	t.Parallel()
	var lives []int // how many processes each story had
	placettest.EachCrash(t, placettest.Scenario{
		Crashes: 2,
		Run: func(ctx context.Context, p *placettest.Process) error {
			return p.Store.Update(ctx, func(txn.Tx) error { return nil })
		},
		Check: func(t *testing.T, p *placettest.Process) {
			lives = append(lives, p.N)
			if want := placettest.Start.Add(time.Duration(p.N-1) * 2 * call.DefaultLease); !p.Clock.Now().Equal(want) {
				t.Errorf("process %d starts at %s, want %s", p.N, p.Clock.Now(), want)
			}
		},
	})
	// In peace; then each of two places, and after each of them each of two again.
	if want := []int{1, 2, 3, 3, 2, 3, 3}; !slices.Equal(lives, want) {
		t.Errorf("lives %v, want %v", lives, want)
	}
}

// A place that one story has and the next has not is no failure: programs with
// several goroutines are like that.
func TestEachCrashOfAPlaceThatIsNotReached(t *testing.T) {
	t.Parallel()
	stories, checked := 0, 0
	placettest.EachCrash(t, placettest.Scenario{
		Run: func(ctx context.Context, p *placettest.Process) error {
			if stories++; stories > 1 {
				return nil
			}
			return p.Store.Update(ctx, func(txn.Tx) error { return nil })
		},
		Check: func(*testing.T, *placettest.Process) { checked++ },
	})
	if stories != 5 || checked != 3 { // one in peace, and two processes for each of two places
		t.Errorf("%d processes, %d checks", stories, checked)
	}
}

const brokenEnv = "PLACETTEST_BROKEN"

// broken are scenarios in which EachCrash has to find something.
var broken = map[string]placettest.Scenario{
	"blind": { // a person who lets everything run again
		Run: func(ctx context.Context, p *placettest.Process) error {
			blind := placettest.Reviewer{Store: p.Store}.Approve(placettest.Any).Approve(placettest.Interrupted)
			return work(ctx, p, brokenShop(p), blind, 0)
		},
		Check: once(1),
	},
	"anew": { // a program that makes another call each time
		Run: func(ctx context.Context, p *placettest.Process) error {
			calls := brokenShop(p)
			_, err := calls.Call(ctx, "refund", []byte(`{"amount":0}`))
			var waits *call.PendingError
			if !errors.As(err, &waits) {
				return err
			}
			if _, err := honest(p).Decide(ctx); err != nil {
				return err
			}
			_, err = calls.Resume(ctx, waits.ApprovalID, nil)
			return err
		},
		Check: once(1),
	},
	"stuck": { // a program that does not know what to do with a call that is there already
		Run: func(ctx context.Context, p *placettest.Process) error {
			_, err := brokenShop(p).RunCall(ctx, "r", "c", "refund", []byte(`{"amount":0}`))
			if p.N == 1 {
				return nil
			}
			return err
		},
	},
	"outside": {Run: func(context.Context, *placettest.Process) error { return nil }},
	"empty":   {},
}

func brokenShop(p *placettest.Process) *call.Executor {
	tools, err := tool.NewRegistry(p.Store.Tool(p.Witness.Tool("refund")))
	if err != nil {
		panic(err)
	}
	return call.NewExecutor(call.Config{Store: p.Store, Tools: tools})
}

// TestBroken fails on purpose, in a process of its own: see TestEachCrashFinds.
func TestBroken(t *testing.T) {
	name := os.Getenv(brokenEnv)
	if name == "" {
		t.Skip("is run by TestEachCrashFinds")
	}
	placettest.EachCrash(t, broken[name])
}

func TestEachCrashFinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"blind":   {"FAIL: TestBroken/before-commit-4", "FAIL: TestBroken/after-effect-1", "ran 2 times"},
		"anew":    {"FAIL: TestBroken/after-commit-4", "ran 2 times"},
		"stuck":   {"FAIL: TestBroken/after-commit-1", "process 2, after [after commit 1]: refund waits for approval"},
		"outside": {"made no commit"},
		"empty":   {"Scenario.Run is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$", "-test.v")
			cmd.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("nothing was found:\n%s", out)
			}
			for _, w := range want {
				if !strings.Contains(string(out), w) {
					t.Errorf("no %q in\n%s", w, out)
				}
			}
		})
	}
}
