package run_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// together starts all of them at one moment and waits for them.
func together(fns ...func()) {
	var all sync.WaitGroup
	barrier := make(chan struct{})
	for _, fn := range fns {
		all.Go(func() { <-barrier; fn() })
	}
	close(barrier)
	all.Wait()
}

const gateRounds = 200 / raceFactor

func TestGateRaceExecuteCancel(t *testing.T) {
	t.Parallel()
	g := newGatedAt(t, nil, nil)
	started, stopped := 0, 0
	for range gateRounds {
		s := g.begin()
		o := g.step(s)
		g.want(g.propose(o, "write", `{}`), run.VerdictAllowed)
		before := g.ran.Load()
		var v run.Verdict
		var executed, cancelled error
		together(
			func() { v, executed = o.Execute(g.ctx) },
			func() { cancelled = (decision.Operator{Store: g.st}).Cancel(g.ctx, s.Run().ID, "ana", "") },
		)
		if executed != nil || cancelled != nil {
			t.Fatal(executed, cancelled)
		}
		r := g.stored(s.Run().ID)
		ran := g.ran.Load() - before
		if r.Reason != run.OperatorCancelled || ran > 1 || (ran == 1) != (v.CallID != "") {
			t.Fatalf("run %+v, ran %d times, verdict %+v", r, ran, v)
		}
		if ran == 0 {
			stopped++
			continue
		}
		started++
		if c, as := g.call(v.CallID); len(as) != 1 || c.Status != call.Succeeded {
			t.Fatalf("call %+v, attempts %+v", c, as)
		}
	}
	t.Logf("the tool was started in %d rounds, the cancel was first in %d", started, stopped)
}

// Of two processes that attach to one grant one carries it out.
func TestGateRaceAttach(t *testing.T) {
	t.Parallel()
	g := newGatedAt(t, nil, nil)
	gates := []*run.Gate{g.gate, g.other()}
	op := decision.Operator{Store: g.st}
	for range gateRounds {
		before := g.ran.Load()
		v := g.want(g.propose(g.step(g.begin()), "push", `{}`), run.VerdictPending)
		if err := op.Approve(g.ctx, v.Run.ID, v.ApprovalID, "ana", ""); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 2)
		carry := func(i int) func() {
			return func() {
				s, err := gates[i].Attach(g.ctx, v.Run.ID)
				if errs[i] = err; err != nil {
					return
				}
				defer g.close(s)
				o, err := s.Step(g.ctx)
				if err == nil {
					_, err = o.Execute(g.ctx)
				}
				errs[i] = err
			}
		}
		together(carry(0), carry(1))
		one := errs[0] == nil && errors.Is(errs[1], run.ErrRunState) || errs[1] == nil && errors.Is(errs[0], run.ErrRunState)
		// The loser may come when the winner has given the run back: then it holds a new step.
		late := errs[0] == nil && errs[1] == nil
		if r := g.stored(v.Run.ID); !one && !late || g.ran.Load()-before != 1 {
			t.Fatalf("errors %v, run %+v, ran %d times", errs, r, g.ran.Load()-before)
		}
	}
}

// Of two processes that attach to a run that was given back one holds it.
func TestGateRaceAttachReleased(t *testing.T) {
	t.Parallel()
	g := newGatedAt(t, nil, nil)
	gates := []*run.Gate{g.gate, g.other()}
	for range gateRounds {
		s, err := g.gate.Begin(g.ctx, "again", run.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		l := s.Run().ID
		g.close(s)
		held := make([]*run.Session, 2)
		errs := make([]error, 2)
		together(
			func() { held[0], errs[0] = gates[0].Attach(g.ctx, l) },
			func() { held[1], errs[1] = gates[1].Attach(g.ctx, l) },
		)
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if errs[winner] != nil || !errors.Is(errs[1-winner], run.ErrRunState) {
			t.Fatalf("errors %v", errs)
		}
		g.close(held[winner])
	}
}

// caller is a framework's loop around one run: push once, then complete.
type caller struct {
	gate  *run.Gate
	push  tool.Tool
	carry func(ctx context.Context, o *run.OpenStep) (run.Verdict, error)
}

const crashed = "run_crashed"

// work goes on with the run until it has ended, as a process does that finds out by
// itself how far an earlier one came.
func (c caller) work(ctx context.Context, p *placettest.Process) error {
	person := placettest.Reviewer{Store: p.Store, By: "ana"}.
		Approve(placettest.Any).Approve(p.Witness.Missing).Reject(p.Witness.Done, "It was done.")
	for waited := false; ; {
		s, err := c.gate.Attach(ctx, crashed)
		if errors.Is(err, run.ErrNotFound) {
			s, err = c.gate.BeginWithID(ctx, crashed, "push", run.DefaultLimits())
		}
		if err == nil {
			err = errors.Join(c.loop(ctx, s), s.Close(ctx))
		}
		switch r, readErr := readRun(ctx, p.Store, crashed); {
		case readErr != nil:
			return readErr
		case r.Status.Terminal():
			return nil
		case err != nil && !errors.Is(err, run.ErrRunState):
			return err
		}
		n, err := person.Decide(ctx)
		switch {
		case err != nil:
			return err
		case n == 0 && waited:
			return errors.New("nothing to decide, and the run does not go on")
		case n == 0: // a probe is believed only when the dead process can be at work no more
			waited = true
			p.Clock.Advance(run.DefaultLease)
		}
	}
}

func (c caller) loop(ctx context.Context, s *run.Session) error {
	for {
		o, err := s.Step(ctx)
		if err != nil {
			return err
		}
		v := o.Verdict()
		if v.Outcome == "" {
			if v, err = c.propose(ctx, o); err != nil {
				return err
			}
		}
		if v.Outcome == run.VerdictAllowed {
			v, err = c.carry(ctx, o)
		}
		if err != nil || v.Outcome == run.VerdictPending || v.Outcome == run.VerdictEnded {
			return err
		}
	}
}

func (c caller) propose(ctx context.Context, o *run.OpenStep) (run.Verdict, error) {
	in, err := o.Input(ctx)
	if err != nil {
		return run.Verdict{}, err
	}
	for _, st := range in.Steps {
		if st.Observation == run.ToolResult {
			return o.Propose(ctx, run.Proposal{Kind: run.Complete})
		}
	}
	return o.Propose(ctx, proposes("push", `{}`))
}

// runsItself is a caller that reserves, runs the tool and confirms.
func (c caller) runsItself(ctx context.Context, o *run.OpenStep) (run.Verdict, error) {
	res, v, err := o.Reserve(ctx)
	if err != nil || v.Outcome != run.VerdictAllowed {
		return v, err
	}
	within, cancel := res.Within(ctx)
	defer cancel()
	result, err := c.push.Run.Run(within, tool.Call{CallID: res.CallID, RunID: res.RunID, Tool: res.Tool, Attempt: int(res.Attempt), Args: res.Args})
	return o.Confirm(ctx, result, err)
}

func readRun(ctx context.Context, s txn.Store, id string) (r run.Run, err error) {
	err = txn.View(ctx, s, func(tx run.Tx) (err error) {
		r, err = tx.Run(id)
		return err
	})
	return r, err
}

func TestGateEachCrash(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"execute", "reserve", "reserve with a key", "execute with a probe"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placettest.EachCrash(t, placettest.Scenario{
				Run: func(ctx context.Context, p *placettest.Process) error {
					c := caller{push: p.Store.Tool(p.Witness.Tool("push"))}
					c.push.Idempotent = name == "reserve with a key"
					if name == "execute with a probe" {
						c.push.Probe = p.Witness.Probe()
					}
					c.carry = func(ctx context.Context, o *run.OpenStep) (run.Verdict, error) { return o.Execute(ctx) }
					if name[0] == 'r' {
						c.carry = c.runsItself
					}
					tools, err := tool.NewRegistry(c.push)
					if err != nil {
						return err
					}
					c.gate = run.NewGate(run.Config{Store: p.Store, Tools: tools, Log: slog.New(slog.DiscardHandler)})
					return c.work(ctx, p)
				},
				Check: func(t *testing.T, p *placettest.Process) { onceAndOver(t, p, name == "reserve with a key") },
			})
		})
	}
}

// onceAndOver checks that the tool ran once, or under its key again, and that the run has ended.
func onceAndOver(t *testing.T, p *placettest.Process, keyed bool) {
	t.Helper()
	ids := map[string]bool{}
	for _, l := range p.Witness.Lines() {
		ids[l.CallID] = true
	}
	if n := len(p.Witness.Lines()); len(ids) != 1 || n > 1 && !keyed {
		t.Errorf("the tool ran %d times for %d calls", n, len(ids))
	}
	r, err := readRun(t.Context(), p.Store, crashed)
	if err != nil || !r.Status.Terminal() {
		t.Errorf("run %+v %v", r, err)
	}
	if r.Status != run.Completed && r.Reason != run.ApprovalRejected {
		t.Errorf("run %s %s %s", r.Status, r.Reason, r.Detail)
	}
}
