package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

const (
	stepTarget    = 0.50 // of a quarter of the floor's transactions, with 256 runs at once
	stepsOfRun    = 20   // of a run whose steps' rate is measured
	stepParts     = 4    // transactions of the floor that one step is held against
	growthSteps   = 400
	growthResult  = 8 << 10 // bytes
	waitingRuns   = 10_000
	firstPageRuns = 100 * time.Millisecond
)

// stepper is an agent that proposes so many allowed calls, then ends.
type stepper struct{ steps int }

func (a stepper) Decide(_ context.Context, in run.StepInput) (run.Proposal, error) {
	n := len(in.Steps)
	if n >= a.steps {
		return run.Proposal{Kind: run.Complete, Result: json.RawMessage(`{"ok":true}`)}, nil
	}
	return run.Proposal{Kind: run.CallTool, Tool: "look_up", Args: json.RawMessage(`{"order_id":"o-` + strconv.Itoa(n) +
		`","amount":500,"currency":"EUR","reason":"The parcel arrived damaged; the customer sent two photographs."}`)}, nil
}

// runWorld is a store with a driver.
type runWorld struct {
	store  *store.Store
	driver *run.Driver
	limits run.Limits
}

func openRuns(ctx context.Context, path string, hooks *sqlite.Hooks, agent run.Agent, tools ...tool.Tool) (*runWorld, error) {
	st, err := sqlite.Open(ctx, path, &sqlite.Options{Hooks: hooks, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	reg, err := tool.NewRegistry(tools...)
	if err != nil {
		return nil, err
	}
	limits := run.DefaultLimits()
	limits.MaxSteps = growthSteps + 1
	return &runWorld{st, run.NewDriver(run.Config{Store: st, Tools: reg, Agent: agent}), limits}, nil
}

// once is one whole run that nobody has to agree to.
func (w *runWorld) once(ctx context.Context) error {
	r, err := w.driver.Start(ctx, "look at some orders", w.limits)
	if err == nil && r.Status != run.Completed {
		err = fmt.Errorf("the run is %s: %s", r.Status, r.Detail)
	}
	return err
}

// steps compares the steps of runs with the floor.
func steps(ctx context.Context, b *bench) error {
	b.title("steps: allowed steps of runs against a quarter of the floor's transactions (target: four transactions at most)")
	if err := b.countSteps(ctx); err != nil {
		return err
	}
	for _, callers := range []int{1, 16, 256} {
		if b.callers != 0 && b.callers != callers {
			continue
		}
		f, err := openFloor(ctx, b.path(fmt.Sprintf("steps-%d-floor.db", callers)))
		if err != nil {
			return err
		}
		w, err := openRuns(ctx, b.path(fmt.Sprintf("steps-%d.db", callers)), nil, stepper{stepsOfRun}, noop("look_up", tool.ReadOnly))
		if err != nil {
			return err
		}
		got, err := b.turns(ctx, callers, side{"floor", f.once}, side{"run", w.once})
		_, _ = f.world.store.Close(), w.store.Close()
		if err != nil {
			return err
		}
		floor, runs := &got[0], &got[1]
		target := ""
		if callers == 256 {
			target = fmt.Sprintf(" (target %.2f)", stepTarget)
		}
		each := runs.each() / stepsOfRun
		b.line("%3d runs at once: %6.0f steps/s, floor %7.0f/s, ratio %.2f%s; by processor time %.2f (%s a step against %s)",
			callers, runs.rate()*stepsOfRun, floor.rate(), runs.ratio(floor, stepParts)*stepsOfRun, target,
			stepParts*float64(floor.each())/float64(each), micro(each), micro(floor.each()))
	}
	return nil
}

// countSteps says what one step asks of the database.
func (b *bench) countSteps(ctx context.Context) error {
	c := &counter{}
	w, err := openRuns(ctx, b.path("count-steps.db"), &sqlite.Hooks{BeforeStatement: c.see}, stepper{3}, noop("look_up", tool.ReadOnly))
	if err != nil {
		return err
	}
	defer w.store.Close()
	if err := w.once(ctx); err != nil {
		return err
	}
	c.transactions = nil
	if err := w.once(ctx); err != nil {
		return err
	}
	if n := len(c.transactions); n > 7 { // the start, and after the first step: record, start, finish
		c.transactions = c.transactions[4:7]
	}
	c.report(b, "an allowed step")
	return nil
}

// growth looks at one long run with large results.
func growth(ctx context.Context, b *bench) error {
	b.title("growth: a run of %d steps with results of %d KiB (targets: the last hundred take at most 1.2 times the first, 150 MB)", growthSteps, growthResult>>10)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-probe", b.path("growth.db"), "-growth", "-rounds", strconv.Itoa(b.rounds))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	b.line("%s", strings.TrimSpace(string(out)))
	return err
}

// probeGrowth is this program as a child: long runs, and its memory after them.
func probeGrowth(ctx context.Context, b *bench, path string) error {
	clock := &stepClock{steps: growthSteps}
	result := json.RawMessage(`"` + strings.Repeat("x", growthResult-2) + `"`)
	look := noop("look_up", tool.ReadOnly)
	look.Run = tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return result, nil })
	w, err := openRuns(ctx, path, nil, clock, look)
	if err != nil {
		return err
	}
	defer w.store.Close()
	var ratios []float64
	for range b.rounds {
		if err := w.once(ctx); err != nil {
			return err
		}
		ratios = append(ratios, clock.ratio())
	}
	b.line("the last hundred steps took %.2f times as long as the first (median of %d runs); peak memory %s", median(ratios), b.rounds, peak())
	return nil
}

// stepClock is a stepper that notes when it was asked.
type stepClock struct {
	steps int
	at    []time.Time
}

func (c *stepClock) Decide(ctx context.Context, in run.StepInput) (run.Proposal, error) {
	if len(in.Steps) == 0 {
		c.at = c.at[:0]
	}
	c.at = append(c.at, time.Now())
	return stepper{c.steps}.Decide(ctx, in)
}

func (c *stepClock) ratio() float64 {
	n := len(c.at) - 1
	return float64(c.at[n].Sub(c.at[n-100])) / float64(c.at[100].Sub(c.at[0]))
}

// waiting measures the first page with many runs that wait.
func waiting(ctx context.Context, b *bench) error {
	b.title("waiting: %d waiting runs (target: the first page in less than %s, without a daemon)", waitingRuns, firstPageRuns)
	path := b.path("waiting.db")
	w, err := openRuns(ctx, path, nil, run.AgentFunc(func(context.Context, run.StepInput) (run.Proposal, error) {
		return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(args)}, nil
	}), noop("refund", tool.RemoteMutation))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.startAll(ctx, waitingRuns); err != nil {
		return err
	}
	took := time.Since(began)
	if err := w.store.Close(); err != nil {
		return err
	}
	b.line("started in %s, %.0f/s", took.Round(100*time.Millisecond), waitingRuns/took.Seconds())
	placet := filepath.Join(b.dir, "placet")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", placet, binary).CombinedOutput(); err != nil {
		return fmt.Errorf("build placet: %w: %s", err, out)
	}
	for _, command := range []string{"runs", "approvals", "inbox"} {
		each, err := b.timeOf(func() error {
			cmd := exec.CommandContext(ctx, placet, "--db", path, command)
			cmd.Env = append(os.Environ(), "PLACET_HOME="+b.dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("placet %s: %w: %s", command, err, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.line("placet %-9s %s", command, micro(each))
	}
	return nil
}

// startAll starts n runs that wait, many at once.
func (w *runWorld) startAll(ctx context.Context, n int) error {
	const atOnce = 256
	work, errs := make(chan struct{}), make(chan error, atOnce)
	for range atOnce {
		go func() {
			var err error
			for range work {
				if r, e := w.driver.Start(ctx, "refund an order", w.limits); e != nil || r.Status != run.Waiting {
					err = fmt.Errorf("the run is %s: %s %w", r.Status, r.Detail, e)
				}
			}
			errs <- err
		}()
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	var failed error
	for range atOnce {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}
