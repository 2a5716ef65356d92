package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

func (g *gated) reserve(o *run.OpenStep) run.Reservation {
	g.t.Helper()
	res, v, err := o.Reserve(g.ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	g.want(v, run.VerdictAllowed)
	return res
}

// reserved is a session whose step was proposed and reserved.
func (g *gated) reserved(toolName string) (*run.Session, *run.OpenStep, run.Reservation) {
	g.t.Helper()
	s := g.begin()
	o := g.step(s)
	g.want(g.propose(o, toolName, `{"n":1}`), run.VerdictAllowed)
	return s, o, g.reserve(o)
}

func (g *gated) confirm(o *run.OpenStep) run.Verdict {
	g.t.Helper()
	return g.must(o.Confirm(g.ctx, json.RawMessage(`1`), nil))
}

// What is out of order is refused, and changes nothing.
func TestGateMisuse(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	propose := func(o *run.OpenStep) error { _, err := o.Propose(g.ctx, proposes("look", `{}`)); return err }
	execute := func(o *run.OpenStep) error { _, err := o.Execute(g.ctx); return err }
	reserve := func(o *run.OpenStep) error {
		res, _, err := o.Reserve(g.ctx)
		if res.CallID != "" {
			t.Errorf("a refused Reserve gave %+v", res)
		}
		return err
	}
	confirm := func(o *run.OpenStep) error { _, err := o.Confirm(g.ctx, json.RawMessage(`1`), nil); return err }
	fail := func(o *run.OpenStep) error { _, err := o.Fail(g.ctx, errors.New("no")); return err }
	input := func(o *run.OpenStep) error { _, err := o.Input(g.ctx); return err }
	all := []func(*run.OpenStep) error{propose, execute, reserve, confirm, fail, input}

	s := g.begin()
	id := s.Run().ID
	refused := func(o *run.OpenStep, want error, fns ...func(*run.OpenStep) error) {
		t.Helper()
		for _, fn := range fns {
			g.unchanged(id, want, func() error { return fn(o) })
		}
	}

	o := g.step(s)
	refused(o, run.ErrRunState, execute, reserve, confirm)
	g.unchanged(id, run.ErrUsage, func() error { _, err := o.Fail(g.ctx, nil); return err })
	g.propose(o, "look", `{}`)
	refused(o, run.ErrRunState, propose, confirm, fail)
	if again := g.step(s); again != o {
		t.Error("the open step is another one when it is asked for again")
	}
	g.must(o.Execute(g.ctx))
	refused(o, run.ErrRunState, all...)

	o = g.step(s)
	g.propose(o, "look", `{}`)
	g.reserve(o)
	refused(o, run.ErrRunState, propose, execute, reserve, fail)
	g.confirm(o)
	refused(o, run.ErrRunState, all...)

	denied := g.step(s)
	g.want(g.propose(denied, "drop", `{}`), run.VerdictDenied)
	refused(denied, run.ErrRunState, all...)

	pending := g.step(s)
	g.want(g.propose(pending, "push", `{}`), run.VerdictPending)
	refused(pending, run.ErrRunState, all...)
	g.approve(pending.Verdict())
	refused(pending, run.ErrRunState, all...) // it takes Attach to go on

	s2 := g.attach(g.gate, id)
	approved := g.step(s2)
	refused(approved, run.ErrRunState, propose, confirm, fail)
	if in, err := approved.Input(g.ctx); err != nil || len(in.Steps) != 3 || len(in.Approvals) != 1 {
		t.Errorf("input of an approved step: %+v %v", in, err)
	}
	g.close(s2)
	g.close(s2)
	refused(approved, run.ErrUsage, propose, execute, reserve, fail, input)
	if g.stored(id).Status != run.Waiting {
		t.Error("closing a session of an approved run changed it")
	}
}

func TestGateRefusesWhatIsNotIts(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	_, err := g.gate.Begin(g.ctx, "x", run.DefaultLimits(), run.OfFlow(run.FlowRef{Name: "f"}))
	want(t, err, run.ErrUsage)
	_, err = g.gate.Begin(g.ctx, "", run.DefaultLimits())
	want(t, err, run.ErrUsage)
	_, err = g.gate.Begin(g.ctx, "x", run.Limits{})
	want(t, err, run.ErrUsage)
	_, err = run.NewGate(run.Config{}).Begin(g.ctx, "x", run.DefaultLimits())
	want(t, err, run.ErrUsage)
	_, err = run.NewGate(run.Config{}).Attach(g.ctx, "run_x")
	want(t, err, run.ErrUsage)
	_, err = g.gate.Attach(g.ctx, "run_none")
	want(t, err, run.ErrNotFound)

	s := g.begin()
	_, err = g.other().Attach(g.ctx, s.Run().ID)
	want(t, err, run.ErrRunLeased)
	g.must(g.step(s).Propose(g.ctx, run.Proposal{Kind: run.Complete}))
	_, err = g.gate.Attach(g.ctx, s.Run().ID)
	want(t, err, run.ErrRunState)
	_, err = g.gate.BeginWithID(g.ctx, s.Run().ID, "x", run.DefaultLimits())
	want(t, err, run.ErrRunState)
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

// While one call is at work the others are refused; Close waits.
func TestGateOneAtATime(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	door := newGate()
	g.then(door.hold)
	s := g.begin()
	o := g.step(s)
	in, err := o.Input(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	g.propose(o, "write", `{}`)
	done := make(chan run.Verdict, 1)
	go func() { v, _ := o.Execute(g.ctx); done <- v }()
	<-door.began
	for _, fn := range []func() error{
		func() error { _, err := s.Step(g.ctx); return err },
		func() error { _, err := o.Propose(g.ctx, proposes("look", `{}`)); return err },
		func() error { _, err := o.Execute(g.ctx); return err },
		func() error { _, _, err := o.Reserve(g.ctx); return err },
		func() error { _, err := o.Confirm(g.ctx, nil, nil); return err },
		func() error { _, err := o.Input(g.ctx); return err },
		func() error { return in.Meter.Charge(g.ctx, 1, 0) },
	} {
		g.unchanged(s.Run().ID, run.ErrRunState, fn)
	}
	if st := o.Step(); st.Status != run.Executing {
		t.Errorf("the step is %s", st.Status)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close(g.ctx) }()
	close(door.open)
	g.want(<-done, run.VerdictSucceeded)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	r := g.stored(s.Run().ID)
	if r.Status != run.Running || !r.LeaseUntil.IsZero() || r.Current.Observation != run.WasInterrupted {
		t.Errorf("after Close: %+v", r)
	}
}

func TestGateReservation(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	_, o, res := g.reserved("write")
	c, as := g.call(res.CallID)
	if len(as) != 1 || c.Status != call.Running || as[0].N != res.Attempt || as[0].Fence != res.Fence {
		t.Errorf("call %+v, attempts %+v, reservation %+v", c, as, res)
	}
	if res.Tool != "write" || string(res.Args) != `{"n":1}` || res.RunID != c.RunID || res.StepID != c.StepID || res.Deadline.IsZero() {
		t.Errorf("reservation %+v", res)
	}
	ctx, cancel := res.Within(g.ctx)
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	cancel()
	res.Args[1] = 'x' // it is the caller's own
	g.want(g.confirm(o), run.VerdictSucceeded)
	if c, _ = g.call(res.CallID); c.Status != call.Succeeded || string(c.Result) != "1" || string(c.Args) != `{"n":1}` {
		t.Errorf("call %+v", c)
	}
	if g.ran.Load() != 0 {
		t.Error("the registered tool ran")
	}
}

// A reserved call whose outcome is unknown and whose tool declares a key is the
// caller's to repeat, under the same call id.
func TestGateReserveAgain(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	_, o, first := g.reserved("keyed")
	v := g.want(g.must(o.Confirm(g.ctx, nil, tool.ErrOutcomeUnknown)), run.VerdictAllowed)
	if v.Run.Current.Status != run.Interrupted {
		t.Errorf("step %+v", v.Run.Current)
	}
	second := g.reserve(o)
	if second.CallID != first.CallID || second.Attempt != 2 || second.Fence <= first.Fence {
		t.Errorf("reservations %+v, %+v", first, second)
	}
	g.want(g.confirm(o), run.VerdictSucceeded)
}

func TestGateExecuteRepeats(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.then(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Attempt == 1 {
			return nil, tool.ErrOutcomeUnknown
		}
		return json.RawMessage(`2`), nil
	})
	o := g.step(g.begin())
	g.propose(o, "keyed", `{}`)
	if v := g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded); string(v.Result) != "2" {
		t.Errorf("verdict %+v", v)
	}
}

func TestGateCancelWhileReserved(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s, o, res := g.reserved("write")
	if err := (decision.Operator{Store: g.st}).Cancel(g.ctx, res.RunID, "ana", "stop"); err != nil {
		t.Fatal(err)
	}
	v := g.want(g.confirm(o), run.VerdictEnded)
	if !v.Late || v.Run.Reason != run.OperatorCancelled {
		t.Errorf("verdict %+v", v)
	}
	c, as := g.call(res.CallID)
	if c.Status != call.Succeeded || !as[0].Late || as[0].Outcome != call.Succeeded {
		t.Errorf("call %+v, attempts %+v", c, as)
	}
	if r := g.stored(res.RunID); r.Current.Status != run.StepFailed || r.Current.Observation != run.WasInterrupted {
		t.Errorf("the late outcome became the step's: %+v", r.Current)
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrEnded) {
		t.Errorf("a step: %v", err)
	}
}

// A session that is lost while its step is reserved: the step is interrupted like any
// other, and what its caller reports is recorded as late.
func TestGateLostWhileReserved(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s, o, res := g.reserved("write")
	g.clock.Advance(run.DefaultLease + time.Second)
	other := g.attach(g.other(), res.RunID)
	r := other.Run()
	if r.Status != run.Waiting {
		t.Fatalf("run %+v", r)
	}
	if _, err := o.Confirm(g.ctx, json.RawMessage(`1`), nil); !errors.Is(err, run.ErrLeaseLost) {
		t.Fatalf("confirm: %v", err)
	}
	c, as := g.call(res.CallID)
	if c.Status != call.Succeeded || !as[0].Late {
		t.Errorf("call %+v, attempts %+v", c, as)
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrRunState) {
		t.Errorf("a step of a lost session: %v", err)
	}
	g.unchanged(res.RunID, run.ErrRunState, func() error { _, err := o.Confirm(g.ctx, nil, nil); return err })
	// What was asked is answered by the outcome: the run goes on without a person.
	s = g.attach(g.gate, res.RunID)
	in, err := g.step(s).Input(g.ctx)
	if err != nil || in.Steps[0].Result != "1" {
		t.Errorf("input %+v %v", in.Steps, err)
	}
}

func TestGateLostWhileExecuting(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	door := newGate()
	g.then(door.hold)
	s := g.begin()
	o := g.step(s)
	g.propose(o, "write", `{}`)
	failed := make(chan error, 1)
	go func() { _, err := o.Execute(g.ctx); failed <- err }()
	<-door.began
	g.clock.Advance(run.DefaultLease + time.Second)
	if r := g.attach(g.other(), s.Run().ID).Run(); r.Status != run.Waiting {
		t.Fatalf("run %+v", r)
	}
	close(door.open)
	if err := <-failed; !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("execute: %v", err)
	}
	if _, as := g.call(g.stored(s.Run().ID).Current.CallID); len(as) != 1 || !as[0].Late || as[0].Outcome != call.Succeeded {
		t.Errorf("attempts %+v", as)
	}
}

// Nothing is started, recorded or claimed by a session whose run was taken over.
func TestGateLostBefore(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(g *gated, o *run.OpenStep) error{
		"propose": func(g *gated, o *run.OpenStep) error { _, err := o.Propose(g.ctx, proposes("look", `{}`)); return err },
		"fail":    func(g *gated, o *run.OpenStep) error { _, err := o.Fail(g.ctx, errors.New("no")); return err },
		"execute": func(g *gated, o *run.OpenStep) error { _, err := o.Execute(g.ctx); return err },
		"reserve": func(g *gated, o *run.OpenStep) error { _, _, err := o.Reserve(g.ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			s := g.begin()
			o := g.step(s)
			if name == "execute" || name == "reserve" {
				g.propose(o, "look", `{}`)
			}
			g.clock.Advance(run.DefaultLease + time.Second)
			other := g.attach(g.other(), s.Run().ID)
			g.unchanged(s.Run().ID, run.ErrLeaseLost, func() error { return do(g, o) })
			g.unchanged(s.Run().ID, run.ErrLeaseLost, func() error { _, err := s.Step(g.ctx); return err })
			g.close(s)
			if st := g.step(other).Step(); st.Index != 2 || st.Status != run.Deciding || g.ran.Load() != 0 {
				t.Errorf("step %+v", st)
			}
		})
	}
}

func TestGateClose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool   string
		prove  func(g *gated, o *run.OpenStep)
		status run.Status
		step   run.StepStatus
	}{
		"undecided": {"", func(*gated, *run.OpenStep) {}, run.Running, run.StepFailed},
		"allowed":   {"write", func(*gated, *run.OpenStep) {}, run.Running, run.StepFailed},
		"reserved":  {"write", func(g *gated, o *run.OpenStep) { g.reserve(o) }, run.Waiting, run.AwaitingApproval},
		"read only": {"look", func(g *gated, o *run.OpenStep) { g.reserve(o) }, run.Running, run.StepFailed},
		"keyed":     {"keyed", func(g *gated, o *run.OpenStep) { g.reserve(o) }, run.Running, run.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			s := g.begin()
			o := g.step(s)
			if c.tool != "" {
				g.want(g.propose(o, c.tool, `{}`), run.VerdictAllowed)
			}
			c.prove(g, o)
			g.close(s)
			r := g.stored(s.Run().ID)
			if r.Status != c.status || r.Current.Status != c.step || !r.LeaseUntil.IsZero() || r.StepCount != 1 {
				t.Fatalf("after Close: %s, step %d is %s, lease until %s", r.Status, r.StepCount, r.Current.Status, r.LeaseUntil)
			}
			if c.status == run.Waiting {
				return
			}
			o = g.step(g.attach(g.other(), r.ID)) // at once: the lease was given back
			if v := o.Verdict(); name == "keyed" && v.Outcome != run.VerdictAllowed {
				t.Errorf("the repeat's verdict: %+v", v)
			}
			if name == "keyed" {
				if res := g.reserve(o); res.Attempt != 2 {
					t.Errorf("reservation %+v", res)
				}
				g.confirm(o)
			}
		})
	}
}

// What a caller knows of a reserved call is taken also after Close.
func TestGateConfirmAfterClose(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s, o, res := g.reserved("write")
	g.close(s)
	v := g.confirm(o)
	c, as := g.call(res.CallID)
	if !v.Late || c.Status != call.Succeeded || !as[0].Late {
		t.Errorf("verdict %+v, call %+v, attempts %+v", v, c, as)
	}
	g.unchanged(res.RunID, run.ErrRunState, func() error { _, err := o.Confirm(g.ctx, nil, nil); return err })
	if st := g.step(g.attach(g.gate, res.RunID)).Step(); st.Index != 2 {
		t.Errorf("step %+v", st)
	}
}

func TestGateStop(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s := g.begin()
	o := g.step(s)
	g.propose(o, "look", `{}`)
	g.gate.Stop()
	g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded)
	_, err := s.Step(g.ctx)
	want(t, err, run.ErrStopped)
	_, err = g.gate.Begin(g.ctx, "x", run.DefaultLimits())
	want(t, err, run.ErrStopped)
	_, err = g.gate.Attach(g.ctx, s.Run().ID)
	want(t, err, run.ErrStopped)
	ctx, cancel := context.WithCancel(g.ctx)
	cancel()
	want(t, g.gate.Wait(ctx), context.Canceled)
	g.close(s)
	if err := g.gate.Wait(g.ctx); err != nil {
		t.Error(err)
	}
	if st := g.step(g.attach(g.other(), s.Run().ID)).Step(); st.Index != 2 {
		t.Errorf("step %+v", st)
	}
}

// A caller's context that ends stops a tool, and not the session.
func TestGateContextEnds(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	ctx, cancel := context.WithCancel(g.ctx)
	g.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		cancel()
		return json.RawMessage(`1`), nil
	})
	s := g.begin()
	o := g.step(s)
	g.propose(o, "look", `{}`)
	if _, err := o.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	if st := g.step(s).Step(); st.Index != 2 || st.Status != run.Deciding {
		t.Errorf("step %+v", st)
	}
}

// flaky is a store that fails its n-th update from when it is set, before or after its commit.
type flaky struct {
	txn.Store
	mu    sync.Mutex
	in    int
	after bool
}

func (f *flaky) fail(in int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in, f.after = in, after
}

func (f *flaky) due() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in--
	return f.in == 0 && !f.after, f.in == 0 && f.after
}

func (f *flaky) Update(ctx context.Context, fn func(txn.Tx) error) error {
	before, after := f.due()
	if before {
		return txn.ErrNotCommitted.Say("The disk is full.")
	}
	err := f.Store.Update(ctx, fn)
	if after && err == nil {
		return txn.ErrUnknown.Say("Nobody knows.")
	}
	return err
}

// After a write that failed, or of which nobody knows, the same call may be made again.
func TestGateTriesAgain(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"not committed": false, "unknown": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &flaky{}
			g := newGated(t, func(c *run.Config) { f.Store, c.Store, c.Log = c.Store, f, slog.New(slog.DiscardHandler) })
			s := g.begin()
			f.fail(1, after)
			o := g.step(s)
			p := proposes("look", `{}`)
			if _, err := o.Propose(g.ctx, p); err == nil {
				t.Fatal("the store's failure was swallowed")
			}
			v, err := o.Propose(g.ctx, p)
			if after {
				want(t, err, run.ErrRunState) // it is recorded
			} else {
				g.want(g.must(v, err), run.VerdictAllowed)
			}
			f.fail(1, after)
			_, err = o.Execute(g.ctx) // the start
			if err == nil {
				t.Fatal("the store's failure was swallowed")
			}
			v, err = o.Execute(g.ctx)
			ran := int64(1)
			if after { // an attempt that nobody may act on: the step is interrupted when the lease ends
				ran = 0
				want(t, err, run.ErrLeaseLost)
				g.clock.Advance(run.DefaultLease + time.Second)
				if st := g.step(g.attach(g.other(), s.Run().ID)).Step(); st.Index != 2 {
					t.Errorf("step %+v", st)
				}
			} else {
				g.want(g.must(v, err), run.VerdictSucceeded)
			}
			if n := g.ran.Load(); n != ran {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

// The outcome of a reserved call is kept until it is stored.
func TestGateConfirmsAgain(t *testing.T) {
	t.Parallel()
	f := &flaky{}
	g := newGated(t, func(c *run.Config) { f.Store, c.Store = c.Store, f })
	_, o, res := g.reserved("write")
	f.fail(1, true) // committed, and nobody knows: the run tells
	g.want(g.confirm(o), run.VerdictSucceeded)
	if _, as := g.call(res.CallID); len(as) != 1 || as[0].Late {
		t.Errorf("attempts %+v", as)
	}
}

// Two sessions may attach to one grant; one of them starts.
func TestGateTwoAttach(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	one, two := g.attach(g.gate, v.Run.ID), g.attach(g.other(), v.Run.ID)
	first, second := g.step(one), g.step(two)
	res := g.reserve(first)
	g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := second.Execute(g.ctx); return err })
	g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := two.Step(g.ctx); return err })
	g.close(two)
	g.want(g.confirm(first), run.VerdictSucceeded)
	if g.ran.Load() != 0 || res.Attempt != 1 {
		t.Errorf("%d calls, %+v", g.ran.Load(), res)
	}
}

// An approved run is attached to while it is cancelled, and while a tool is missing.
func TestGateApprovedAndGone(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	c := g.conf
	c.Tools = &tool.Registry{}
	g.unchanged(v.Run.ID, tool.ErrUnknown, func() error { _, err := run.NewGate(c).Attach(g.ctx, v.Run.ID); return err })
	s := g.attach(g.gate, v.Run.ID)
	o := g.step(s)
	if err := (decision.Operator{Store: g.st}).Cancel(g.ctx, v.Run.ID, "ana", ""); err != nil {
		t.Fatal(err)
	}
	g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := o.Execute(g.ctx); return err })
	_, err := s.Step(g.ctx)
	want(t, err, run.ErrEnded)
	if s.Run().Reason != run.OperatorCancelled {
		t.Errorf("run %+v", s.Run())
	}
}

// A policy that fails writes nothing, and the grant is there to be tried again.
func TestGatePolicyFails(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	o := g.step(g.attach(g.gate, v.Run.ID))
	g.mu.Lock()
	g.rule = func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{}, errors.New("no rules")
	}
	g.mu.Unlock()
	g.unchanged(v.Run.ID, policy.ErrFailed, func() error { _, err := g.gate.Attach(g.ctx, v.Run.ID); return err })
	g.unchanged(v.Run.ID, policy.ErrFailed, func() error { _, err := o.Execute(g.ctx); return err })
	g.rules(policy.Ruling{Outcome: policy.Allow})
	g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded)
}

// A verdict is told also where the caller's context ended on the way to it.
func TestGateContextEndsInDoubt(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	ctx, cancel := context.WithCancel(g.ctx)
	g.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		cancel()
		return nil, tool.ErrOutcomeUnknown
	})
	o := g.step(g.begin())
	g.propose(o, "write", `{}`)
	v, err := o.Execute(ctx)
	if g.want(g.must(v, err), run.VerdictPending); v.ApprovalDigest == "" {
		t.Errorf("verdict %+v", v)
	}
}

// The lease of a reserved attempt is not renewed once its time is up.
func TestGateDeadline(t *testing.T) {
	t.Parallel()
	g := newGatedAt(t, nil, nil, func(c *run.Config) { c.LeaseTTL = time.Second })
	g.register("brief", tool.LocalMutation, func(t *tool.Tool) { t.TimeoutMS = 1 })
	s, o, res := g.reserved("brief")
	within, cancel := res.Within(g.ctx)
	defer cancel()
	<-within.Done()
	other := g.other()
	taken, err := other.Attach(g.ctx, res.RunID)
	for ; errors.Is(err, run.ErrRunLeased); taken, err = other.Attach(g.ctx, res.RunID) {
		runtime.Gosched()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(taken)
	if r := taken.Run(); r.Status != run.Waiting {
		t.Errorf("run %+v", r)
	}
	_, err = o.Confirm(g.ctx, json.RawMessage(`1`), nil)
	want(t, err, run.ErrLeaseLost)
	_, err = s.Step(g.ctx)
	want(t, err, run.ErrRunState)
	if _, as := g.call(res.CallID); !as[0].Late || as[0].Outcome != call.Succeeded {
		t.Errorf("attempts %+v", as)
	}
}

// A session that attached to one grant spends no other one: not that of a later step,
// and not one that was asked for anew.
func TestGateAttachedToAnEarlierGrant(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(g *gated, v run.Verdict) run.Verdict{
		"next step": func(g *gated, v run.Verdict) run.Verdict {
			s := g.attach(g.other(), v.Run.ID)
			g.want(g.must(g.step(s).Execute(g.ctx)), run.VerdictSucceeded)
			return g.propose(g.step(s), "push", `{"n":2}`)
		},
		"asked anew": func(g *gated, v run.Verdict) run.Verdict {
			g.rules(policy.Ruling{Outcome: policy.RequireApproval, Kind: "another"})
			return run.Verdict{Run: g.attach(g.other(), v.Run.ID).Run()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			v := g.propose(g.step(g.begin()), "push", `{"n":1}`)
			g.approve(v)
			late := g.attach(g.gate, v.Run.ID)
			o := g.step(late)
			next := goOn(g, v).Run.ApprovalID
			if next == v.ApprovalID {
				t.Fatal("the run did not go on")
			}
			if err := (decision.Operator{Store: g.st}).Approve(g.ctx, v.Run.ID, next, "ana", ""); err != nil {
				t.Fatal(err)
			}
			ran := g.ran.Load()
			g.unchanged(v.Run.ID, run.ErrRunState, func() error {
				res, _, err := o.Reserve(g.ctx)
				if res.CallID != "" {
					t.Errorf("reserved %+v", res)
				}
				return err
			})
			g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := o.Execute(g.ctx); return err })
			if n := g.ran.Load(); n != ran {
				t.Errorf("the tool ran %d times more", n-ran)
			}
			g.want(g.must(g.step(g.attach(g.gate, v.Run.ID)).Execute(g.ctx)), run.VerdictSucceeded)
		})
	}
}

// broken is a store that fails as a test says.
type broken struct {
	txn.Store
	fail func() error
}

func (b *broken) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if b.fail != nil {
		if err := b.fail(); err != nil {
			return err
		}
	}
	return b.Store.Update(ctx, fn)
}

// What Confirm could not store before the run was taken over is stored by the next
// one, as late, and answers the question that a person has been asked since.
func TestGateConfirmsAgainAfterTakeover(t *testing.T) {
	t.Parallel()
	b := &broken{}
	g := newGated(t, func(c *run.Config) { b.Store, c.Store = c.Store, b })
	_, o, res := g.reserved("write")
	b.fail = func() error { return errors.New("the disk is gone") }
	_, err := o.Confirm(g.ctx, json.RawMessage(`"done"`), nil)
	want(t, err, txn.ErrUnknown)
	b.fail = nil
	g.clock.Advance(run.DefaultLease + time.Second)
	taken := g.attach(g.other(), res.RunID).Run()
	if taken.Status != run.Waiting {
		t.Fatalf("run %+v", taken)
	}
	v := g.confirm(o)
	if c, as := g.call(res.CallID); !v.Late || c.Status != call.Succeeded || len(as) != 1 || as[0].Outcome != call.Succeeded {
		t.Errorf("late: %v; call %s, attempts %+v", v.Late, c.Status, as)
	}
	if _, err := o.Confirm(g.ctx, json.RawMessage(`"done"`), nil); !errors.Is(err, run.ErrRunState) {
		t.Errorf("once more: %v", err)
	}
	if s := g.attach(g.gate, res.RunID); s.Run().Current.Index != 2 {
		t.Errorf("run %+v", s.Run())
	}
}

// An outcome of which it is not known whether it was stored is kept where the run was
// cancelled meanwhile: that is no sign that it was.
func TestUnknownOutcomeOfACancelledRun(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, proposes("write", `{}`), run.Proposal{Kind: run.Complete})
			b := &broken{Store: w.st}
			d := w.driver(func(c *run.Config) { c.Store = b })
			w.spy.then(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
				f := &flaky{Store: w.st}
				f.fail(1, true)
				b.Store = f
				if !committed {
					b.fail = func() error {
						b.fail, b.Store = nil, w.st
						return errors.Join(txn.ErrUnknown.Say("Nobody knows."), w.op.Cancel(w.ctx, c.RunID, "ana", ""))
					}
				}
				return json.RawMessage(`"x"`), nil
			})
			r, err := d.Start(w.ctx, "write", run.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			first := w.steps(r.ID)[0]
			if c := w.call(first.CallID); c.Status != call.Succeeded || string(c.Result) != `"x"` {
				t.Errorf("call %s %s", c.Status, c.Result)
			}
			if as := w.attempts(first.CallID); len(as) != 1 || as[0].Late == committed {
				t.Errorf("attempts %+v", as)
			}
		})
	}
}

// Nor does one whose own start may have been committed: a yes to run the call again is
// not its to spend.
func TestGateUnknownStartAndAnotherGrant(t *testing.T) {
	t.Parallel()
	f := &flaky{}
	g := newGated(t, func(c *run.Config) { f.Store, c.Store = c.Store, f })
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	o := g.step(g.attach(g.gate, v.Run.ID))
	f.fail(1, true)
	_, err := o.Execute(g.ctx)
	want(t, err, txn.ErrUnknown)
	g.clock.Advance(run.DefaultLease + time.Second)
	again := g.attach(g.other(), v.Run.ID).Run().ApprovalID
	if again == v.ApprovalID {
		t.Fatal("nobody is asked again")
	}
	if err := (decision.Operator{Store: g.st}).Approve(g.ctx, v.Run.ID, again, "ana", ""); err != nil {
		t.Fatal(err)
	}
	g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := o.Execute(g.ctx); return err })
	if n := g.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
	g.want(g.must(g.step(g.attach(g.gate, v.Run.ID)).Execute(g.ctx)), run.VerdictSucceeded)
}
