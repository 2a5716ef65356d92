package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/store/storetest"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// gated is one test's own gate: a store, a clock, tools that count, a policy that the
// test may change.
type gated struct {
	t     *testing.T
	ctx   context.Context
	path  string
	clock *placettest.Clock // of its store; nil: it goes by the real one
	st    *store.Store
	tools *tool.Registry
	gate  *run.Gate
	conf  run.Config
	ran   atomic.Int64

	mu   sync.Mutex
	rule policy.Func
	do   func(ctx context.Context, c tool.Call) (json.RawMessage, error)
}

func newGated(t *testing.T, change ...func(*run.Config)) *gated {
	t.Helper()
	return newGatedAt(t, &placettest.Clock{}, &sqlite.Hooks{Twice: true, Strict: true}, change...)
}

func newGatedAt(t *testing.T, clock *placettest.Clock, h *sqlite.Hooks, change ...func(*run.Config)) *gated {
	t.Helper()
	g := &gated{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "p.db"), clock: clock}
	g.st = g.open(h)
	t.Cleanup(func() {
		if !t.Failed() && raceFactor == 1 { // it reads for too long under the race detector
			storetest.CheckInvariants(t, g.st)
		}
	})
	g.tools = &tool.Registry{}
	g.register("look", tool.ReadOnly, nil)
	g.register("push", tool.RemoteMutation, nil)
	g.register("drop", tool.Destructive, nil)
	g.register("keyed", tool.LocalMutation, func(t *tool.Tool) { t.Idempotent = true })
	g.register("write", tool.LocalMutation, nil)
	g.conf = run.Config{Store: g.st, Tools: g.tools, Policy: policy.Func(g.evaluate), LeaseOwner: "here"}
	for _, f := range change {
		f(&g.conf)
	}
	g.gate = run.NewGate(g.conf)
	return g
}

func (g *gated) register(name string, class tool.SideEffect, change func(*tool.Tool)) {
	g.t.Helper()
	t := tool.Tool{
		Spec: tool.Spec{
			Name: name, Description: "For tests.", SideEffect: class,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`),
		},
		Run: tool.RunnerFunc(g.run),
	}
	if change != nil {
		change(&t)
	}
	if err := g.tools.Register(t); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gated) run(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	g.ran.Add(1)
	g.mu.Lock()
	do := g.do
	g.mu.Unlock()
	if do != nil {
		return do(ctx, c)
	}
	return json.RawMessage(`{"ran":` + string(c.Args) + `}`), nil
}

func (g *gated) then(do func(ctx context.Context, c tool.Call) (json.RawMessage, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.do = do
}

func (g *gated) evaluate(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
	g.mu.Lock()
	rule := g.rule
	g.mu.Unlock()
	if rule == nil {
		rule = policy.Default().Evaluate
	}
	return rule(ctx, r, v)
}

func (g *gated) rules(ru policy.Ruling) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = func(context.Context, request.Request, policy.View) (policy.Ruling, error) { return ru, nil }
}

// open is one more handle on the store, as another process has one.
func (g *gated) open(h *sqlite.Hooks) *store.Store {
	g.t.Helper()
	o := &sqlite.Options{Hooks: h}
	if g.clock != nil {
		o.Now = g.clock.Now
	}
	return placettest.OpenFile(g.t, g.path, o)
}

// other is a gate of another process: a second handle on the same file.
func (g *gated) other() *run.Gate {
	g.t.Helper()
	c := g.conf
	c.Store = g.open(nil)
	c.LeaseOwner = "there"
	return run.NewGate(c)
}

func (g *gated) begin() *run.Session {
	g.t.Helper()
	s, err := g.gate.Begin(g.ctx, "do it", run.DefaultLimits())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { g.close(s) })
	return s
}

func (g *gated) close(s *run.Session) {
	g.t.Helper()
	if err := s.Close(context.Background()); err != nil {
		g.t.Errorf("close the session: %v", err)
	}
}

func (g *gated) attach(gate *run.Gate, runID string) *run.Session {
	g.t.Helper()
	s, err := gate.Attach(g.ctx, runID)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { g.close(s) })
	return s
}

func (g *gated) step(s *run.Session) *run.OpenStep {
	g.t.Helper()
	o, err := s.Step(g.ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

func (g *gated) propose(o *run.OpenStep, toolName, args string) run.Verdict {
	g.t.Helper()
	return g.must(o.Propose(g.ctx, proposes(toolName, args)))
}

func (g *gated) must(v run.Verdict, err error) run.Verdict {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	return v
}

func (g *gated) want(v run.Verdict, outcome run.VerdictOutcome) run.Verdict {
	g.t.Helper()
	if v.Outcome != outcome {
		g.t.Fatalf("verdict %q (%s), want %q", v.Outcome, v.Reason, outcome)
	}
	return v
}

func (g *gated) approve(v run.Verdict) {
	g.t.Helper()
	op := decision.Operator{Store: g.st}
	if err := op.ApproveShown(g.ctx, v.Run.ID, v.ApprovalID, v.ApprovalDigest, "ana", ""); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gated) stored(runID string) run.Run {
	g.t.Helper()
	var r run.Run
	err := txn.View(g.ctx, g.st, func(tx run.Tx) (err error) {
		r, err = tx.Run(runID)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func (g *gated) call(callID string) (c call.Call, as []call.Attempt) {
	g.t.Helper()
	err := txn.View(g.ctx, g.st, func(tx run.Tx) (err error) {
		if c, err = tx.Call(callID); err == nil {
			as, err = tx.Attempts(callID)
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return c, as
}

// events lists the types of a run's events, in order.
func (g *gated) events(runID string) []event.Type {
	g.t.Helper()
	var all []event.Type
	for cursor := event.Cursor(""); ; {
		page, err := event.Read(g.ctx, g.st, run.Run{ID: runID}.Stream(), cursor, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(page.Events) == 0 {
			return all
		}
		for _, e := range page.Events {
			all = append(all, e.Type)
		}
		cursor = page.Cursor
	}
}

// unchanged runs fn, which has to be refused as want, and compares the run with before.
func (g *gated) unchanged(runID string, want error, fn func() error) {
	g.t.Helper()
	before, events := g.stored(runID), len(g.events(runID))
	if err := fn(); !errors.Is(err, want) {
		g.t.Errorf("error %v, want %v", err, want)
	}
	if after := g.stored(runID); after.Version != before.Version || len(g.events(runID)) != events {
		g.t.Errorf("the refused call changed the run: version %d, now %d", before.Version, after.Version)
	}
}

func proposes(toolName, args string) run.Proposal {
	return run.Proposal{Kind: run.CallTool, Tool: toolName, Args: json.RawMessage(args), Text: "because"}
}

func TestGateWholeWay(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	s := g.begin()
	o := g.step(s)
	g.want(g.propose(o, "look", `{"n": 1}`), run.VerdictAllowed)
	if g.ran.Load() != 0 {
		t.Fatal("an allowed proposal ran before Execute")
	}
	v := g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded)
	if string(v.Result) != `{"ran":{"n": 1}}` {
		t.Errorf("result %s", v.Result)
	}
	o = g.step(s)
	in, err := o.Input(g.ctx)
	if err != nil || len(in.Steps) != 1 || in.Steps[0].Result != string(v.Result) || len(in.Tools) != 5 {
		t.Fatalf("input %+v %v", in, err)
	}
	v = g.want(g.propose(o, "push", `{"n":2}`), run.VerdictPending)
	if v.ApprovalID == "" || v.ApprovalDigest == "" || v.Run.Status != run.Waiting {
		t.Fatalf("pending verdict %+v", v)
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrRunState) {
		t.Errorf("a step of a waiting run: %v", err)
	}
	g.close(s)

	g.unchanged(v.Run.ID, run.ErrRunState, func() error { _, err := g.gate.Attach(g.ctx, v.Run.ID); return err })
	g.approve(v)
	s = g.attach(g.other(), v.Run.ID)
	o = g.step(s)
	if got := o.Verdict(); got.Outcome != run.VerdictAllowed || got.ApprovalID != v.ApprovalID || o.Step().Args != `{"n":2}` {
		t.Fatalf("the approved step: %+v, %+v", got, o.Step())
	}
	g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded)
	o = g.step(s)
	v = g.want(g.must(o.Propose(g.ctx, run.Proposal{Kind: run.Complete, Result: json.RawMessage(`"fine"`)})), run.VerdictEnded)
	if r := g.stored(v.Run.ID); r.Status != run.Completed || r.Result != `"fine"` || g.ran.Load() != 2 {
		t.Errorf("run %+v, %d calls", r, g.ran.Load())
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrEnded) {
		t.Errorf("a step of a completed run: %v", err)
	}
}

// A run of a driver and one of a gate leave the same events for the same decisions.
func TestGateEventsAsDriver(t *testing.T) {
	t.Parallel()
	script := []run.Proposal{
		proposes("look", `{"n":1}`), proposes("drop", `{}`), proposes("look", `{"x":1}`), proposes("nosuch", `{}`),
		proposes("push", `{"n":2}`),
		{Kind: "sing"},
		proposes("write", `{"n":3}`),
		{Kind: run.Complete, Result: json.RawMessage(`1`)},
	}
	fails := func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Tool == "write" {
			return nil, errors.New("disk full")
		}
		return json.RawMessage(`1`), nil
	}
	g := newGated(t, func(c *run.Config) {
		c.Agent = run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) { return script[len(in.Steps)], nil })
	})
	g.then(fails)
	d := run.NewDriver(g.conf)
	r, err := d.Start(g.ctx, "do it", run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Approve(g.ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
		t.Fatal(err)
	}
	if r, err = d.Resume(g.ctx, r.ID); err != nil || r.Status != run.Completed {
		t.Fatalf("driver's run: %s %s %v", r.Status, r.Reason, err)
	}

	for name, carry := range map[string]func(o *run.OpenStep) run.Verdict{
		"execute": func(o *run.OpenStep) run.Verdict { return g.must(o.Execute(g.ctx)) },
		"reserve": func(o *run.OpenStep) run.Verdict {
			res, _, err := o.Reserve(g.ctx)
			if err != nil {
				t.Fatal(err)
			}
			return g.must(o.Confirm(g.ctx, json.RawMessage(`1`), failing(res)))
		},
	} {
		s := g.begin()
		for _, p := range script {
			o := g.step(s)
			v := g.must(o.Propose(g.ctx, p))
			if v.Outcome == run.VerdictPending {
				g.close(s)
				g.approve(v)
				s = g.attach(g.gate, v.Run.ID)
				o = g.step(s)
				v = o.Verdict()
			}
			if v.Outcome == run.VerdictAllowed {
				carry(o)
			}
		}
		id := s.Run().ID
		if got, want := g.events(id), g.events(r.ID); !slices.Equal(got, want) {
			t.Errorf("%s: events\n%v, the driver's are\n%v", name, got, want)
		}
		compareRows(t, g, r.ID, id)
	}
}

func failing(res run.Reservation) error {
	if res.Tool == "write" {
		return errors.New("disk full")
	}
	return nil
}

// compareRows holds two runs of the same decisions against each other.
func compareRows(t *testing.T, g *gated, a, b string) {
	t.Helper()
	ra, rb := g.stored(a), g.stored(b)
	if ra.Status != rb.Status || ra.Reason != rb.Reason || ra.Result != rb.Result || ra.Version != rb.Version || ra.Fence != rb.Fence || ra.Failures != rb.Failures {
		t.Errorf("runs\n%+v\n%+v", ra, rb)
	}
	sa, sb := stepsOf(t, g, a), stepsOf(t, g, b)
	if len(sa) != len(sb) {
		t.Fatalf("%d steps and %d", len(sa), len(sb))
	}
	for i := range sa {
		x, y := sa[i], sb[i]
		x.ID, y.ID, x.RunID, y.RunID, x.CallID, y.CallID, x.ApprovalID, y.ApprovalID = "", "", "", "", "", "", "", ""
		if x != y {
			t.Errorf("step %d\n%+v\n%+v", i+1, x, y)
		}
	}
}

func stepsOf(t *testing.T, g *gated, runID string) (steps []run.Step) {
	t.Helper()
	err := txn.View(g.ctx, g.st, func(tx run.Tx) (err error) {
		steps, err = tx.Steps(runID, 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestGateVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proposal run.Proposal
		rule     *policy.Ruling
		want     run.VerdictOutcome
		reason   run.Reason // of the run; empty: it goes on
	}{
		"allowed":      {proposes("look", `{}`), nil, run.VerdictAllowed, ""},
		"pending":      {proposes("push", `{}`), nil, run.VerdictPending, ""},
		"denied":       {proposes("drop", `{}`), nil, run.VerdictDenied, ""},
		"unknown tool": {proposes("nosuch", `{}`), nil, run.VerdictInvalid, ""},
		"schema":       {proposes("look", `{"n":"x"}`), nil, run.VerdictInvalid, ""},
		"no JSON":      {proposes("look", `{"n":`), nil, run.VerdictInvalid, ""},
		"two objects":  {proposes("look", `{}{}`), nil, run.VerdictInvalid, ""},
		"no tool":      {proposes("", `{}`), nil, run.VerdictInvalid, ""},
		"no kind":      {run.Proposal{}, nil, run.VerdictInvalid, ""},
		"unknown kind": {run.Proposal{Kind: "sing"}, nil, run.VerdictInvalid, ""},
		"flow's kind":  {run.Proposal{Kind: run.AskApproval, Node: "a"}, nil, run.VerdictInvalid, ""},
		"no text":      {run.Proposal{Kind: run.Fail, Text: "a\x00b"}, nil, run.VerdictInvalid, ""},
		"aborted":      {proposes("look", `{}`), &policy.Ruling{Outcome: policy.Abort, Reason: "stop"}, run.VerdictAborted, run.PolicyAbort},
		"no ruling":    {proposes("look", `{}`), &policy.Ruling{Outcome: "maybe"}, run.VerdictEnded, run.InternalError},
		"complete":     {run.Proposal{Kind: run.Complete}, nil, run.VerdictEnded, run.GoalCompleted},
		"fail":         {run.Proposal{Kind: run.Fail, Text: "no way"}, nil, run.VerdictEnded, run.GoalFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			if c.rule != nil {
				g.rules(*c.rule)
			}
			s := g.begin()
			v := g.want(g.must(g.step(s).Propose(g.ctx, c.proposal)), c.want)
			if v.Run.Reason != c.reason || g.stored(v.Run.ID).Reason != c.reason || g.ran.Load() != 0 {
				t.Errorf("run %s %q, %d calls", v.Run.Status, v.Run.Reason, g.ran.Load())
			}
			if v.Reason == "" && c.want != run.VerdictAllowed && c.reason != run.GoalCompleted {
				t.Errorf("the verdict %s says no reason", v.Outcome)
			}
		})
	}
}

func TestGateOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool   string
		err    error
		want   run.VerdictOutcome
		reason run.Reason
	}{
		"succeeded":         {"write", nil, run.VerdictSucceeded, ""},
		"failed":            {"write", errors.New("disk full"), run.VerdictFailed, ""},
		"not started":       {"write", tool.ErrNotStarted, run.VerdictFailed, ""},
		"aborted":           {"write", tool.ErrAbort, run.VerdictAborted, run.ToolAbort},
		"unknown":           {"write", tool.ErrOutcomeUnknown, run.VerdictPending, ""},
		"unknown, harmless": {"look", tool.ErrOutcomeUnknown, run.VerdictFailed, ""},
	} {
		answer := func() (json.RawMessage, error) { return json.RawMessage(`1`), c.err }
		check := func(t *testing.T, g *gated, v run.Verdict) {
			t.Helper()
			g.want(v, c.want)
			if v.Run.Reason != c.reason || v.CallID == "" {
				t.Errorf("verdict %+v", v)
			}
		}
		t.Run("execute "+name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			g.then(func(context.Context, tool.Call) (json.RawMessage, error) { return answer() })
			o := g.step(g.begin())
			g.propose(o, c.tool, `{}`)
			check(t, g, g.must(o.Execute(g.ctx)))
		})
		t.Run("confirm "+name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			o := g.step(g.begin())
			g.propose(o, c.tool, `{}`)
			if _, _, err := o.Reserve(g.ctx); err != nil {
				t.Fatal(err)
			}
			result, err := answer()
			check(t, g, g.must(o.Confirm(g.ctx, result, err)))
			if g.ran.Load() != 0 {
				t.Error("the registered tool ran beside its caller")
			}
		})
	}
}

// What was allowed when it was proposed is judged again when it is started.
func TestGateJudgesAgainAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule policy.Ruling
		want run.VerdictOutcome
	}{
		"deny":  {policy.Ruling{Outcome: policy.Deny, Reason: "not now"}, run.VerdictDenied},
		"ask":   {policy.Ruling{Outcome: policy.RequireApproval, Reason: "ask first"}, run.VerdictPending},
		"abort": {policy.Ruling{Outcome: policy.Abort, Reason: "stop"}, run.VerdictAborted},
	} {
		for _, approved := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := newGated(t)
				o, rule := g.step(g.begin()), c.rule
				if approved {
					v := g.want(g.propose(o, "push", `{}`), run.VerdictPending)
					g.approve(v)
					o = g.step(g.attach(g.gate, v.Run.ID))
					rule.Kind = "another kind"
				} else {
					g.want(g.propose(o, "look", `{}`), run.VerdictAllowed)
				}
				g.rules(rule)
				res, v, err := o.Reserve(g.ctx)
				if err != nil || res.CallID != "" {
					t.Fatalf("reservation %+v %v", res, err)
				}
				g.want(v, c.want)
				if v.Ruling.Outcome != c.rule.Outcome && c.want != run.VerdictPending {
					t.Errorf("ruling %+v", v.Ruling)
				}
				if g.ran.Load() != 0 {
					t.Error("it ran")
				}
			})
		}
	}
}

func TestGateAttachJudgesAgain(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	g.rules(policy.Ruling{Outcome: policy.Deny, Reason: "not any more"})
	s := g.attach(g.gate, v.Run.ID)
	in, err := g.step(s).Input(g.ctx)
	if err != nil || len(in.Steps) != 1 || in.Steps[0].Observation != run.PolicyDenied {
		t.Fatalf("after a denial at Attach: %+v %v", in.Steps, err)
	}
	if d := in.Approvals[0]; d.Status != decision.Superseded {
		t.Errorf("the grant is %s", d.Status)
	}
}

func TestGateAttachAsksAnew(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	g.rules(policy.Ruling{Outcome: policy.RequireApproval, Kind: "another"})
	s := g.attach(g.gate, v.Run.ID)
	if r := s.Run(); r.Status != run.Waiting || r.ApprovalID == v.ApprovalID {
		t.Errorf("run %+v", r)
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrRunState) {
		t.Errorf("a step: %v", err)
	}
}

func TestGateAttachExpired(t *testing.T) {
	t.Parallel()
	g := newGated(t, func(c *run.Config) { c.GrantTTL = time.Minute })
	v := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(v)
	early := g.attach(g.gate, v.Run.ID)
	g.clock.Advance(time.Minute + time.Microsecond)
	// The session that attached in time is told at the start, like one that comes now.
	for _, do := range []func() run.Run{
		func() run.Run { return g.want(g.must(g.step(early).Execute(g.ctx)), run.VerdictEnded).Run },
		func() run.Run { return g.stored(v.Run.ID) },
	} {
		if r := do(); r.Status != run.Cancelled || r.Reason != run.ApprovalExpired || r.Current.Status != run.StepFailed {
			t.Errorf("run %+v", r)
		}
	}
	if g.ran.Load() != 0 {
		t.Error("a stale yes ran")
	}
	w := g.propose(g.step(g.begin()), "push", `{}`)
	g.approve(w)
	g.clock.Advance(time.Minute + time.Microsecond)
	if r := g.attach(g.gate, w.Run.ID).Run(); r.Reason != run.ApprovalExpired {
		t.Errorf("run %+v", r)
	}
}

func TestGateLimits(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	l := run.DefaultLimits()
	l.MaxSteps = 1
	s, err := g.gate.Begin(g.ctx, "do it", l)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(s)
	o := g.step(s)
	g.propose(o, "look", `{}`)
	v := g.want(g.must(o.Execute(g.ctx)), run.VerdictSucceeded)
	if v.Run.Reason != run.LimitSteps {
		t.Errorf("run %s %s", v.Run.Status, v.Run.Reason)
	}
	if _, err := s.Step(g.ctx); !errors.Is(err, run.ErrEnded) {
		t.Errorf("a step: %v", err)
	}
}

func TestGateFail(t *testing.T) {
	t.Parallel()
	for want, err := range map[run.Reason]error{
		run.AgentError: errors.New("no answer"), run.ModelUnavailable: run.ErrModelUnavailable, run.LimitModelCalls: run.ErrLimit,
	} {
		g := newGated(t)
		v := g.want(g.must(g.step(g.begin()).Fail(g.ctx, err)), run.VerdictEnded)
		if r := g.stored(v.Run.ID); r.Status != run.Failed || r.Reason != want {
			t.Errorf("run %s %s, want %s", r.Status, r.Reason, want)
		}
	}
}

func TestGateMeter(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	l := run.DefaultLimits()
	l.MaxTotalTokens = 10
	s, err := g.gate.Begin(g.ctx, "do it", l)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(s)
	o := g.step(s)
	in, err := o.Input(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Meter.Charge(g.ctx, 8, 0); err != nil {
		t.Fatal(err)
	}
	g.unchanged(s.Run().ID, run.ErrLimit, func() error { return in.Meter.Charge(g.ctx, 8, 0) })
	g.propose(o, "look", `{}`)
	g.must(o.Execute(g.ctx))
	g.unchanged(s.Run().ID, run.ErrRunState, func() error { return in.Meter.Charge(g.ctx, 1, 0) })
	if r := s.Run(); r.Usage.Tokens != 8 || r.Usage.ModelCalls != 2 {
		t.Errorf("usage %+v", r.Usage)
	}
}
