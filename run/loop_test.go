package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// Short for what most scripts are made of.
var (
	calls     = placettest.Calls
	completes = placettest.Completes
	fails     = placettest.Fails
)

// does is an agent that does the same each time.
type does func(ctx context.Context, in run.StepInput) (run.Proposal, error)

func (f does) Decide(ctx context.Context, in run.StepInput) (run.Proposal, error) { return f(ctx, in) }

// same proposes the same call for ever.
func same(p run.Proposal) run.Agent {
	return does(func(context.Context, run.StepInput) (run.Proposal, error) { return p, nil })
}

// fresh proposes a call that no step had before.
func fresh(name string) run.Agent {
	return does(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		return calls(name, fmt.Sprintf(`{"n":%d}`, in.Run.StepCount)), nil
	})
}

func TestRound(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{"n":1}`), calls("push", ` {"n": 2.0} `), completes(`"fine"`))
	r := w.waiting()
	w.ran(`look{"n":1}`)
	if d := w.asked(r.ID); d.Reason == "" || d.StepID != r.Current.ID || d.CallID != "" || d.Owner != r.Ref() || d.Digest == "" {
		t.Errorf("asked %+v", d)
	}
	w.approve(r)
	w.ran(`look{"n":1}`) // a yes does not go on with it
	r = w.resume(r)
	w.stands(r, run.Completed, run.GoalCompleted)
	w.ran(`look{"n":1} push {"n": 2.0} `)
	if r.Result != `"fine"` || r.StepCount != 3 || r.Usage.ModelCalls != 3 {
		t.Errorf("ended as %+v", r)
	}
	if got := w.told(r.ID); got != "done:tool_result done:tool_result done" {
		t.Errorf("steps %s", got)
	}
	const want = "run.created run.started step.started step.decided step.policy step.tool_started step.tool_finished " +
		"step.started step.decided step.policy approval.requested approval.decided " +
		"run.resumed step.policy step.tool_started step.tool_finished step.started step.decided run.finished"
	if got := w.types(r.ID); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	_, err := w.d.Resume(w.ctx, r.ID)
	w.refused(err, "run_state")
	w.refused(w.d.Cancel(w.ctx, r.ID, "ana", ""), "run_state")
}

// Every way in which a run ends, by a run that ends so.
func TestReasons(t *testing.T) {
	t.Parallel()
	most := func(set func(*run.Limits)) func(*world) run.Run {
		return func(w *world) run.Run {
			w.agent = fresh("look")
			return w.start(set)
		}
	}
	answered := func(answer func(w *world, r run.Run)) func(*world) run.Run {
		return func(w *world) run.Run {
			w.agent = fresh("push")
			r := w.waiting(func(l *run.Limits) { l.ApprovalTTL = time.Hour })
			answer(w, r)
			return w.run(r.ID)
		}
	}
	asked := func(a does) func(*world) run.Run {
		return func(w *world) run.Run { w.agent = a; return w.start() }
	}
	ruled := func(ru policy.Ruling, err error) func(*world) run.Run {
		return func(w *world) run.Run {
			w.agent = fresh("look")
			w.policy.always(ru, err)
			return w.start()
		}
	}
	over := map[run.Reason]func(w *world) run.Run{
		run.GoalCompleted:    asked(func(context.Context, run.StepInput) (run.Proposal, error) { return completes(""), nil }),
		run.GoalFailed:       asked(func(context.Context, run.StepInput) (run.Proposal, error) { return fails("no way"), nil }),
		run.LimitSteps:       most(func(l *run.Limits) { l.MaxSteps = 4 }),
		run.LimitModelCalls:  most(func(l *run.Limits) { l.MaxModelCalls = 4 }),
		run.LimitActiveTime:  func(w *world) run.Run { return w.slow(func(l *run.Limits) { l.MaxActiveTime = 4 * time.Second }) },
		run.LimitElapsedTime: func(w *world) run.Run { return w.slow(func(l *run.Limits) { l.MaxElapsedTime = 4 * time.Second }) },
		run.LimitTokens:      func(w *world) run.Run { return w.thinking(func(l *run.Limits) { l.MaxTotalTokens = 40 }) },
		run.LimitCost:        func(w *world) run.Run { return w.thinking(func(l *run.Limits) { l.MaxEstimatedCost = 400 }) },
		run.RepeatedFailures: func(w *world) run.Run {
			w.agent = fresh("look")
			w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("broken") })
			return w.start()
		},
		run.LoopDetected: func(w *world) run.Run {
			w.agent = same(calls("look", `{"n":1}`))
			return w.start()
		},
		run.PolicyAbort: ruled(policy.Ruling{Outcome: policy.Abort, Reason: "enough"}, nil),
		run.ToolAbort: func(w *world) run.Run {
			w.agent = fresh("look")
			w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
				return nil, tool.ErrAbort.Say("stop it all")
			})
			return w.start()
		},
		run.ApprovalRejected: answered(func(w *world, r run.Run) {
			if err := w.op.Reject(w.ctx, r.ID, r.ApprovalID, "ana", "not now"); err != nil {
				w.t.Error(err)
			}
		}),
		run.ApprovalExpired: answered(func(w *world, r run.Run) {
			w.clock.Advance(time.Hour + time.Microsecond)
			w.resume(r)
		}),
		run.OperatorCancelled: answered(func(w *world, r run.Run) {
			if err := w.d.Cancel(w.ctx, r.ID, "ana", "changed my mind"); err != nil {
				w.t.Error(err)
			}
		}),
		run.ReconcileConflict: func(w *world) run.Run {
			w.agent = fresh("write")
			r := w.lost()
			w.use(func(c *run.Config) {
				c.Reconcile = func(context.Context, run.InterruptedStep) (run.Reconciliation, error) {
					return run.Reconciliation{Verdict: run.Conflict, Message: "half of it is there"}, nil
				}
			})
			return w.resume(r)
		},
		run.AgentError: asked(func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, errors.New("no idea")
		}),
		run.ModelUnavailable: asked(func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, run.ErrModelUnavailable.Say("429")
		}),
		run.InternalError: ruled(policy.Ruling{Outcome: "perhaps"}, nil),
	}
	reasons := run.Reasons()
	if len(over) != len(reasons) || len(reasons) != 19 {
		t.Fatalf("%d reasons, %d ways to come to one", len(reasons), len(over))
	}
	for _, reason := range reasons {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := over[reason](w)
			if r.Reason != reason || !r.Status.Terminal() || r.FinishedAt.IsZero() {
				t.Fatalf("ended as %s %s: %s", r.Status, r.Reason, r.Detail)
			}
			if want := statusOf(reason); r.Status != want {
				t.Errorf("it is %s, want %s", r.Status, want)
			}
			if r.Detail == "" && reason != run.GoalCompleted {
				t.Error("it does not say why in words")
			}
			for _, f := range []func() error{
				func() error { _, err := w.d.Resume(w.ctx, r.ID); return err },
				func() error { return w.d.Cancel(w.ctx, r.ID, "ana", "") },
			} {
				w.refused(f(), "run_state")
			}
		})
	}
}

func statusOf(r run.Reason) run.Status {
	switch r {
	case run.GoalCompleted:
		return run.Completed
	case run.ApprovalRejected, run.ApprovalExpired, run.OperatorCancelled:
		return run.Cancelled
	}
	return run.Failed
}

// slow is a run each of whose steps takes a second.
func (w *world) slow(set func(*run.Limits)) run.Run {
	w.t.Helper()
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		w.clock.Advance(time.Second)
		return fresh("look").Decide(ctx, in)
	})
	return w.start(set)
}

// thinking is a run each of whose steps takes 10 tokens and 100 of money.
func (w *world) thinking(set func(*run.Limits)) run.Run {
	w.t.Helper()
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		if err := in.Meter.Charge(ctx, 10, 100); err != nil {
			return run.Proposal{}, err
		}
		return fresh("look").Decide(ctx, in)
	})
	return w.start(set)
}

// Several limits are reached at once: the order of spec 1.1 says which counts.
func TestOrderOfLimits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	order := []struct {
		want run.Reason
		off  func(*run.Limits)
	}{
		{run.LimitSteps, func(l *run.Limits) { l.MaxSteps = 50 }},
		{run.RepeatedFailures, func(l *run.Limits) { l.MaxConsecutiveToolFailures = 50 }},
		{run.LimitActiveTime, func(l *run.Limits) { l.MaxActiveTime = 0 }},
		{run.LimitElapsedTime, func(l *run.Limits) { l.MaxElapsedTime = 0 }},
		{run.LoopDetected, func(l *run.Limits) { l.LoopThreshold = 50 }},
		{run.LimitModelCalls, func(l *run.Limits) { l.MaxModelCalls = 0 }},
		{run.LimitTokens, func(l *run.Limits) { l.MaxTotalTokens = 0 }},
		{run.LimitCost, func(l *run.Limits) { l.MaxSteps = 4 }},
	}
	l := run.Limits{
		MaxSteps: 3, MaxConsecutiveToolFailures: 3, MaxActiveTime: 1, MaxElapsedTime: 1, LoopThreshold: 3,
		MaxModelCalls: 3, MaxTotalTokens: 3, MaxEstimatedCost: 3,
	}
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("broken") })
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		if in.Run.StepCount == 3 {
			w.clock.Advance(time.Second)
		}
		return calls("look", `{"n":1}`), in.Meter.Charge(ctx, 1, 1)
	})
	for _, o := range order {
		r := w.start(func(to *run.Limits) { *to = l })
		if r.Reason != o.want || r.StepCount != 3 {
			t.Errorf("%s after %d steps, want %s (%s)", r.Reason, r.StepCount, o.want, r.Detail)
		}
		o.off(&l)
	}
}

// Waiting for people counts as elapsed time, never as active time.
func TestTwoTimes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		w.clock.Advance(time.Second)
		return fresh("push").Decide(ctx, in)
	})
	active := func(l *run.Limits) { l.MaxActiveTime = 3 * time.Second }
	r := w.waiting(active)
	for range 2 {
		w.clock.Advance(24 * time.Hour)
		w.approve(r)
		r = w.resume(r)
		w.stands(r, run.Waiting, "")
	}
	w.approve(r)
	w.clock.Advance(time.Hour)
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		w.clock.Advance(time.Second) // the tool's time is the run's
		return json.RawMessage(`1`), nil
	})
	r = w.resume(r)
	w.stands(r, run.Failed, run.LimitActiveTime)
	if r.Active != 4*time.Second || r.StepCount != 3 {
		t.Errorf("active for %s in %d steps", r.Active, r.StepCount)
	}
	w.spy.then(nil)
	r = w.approved(func(l *run.Limits) { l.MaxElapsedTime = time.Hour })
	w.clock.Advance(time.Hour)
	before := len(w.spy.calls())
	r = w.resume(r)
	w.stands(r, run.Failed, run.LimitElapsedTime)
	if n := len(w.spy.calls()) - before; n != 1 { // what was approved still ran: limits are judged before a step
		t.Errorf("%d tools ran", n)
	}
}

// Failures in a row: tool errors and denials count, a success ends the streak, and
// invalid decisions neither count nor end it.
func TestStreaks(t *testing.T) {
	t.Parallel()
	bad, good, denied, invalid := calls("look", `{"s":"bad"}`), calls("look", `{"s":"good"}`), calls("drop", `{}`), calls("nothing", `{}`)
	for _, tt := range []struct {
		name string
		ps   []run.Proposal
		want run.Reason
		told string
	}{
		{"three", []run.Proposal{bad, denied, bad}, run.RepeatedFailures, "failed:tool_error failed:policy_denied failed:tool_error"},
		{"a success between", []run.Proposal{bad, denied, good, bad, denied}, run.GoalCompleted, "failed:tool_error failed:policy_denied done:tool_result failed:tool_error failed:policy_denied done"},
		{"invalid between", []run.Proposal{bad, invalid, denied, invalid, bad}, run.RepeatedFailures, "failed:tool_error failed:invalid_decision failed:policy_denied failed:invalid_decision failed:tool_error"},
		{"only invalid", []run.Proposal{invalid, invalid, invalid, invalid}, run.GoalCompleted, "failed:invalid_decision failed:invalid_decision failed:invalid_decision failed:invalid_decision done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, tt.ps...)
			w.spy.then(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
				if strings.Contains(string(c.Args), "bad") {
					return nil, errors.New("broken")
				}
				return json.RawMessage(`1`), nil
			})
			r := w.start(func(l *run.Limits) { l.LoopThreshold = 10 })
			if got := w.told(r.ID); r.Reason != tt.want || got != tt.told {
				t.Errorf("%s: %s, want %s: %s", r.Reason, got, tt.want, tt.told)
			}
		})
	}
}

// The same call so often in a row: by tool and value of the arguments, not by their spelling.
func TestLoops(t *testing.T) {
	t.Parallel()
	one, spelt, two := calls("look", `{"n":1,"s":""}`), calls("look", "{\"s\": \"\",\n\"n\": 1.0}"), calls("look", `{"n":2}`)
	for _, tt := range []struct {
		name string
		ps   []run.Proposal
		want run.Reason
	}{
		{"spelt otherwise", []run.Proposal{one, spelt, one}, run.LoopDetected},
		{"another between", []run.Proposal{one, one, two, one, one}, run.GoalCompleted},
		{"another tool between", []run.Proposal{one, one, calls("write", `{"n":1,"s":""}`), one}, run.GoalCompleted},
		{"garbage between", []run.Proposal{one, one, calls("look", `{"n":`), one, one}, run.GoalCompleted},
		{"that does not fit", []run.Proposal{calls("look", `{"x":1}`), calls("look", `{"x":1}`), calls("look", `{"x":1}`)}, run.LoopDetected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, tt.ps...)
			if r := w.start(); r.Reason != tt.want {
				t.Errorf("%s after %d steps, want %s", r.Reason, r.StepCount, tt.want)
			}
		})
	}
}

// The agent has its own copy of everything.
func TestAgentThatMutatesItsInput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.use(func(c *run.Config) { c.Agent = run.AgentFunc(w.spoil) })
	r, err := w.d.Start(w.ctx, "do it", run.DefaultLimits(), run.As("bot"), run.WithMetadata(map[string]string{"k": "v"}),
		run.By(run.AgentRef{Argv: []string{"a", "b"}}))
	if err != nil {
		t.Fatal(err)
	}
	w.stands(r, run.Waiting, "")
	w.approve(r)
	r = w.resume(r)
	w.stands(r, run.Completed, run.GoalCompleted)
	if r.Metadata["k"] != "v" || len(r.Metadata) != 1 || r.Agent.Argv[0] != "a" || r.Goal != "do it" {
		t.Errorf("run %+v", r)
	}
	for _, v := range w.policy.views {
		if v.Metadata["k"] != "v" || len(v.Metadata) != 1 || v.Principal != "bot" || v.Goal != "do it" {
			t.Errorf("the policy saw %+v", v)
		}
	}
	rt, err := w.tools.Lookup("push")
	if err != nil || string(rt.InputSchema) != schema {
		t.Errorf("the schema is %s, %v", rt.InputSchema, err)
	}
	w.ran(`look{"n":1} push{"n":2}`)
}

// spoil changes all that it is given, and what it answered after it did.
func (w *world) spoil(_ context.Context, in run.StepInput) (run.Proposal, error) {
	n := len(in.Steps)
	if in.Run.Metadata["k"] != "v" || in.Run.Agent.Argv[0] != "a" {
		w.t.Errorf("step %d was given %+v", n, in.Run)
	}
	in.Run.Metadata["k"], in.Run.Metadata["more"] = "spoilt", "spoilt"
	in.Run.Agent.Argv[0], in.Run.Goal, in.Run.Limits.MaxSteps = "spoilt", "spoilt", 0
	copy(in.Run.Head.Hash, "spoilt")
	for i := range in.Steps {
		in.Steps[i].Args = "spoilt"
	}
	for i := range in.Approvals {
		copy(in.Approvals[i].Request, "spoilt")
		in.Approvals[i].Digest = "spoilt"
	}
	for i := range in.Tools {
		copy(in.Tools[i].InputSchema, "spoilt")
		in.Tools[i].SideEffect = tool.ReadOnly
	}
	return []run.Proposal{calls("look", `{"n":1}`), calls("push", `{"n":2}`), completes("")}[n], nil
}

func TestAgentSeesWhatHappened(t *testing.T) {
	t.Parallel()
	w := setup(t)
	agent := placettest.NewAgent(calls("look", `{"n":1}`), calls("push", `{"n":2}`), calls("drop", `{}`))
	w.agent = agent
	r := w.approved()
	w.resume(r)
	seen := agent.Seen()
	last := seen[len(seen)-1]
	if len(seen) != 4 || len(last.Steps) != 3 || len(last.Approvals) != 1 || len(last.Tools) != 4 || last.Run.Current.Index != 4 {
		t.Fatalf("it saw %d steps: %+v", len(seen), last)
	}
	for i, want := range []run.ObservationKind{run.ToolResult, run.ToolResult, run.PolicyDenied} {
		if s := last.Steps[i]; s.Observation != want || s.Index != int64(i+1) {
			t.Errorf("step %+v", s)
		}
	}
	if s := last.Steps[1]; s.Result != `{"ran":{"n":2}}` || s.ApprovalID != r.ApprovalID || s.Args != `{"n":2}` {
		t.Errorf("step %+v", s)
	}
	if d := last.Approvals[0]; d.Status != decision.Consumed || d.DecidedBy != "ana" {
		t.Errorf("approval %+v", d)
	}
}

func TestLongGoal(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	goal := strings.Repeat("日本語 goal ", 5000)[:70_000]
	goal = strings.ToValidUTF8(goal, "")
	r, err := w.d.Start(w.ctx, goal, run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	w.stands(r, run.Waiting, "")
	w.approve(r)
	r = w.resume(r)
	if w.stands(r, run.Completed, run.GoalCompleted); r.Goal != goal || w.run(r.ID).Goal != goal {
		t.Errorf("the goal has %d bytes", len(r.Goal))
	}
	_, err = w.d.Start(w.ctx, strings.Repeat("x", run.MaxGoal+1), run.DefaultLimits())
	w.refused(err, "usage")
}

// What cannot be kept is refused before anything is made.
func TestUnusableStarts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	limits := func(set func(*run.Limits)) run.Limits {
		l := run.DefaultLimits()
		set(&l)
		return l
	}
	good := run.DefaultLimits()
	for name, f := range map[string]func() error{
		"no steps":          func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxSteps = 0 })) },
		"negative steps":    func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxSteps = -1 })) },
		"no failures":       func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxConsecutiveToolFailures = 0 })) },
		"no loop":           func() error { return w.tries("goal", limits(func(l *run.Limits) { l.LoopThreshold = -3 })) },
		"negative active":   func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxActiveTime = -1 })) },
		"negative elapsed":  func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxElapsedTime = -1 })) },
		"negative calls":    func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxModelCalls = -1 })) },
		"negative tokens":   func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxTotalTokens = -1 })) },
		"negative cost":     func() error { return w.tries("goal", limits(func(l *run.Limits) { l.MaxEstimatedCost = -1 })) },
		"negative approval": func() error { return w.tries("goal", limits(func(l *run.Limits) { l.ApprovalTTL = -1 })) },
		"negative grant":    func() error { return w.tries("goal", limits(func(l *run.Limits) { l.GrantTTL = -1 })) },
		"no limits":         func() error { return w.tries("goal", run.Limits{}) },
		"no goal":           func() error { return w.tries("", good) },
		"goal that is none": func() error { return w.tries("\xff", good) },
		"goal with NUL":     func() error { return w.tries("a\x00b", good) },
		"reserved metadata": func() error { return w.tries("goal", good, run.WithMetadata(map[string]string{"origin": "x"})) },
		"bad metadata":      func() error { return w.tries("goal", good, run.WithMetadata(map[string]string{"a": "\xff"})) },
		"long metadata": func() error {
			return w.tries("goal", good, run.WithMetadata(map[string]string{"a": strings.Repeat("x", 5000)}))
		},
		"bad principal": func() error { return w.tries("goal", good, run.As("\x00")) },
		"continue by":   func() error { return w.tries("goal", good, run.ContinuedBy("anybody")) },
	} {
		if got := word(f()); got != "usage" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, id := range []string{"", "run_", "call_x", "run_a b", "run_a/b", "run_" + strings.Repeat("x", 197)} {
		_, err := w.d.StartWithID(w.ctx, id, "goal", good)
		w.refused(err, "usage")
	}
	if _, err := w.d.StartWithID(w.ctx, "run_mine", "goal", good); err != nil {
		t.Error(err)
	}
	_, err := w.d.StartWithID(w.ctx, "run_mine", "goal", good)
	w.refused(err, "run_state")
	_, err = w.d.Resume(w.ctx, "run_none")
	w.refused(err, "not_found")
	_, err = w.driver(func(c *run.Config) { c.Space = "other" }).Resume(w.ctx, "run_mine")
	w.refused(err, "not_found")
}

func (w *world) tries(goal string, l run.Limits, opts ...run.Option) error {
	_, err := w.d.Start(w.ctx, goal, l, opts...)
	return err
}

func TestUnusableDrivers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, change := range []func(*run.Config){
		func(c *run.Config) { c.Agent = nil },
		func(c *run.Config) { c.Store = nil },
		func(c *run.Config) { c.Tools = nil },
		func(c *run.Config) { c.LeaseTTL = 1 },
		func(c *run.Config) { c.ApprovalTTL = -1 },
		func(c *run.Config) { c.GrantTTL = -1 },
		func(c *run.Config) { c.DecideTimeout = -1 },
	} {
		d := w.driver(change)
		_, err := d.Start(w.ctx, "goal", run.DefaultLimits())
		w.refused(err, "usage")
		_, err = d.Resume(w.ctx, "run_x")
		w.refused(err, "usage")
	}
}

// What an agent says that nothing can be done with: recorded, told to it, and the
// loop goes on.
func TestGarbage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	for name, p := range map[string]run.Proposal{
		"nothing":             {},
		"unknown kind":        {Kind: "dance"},
		"kind that is none":   {Kind: "\xff\x00"},
		"long kind":           {Kind: run.ProposalKind(long)},
		"no tool":             {Kind: run.CallTool, Args: json.RawMessage(`{}`)},
		"unknown tool":        calls("nothing", `{}`),
		"tool that is none":   calls("\xff", `{}`),
		"tool with NUL":       calls("look\x00", `{}`),
		"long tool":           calls(long, `{}`),
		"no arguments":        {Kind: run.CallTool, Tool: "look"},
		"empty arguments":     calls("look", ``),
		"no object":           calls("look", `[]`),
		"null":                calls("look", `null`),
		"two objects":         calls("look", `{}{}`),
		"half an object":      calls("look", `{"n":`),
		"duplicate keys":      calls("look", `{"n":1,"n":2}`),
		"lone surrogate":      calls("look", `{"s":"\ud800"}`),
		"bytes that are none": calls("look", "{\"s\":\"\xff\"}"),
		"1e10001":             calls("look", `{"n":1e10001}`),
		"does not fit":        calls("look", `{"n":"one"}`),
		"unknown argument":    calls("look", `{"x":1}`),
		"long arguments":      calls("look", `{"s":"`+long+`"}`),
		"deep arguments":      calls("look", strings.Repeat(`{"s":`, 5000)+`1`+strings.Repeat(`}`, 5000)),
		"result that is none": {Kind: run.Complete, Result: json.RawMessage(`{`)},
		"long result":         {Kind: run.Complete, Result: json.RawMessage(`"` + long + `"`)},
		"two results":         {Kind: run.Complete, Result: json.RawMessage(`1 2`)},
		"surrogate result":    {Kind: run.Complete, Result: json.RawMessage(`"\udfff"`)},
		"text that is none":   {Kind: run.Fail, Text: "a\xffb\x00"},
		"long text":           {Kind: run.Fail, Text: long},
		"long raw":            {Kind: run.Complete, Raw: []byte(long)},
		"a flow's approval":   {Kind: run.AskApproval, Node: "n"},
		"a flow's node":       {Kind: run.CallTool, Tool: "push", Args: json.RawMessage(`{}`), Node: "n"},
		"node that is none":   {Kind: run.CallTool, Tool: "look", Args: json.RawMessage(`{}`), Node: "\xff\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, p, calls("look", `{"n":7}`))
			r := w.start()
			w.stands(r, run.Completed, run.GoalCompleted)
			w.ran(`look{"n":7}`)
			ss := w.steps(r.ID)
			if ss[0].Status != run.StepFailed || ss[0].Observation != run.InvalidDecision || ss[0].Message == "" || len(ss) != 3 {
				t.Fatalf("steps %s: %s", w.told(r.ID), ss[0].Message)
			}
			if len(ss[0].Message) > 4096 {
				t.Errorf("the agent is told %d bytes", len(ss[0].Message))
			}
			if w.policy.asked() != 1 {
				t.Errorf("the policy was asked %d times", w.policy.asked())
			}
			if !strings.HasPrefix(name, "long") && ss[0].Args != string(p.Args) {
				t.Errorf("recorded %q", ss[0].Args)
			}
		})
	}
}

// What a model said is kept as it came, before anything looks at it.
func TestVerbatim(t *testing.T) {
	t.Parallel()
	raw := "\x00garbage {\"n\":1}\xff"
	w := setup(t, run.Proposal{Kind: run.CallTool, Tool: "look", Args: json.RawMessage("\t{ \"n\" : 1.50 }\n"), Text: "why", Raw: []byte(raw)})
	r := w.start()
	s := w.steps(r.ID)[0]
	if s.Raw != raw || s.Args != "\t{ \"n\" : 1.50 }\n" || s.Said != "why" || s.Tool != "look" || s.Kind != run.CallTool {
		t.Errorf("recorded %+v", s)
	}
	w.ran("look\t{ \"n\" : 1.50 }\n")
}

// What an agent changes after it answered is not what was recorded.
func TestAgentThatKeepsItsAnswer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	args := []byte(`{"n":1}`)
	w.agent = does(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if len(in.Steps) > 0 {
			return completes(""), nil
		}
		return run.Proposal{Kind: run.CallTool, Tool: "push", Args: args}, nil
	})
	w.policy.set(func(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
		copy(args, `{"n":9}`)
		copy(r.Args, `{"n":8}`)
		return policy.Default().Evaluate(ctx, r, v)
	})
	r := w.approved()
	if s := w.steps(r.ID)[0]; s.Args != `{"n":1}` {
		t.Errorf("recorded %s", s.Args)
	}
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	w.ran(`push{"n":1}`)
}

// An agent that breaks ends its run, never the process.
func TestBrokenAgents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		agent does
		want  run.Reason
		says  string
	}{
		"panics":  {func(context.Context, run.StepInput) (run.Proposal, error) { panic("oh") }, run.AgentError, "panicked: oh"},
		"goexits": {goexit, run.AgentError, "Goexit"},
		"errors": {func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, errors.New("a\x00b\xff")
		}, run.AgentError, "a\uFFFDb\uFFFD"},
		"no model": {func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, fmt.Errorf("ask: %w", run.ErrModelUnavailable.Say("gone"))
		}, run.ModelUnavailable, "gone"},
		"hangs": {func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			<-ctx.Done()
			return run.Proposal{}, ctx.Err()
		}, run.AgentError, "in time"},
		"long error": {func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, errors.New(strings.Repeat("é", 5<<20))
		}, run.AgentError, "é"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.agent = tt.agent
			w.use(func(c *run.Config) {
				if name == "hangs" {
					c.DecideTimeout = time.Millisecond
				}
			})
			r := w.start()
			if w.stands(r, run.Failed, tt.want); !strings.Contains(r.Detail, tt.says) || len(r.Detail) > 1<<20 {
				t.Errorf("detail of %d bytes: %.200s", len(r.Detail), r.Detail)
			}
			if got := w.told(r.ID); got != "failed:invalid_decision" {
				t.Errorf("steps %s", got)
			}
		})
	}
}

// An agent that hangs whatever it is told is not waited for.
func TestAgentThatIgnoresItsTime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	g := newGate()
	defer close(g.open)
	w.use(func(c *run.Config) { c.DecideTimeout = time.Millisecond })
	w.agent = does(func(context.Context, run.StepInput) (run.Proposal, error) { g.pass(); return calls("push", `{}`), nil })
	w.stands(w.start(), run.Failed, run.AgentError)
	w.ran("")
}

// An agent that hangs is cut off where the run's own time is used up, and that is why
// the run ends.
func TestAgentThatUsesUpTheRunsTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit func(*run.Limits)
		want  run.Reason
	}{
		"active":  {func(l *run.Limits) { l.MaxActiveTime = 5 * time.Millisecond }, run.LimitActiveTime},
		"elapsed": {func(l *run.Limits) { l.MaxElapsedTime = 5 * time.Millisecond }, run.LimitElapsedTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			g := newGate()
			defer close(g.open)
			st, err := sqlite.Open(w.ctx, filepath.Join(t.TempDir(), "real.db"), nil) // by the real clock
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			w.use(func(c *run.Config) { c.Store, c.Now = st, nil })
			w.agent = does(func(context.Context, run.StepInput) (run.Proposal, error) { g.pass(); return calls("push", `{}`), nil })
			w.stands(w.start(tt.limit), run.Failed, tt.want)
			w.ran("")
		})
	}
}

// A context that ends while the agent is asked: the run is given back at once, and
// another process goes on with it.
func TestCancelledWhileDeciding(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		w := setup(t)
		ctx, cancel := context.WithCancel(w.ctx)
		g := newGate()
		w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			cancel()
			if ignores {
				g.pass()
			}
			<-ctx.Done()
			return run.Proposal{}, ctx.Err()
		})
		r, err := w.d.StartWithID(ctx, "run_x", "do it", run.DefaultLimits())
		close(g.open)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r = w.run("run_x"); r.Status != run.Running || !r.LeaseUntil.IsZero() {
			t.Errorf("run %+v", r)
		}
		w.agent = placettest.NewAgent()
		w.stands(w.resume(r), run.Completed, run.GoalCompleted)
		if got := w.told(r.ID); got != "failed:interrupted done" {
			t.Errorf("steps %s", got)
		}
	}
}

// Stop gives the lease back at the next step boundary.
func TestStop(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{"n":1}`), calls("look", `{"n":2}`))
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) {
		w.d.Stop()
		return json.RawMessage(`1`), nil
	})
	r, err := w.d.Start(w.ctx, "do it", run.DefaultLimits())
	w.refused(err, "stopped")
	if w.ran(`look{"n":1}`); r.Status != run.Running || !r.LeaseUntil.IsZero() || r.Current.Status != run.Done {
		t.Errorf("run %+v", r)
	}
	_, err = w.d.Resume(w.ctx, r.ID)
	w.refused(err, "stopped")
	w.spy.then(nil)
	w.use(nil)
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	w.ran(`look{"n":1} look{"n":2}`)
	if got := w.types(r.ID); strings.Contains(got, "taken_over") || !strings.Contains(got, "run.resumed") {
		t.Errorf("events %s", got)
	}
}

// A policy that hears the end of its context in its own words does not fail the run.
func TestCancelledWhileJudging(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("push", `{}`))
	ctx, cancel := context.WithCancel(w.ctx)
	w.policy.set(func(ctx context.Context, _ request.Request, _ policy.View) (policy.Ruling, error) {
		cancel()
		return policy.Ruling{}, ctx.Err()
	})
	_, err := w.d.StartWithID(ctx, "run_x", "do it", run.DefaultLimits())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r := w.run("run_x")
	if r.Status != run.Running || !r.LeaseUntil.IsZero() {
		t.Fatalf("run %s %s, lease until %s", r.Status, r.Detail, r.LeaseUntil)
	}
	w.policy.set(nil)
	w.stands(w.resume(r), run.Waiting, "")
}

// A lease of some length that a slow agent or a slow tool outlasts is renewed all
// the while, and the loop goes on.
func TestLongerThanTheLease(t *testing.T) {
	t.Parallel()
	for _, slow := range []string{"agent", "tool"} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			w := quick(t, calls("write", `{"n":1}`), calls("write", `{"n":2}`))
			watched := &counting{Store: w.st, more: make(chan struct{}, 1000)}
			w.use(func(c *run.Config) { c.LeaseTTL, c.Store = 300*time.Millisecond, watched })
			outlast := func() {
				until := w.run("run_x").LeaseUntil
				watched.drain()
				for range 2 { // each renewal moves the end of the lease on
					<-watched.more
					w.clock.Advance(200 * time.Millisecond)
				}
				for !w.clock.Now().After(until) {
					<-watched.more
					w.clock.Advance(200 * time.Millisecond)
				}
				<-watched.more
			}
			if slow == "tool" {
				w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { outlast(); return json.RawMessage(`1`), nil })
			} else {
				inner := w.agent
				w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
					outlast()
					return inner.Decide(ctx, in)
				})
			}
			r, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
			if err != nil {
				t.Fatalf("run %s, %v", w.told("run_x"), err)
			}
			w.stands(r, run.Completed, run.GoalCompleted)
			w.ran(`write{"n":1} write{"n":2}`)
		})
	}
}
