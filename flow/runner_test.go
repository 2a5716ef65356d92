package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// world is a store on a file, a clock, and tools that count.
type world struct {
	t     *testing.T
	ctx   context.Context
	path  string
	clock *placettest.Clock
	st    *store.Store

	mu   sync.Mutex
	ran  []string          // tool and arguments, in order
	fail map[string]string // tool → the error it returns
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "p.db"), clock: &placettest.Clock{}, fail: map[string]string{}}
	w.st = w.open()
	return w
}

// open is another process's handle on the same file.
func (w *world) open() *store.Store {
	w.t.Helper()
	return placettest.OpenFile(w.t, w.path, &sqlite.Options{Now: w.clock.Now, Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
}

func (w *world) tool(name string, effect tool.SideEffect) tool.Tool {
	return tool.Tool{
		Spec: tool.Spec{Name: name, Description: "Notes that it ran.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: effect},
		Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ran = append(w.ran, name+string(c.Args))
			if why := w.fail[name]; why != "" {
				return nil, errors.New(why)
			}
			return json.RawMessage(`{"by":"` + name + `","n":2}`), nil
		}),
	}
}

// config knows look (allowed), publish (allowed), push (asks) and drop (denied).
func (w *world) config(s txn.Store) run.Config {
	w.t.Helper()
	tools, err := tool.NewRegistry(w.tool("look", tool.ReadOnly), w.tool("publish", tool.LocalMutation),
		w.tool("push", tool.RemoteMutation), w.tool("drop", tool.Destructive))
	if err != nil {
		w.t.Fatal(err)
	}
	return run.Config{Store: s, Tools: tools, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) runner(f flow.Flow) *flow.Runner {
	w.t.Helper()
	return w.runnerOn(w.st, f)
}

func (w *world) runnerOn(s txn.Store, f flow.Flow) *flow.Runner {
	w.t.Helper()
	r, err := flow.NewRunner(f, w.config(s))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) start(r *flow.Runner) run.Run {
	w.t.Helper()
	got, err := r.Start(w.ctx, nil, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *world) waits(r *flow.Runner, node string) run.Run {
	w.t.Helper()
	got := w.start(r)
	if got.Status != run.Waiting || got.Current.Node != node {
		w.t.Fatalf("the run is %s at %q: %s", got.Status, got.Current.Node, got.Detail)
	}
	return got
}

func (w *world) approve(of run.Run) {
	w.t.Helper()
	if err := (decision.Operator{Store: w.st, Now: w.clock.Now}).Approve(w.ctx, of.ID, of.ApprovalID, "ana", ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ran)
}

func (w *world) wantCalls(want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.calls()); d != "" {
		w.t.Errorf("the tools ran otherwise (-want +got):\n%s", d)
	}
}

func (w *world) wantEnd(got run.Run, err error, status run.Status, reason run.Reason, detail string) {
	w.t.Helper()
	if err != nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Detail, detail) {
		w.t.Errorf("the run is %s, %s, %q: %v; want %s, %s, %q", got.Status, got.Reason, got.Detail, err, status, reason, detail)
	}
}

// wantError wants an error that matches is and says each of the words, hint included.
func wantError(t *testing.T, err, is error, words ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
	b, _ := json.Marshal(err)
	for _, word := range words {
		if !strings.Contains(err.Error()+string(b), word) {
			t.Errorf("%s does not say %q", b, word)
		}
	}
}

// published is: look, ask a person about what was found, publish exactly that.
func published(version string) flow.Flow {
	return flow.Flow{Name: "publish", Version: version, Nodes: []flow.Node{
		flow.Call{Name: "collect", Tool: "look", Args: json.RawMessage(`{"q":"<new>"}`)},
		flow.Approve{Name: "ask", ArgsFrom: flow.ResultOf("collect"), Reason: "It cannot be taken back."},
		flow.Call{Name: "publish", Tool: "publish", ArgsFrom: flow.ArgsOf("ask")},
		flow.End{Name: "end", ResultFrom: flow.ResultOf("publish")},
	}}
}

func TestPauseAndResumeInAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"run", "approval"} {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.waits(w.runner(published("1")), "ask")
			w.wantCalls(`look{"q":"<new>"}`)

			d, err := decision.Operator{Store: w.st}.Show(w.ctx, r.ApprovalID)
			if err != nil || d.Node != "ask" || d.Reason != "It cannot be taken back." ||
				string(d.Presentation) != `{"node":"ask","args":{"by":"look","n":2}}` || d.Intact() != nil {
				t.Errorf("%+v %v", d, err)
			}
			other := w.runnerOn(w.open(), published("1"))
			if _, err := other.Resume(w.ctx, r.ID); !errors.Is(err, run.ErrRunState) {
				t.Errorf("before the yes: %v", err)
			}
			w.approve(r)
			id := r.ID
			if by == "approval" {
				id = r.ApprovalID
			}
			r, err = other.Resume(w.ctx, id)
			w.wantEnd(r, err, run.Completed, run.GoalCompleted, "")
			if r.Result != `{"by":"publish","n":2}` || r.Goal != "publish" || r.Usage != (run.Usage{}) { // no model was asked
				t.Errorf("%q %q %+v", r.Goal, r.Result, r.Usage)
			}
			w.wantCalls(`look{"q":"<new>"}`, `publish{"by":"look","n":2}`)
			if _, err := other.Resume(w.ctx, id); !errors.Is(err, run.ErrRunState) {
				t.Errorf("after the end: %v", err)
			}
			if rep, err := event.Verify(w.ctx, w.st, nil); err != nil || rep.Break != nil {
				t.Errorf("%+v %v", rep, err)
			}
		})
	}
}

// A node whose tool the policy asks about pauses the run at that node.
func TestPolicyAsksAboutACall(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"run", "approval"} {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			f := flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
				flow.Call{Name: "go", Tool: "push", Args: json.RawMessage(`{"n":1}`)}, flow.End{Name: "end"},
			}}
			r := w.waits(w.runner(f), "go")
			w.approve(r)
			id := r.ID
			if by == "approval" {
				id = r.ApprovalID
			}
			r, err := w.runnerOn(w.open(), f).Resume(w.ctx, id)
			w.wantEnd(r, err, run.Completed, run.GoalCompleted, "")
			w.wantCalls(`push{"n":1}`)
		})
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := flow.Flow{
		Name: "f", Version: "1", Input: json.RawMessage(`{"type":"object","required":["n"]}`),
		Nodes: []flow.Node{
			flow.Call{Name: "a", Tool: "look", ArgsFrom: func(r flow.Results) (any, error) {
				var in struct{ N int }
				err := r.Input(&in)
				return map[string]any{"twice": 2 * in.N, "as": r.RawInput()}, err
			}},
			flow.End{Name: "end"},
		},
	}
	r := w.runner(f)
	got, err := r.Start(w.ctx, json.RawMessage(`{"n": 4}`), &flow.StartOptions{RunID: "run_mine", Principal: "ben", Metadata: map[string]string{"k": "v"}})
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	if got.ID != "run_mine" || got.Principal != "ben" || got.Metadata["k"] != "v" || got.Goal != `f {"n": 4}` || got.Limits != r.Limits() {
		t.Errorf("%+v", got)
	}
	w.wantCalls(`look{"as":{"n":4},"twice":8}`)
	for _, bad := range []any{nil, json.RawMessage(`{}`), json.RawMessage(`{`), func() {}, strings.Repeat("x", 2<<20), panics{}} {
		_, err := r.Start(w.ctx, bad, nil)
		wantError(t, err, run.ErrUsage, `\"f\"`)
	}
	if _, err := r.Start(w.ctx, json.RawMessage(`{"n":1}`), &flow.StartOptions{RunID: "run_mine"}); !errors.Is(err, run.ErrRunState) {
		t.Errorf("an id in use: %v", err)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

func TestLimits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got, err := w.runner(published("1")).Start(w.ctx, nil, &flow.StartOptions{Limits: run.Limits{MaxSteps: 1}})
	w.wantEnd(got, err, run.Failed, run.LimitSteps, "max_steps")

	// The same call again and again is what the plan says, no loop that has to be detected.
	var nodes []flow.Node
	for _, name := range strings.Split("a b c d e f g h", " ") {
		nodes = append(nodes, flow.Call{Name: name, Tool: "look", OnFailure: name + "2"}, flow.Call{Name: name + "2", Tool: "look"})
	}
	w.fail["look"] = "not today"
	got, err = w.runner(flow.Flow{Name: "f", Version: "1", Nodes: append(nodes[:len(nodes)-1], flow.End{Name: "h2"})}).Start(w.ctx, nil, nil)
	w.wantEnd(got, err, run.Failed, run.GoalFailed, `Node "a2" failed: not today`)
}

// Tools are known at the start, or nothing is made.
func TestReady(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := published("1")
	f.Nodes[2] = flow.Call{Name: "publish", Tool: "publsh"}
	_, err := w.runner(f).Start(w.ctx, nil, nil)
	wantError(t, err, run.ErrUsage, `\"publish\"`, "publsh")
	wantError(t, err, tool.ErrUnknown)

	strict := w.tool("look", tool.ReadOnly)
	strict.InputSchema = json.RawMessage(`{"type":"object","required":["z"]}`)
	c := w.config(w.st)
	if err := c.Tools.Replace(strict); err != nil {
		t.Fatal(err)
	}
	r, err := flow.NewRunner(published("1"), c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Start(w.ctx, nil, nil)
	wantError(t, err, run.ErrUsage, `\"collect\"`, "z")
	w.wantRuns(0)

	// A process that does not know every tool goes on with nothing.
	paused := w.waits(w.runner(published("1")), "ask")
	w.approve(paused)
	few, err := tool.NewRegistry(w.tool("look", tool.ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	c.Tools = few
	if r, err = flow.NewRunner(published("1"), c); err != nil {
		t.Fatal(err)
	}
	_, err = r.Resume(w.ctx, paused.ID)
	wantError(t, err, tool.ErrUnknown, `\"publish\"`)
	got, err := w.runner(published("1")).Resume(w.ctx, paused.ID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
}

func (w *world) wantRuns(n int) {
	w.t.Helper()
	err := txn.View(w.ctx, w.st, func(tx run.Tx) error {
		rs, err := tx.Runs(run.Query{Space: event.MainSpace})
		if len(rs) != n {
			w.t.Errorf("there are %d runs, want %d", len(rs), n)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, change := range map[string]func(*run.Config){
		"Agent": func(c *run.Config) { c.Agent = run.AgentFunc(nil) },
		"Tools": func(c *run.Config) { c.Tools = nil },
		"Store": func(c *run.Config) { c.Store = nil },
		"Lease": func(c *run.Config) { c.LeaseTTL = 1 },
	} {
		c := w.config(w.st)
		change(&c)
		_, err := flow.NewRunner(published("1"), c)
		wantError(t, err, run.ErrUsage, name)
	}
}

func TestWrongDoors(t *testing.T) {
	t.Parallel()
	w := setup(t)
	mine := w.runner(published("1"))
	paused := w.waits(mine, "ask")
	w.approve(paused)

	// Others' doors to a flow's run.
	ex := call.NewExecutor(call.Config{Store: w.st, Tools: w.config(w.st).Tools})
	_, err := ex.Resume(w.ctx, paused.ApprovalID, nil)
	wantError(t, err, call.ErrUsage, "flow.Runner.Resume")
	c := w.config(w.st)
	c.Agent = run.AgentFunc(func(context.Context, run.StepInput) (run.Proposal, error) {
		return run.Proposal{Kind: run.CallTool, Tool: "push", Args: json.RawMessage(`{}`)}, nil
	})
	agents := run.NewDriver(c)
	_, err = agents.Resume(w.ctx, paused.ID)
	wantError(t, err, run.ErrUsage, "flow.Runner.Resume", paused.ID)

	// The flow's door to what is others'.
	agent, err := agents.Start(w.ctx, "push it", run.DefaultLimits())
	if err != nil || agent.Status != run.Waiting {
		t.Fatal(agent, err)
	}
	for _, id := range []string{agent.ID, agent.ApprovalID} {
		_, err = mine.Resume(w.ctx, id)
		wantError(t, err, run.ErrUsage, "run.Driver.Resume", agent.ID)
	}
	var parked *call.PendingError
	if _, err = ex.Call(w.ctx, "push", []byte(`{}`)); !errors.As(err, &parked) {
		t.Fatal(err)
	}
	_, err = mine.Resume(w.ctx, parked.ApprovalID)
	wantError(t, err, run.ErrUsage, "call.Executor.Resume", parked.ApprovalID)
	for _, id := range []string{"", "run_nobody", "apr_nobody", parked.CallID} {
		_, err = mine.Resume(w.ctx, id)
		wantError(t, err, run.ErrNotFound)
	}
	elsewhere := w.config(w.st)
	elsewhere.Space = "other"
	tenant, err := flow.NewRunner(published("1"), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{paused.ID, paused.ApprovalID} {
		got, err := tenant.Resume(w.ctx, id)
		wantError(t, err, run.ErrNotFound)
		if got.ID != "" {
			t.Errorf("another space's run was shown: %+v", got)
		}
	}
	w.wantCalls(`look{"q":"<new>"}`)
	got, err := mine.Resume(w.ctx, paused.ApprovalID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
}

func TestChangedDefinition(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.runner(published("1"))
	paused := w.waits(old, "ask")
	w.approve(paused)
	other := published("1")
	other.Name = "withdraw"
	_, err := w.runner(other).Resume(w.ctx, paused.ID)
	wantError(t, err, run.ErrUsage, `\"publish\"`, `\"withdraw\"`)
	_, err = w.runner(published("2")).Resume(w.ctx, paused.ApprovalID)
	wantError(t, err, run.ErrUsage, "version 1", "version 2")
	same := published("1")
	same.Nodes[2] = flow.Call{Name: "publish", Tool: "drop", ArgsFrom: flow.ArgsOf("ask")}
	_, err = w.runner(same).Resume(w.ctx, paused.ApprovalID)
	wantError(t, err, run.ErrUsage, "defined otherwise", "version 1")
	w.wantCalls(`look{"q":"<new>"}`)
	got, err := old.Resume(w.ctx, paused.ApprovalID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
}

// Everything in a definition that is data counts; its functions do not.
func TestDigest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	one := func(change func(*flow.Flow)) string {
		f := flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
			flow.Call{Name: "a", Tool: "look", Args: json.RawMessage(`{"n":1.0, "m":2}`), OnFailure: "no"},
			flow.Branch{Name: "b", If: yes, Then: "a", Else: "c", Rounds: 2},
			flow.Approve{Name: "c", Args: json.RawMessage(`{}`), Show: json.RawMessage(`{}`), Reason: "r"},
			flow.End{Name: "end", Result: json.RawMessage(`1`)},
			flow.End{Name: "no", Fail: "no"},
		}}
		change(&f)
		r := w.runner(f)
		if r.Ref().Name != f.Name || r.Ref().Version != f.Version {
			t.Errorf("%+v", r.Ref())
		}
		return r.Ref().Digest
	}
	base := one(func(*flow.Flow) {})
	seen := map[string]string{}
	for name, change := range map[string]func(*flow.Flow){
		"name":    func(f *flow.Flow) { f.Name = "g" },
		"version": func(f *flow.Flow) { f.Version = "2" },
		"input":   func(f *flow.Flow) { f.Input = json.RawMessage(`{}`) },
		"tool":    func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.Tool = "push" }) },
		"args":    func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.Args = json.RawMessage(`{"n":2}`) }) },
		"built":   func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.Args, n.ArgsFrom = nil, flow.ResultOf("a") }) },
		"next":    func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.Next = "b" }) },
		"failure": func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.OnFailure = "end" }); f.Nodes = f.Nodes[:4] },
		"rounds":  func(f *flow.Flow) { edit(f, 1, func(n *flow.Branch) { n.Rounds = 3 }) },
		"else":    func(f *flow.Flow) { edit(f, 1, func(n *flow.Branch) { n.Else = "" }) },
		"shown":   func(f *flow.Flow) { edit(f, 2, func(n *flow.Approve) { n.Show = json.RawMessage(`{"x":1}`) }) },
		"show":    func(f *flow.Flow) { edit(f, 2, func(n *flow.Approve) { n.Show, n.ShowFrom = nil, flow.ResultOf("a") }) },
		"reason":  func(f *flow.Flow) { edit(f, 2, func(n *flow.Approve) { n.Reason = "s" }) },
		"result":  func(f *flow.Flow) { edit(f, 3, func(n *flow.End) { n.Result = json.RawMessage(`2`) }) },
		"results": func(f *flow.Flow) { edit(f, 3, func(n *flow.End) { n.Result, n.ResultFrom = nil, flow.ResultOf("a") }) },
		"fails":   func(f *flow.Flow) { edit(f, 4, func(n *flow.End) { n.Fail = "other" }) },
		"order": func(f *flow.Flow) {
			f.Nodes[3], f.Nodes[4] = f.Nodes[4], f.Nodes[3]
			edit(f, 2, func(n *flow.Approve) { n.Next = "end" })
		},
	} {
		got := one(change)
		if got == base || seen[got] != "" {
			t.Errorf("%s: the digest is that of %q", name, seen[got])
		}
		seen[got] = name
	}
	for name, change := range map[string]func(*flow.Flow){
		"a function": func(f *flow.Flow) { edit(f, 1, func(n *flow.Branch) { n.If = no }) },
		"spelling":   func(f *flow.Flow) { edit(f, 0, func(n *flow.Call) { n.Args = json.RawMessage(`{"m":2,"n":1}`) }) },
	} {
		if got := one(change); got != base {
			t.Errorf("%s: the digest changed", name)
		}
	}
}

func edit[N flow.Node](f *flow.Flow, i int, change func(*N)) {
	n := f.Nodes[i].(N)
	change(&n)
	f.Nodes[i] = any(n).(flow.Node)
}

func yes(flow.Results) (bool, error) { return true, nil }
func no(flow.Results) (bool, error)  { return false, nil }

// What the caller does with its definition later is not the runner's.
func TestDefinitionIsCopied(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := published("1")
	args := f.Nodes[0].(flow.Call).Args
	r := w.runner(f)
	copy(args, `{"q":"<old>"}`)
	f.Nodes[1] = flow.End{Name: "ask"}
	w.waits(r, "ask")
	w.wantCalls(`look{"q":"<new>"}`)
}

func TestRejected(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.runner(published("1"))
	paused := w.waits(r, "ask")
	if err := r.Reject(w.ctx, paused.ID, paused.ApprovalID, "ana", "not on a Friday"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Resume(w.ctx, paused.ApprovalID)
	wantError(t, err, run.ErrRunState, "CANCELLED", "approval_rejected")
	w.wantEnd(w.read(paused.ID), nil, run.Cancelled, run.ApprovalRejected, "ana: not on a Friday")
	w.wantCalls(`look{"q":"<new>"}`)
}

func (w *world) read(runID string) (r run.Run) {
	w.t.Helper()
	err := txn.View(w.ctx, w.st, func(tx run.Tx) (err error) {
		r, err = tx.Run(runID)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestDecidingThroughTheRunner(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.runner(published("1"))
	paused := w.waits(r, "ask")
	d, err := decision.Operator{Store: w.st}.Show(w.ctx, paused.ApprovalID)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, r.ApproveShown(w.ctx, paused.ID, paused.ApprovalID, "sha256-placet1:0", "ana", ""), decision.ErrApprovalChanged)
	wantError(t, r.RejectShown(w.ctx, paused.ID, paused.ApprovalID, "sha256-placet1:0", "ana", ""), decision.ErrApprovalChanged)
	if err := r.ApproveShown(w.ctx, paused.ID, paused.ApprovalID, d.Digest, "ana", ""); err != nil {
		t.Fatal(err)
	}
	wantError(t, r.Approve(w.ctx, paused.ID, paused.ApprovalID, "ana", ""), decision.ErrNotPending)
	if err := r.Cancel(w.ctx, paused.ID, "ben", "no time"); err != nil {
		t.Fatal(err)
	}
	_, err = r.Resume(w.ctx, paused.ApprovalID)
	wantError(t, err, run.ErrRunState, "CANCELLED", "operator_cancelled")
	_, err = decision.Operator{Store: w.st}.Decide(w.ctx, w.waits(r, "ask").ApprovalID, decision.Answer{Approved: true, By: "ana", EditedArgs: []byte(`{}`)})
	wantError(t, err, decision.ErrUsage)
	r.Stop()
	if err := r.Wait(w.ctx); err != nil {
		t.Error(err)
	}
}

// Exactly at the instant is still in time; a microsecond later is not.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                string
		approval, grant     time.Duration
		before, after       time.Duration // the yes, the resume
		approves, completes bool
	}{
		{"in time to the instant", time.Hour, time.Hour, time.Hour, time.Hour, true, true},
		{"an answer too late", time.Hour, 0, time.Hour + time.Microsecond, 0, false, false},
		{"a yes too old", 0, time.Hour, 9 * time.Hour, time.Hour + time.Microsecond, true, false},
		{"a yes of last week", time.Hour, 0, time.Hour, 7 * 24 * time.Hour, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.runner(published("1"))
			paused, err := r.Start(w.ctx, nil, &flow.StartOptions{Limits: run.Limits{ApprovalTTL: tc.approval, GrantTTL: tc.grant}})
			if err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(tc.before)
			if tc.approves {
				w.approve(paused)
			}
			w.clock.Advance(tc.after)
			got, err := r.Resume(w.ctx, paused.ApprovalID)
			if tc.completes {
				w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
				return
			}
			w.wantEnd(got, err, run.Cancelled, run.ApprovalExpired, paused.ApprovalID)
			w.wantCalls(`look{"q":"<new>"}`)
		})
	}
}

// Two approvals in one run: following the first notice again does not set off what the
// second one asks about.
func TestOldNotice(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.runner(flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
		flow.Approve{Name: "first"}, flow.Approve{Name: "second"}, flow.Call{Name: "go", Tool: "publish"}, flow.End{Name: "end"},
	}})
	first := w.waits(r, "first")
	w.approve(first)
	second, err := r.Resume(w.ctx, first.ApprovalID)
	if err != nil || second.Current.Node != "second" {
		t.Fatal(second, err)
	}
	w.approve(second)
	_, err = r.Resume(w.ctx, first.ApprovalID)
	wantError(t, err, decision.ErrAlreadyDecided, second.ApprovalID, "consumed")
	if s, ok := decision.StandingOf(err); !ok || s.ApprovalID != first.ApprovalID {
		t.Errorf("%+v", s)
	}
	w.wantCalls()
	got, err := r.Resume(w.ctx, second.ApprovalID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	w.wantCalls(`publish{}`)
}

// The same where the run does not wait any more, but its process was lost.
func TestOldNoticeOfALostRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
		flow.Approve{Name: "first"}, flow.Approve{Name: "second"}, flow.Call{Name: "look", Tool: "look"}, flow.End{Name: "end"},
	}}
	r := w.runner(f)
	first := w.waits(r, "first")
	w.approve(first)
	second, err := r.Resume(w.ctx, first.ApprovalID)
	if err != nil {
		t.Fatal(err)
	}
	w.approve(second)
	dying := placettest.NewCrashStore(w.st, placettest.Crash{Moment: placettest.AfterCommit, N: 1})
	if _, err := w.runnerOn(dying, f).Resume(w.ctx, second.ApprovalID); !errors.Is(err, placettest.ErrDead) {
		t.Fatal(err)
	}
	w.clock.Advance(2 * run.DefaultLease)
	_, err = r.Resume(w.ctx, first.ApprovalID)
	wantError(t, err, decision.ErrAlreadyDecided, "Name the run", first.ID)
	got, err := r.Resume(w.ctx, second.ApprovalID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
}

func TestTwoResumers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := w.runner(published("1")), w.runnerOn(w.open(), published("1"))
	for range 200 {
		w.ran = nil
		paused := w.waits(a, "ask")
		w.approve(paused)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, r := range []*flow.Runner{a, b} {
			wg.Add(1)
			go func() { defer wg.Done(); _, errs[i] = r.Resume(w.ctx, paused.ApprovalID) }()
		}
		wg.Wait()
		w.wantCalls(`look{"q":"<new>"}`, `publish{"by":"look","n":2}`)
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), run.ErrRunState) {
			t.Fatal(errs)
		}
	}
}

// A loop asks anew in each round.
func TestRounds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.runner(flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
		flow.Call{Name: "try", Tool: "publish", OnFailure: "again"},
		flow.End{Name: "fine"},
		flow.Approve{Name: "again", ShowFrom: func(r flow.Results) (any, error) {
			return map[string]any{"failed": r.Message("try"), "times": r.Visits("try")}, nil
		}},
		flow.Branch{Name: "retry", If: yes, Then: "try", Rounds: 3},
		flow.End{Name: "enough", Fail: "It failed three times."},
	}})
	w.fail["publish"] = "the disk is full"
	got := w.start(r)
	for range 3 {
		if got.Status != run.Waiting || got.Current.Node != "again" {
			t.Fatalf("%+v", got)
		}
		w.approve(got)
		var err error
		if got, err = r.Resume(w.ctx, got.ApprovalID); err != nil {
			t.Fatal(err)
		}
	}
	w.wantEnd(got, nil, run.Failed, run.GoalFailed, "It failed three times.")
	w.wantCalls("publish{}", "publish{}", "publish{}")
}

// What was agreed to is what later nodes get, or the run fails: a row that was altered
// in between is noticed.
func TestAlteredAgreement(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := published("1")
	f.Nodes = slices.Insert(f.Nodes, 2, flow.Node(flow.Approve{Name: "sure"}))
	r := w.runner(f)
	first := w.waits(r, "ask")
	w.approve(first)
	second, err := r.Resume(w.ctx, first.ID)
	if err != nil || second.Current.Node != "sure" {
		t.Fatal(second, err)
	}
	w.approve(second)
	if err := w.st.Close(); err != nil {
		t.Fatal(err)
	}
	alter(t, w.path, `UPDATE step SET args = CAST('{"by":"evil","n":2}' AS BLOB) WHERE node = 'ask'`)
	w.st = w.open()
	got, err := w.runner(f).Resume(w.ctx, second.ID)
	w.wantEnd(got, err, run.Failed, run.GoalFailed, "altered in the store")
	w.wantCalls(`look{"q":"<new>"}`)
}

// A yes from before a restore does not count: what follows may have been done since.
func TestRestored(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.clock.Set(time.Now())
	r := w.runner(published("1"))
	paused := w.waits(r, "ask")
	w.approve(paused)
	backup := filepath.Join(filepath.Dir(w.path), "backup.db")
	if err := sqlite.Backup(w.ctx, w.path, backup); err != nil {
		t.Fatal(err)
	}
	got, err := r.Resume(w.ctx, paused.ID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	if err := w.st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Restore(w.ctx, w.path, backup); err != nil {
		t.Fatal(err)
	}
	w.clock.Set(time.Now())
	w.st = w.open()
	r = w.runner(published("1"))
	again, err := r.Resume(w.ctx, paused.ApprovalID)
	if err != nil || again.Status != run.Waiting || again.ApprovalID == paused.ApprovalID || again.Current.Node != "ask" {
		t.Fatal(again, err)
	}
	d, err := decision.Operator{Store: w.st}.Show(w.ctx, again.ApprovalID)
	if err != nil || !strings.Contains(d.Reason, "was restored") || !strings.HasSuffix(d.Reason, "It cannot be taken back.") {
		t.Errorf("%q %v", d.Reason, err)
	}
	w.wantCalls(`look{"q":"<new>"}`, `publish{"by":"look","n":2}`)
	w.approve(again)
	got, err = r.Resume(w.ctx, again.ApprovalID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	if rep, err := event.Verify(w.ctx, w.st, nil); err != nil || rep.Break != nil {
		t.Errorf("%+v %v", rep, err)
	}
}

// Wherever the process dies, no node with an effect is carried out twice, and what was
// done is not done again: whether the flow asks, the policy does, or a tool's probe tells.
func TestEachCrash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		f      flow.Flow
		effect tool.SideEffect
		probes bool
	}{
		"the flow asks":   {f: published("1"), effect: tool.LocalMutation},
		"the policy asks": {f: branching(), effect: tool.RemoteMutation},
		"a probe tells":   {f: published("1"), effect: tool.LocalMutation, probes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placettest.EachCrash(t, placettest.Scenario{
				Run: func(ctx context.Context, p *placettest.Process) error {
					r, err := flow.NewRunner(tc.f, witnessed(t, p, tc.effect, tc.probes))
					if err != nil {
						return err
					}
					ana := placettest.Reviewer{Store: p.Store, By: "ana"}.
						Approve(placettest.Any).Approve(p.Witness.Missing).Reject(p.Witness.Done, "I see it.")
					return toTheEnd(ctx, r, ana, p.Clock)
				},
				Check: func(t *testing.T, p *placettest.Process) { checkCrashed(t, p, tc.probes) },
			})
		})
	}
}

// witnessed knows look and publish, which both leave a line.
func witnessed(t *testing.T, p *placettest.Process, effect tool.SideEffect, probes bool) run.Config {
	t.Helper()
	look, publish := p.Witness.Tool("look"), p.Witness.Tool("publish")
	look.SideEffect, publish.SideEffect = tool.LocalMutation, effect
	if probes {
		look.Probe, publish.Probe = p.Witness.Probe(), p.Witness.Probe()
	}
	tools, err := tool.NewRegistry(p.Store.Tool(look), p.Store.Tool(publish))
	if err != nil {
		t.Fatal(err)
	}
	return run.Config{Store: p.Store, Tools: tools, Log: slog.New(slog.DiscardHandler)}
}

// branching is a flow whose second call the policy asks about.
func branching() flow.Flow {
	return flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
		flow.Call{Name: "a", Tool: "look", OnFailure: "no"},
		flow.Branch{Name: "b", If: func(r flow.Results) (bool, error) { return r.Outcome("a") == flow.Succeeded, nil }, Then: "c", Else: "no"},
		flow.Call{Name: "c", Tool: "publish", OnFailure: "no"},
		flow.End{Name: "end", Result: json.RawMessage(`1`)},
		flow.End{Name: "no", Fail: "It could not be done."},
	}}
}

func checkCrashed(t *testing.T, p *placettest.Process, probes bool) {
	t.Helper()
	n := map[string]int{}
	for _, l := range p.Witness.Lines() {
		n[l.Tool]++
	}
	var r run.Run
	err := txn.View(t.Context(), p.Store, func(tx run.Tx) (err error) {
		r, err = tx.Run("run_crash")
		return err
	})
	switch {
	case err != nil:
		t.Fatal(err)
	case r.Status == run.Completed && n["look"] == 1 && n["publish"] == 1:
	case r.Reason == run.ApprovalRejected && !probes && n["look"] == 1 && n["publish"] <= 1: // the person saw that it had run
	default:
		t.Errorf("the run is %s, %s, %q; the tools ran %v times", r.Status, r.Reason, r.Detail, n)
	}
}

// toTheEnd is a program that works on one run, whatever an earlier process left. A probe
// that knows nothing is believed only after a while: then the program waits.
func toTheEnd(ctx context.Context, r *flow.Runner, ana placettest.Reviewer, clock *placettest.Clock) error {
	const runID = "run_crash"
	got, err := r.Start(ctx, nil, &flow.StartOptions{RunID: runID})
	for range 20 {
		switch {
		case err == nil && got.Status.Terminal():
			return nil
		case err != nil && !errors.Is(err, run.ErrRunState):
			return err
		case err != nil && got.Status.Terminal(): // an earlier process brought it to its end
			return nil
		case err != nil:
			clock.Advance(2 * run.DefaultLease)
		}
		if _, err := ana.Decide(ctx); err != nil {
			return err
		}
		got, err = r.Resume(ctx, runID)
	}
	return err
}

// A runner that is stopped lets its node end; the next process goes on behind it.
func TestStop(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.config(w.st)
	var r *flow.Runner
	stops := w.tool("look", tool.ReadOnly)
	stops.Run = tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) {
		r.Stop()
		return json.RawMessage(`{"n":1}`), nil
	})
	if err := c.Tools.Replace(stops); err != nil {
		t.Fatal(err)
	}
	r, err := flow.NewRunner(branching(), c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Start(w.ctx, nil, nil)
	if !errors.Is(err, run.ErrStopped) || got.Status != run.Running {
		t.Fatal(got, err)
	}
	got, err = w.runnerOn(w.open(), branching()).Resume(w.ctx, got.ID)
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	w.wantCalls(`publish{}`)
}

// A process that is lost in a read-only node leaves nothing to ask: it is done again.
func TestLostInAReadOnlyNode(t *testing.T) {
	t.Parallel()
	w := setup(t)
	f := branching()
	dying := placettest.NewCrashStore(w.st, placettest.Crash{Moment: placettest.AfterEffect, N: 1})
	c := w.config(dying)
	if err := c.Tools.Replace(dying.Tool(w.tool("look", tool.ReadOnly))); err != nil {
		t.Fatal(err)
	}
	r, err := flow.NewRunner(f, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Start(w.ctx, nil, &flow.StartOptions{RunID: "run_1"}); !errors.Is(err, placettest.ErrDead) {
		t.Fatal(err)
	}
	other := w.runnerOn(w.open(), f)
	if _, err = other.Resume(w.ctx, "run_1"); !errors.Is(err, run.ErrRunLeased) {
		t.Errorf("while the lease holds: %v", err)
	}
	w.clock.Advance(2 * run.DefaultLease)
	got, err := other.Resume(w.ctx, "run_1")
	w.wantEnd(got, err, run.Completed, run.GoalCompleted, "")
	w.wantCalls(`look{}`, `look{}`, `publish{}`)
}

// What Reconcile says of a lost node: continue does it again, completed goes on with its
// result, conflict ends the run.
func TestReconcile(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[run.ReconcileVerdict]struct {
		reason run.Reason
		calls  []string
	}{
		run.Continue:     {run.GoalCompleted, []string{`publish{}`, `publish{}`}},
		run.WasCompleted: {run.GoalCompleted, []string{`publish{}`}},
		run.Conflict:     {run.ReconcileConflict, []string{`publish{}`}},
	} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			f := flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
				flow.Call{Name: "a", Tool: "publish"}, flow.End{Name: "end", ResultFrom: flow.ResultOf("a")},
			}}
			dying := placettest.NewCrashStore(w.st, placettest.Crash{Moment: placettest.AfterEffect, N: 1})
			c := w.config(dying)
			if err := c.Tools.Replace(dying.Tool(w.tool("publish", tool.LocalMutation))); err != nil {
				t.Fatal(err)
			}
			r, err := flow.NewRunner(f, c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = r.Start(w.ctx, nil, &flow.StartOptions{RunID: "run_1"}); !errors.Is(err, placettest.ErrDead) {
				t.Fatal(err)
			}
			w.clock.Advance(2 * run.DefaultLease)
			c = w.config(w.open())
			c.Reconcile = func(_ context.Context, i run.InterruptedStep) (run.Reconciliation, error) {
				if i.Step.Node != "a" || i.Run.Flow.Name != "f" {
					t.Errorf("%+v", i)
				}
				return run.Reconciliation{Verdict: verdict, Result: json.RawMessage(`"seen"`)}, nil
			}
			if r, err = flow.NewRunner(f, c); err != nil {
				t.Fatal(err)
			}
			got, err := r.Resume(w.ctx, "run_1")
			if err != nil || got.Reason != want.reason || (got.Result == `"seen"`) != (verdict == run.WasCompleted) {
				t.Errorf("%s %q: %v", got.Reason, got.Result, err)
			}
			w.wantCalls(want.calls...)
		})
	}
}

// What goes wrong in a node that has nowhere to go ends the run with a sentence.
func TestFailingNodes(t *testing.T) {
	t.Parallel()
	refused := func(flow.Results) (any, error) { return map[string]int{"n": 1}, nil }
	for name, tc := range map[string]struct {
		n      flow.Call
		reason run.Reason
		detail string
	}{
		"the tool fails":       {flow.Call{Tool: "look"}, run.GoalFailed, `Node "a" failed: not today`},
		"the policy denies":    {flow.Call{Tool: "drop"}, run.GoalFailed, `Node "a" was denied: `},
		"it is tried":          {flow.Call{Tool: "look", OnFailure: "no"}, run.GoalFailed, "a: failed"},
		"and denied":           {flow.Call{Tool: "drop", OnFailure: "no"}, run.GoalFailed, "a: denied"},
		"and refused":          {flow.Call{Tool: "strict", ArgsFrom: refused, OnFailure: "no"}, run.GoalFailed, "a: refused"},
		"the arguments do not": {flow.Call{Tool: "strict", ArgsFrom: refused}, run.GoalFailed, `Node "a" could not be carried out as it stands: `},
		"a very long text":     {flow.Call{Tool: "look", ArgsFrom: func(flow.Results) (any, error) { return nil, errors.New(strings.Repeat("ü", 3<<20)) }}, run.GoalFailed, "ü [cut]"},
		"a function panics":    {flow.Call{Tool: "look", ArgsFrom: func(flow.Results) (any, error) { panic("oh") }}, run.GoalFailed, `Node "a": its arguments could not be built: it panicked: oh`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.fail["look"] = "not today"
			tc.n.Name = "a"
			nodes := []flow.Node{tc.n, flow.End{Name: "end"}}
			if tc.n.OnFailure != "" {
				nodes = append(nodes, flow.Call{Name: "no", Tool: "strict", ArgsFrom: func(r flow.Results) (any, error) {
					return nil, errors.New("a: " + string(r.Outcome("a")))
				}, Next: "end2"}, flow.End{Name: "end2"})
			}
			c := w.config(w.st)
			strict := w.tool("strict", tool.LocalMutation)
			strict.InputSchema = json.RawMessage(`{"type":"object","additionalProperties":false}`)
			if err := c.Tools.Register(strict); err != nil {
				t.Fatal(err)
			}
			r, err := flow.NewRunner(flow.Flow{Name: "f", Version: "1", Nodes: nodes}, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Start(w.ctx, nil, nil)
			w.wantEnd(got, err, run.Failed, tc.reason, tc.detail)
		})
	}
}
