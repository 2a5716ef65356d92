package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// How tools end badly, and what becomes of the step: by what the tool declares.
func TestTools(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ways := map[string]struct {
		do      toolFunc
		unsure  bool // of a tool with effects
		ended   bool // by itself: that it is cancel-safe promises nothing then
		kind    call.Kind
		timeout bool
	}{
		"fails":       {func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("no") }, false, false, call.KindToolError, false},
		"panics":      {func(context.Context, tool.Call) (json.RawMessage, error) { panic("oh") }, true, false, call.KindToolPanic, false},
		"goexits":     {func(context.Context, tool.Call) (json.RawMessage, error) { runtime.Goexit(); return nil, nil }, true, false, call.KindToolPanic, false},
		"hangs":       {hang, true, false, call.KindToolTimeout, true},
		"unknown":     {func(context.Context, tool.Call) (json.RawMessage, error) { return nil, tool.ErrOutcomeUnknown.Say("?") }, true, false, "", false},
		"not started": {func(context.Context, tool.Call) (json.RawMessage, error) { return nil, tool.ErrNotStarted.Say("?") }, false, false, call.KindNotStarted, false},
		"garbage":     {func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`{"a":`), nil }, true, true, call.KindToolError, false},
		"two values":  {func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`1 2`), nil }, true, true, call.KindToolError, false},
		"surrogate":   {func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`"\ud800"`), nil }, true, true, call.KindToolError, false},
		"nothing":     {func(context.Context, tool.Call) (json.RawMessage, error) { return nil, nil }, true, true, call.KindToolError, false},
		"a long value": {func(context.Context, tool.Call) (json.RawMessage, error) {
			return json.RawMessage(`"` + strings.Repeat("x", tool.MaxResult) + `"`), nil
		}, true, true, call.KindToolError, false},
	}
	for name, way := range ways {
		for _, declared := range []string{"read only", "cancel safe", "with effects"} {
			t.Run(name+", "+declared, func(t *testing.T) {
				t.Parallel()
				w := setup(t, calls("write", `{"n":1}`))
				w.register("write", func(rt *tool.Tool) {
					rt.CancelSafe = declared == "cancel safe"
					if declared == "read only" {
						rt.SideEffect = tool.ReadOnly
					}
					if way.timeout {
						rt.TimeoutMS = 5
					}
				})
				w.spy.then(way.do)
				r := w.start()
				c := w.call(w.steps(r.ID)[0].CallID)
				if unsure := way.unsure && (declared == "with effects" || way.ended && declared == "cancel safe"); !unsure {
					if got := w.told(r.ID); got != "failed:tool_error done" || c.Status != call.Failed || w.steps(r.ID)[0].Message == "" {
						t.Errorf("steps %s, call %s", got, c.Status)
					}
					if way.kind != "" && c.Kind != way.kind {
						t.Errorf("kind %s, want %s", c.Kind, way.kind)
					}
					return
				}
				d := w.asked(r.ID)
				if w.stands(r, run.Waiting, ""); c.Status != call.Unknown || d.Kind != decision.KindInterrupted || d.Status != decision.Pending {
					t.Fatalf("call %s, asked %+v", c.Status, d)
				}
				for _, part := range []string{`"tool":"write"`, `"args":{"n":1}`, `"side_effect":"local_mutation"`, `outcome is unknown`} {
					if !strings.Contains(string(d.Presentation), part) {
						t.Errorf("it does not show %s: %s", part, d.Presentation)
					}
				}
				w.spy.then(nil)
				w.approve(r)
				w.stands(w.resume(r), run.Completed, run.GoalCompleted)
				w.ran(`write{"n":1} write{"n":1}`)
			})
		}
	}
}

// A tool that goes on regardless: the run asks a person, and the outcome that comes
// late answers instead, unless somebody was faster.
func TestToolThatIgnoresItsTime(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"none", "yes", "no", "policy"} {
		t.Run("answer "+answer, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("write", `{"n":1}`), calls("look", `{"n":2}`))
			w.register("write", func(rt *tool.Tool) { rt.TimeoutMS = 5 })
			g := newGate()
			w.spy.then(g.hold)
			r := w.waiting()
			w.spy.then(nil)
			asked := r.ApprovalID
			switch answer {
			case "yes":
				w.approve(r)
			case "no":
				if err := w.d.Reject(w.ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
					t.Fatal(err)
				}
			case "policy": // it is asked anew, in the policy's words
				w.approve(r)
				w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "special"}, nil)
				again := w.resume(r)
				if w.stands(again, run.Waiting, ""); again.ApprovalID == asked {
					t.Fatal("nothing was asked anew")
				}
				asked = again.ApprovalID
			}
			close(g.open)
			w.settle()
			c := w.call(r.Current.CallID)
			if c.Status != call.Succeeded || string(c.Result) != `"held"` || !w.attempts(c.ID)[0].Late {
				t.Fatalf("call %+v", c)
			}
			if answer == "no" {
				w.stands(w.run(r.ID), run.Cancelled, run.ApprovalRejected)
				return
			}
			want := decision.Withdrawn
			if answer == "yes" {
				want = decision.Superseded
			}
			if d := w.decision(asked); d.Status != want {
				t.Errorf("the question is %s", d.Status)
			}
			w.policy.set(nil)
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			if w.ran(`write{"n":1} look{"n":2}`); w.steps(r.ID)[0].Result != `"held"` {
				t.Errorf("step %+v", w.steps(r.ID)[0])
			}
		})
	}
}

// settle waits until nothing is at work any more.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := w.d.Wait(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// A read-only tool that outlives its time: the run goes on, its late outcome stands
// on its attempt alone.
func TestLateOutcomeOfReadOnly(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("look", `{"n":1}`), calls("push", `{}`))
	w.register("look", func(rt *tool.Tool) { rt.TimeoutMS = 5 })
	g := newGate()
	w.spy.then(g.hold)
	r := w.waiting()
	close(g.open)
	w.settle()
	s := w.steps(r.ID)[0]
	if a := w.attempts(s.CallID); s.Observation != run.ToolError || !a[0].Late || w.call(s.CallID).Status != call.Failed {
		t.Errorf("step %+v, attempts %+v", s, a)
	}
	w.stands(w.run(r.ID), run.Waiting, "")
}

// ctx ends during a tool that listens to it: of a tool with effects nobody knows.
func TestCancelledDuringTool(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"look": "failed:tool_error", "write": "awaiting_approval"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls(name, `{}`))
			ctx, cancel := context.WithCancel(w.ctx)
			w.spy.then(func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			})
			r, err := w.d.StartWithID(ctx, "run_x", "do it", run.DefaultLimits())
			if got := w.told("run_x"); got != want {
				t.Errorf("steps %s: %+v, %v", got, r, err)
			}
			if r = w.run("run_x"); !r.LeaseUntil.IsZero() {
				t.Errorf("it is leased until %s", r.LeaseUntil)
			}
			if name == "look" && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Killed in the middle of a tool, the lease over: by what may settle it.
func TestLostTool(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tool   string
		change func(rt *tool.Tool)
		told   string
		ran    string
		call   call.Status
	}{
		"read only":         {"look", nil, "interrupted:interrupted done:tool_result done", `look{"n":1} look{"n":1}`, call.Unknown},
		"person":            {"write", nil, "awaiting_approval", `write{"n":1}`, call.Unknown},
		"key":               {"write", func(rt *tool.Tool) { rt.Idempotent = true }, "done:tool_result done", `write{"n":1} write{"n":1}`, call.Succeeded},
		"probe, succeeded":  {"write", probed(tool.ProbeSucceeded, nil), "done:tool_result done", `write{"n":1}`, call.Succeeded},
		"probe, failed":     {"write", probed(tool.ProbeFailed, nil), "failed:tool_error done", `write{"n":1}`, call.Failed},
		"probe, not found":  {"write", probed(tool.ProbeNotFound, nil), "awaiting_approval", `write{"n":1}`, call.Unknown},
		"probe, error":      {"write", probed("", errors.New("no network")), "awaiting_approval", `write{"n":1}`, call.Unknown},
		"probe, garbage":    {"write", probed("perhaps", nil), "awaiting_approval", `write{"n":1}`, call.Unknown},
		"probe, no result":  {"write", func(rt *tool.Tool) { rt.Probe = proberOf(tool.ProbeResult{Outcome: tool.ProbeSucceeded}, nil) }, "awaiting_approval", `write{"n":1}`, call.Unknown},
		"probe and key":     {"write", func(rt *tool.Tool) { probed(tool.ProbeNotFound, nil)(rt); rt.Idempotent = true }, "done:tool_result done", `write{"n":1} write{"n":1}`, call.Succeeded},
		"probe panics, key": {"write", func(rt *tool.Tool) { rt.Probe = panicProbe{}; rt.Idempotent = true }, "awaiting_approval", `write{"n":1}`, call.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls(tt.tool, `{"n":1}`))
			w.register(tt.tool, tt.change)
			r := w.lost()
			if r.Status != run.Running || r.Current.Status != run.Executing {
				t.Fatalf("run %+v", r)
			}
			r = w.resume(r)
			if got := w.told(r.ID); got != tt.told {
				t.Errorf("steps %s, want %s", got, tt.told)
			}
			w.ran(tt.ran)
			c := w.call(w.steps(r.ID)[0].CallID)
			if c.Status != tt.call {
				t.Errorf("call %s, want %s", c.Status, tt.call)
			}
			for _, x := range w.spy.calls() {
				if name != "read only" && x.CallID != c.ID {
					t.Errorf("ran under another key: %+v", x)
				}
			}
			if types := w.types(r.ID); !strings.Contains(types, "lease.taken_over") {
				t.Errorf("events %s", types)
			}
		})
	}
}

func probed(outcome tool.ProbeOutcome, err error) func(*tool.Tool) {
	return func(rt *tool.Tool) {
		rt.Probe = proberOf(tool.ProbeResult{Outcome: outcome, Result: json.RawMessage(`"it did"`), Message: "it did not"}, err)
	}
}

func proberOf(r tool.ProbeResult, err error) tool.Prober {
	return tool.ProberFunc(func(context.Context, tool.Call) (tool.ProbeResult, error) { return r, err })
}

type panicProbe struct{}

func (panicProbe) Probe(context.Context, tool.Call) (tool.ProbeResult, error) { panic("oh") }

// A tool of that name that is read-only by now promises nothing for what ran.
func TestLostToolThatChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(rt *tool.Tool){
		"read only now":  func(rt *tool.Tool) { rt.SideEffect = tool.ReadOnly },
		"with a key now": func(rt *tool.Tool) { rt.Idempotent = true },
		"another, keyed": func(rt *tool.Tool) { rt.Idempotent, rt.Description = true, "Another." },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("write", `{"n":1}`))
			r := w.lost()
			w.register("write", change)
			w.stands(w.resume(r), run.Waiting, "")
			w.ran(`write{"n":1}`)
		})
	}
}

// A tool whose repeats are harmless, but that never tells: a person is asked in the end.
func TestKeyIsNoLoop(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("write", `{"n":1}`))
	w.register("write", func(rt *tool.Tool) { rt.Idempotent = true })
	w.spy.then(func(context.Context, tool.Call) (json.RawMessage, error) { panic("oh") })
	r := w.waiting()
	if d := w.asked(r.ID); d.Kind != decision.KindInterrupted || len(w.spy.calls()) != 3 {
		t.Errorf("asked %s after %d attempts", d.Kind, len(w.spy.calls()))
	}
	w.approve(r)
	r = w.resume(r)
	if w.stands(r, run.Waiting, ""); len(w.spy.calls()) != 4 {
		t.Errorf("%d attempts", len(w.spy.calls()))
	}
	w.spy.then(nil)
	w.approve(r)
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
}

// What the policy says before a repeat under the key counts.
func TestKeyAndPolicy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ru   policy.Ruling
		told string
	}{
		"denied":  {policy.Ruling{Outcome: policy.Deny}, "failed:policy_denied done"},
		"aborted": {policy.Ruling{Outcome: policy.Abort}, "interrupted:interrupted"},
		"asks":    {policy.Ruling{Outcome: policy.RequireApproval, Presentation: json.RawMessage(`{"title":"again"}`)}, "awaiting_approval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("write", `{"n":1}`))
			w.register("write", func(rt *tool.Tool) { rt.Idempotent = true })
			r := w.lost()
			w.policy.always(tt.ru, nil)
			r = w.resume(r)
			if got := w.told(r.ID); got != tt.told {
				t.Errorf("steps %s, want %s (%s %s)", got, tt.told, r.Status, r.Reason)
			}
			w.ran(`write{"n":1}`)
			if c := w.call(w.steps(r.ID)[0].CallID); c.Status != call.Unknown {
				t.Errorf("call %s", c.Status)
			}
			if name != "asks" {
				return
			}
			if d := w.asked(r.ID); !strings.Contains(string(d.Presentation), "may already have run") {
				t.Errorf("it shows %s", d.Presentation)
			}
			w.approve(r)
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.ran(`write{"n":1} write{"n":1}`)
		})
	}
}

// An approved tool that was lost: one yes after the interruption is enough, where it
// meets what the policy asked for (spec 1.11 p).
func TestInterruptedApproval(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(w *world, r run.Run)
		status run.Status
		reason run.Reason
		runs   int
	}{
		"approved": {func(w *world, r run.Run) { w.approve(r); w.resume(r) }, run.Completed, run.GoalCompleted, 2},
		"rejected": {func(w *world, r run.Run) {
			if err := w.d.Reject(w.ctx, r.ID, w.run(r.ID).ApprovalID, "ana", ""); err != nil {
				w.t.Error(err)
			}
		}, run.Cancelled, run.ApprovalRejected, 1},
		"expired": {func(w *world, r run.Run) { w.clock.Advance(48 * time.Hour); w.resume(r) }, run.Cancelled, run.ApprovalExpired, 1},
		"cancelled": {func(w *world, r run.Run) {
			if err := w.d.Cancel(w.ctx, r.ID, "ana", ""); err != nil {
				w.t.Error(err)
			}
		}, run.Cancelled, run.OperatorCancelled, 1},
		"approved and allowed": {func(w *world, r run.Run) {
			w.approve(r)
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
			w.resume(r)
		}, run.Completed, run.GoalCompleted, 2},
		"approved and denied": {func(w *world, r run.Run) {
			w.approve(r)
			w.policy.always(policy.Ruling{Outcome: policy.Deny}, nil)
			w.resume(r)
		}, run.Completed, run.GoalCompleted, 1},
		"approved and asked otherwise": {func(w *world, r run.Run) {
			w.approve(r)
			w.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "special"}, nil)
			w.resume(r)
			d := w.asked(r.ID)
			if d.Kind != "special" || !strings.Contains(string(d.Presentation), "may already have run") {
				w.t.Errorf("asked %+v", d)
			}
			w.approve(r)
			w.resume(r)
		}, run.Completed, run.GoalCompleted, 2},
		"approved and another tool": {func(w *world, r run.Run) {
			w.approve(r)
			w.register("push", func(rt *tool.Tool) { rt.Description = "Another." })
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
			w.resume(r)
			if d := w.asked(r.ID); d.Kind != decision.KindInterrupted || d.Status != decision.Pending {
				w.t.Errorf("asked %+v", d)
			}
			w.approve(r)
			w.resume(r)
		}, run.Completed, run.GoalCompleted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("push", `{"n":1}`))
			w.use(func(c *run.Config) { c.ApprovalTTL, c.GrantTTL = 24*time.Hour, 24*time.Hour })
			r := w.approved()
			h := w.inTool(func(d *run.Driver) (run.Run, error) { return d.Resume(w.ctx, r.ID) })
			h.life.die()
			_, _ = h.goOn()
			_, err := w.d.Resume(w.ctx, r.ID)
			if w.refused(err, "run_leased"); !errors.Is(err, run.ErrRunState) {
				t.Errorf("it does not match ErrRunState: %v", err)
			}
			if l, ok := run.LeasedOf(err); !ok || l.RunID != r.ID || l.Owner == "" || !l.ExpiresAt.Equal(w.run(r.ID).LeaseUntil) {
				t.Errorf("leased %+v", l)
			}
			w.clock.Advance(run.DefaultLease + time.Microsecond)
			lost := w.resume(r)
			if d := w.asked(r.ID); lost.Status != run.Waiting || d.Kind != decision.KindInterrupted || d.N != 2 || d.SpentDigest != w.decision(r.ApprovalID).Digest {
				t.Fatalf("run %s, asked %+v", lost.Status, d)
			}
			tt.answer(w, r)
			w.stands(w.run(r.ID), tt.status, tt.reason)
			if n := len(w.spy.calls()); n != tt.runs {
				t.Errorf("it ran %d times, want %d", n, tt.runs)
			}
			if c := w.call(r.Current.CallID); tt.runs == 1 && c.Status != call.Unknown || tt.runs == 2 && c.Status != call.Succeeded {
				t.Errorf("call %s", c.Status)
			}
		})
	}
}

// What a Reconcile says is done, and nothing else.
func TestReconcile(t *testing.T) {
	t.Parallel()
	says := func(r run.Reconciliation, err error) run.ReconcileFunc {
		return func(context.Context, run.InterruptedStep) (run.Reconciliation, error) { return r, err }
	}
	for name, tt := range map[string]struct {
		do     run.ReconcileFunc
		err    string
		status run.Status
		reason run.Reason
		told   string
	}{
		"continue":         {says(run.Reconciliation{Verdict: run.Continue}, nil), "", run.Completed, run.GoalCompleted, "interrupted:interrupted done:tool_result done"},
		"completed":        {says(run.Reconciliation{Verdict: run.WasCompleted, Result: json.RawMessage(`"found"`)}, nil), "", run.Completed, run.GoalCompleted, "done:tool_result done"},
		"waiting":          {says(run.Reconciliation{Verdict: run.AskPerson}, nil), "", run.Waiting, "", "awaiting_approval"},
		"conflict":         {says(run.Reconciliation{Verdict: run.Conflict}, nil), "", run.Failed, run.ReconcileConflict, "interrupted:interrupted"},
		"error":            {says(run.Reconciliation{Verdict: run.Continue}, errors.New("no disk")), "run_state", run.Running, "", "interrupted:interrupted"},
		"panic":            {func(context.Context, run.InterruptedStep) (run.Reconciliation, error) { panic("oh") }, "run_state", run.Running, "", "interrupted:interrupted"},
		"unknown verdict":  {says(run.Reconciliation{Verdict: "fine"}, nil), "run_state", run.Running, "", "interrupted:interrupted"},
		"no result":        {says(run.Reconciliation{Verdict: run.WasCompleted}, nil), "run_state", run.Running, "", "interrupted:interrupted"},
		"result is none":   {says(run.Reconciliation{Verdict: run.WasCompleted, Result: json.RawMessage(`{`)}, nil), "run_state", run.Running, "", "interrupted:interrupted"},
		"result too large": {says(run.Reconciliation{Verdict: run.WasCompleted, Result: json.RawMessage(`"` + strings.Repeat("x", tool.MaxResult) + `"`)}, nil), "run_state", run.Running, "", "interrupted:interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls("write", `{"n":1}`))
			r := w.lost()
			var saw run.InterruptedStep
			w.use(func(c *run.Config) {
				c.Reconcile = func(ctx context.Context, i run.InterruptedStep) (run.Reconciliation, error) {
					saw = i
					return tt.do(ctx, i)
				}
			})
			_, err := w.d.Resume(w.ctx, r.ID)
			w.refused(err, tt.err)
			now := w.run(r.ID)
			w.stands(now, tt.status, tt.reason)
			if got := w.told(r.ID); got != tt.told {
				t.Errorf("steps %s, want %s", got, tt.told)
			}
			if saw.CallID != r.Current.CallID || saw.Attempt != 1 || saw.Args != `{"n":1}` || saw.Tool.Name != "write" || saw.Step.ID != r.Current.ID {
				t.Errorf("it saw %+v", saw)
			}
			want := `write{"n":1}`
			if name == "continue" {
				want += ` write{"n":1}` // the agent's own word, in a new step
			}
			w.ran(want)
			if tt.err == "" {
				return
			}
			// It stays interrupted and belongs to nobody; one that can say goes on with it.
			if !now.LeaseUntil.IsZero() {
				t.Errorf("leased until %s", now.LeaseUntil)
			}
			w.use(func(c *run.Config) {
				c.Reconcile = says(run.Reconciliation{Verdict: run.WasCompleted, Result: json.RawMessage(`1`)}, nil)
			})
			w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			w.ran(want)
		})
	}
}

// A process that was only thought lost goes on: it writes nothing more, and what its
// tool answers stands on its attempt, or settles what nobody has settled yet.
func TestTakeoverWhileAlive(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tool  string
		keyed bool
		after func(w *world, r run.Run)
		told  string // in the end
		call  call.Status
	}{
		"waiting":     {"push", false, func(*world, run.Run) {}, "done:tool_result done", call.Succeeded},
		"ran again":   {"push", false, func(w *world, r run.Run) { w.approve(r); w.resume(r) }, "done:tool_result done", call.Succeeded},
		"rejected":    {"push", false, func(w *world, r run.Run) { w.d.Reject(w.ctx, r.ID, w.run(r.ID).ApprovalID, "ana", "") }, "failed:policy_denied", call.Succeeded},
		"by its key":  {"push", true, func(*world, run.Run) {}, "done:tool_result done", call.Succeeded},
		"read only":   {"look", false, func(*world, run.Run) {}, "interrupted:interrupted done:tool_result done", call.Succeeded},
		"and is over": {"push", false, func(w *world, r run.Run) { w.d.Cancel(w.ctx, r.ID, "ana", "") }, "failed:interrupted", call.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, calls(tt.tool, `{"n":1}`))
			w.register(tt.tool, func(rt *tool.Tool) { rt.Idempotent = tt.keyed })
			w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
			h := w.inTool(func(d *run.Driver) (run.Run, error) {
				return d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
			})
			w.clock.Advance(run.DefaultLease + time.Microsecond)
			r := w.resume(w.run("run_x"))
			tt.after(w, r)
			before := w.run("run_x")
			late, err := h.goOn()
			if before.Status.Terminal() {
				if err != nil || late.Status != before.Status {
					t.Errorf("the old process was told %+v, %v", late, err)
				}
			} else if w.refused(err, "lease_lost"); !errors.Is(err, run.ErrRunState) {
				t.Errorf("it does not match ErrRunState: %v", err)
			}
			now := w.run("run_x")
			now.Current.Result = before.Current.Result // its call's row has it
			if now.Status != before.Status || now.Reason != before.Reason || now.Current != before.Current || now.StepCount != before.StepCount {
				t.Errorf("the old process wrote:\n%+v, before\n%+v", now, before)
			}
			s := w.steps("run_x")[0]
			c := w.call(s.CallID)
			as := w.attempts(s.CallID)
			if a := as[0]; !a.Late || a.Outcome != call.Succeeded || c.Status != tt.call {
				t.Errorf("call %s, attempt %+v", c.Status, a)
			}
			if len(as) == 2 && string(c.Result) == `"held"` {
				t.Error("the first attempt answered for the second")
			}
			if name == "waiting" {
				w.stands(w.resume(r), run.Completed, run.GoalCompleted)
			}
			if got := w.told("run_x"); got != tt.told {
				t.Errorf("steps %s, want %s", got, tt.told)
			}
			if types := w.types("run_x"); !strings.Contains(types, "lease.taken_over") {
				t.Errorf("events %s", types)
			}
		})
	}
}

// An owner whose lease has ended, though nobody took the run over, still records its
// tool's outcome, claims nothing more and never takes its lease back.
func TestLeaseOverAndNobodyCame(t *testing.T) {
	t.Parallel()
	w := setup(t, calls("write", `{"n":1}`), calls("write", `{"n":2}`))
	h := w.inTool(func(d *run.Driver) (run.Run, error) {
		return d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
	})
	w.clock.Advance(run.DefaultLease + time.Microsecond)
	_, err := h.goOn()
	w.refused(err, "lease_lost")
	if r := w.run("run_x"); r.Status != run.Running || r.Current.Status != run.Done || r.Current.Result != `"held"` || r.LeaseUntil.After(w.clock.Now()) {
		t.Errorf("run %+v", r)
	}
	w.stands(w.resume(w.run("run_x")), run.Completed, run.GoalCompleted)
	w.ran(`write{"n":1} write{"n":2}`)
}

// The lease ends while the agent is asked: nothing that it says is started.
func TestLeaseOverWhileDeciding(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		w := setup(t)
		inner := placettest.NewAgent(calls("push", `{"n":1}`))
		g, first := newGate(), make(chan struct{}, 1)
		first <- struct{}{}
		w.policy.always(policy.Ruling{Outcome: policy.Allow}, nil)
		w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			select {
			case <-first:
				g.pass()
			default:
			}
			return inner.Decide(ctx, in)
		})
		done := make(chan error, 1)
		go func() {
			_, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
			done <- err
		}()
		<-g.began
		w.clock.Advance(run.DefaultLease + time.Microsecond)
		if taken {
			w.stands(w.resume(w.run("run_x")), run.Completed, run.GoalCompleted)
		}
		close(g.open)
		err := <-done
		if taken {
			w.refused(err, "")
			w.ran(`push{"n":1}`)
			if got := w.told("run_x"); got != "interrupted:interrupted done:tool_result done" {
				t.Errorf("steps %s", got)
			}
			continue
		}
		w.refused(err, "lease_lost")
		w.ran("")
		w.stands(w.resume(w.run("run_x")), run.Completed, run.GoalCompleted)
	}
}

// Cancel during a tool: the tool is not interrupted, its outcome is late, and the
// cancel has the last word (spec 1.4).
func TestCancelDuringTool(t *testing.T) {
	t.Parallel()
	w := quick(t, calls("write", `{"n":1}`), calls("write", `{"n":2}`))
	watched := &counting{Store: w.st, more: make(chan struct{}, 1000)}
	w.use(func(c *run.Config) { c.LeaseTTL, c.Store = 600*time.Millisecond, watched })
	w.spy.then(func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
		if err := w.op.Cancel(w.ctx, "run_x", "ana", "stop it"); err != nil {
			t.Error(err)
		}
		watched.drain()
		<-watched.more // a renewal that finds the run ended
		select {
		case <-ctx.Done():
			t.Errorf("the tool was interrupted: %v", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
		return json.RawMessage(`"done"`), nil
	})
	r, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	w.stands(r, run.Cancelled, run.OperatorCancelled)
	s := w.steps(r.ID)
	if len(s) != 1 || s[0].Status != run.StepFailed || s[0].Observation != run.WasInterrupted || !strings.Contains(s[0].Message, "stop it") || !strings.Contains(s[0].Message, "ana") {
		t.Errorf("steps %+v", s)
	}
	c := w.call(s[0].CallID)
	if a := w.attempts(c.ID)[0]; c.Status != call.Succeeded || string(c.Result) != `"done"` || !a.Late {
		t.Errorf("call %+v, attempt %+v", c, a)
	}
	w.ran(`write{"n":1}`)
	if types := w.types(r.ID); !strings.HasSuffix(types, "step.failed run.finished step.tool_finished") {
		t.Errorf("events %s", types)
	}
}

// Cancel while the agent or the policy is asked: nothing starts.
func TestCancelBeforeTool(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"agent", "policy"} {
		w := setup(t, calls("write", `{"n":1}`))
		cancel := func() {
			if err := w.op.Cancel(w.ctx, "run_x", "ana", ""); err != nil {
				t.Error(err)
			}
		}
		inner := w.agent
		w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			if when == "agent" {
				cancel()
			}
			return inner.Decide(ctx, in)
		})
		if when == "policy" {
			w.policy.set(func(context.Context, requestOf, policy.View) (policy.Ruling, error) {
				cancel()
				return policy.Ruling{Outcome: policy.Allow}, nil
			})
		}
		r, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		w.stands(r, run.Cancelled, run.OperatorCancelled)
		w.ran("")
	}
}

// A store of whose start commit most of the lease passed: the tool is not called.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	w := quick(t, calls("write", `{"n":1}`))
	slow := &slowStore{Store: w.st, spend: 50 * time.Millisecond}
	w.use(func(c *run.Config) { c.LeaseTTL, c.Store = 60*time.Millisecond, slow })
	r, err := w.d.StartWithID(w.ctx, "run_x", "do it", run.DefaultLimits())
	if w.ran(""); err != nil && word(err) != "lease_lost" {
		t.Errorf("run %s, %v", r.Status, err)
	}
	if s := w.steps("run_x")[0]; s.CallID != "" {
		if c := w.call(s.CallID); c.Status == call.Succeeded {
			t.Errorf("call %+v", c)
		}
	}
}

// The meter's own rules.
func TestMeter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var kept run.Meter
	say := func(want string, err error) {
		t.Helper()
		w.refused(err, want)
	}
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		m := in.Meter
		switch in.Run.StepCount {
		case 1: // the step's claim has charged the first call
			say("", m.Charge(ctx, 10, 100))
			say("", m.Settle(ctx, 7, 70))
			say("", m.Settle(ctx, 8, 80)) // corrected once more
			say("", m.Charge(ctx, 10, 100))
			say("", m.Settle(ctx, 10, 100))
			say("usage", m.Charge(ctx, -1, 0))
			say("usage", m.Settle(ctx, 0, -1))
			kept = m
		case 2: // a retry whose answer never came stays charged
			say("run_state", kept.Charge(ctx, 1, 1))
			say("", m.Charge(ctx, 20, 0))
			say("", m.Charge(ctx, 20, 0))
			say("limit_tokens", m.Charge(ctx, 1000, 0))
			say("limit_cost", m.Charge(ctx, 0, 1<<62))
			say("limit_tokens", m.Charge(ctx, 1<<63-1, 0))
			say("", m.Charge(ctx, 0, 0))
			if err := m.Charge(ctx, 1, 0); word(err) != "limit_model_calls" || !errors.Is(err, run.ErrLimit) {
				t.Errorf("the last call: %v", err)
			}
			say("", m.Settle(ctx, 500, 0)) // what was really taken is noted also past a limit
		}
		return fresh("look").Decide(ctx, in)
	})
	r := w.start(func(l *run.Limits) { l.MaxModelCalls, l.MaxTotalTokens, l.MaxEstimatedCost = 5, 100, 1000 })
	w.stands(r, run.Failed, run.LimitModelCalls)
	if want := (run.Usage{ModelCalls: 5, Tokens: 8 + 10 + 20 + 20 + 500, Cost: 180}); r.Usage != want {
		t.Errorf("charged %+v, want %+v", r.Usage, want)
	}
	say("run_state", kept.Charge(w.ctx, 1, 1))
	for reason, charge := range map[run.Reason]func(ctx context.Context, m run.Meter) error{
		run.LimitTokens: func(ctx context.Context, m run.Meter) error { return m.Charge(ctx, 101, 0) },
		run.LimitCost:   func(ctx context.Context, m run.Meter) error { return m.Charge(ctx, 0, 1001) },
		run.LimitModelCalls: func(ctx context.Context, m run.Meter) error {
			return errors.Join(m.Charge(ctx, 0, 0), m.Charge(ctx, 0, 0))
		},
	} {
		w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
			return run.Proposal{}, fmt.Errorf("ask the model: %w", charge(ctx, in.Meter))
		})
		r := w.start(func(l *run.Limits) { l.MaxModelCalls, l.MaxTotalTokens, l.MaxEstimatedCost = 1, 100, 1000 })
		if w.stands(r, run.Failed, reason); r.Usage != (run.Usage{ModelCalls: 1}) {
			t.Errorf("%s: charged %+v", reason, r.Usage)
		}
	}
}

// A charge in a run without limits never wraps around to nothing.
func TestMeterIsSaturated(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.agent = does(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		for range 3 {
			if err := in.Meter.Charge(ctx, 1<<63-1, 1<<63-1); err != nil {
				t.Error(err)
			}
		}
		return completes(""), nil
	})
	if r := w.start(); r.Usage.Tokens < 1<<62 || r.Usage.Cost < 1<<62 {
		t.Errorf("charged %+v", r.Usage)
	}
}

// Where the process that was thought lost tells while the probe is asked, the step
// learns what the call holds.
func TestProbeBesideALateOutcome(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	var o *run.OpenStep
	g.register("probed", tool.LocalMutation, func(tl *tool.Tool) {
		tl.Probe = tool.ProberFunc(func(ctx context.Context, _ tool.Call) (tool.ProbeResult, error) {
			_, err := o.Confirm(ctx, nil, errors.New("it failed"))
			want(t, err, run.ErrLeaseLost)
			return tool.ProbeResult{Outcome: tool.ProbeSucceeded, Result: json.RawMessage(`"done"`)}, nil
		})
	})
	_, open, res := g.reserved("probed")
	o = open
	g.clock.Advance(run.DefaultLease + time.Second)
	g.attach(g.other(), res.RunID)
	c, as := g.call(res.CallID)
	if st := stepsOf(t, g, res.RunID)[0]; c.Status != call.Failed || as[0].Outcome != call.Failed || st.Observation != run.ToolError || st.Message != c.Message {
		t.Errorf("call %s, attempt %s, step %s %q", c.Status, as[0].Outcome, st.Observation, st.Message)
	}
}
