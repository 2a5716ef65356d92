package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/storetest"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// machine acts at random on runs of one store and holds every start of a tool against
// what the policy and people really said.
type machine struct {
	*world
	mu    sync.Mutex
	next  []run.Proposal    // what agents say, in turn
	rule  string            // what the policy says now
	said  map[string][]byte // approval → the arguments that a yes to it lets run
	paid  map[string]int64  // approval → the attempt that ran on it
	ids   []string          // of runs
	held  []*held
	was   map[string]run.Run
	asked map[string]decision.Decision
	fence map[string]int64
}

const keyTool = "keyed"

func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "placet-run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{
		world: setupIn(t, dir, nil), rule: "ask", said: map[string][]byte{}, paid: map[string]int64{},
		was: map[string]run.Run{}, asked: map[string]decision.Decision{}, fence: map[string]int64{},
	}
	for _, name := range []string{"look", "push", "write"} {
		m.register(name, func(rt *tool.Tool) { rt.Run = tool.RunnerFunc(m.tool) })
	}
	m.register(keyTool, func(rt *tool.Tool) {
		rt.SideEffect, rt.Idempotent, rt.Run = tool.LocalMutation, true, tool.RunnerFunc(m.tool)
	})
	m.policy.set(m.evaluate)
	m.agent = does(m.decide)
	m.use(m.limits)
	return m
}

func (m *machine) limits(c *run.Config) { c.ApprovalTTL, c.GrantTTL = 4*time.Hour, 2*time.Hour }

// decide says what is next, and nothing more once that is used up.
func (m *machine) decide(context.Context, run.StepInput) (run.Proposal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.next) == 0 {
		return completes(`"done"`), nil
	}
	p := m.next[0]
	m.next = m.next[1:]
	return p, nil
}

func (m *machine) evaluate(_ context.Context, r request.Request, _ policy.View) (policy.Ruling, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Tool.SideEffect == tool.ReadOnly || m.rule == "allow":
		return policy.Ruling{Outcome: policy.Allow}, nil
	case m.rule == "deny":
		return policy.Ruling{Outcome: policy.Deny, Reason: "no"}, nil
	case m.rule == "ask otherwise":
		return policy.Ruling{Outcome: policy.RequireApproval, Kind: "other"}, nil
	}
	return policy.Ruling{Outcome: policy.RequireApproval}, nil
}

// tool looks at what it runs on before it has any effect.
func (m *machine) tool(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	var a call.Attempt
	var stored call.Call
	var r run.Run
	if err := txn.View(context.Background(), m.st, func(tx store.Tx) (err error) {
		if stored, err = tx.Call(c.CallID); err != nil {
			return err
		}
		if r, err = tx.Run(c.RunID); err != nil {
			return err
		}
		a, err = tx.Attempt(c.CallID, int64(c.Attempt))
		return err
	}); err != nil {
		m.t.Errorf("the tool runs without a stored attempt: %v", err)
	}
	m.mu.Lock()
	switch {
	case stored.Status != call.Running || a.Outcome != "" || stored.Attempts != a.N || r.Status != run.Running || r.Current.Status != run.Executing || r.Current.CallID != c.CallID:
		m.t.Errorf("the tool runs, its call is %s and the run's step %s", stored.Status, r.Current.Status)
	case a.ApprovalID == "" && c.Tool != "look" && m.rule != "allow":
		m.t.Errorf("%s runs without a grant, and the policy says %s", c.Tool, m.rule)
	case a.ApprovalID != "":
		m.checkPaid(c, a)
	}
	m.mu.Unlock()
	return m.spy.Run(ctx, c)
}

func (m *machine) checkPaid(c tool.Call, a call.Attempt) {
	want, agreed := m.said[a.ApprovalID]
	if !agreed {
		m.t.Errorf("the tool runs on %s, to which nobody said yes", a.ApprovalID)
	}
	if !bytes.Equal(bytes.TrimSpace(want), bytes.TrimSpace(c.Args)) {
		m.t.Errorf("the tool runs %s, and the yes was to %s", c.Args, want)
	}
	if n, ran := m.paid[a.ApprovalID]; ran && c.Tool != keyTool {
		m.t.Errorf("the tool runs twice for one yes: attempts %d and %d", n, a.N)
	}
	m.paid[a.ApprovalID] = a.N
}

// met looks at what an answer told.
func (m *machine) met(_ run.Run, err error) {
	switch word(err) {
	case "", "run_state", "run_leased", "lease_lost", "not_found", "not_pending", "approval_expired", "usage":
	default:
		m.t.Errorf("an error that nothing explains: %v", err)
	}
}

func (m *machine) any(t *rapid.T, is ...run.Status) string {
	var from []string
	for _, id := range m.ids {
		if s := m.was[id].Status; len(is) == 0 || strings.Contains(fmt.Sprint(is), string(s)) {
			from = append(from, id)
		}
	}
	if len(from) == 0 {
		t.Skip("there is no such run")
	}
	return rapid.SampledFrom(from).Draw(t, "run")
}

func (m *machine) propose(t *rapid.T) {
	some := []run.Proposal{
		calls("look", `{"n":1}`), calls("push", `{"n":1}`), calls("push", ` {"n": 2} `), calls("write", `{}`), calls(keyTool, `{"n":3}`),
		calls("nothing", `{}`), calls("push", `{"n":`),
		{Kind: "dance"},
		fails("no"),
	}
	next := rapid.SliceOfN(rapid.SampledFrom(some), 1, 4).Draw(t, "proposals")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = next
}

// agree notes a yes as soon as it is given, before anything can run on it.
func (m *machine) agree(id string) {
	d := m.world.asked(id)
	req, err := request.Decode(d.Request)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	m.said[d.ID] = req.Args
	m.mu.Unlock()
	err = m.op.Approve(m.ctx, id, d.ID, "ana", "")
	if m.met(run.Run{}, err); err != nil && d.Status != decision.Approved && m.decision(d.ID).Choice != decision.ChoiceApprove {
		m.mu.Lock()
		delete(m.said, d.ID)
		m.mu.Unlock()
	}
}

// begin starts a tool in a process of its own and leaves it in the middle.
func (m *machine) begin(do func(d *run.Driver) (run.Run, error)) {
	h := &held{gate: newGate(), life: &mortal{Store: m.st}, res: make(chan run.Run, 1), err: make(chan error, 1)}
	d := m.driver(func(c *run.Config) { m.limits(c); c.Store = h.life })
	m.spy.then(h.hold)
	go func() {
		r, err := do(d)
		h.res <- r
		h.err <- err
	}()
	select {
	case <-h.began:
		m.held = append(m.held, h)
		m.t.Cleanup(func() { h.life.die(); h.letGo() })
	case err := <-h.err:
		m.met(<-h.res, err)
	}
	m.spy.then(nil)
}

func (m *machine) release(t *rapid.T, kill bool) {
	if len(m.held) == 0 {
		t.Skip("nothing is held")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(t, "which")
	h := m.held[i]
	m.held = append(m.held[:i:i], m.held[i+1:]...)
	if kill {
		h.life.die()
	}
	r, err := h.goOn()
	if !kill {
		m.met(r, err)
	}
}

func (m *machine) newID() string {
	id := fmt.Sprintf("run_%03d", len(m.ids))
	m.ids = append(m.ids, id)
	return id
}

func (m *machine) actions() map[string]func(*rapid.T) {
	limits := run.DefaultLimits()
	start := func(id string) func(d *run.Driver) (run.Run, error) {
		return func(d *run.Driver) (run.Run, error) { return d.StartWithID(context.Background(), id, "do it", limits) }
	}
	resume := func(id string) func(d *run.Driver) (run.Run, error) {
		return func(d *run.Driver) (run.Run, error) { return d.Resume(context.Background(), id) }
	}
	return map[string]func(*rapid.T){
		"start":    func(t *rapid.T) { m.propose(t); m.met(start(m.newID())(m.d)) },
		"resume":   func(t *rapid.T) { m.propose(t); m.met(resume(m.any(t, run.Waiting, run.Running))(m.d)) },
		"resume 2": func(t *rapid.T) { m.propose(t); m.met(resume(m.any(t))(m.d)) },
		"agree":    func(t *rapid.T) { m.agree(m.any(t, run.Waiting)) },
		"agree and resume": func(t *rapid.T) {
			id := m.any(t, run.Waiting)
			m.agree(id)
			m.met(resume(id)(m.d))
		},
		"refuse": func(t *rapid.T) {
			id := m.any(t, run.Waiting)
			m.met(run.Run{}, m.op.Reject(m.ctx, id, m.was[id].ApprovalID, "bo", ""))
		},
		"cancel":       func(t *rapid.T) { m.met(run.Run{}, m.op.Cancel(m.ctx, m.any(t), "eva", "")) },
		"start, hold":  func(t *rapid.T) { m.propose(t); m.begin(start(m.newID())) },
		"resume, hold": func(t *rapid.T) { m.propose(t); m.begin(resume(m.any(t, run.Waiting, run.Running))) },
		"let go on":    func(t *rapid.T) { m.release(t, false) },
		"kill":         func(t *rapid.T) { m.release(t, true) },
		"lose, take over": func(t *rapid.T) {
			m.propose(t)
			id := m.any(t, run.Running)
			m.clock.Advance(run.DefaultLease + time.Microsecond)
			m.met(resume(id)(m.d))
		},
		"expire": func(t *rapid.T) {
			if _, err := m.op.ExpireDue(m.ctx, 100); err != nil {
				m.t.Error(err)
			}
		},
		"wait": func(t *rapid.T) {
			m.clock.Advance(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, run.DefaultLease, time.Hour, 2 * time.Hour}).Draw(t, "for"))
		},
		"policy": func(t *rapid.T) {
			rule := rapid.SampledFrom([]string{"ask", "ask", "ask", "ask otherwise", "allow", "deny"}).Draw(t, "policy")
			m.mu.Lock()
			defer m.mu.Unlock()
			m.rule = rule
		},
		"reopen": func(t *rapid.T) { // another process goes on; those that are held stay with their own
			m.st = m.open()
			m.use(m.limits)
			m.op.Store = m.st
		},
		"": m.check,
	}
}

var nextRun = map[run.Status]string{
	run.Running: "RUNNING WAITING_FOR_APPROVAL COMPLETED FAILED CANCELLED", run.Waiting: "RUNNING WAITING_FOR_APPROVAL COMPLETED FAILED CANCELLED",
	run.Completed: "COMPLETED", run.Failed: "FAILED", run.Cancelled: "CANCELLED",
}

// check holds every run against how it was after the action before, and the whole
// store against what must hold.
func (m *machine) check(*rapid.T) {
	ids := m.ids
	m.ids = nil
	for _, id := range ids {
		r, err := stored(context.Background(), m.st, id)
		if word(err) == "not_found" {
			continue // its start was refused
		}
		m.ids = append(m.ids, id)
		was, known := m.was[id]
		if !known {
			was = r
		}
		if !strings.Contains(nextRun[was.Status], string(r.Status)) || r.Fence < was.Fence || r.StepCount < was.StepCount || r.ApprovalN < was.ApprovalN {
			m.t.Errorf("a run that was %+v is %+v", was, r)
		}
		if was.Status.Terminal() && (was.Reason != r.Reason || !was.FinishedAt.Equal(r.FinishedAt) || was.StepCount != r.StepCount) {
			m.t.Errorf("a run that had ended changed: %+v to %+v", was, r)
		}
		m.was[id] = r
		for _, d := range m.approvals(id) {
			m.checkAnswer(d)
		}
	}
	storetest.CheckInvariants(m.t, m.st)
}

func (m *machine) checkAnswer(d decision.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, agreed := m.said[d.ID]; agreed != (d.Choice == decision.ChoiceApprove) {
		m.t.Errorf("approval %s says %q, and people said yes: %v", d.ID, d.Choice, agreed)
	}
	m.asked[d.ID] = d
}

// No history in which a tool ran twice for one yes, without what the policy or a person
// allowed, or with other arguments than those agreed to.
func TestProperty(t *testing.T) {
	t.Parallel()
	happened := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt)
		rt.Repeat(m.actions())
		for _, r := range m.was {
			happened["run "+string(r.Status)+" "+string(r.Reason)]++
		}
		for _, d := range m.asked {
			happened["approval "+string(d.Status)]++
			if d.Kind == decision.KindInterrupted {
				happened["asked to run again, "+string(d.Status)]++
			}
		}
	})
	// What thirty histories come to practically always; the rest is in the log.
	for _, what := range []string{
		"run COMPLETED goal_completed", "run FAILED goal_failed", "run CANCELLED approval_rejected",
		"run CANCELLED operator_cancelled", "approval pending", "approval rejected", "approval consumed",
	} {
		if happened[what] == 0 && raceFactor == 1 && !t.Failed() {
			t.Errorf("it never came to: %s", what)
		}
	}
	t.Log(happened)
}
