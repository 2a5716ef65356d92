package call_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// mortal is a process's way to the store. Once it died nothing of it arrives there.
type mortal struct {
	txn.Store
	dead atomic.Bool
}

var errDead = errors.New("the process is gone")

func (m *mortal) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.Update(ctx, fn)
}

func (m *mortal) View(ctx context.Context, fn func(txn.Tx) error) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.View(ctx, fn)
}

// machine acts at random on one store and holds every run of a tool against what
// people really said.
type machine struct {
	*world
	mu       sync.Mutex
	said     map[string][]byte // approval → the arguments that a yes to it lets run
	paid     map[string]int64  // approval → the attempt that ran on it
	allows   bool              // the policy, now
	ids      []string          // of approvals
	held     []*process
	before   map[string]decision.Decision
	callsWas map[string]call.Call
}

// process is one that is held in the middle of a tool.
type process struct {
	*stalled
	life *mortal
}

const keyTool, askTool = "keyed", "refund"

func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "placet-call")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{
		world: setupIn(t, dir, nil, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = 4*time.Hour, 2*time.Hour }),
		said:  map[string][]byte{}, paid: map[string]int64{}, before: map[string]decision.Decision{}, callsWas: map[string]call.Call{},
	}
	m.spy.then(nil)
	m.register(func(rt *tool.Tool) { rt.Run = tool.RunnerFunc(m.run) })
	err = m.tools.Register(tool.Tool{
		Spec: tool.Spec{Name: keyTool, InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Idempotent: true, Run: tool.RunnerFunc(m.run),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run is the tool: it looks at what it runs on before it has any effect.
func (m *machine) run(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	var a call.Attempt
	var stored call.Call
	if err := viewTx(context.Background(), m.st, func(tx store.Tx) (err error) {
		if stored, err = tx.Call(c.CallID); err != nil {
			return err
		}
		a, err = tx.Attempt(c.CallID, int64(c.Attempt))
		return err
	}); err != nil {
		m.t.Errorf("the tool runs without a stored attempt: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case stored.Status != call.Running || a.Outcome != "" || stored.Attempts != a.N:
		m.t.Errorf("the tool runs, and its call is %s (attempt %+v)", stored.Status, a)
	case a.ApprovalID == "" && (!m.allows || stored.ApprovalID != ""):
		m.t.Errorf("the tool runs without a grant: %+v", a)
	case a.ApprovalID != "":
		m.checkPaid(c, a)
	}
	m.mu.Unlock()
	defer m.mu.Lock()
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
func (m *machine) met(res call.Result, err error) {
	var p *call.PendingError
	if errors.As(err, &p) {
		return
	}
	if err != nil {
		switch reason(err) {
		case "usage", "not_found", "already_decided", "not_pending", "approval_expired", "run_state", "moved", "call_running", "call_conflict", "invalid_arguments", "lease_lost":
		default:
			m.t.Errorf("an error that nothing explains: %v", err)
		}
	}
}

func (m *machine) any(t *rapid.T) string {
	from := m.ids
	if rapid.IntRange(0, 3).Draw(t, "old") > 0 { // mostly what can still come to something
		from = nil
		for _, id := range m.ids {
			if m.before[id].Open {
				from = append(from, id)
			}
		}
	}
	if len(from) == 0 {
		t.Skip("nothing was asked yet")
	}
	return rapid.SampledFrom(from).Draw(t, "id")
}

// grant is a yes that was not spent yet.
func (m *machine) grant(t *rapid.T) string {
	var from []string
	for _, id := range m.ids {
		if m.before[id].Status == decision.Approved {
			from = append(from, id)
		}
	}
	if len(from) == 0 {
		return m.any(t)
	}
	return rapid.SampledFrom(from).Draw(t, "id")
}

var someArgs = []string{`{"n":1}`, ` {"n": 2} `, `{"amount":3,"order":"x"}`, `{}`, `{"n":1.0}`}

func drawArgs(t *rapid.T, label string) []byte {
	return []byte(rapid.SampledFrom(someArgs).Draw(t, label))
}

func drawTool(t *rapid.T) string {
	return rapid.SampledFrom([]string{askTool, askTool, keyTool}).Draw(t, "tool")
}

func (m *machine) draw(t *rapid.T) decision.Answer {
	a := decision.Answer{Approved: rapid.IntRange(0, 3).Draw(t, "yes") > 0, By: rapid.SampledFrom([]string{"ana", "bo"}).Draw(t, "by")}
	if a.Approved && rapid.IntRange(0, 2).Draw(t, "edit") == 0 {
		a.EditedArgs = drawArgs(t, "edited")
	}
	return a
}

// heard notes a yes as soon as it is stored, before anything can run on it.
func (m *machine) heard(id string, a decision.Answer, was decision.Decision) {
	if !a.Approved || was.Status != decision.Pending {
		return
	}
	req, err := request.Decode(was.Request)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said[id] = req.Args; a.EditedArgs != nil {
		m.said[id] = a.EditedArgs
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"call": func(t *rapid.T) { m.met(m.ex.Call(m.ctx, drawTool(t), drawArgs(t, "args"))) },
		"run call": func(t *rapid.T) {
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			m.met(m.ex.RunCall(m.ctx, "run", id, drawTool(t), drawArgs(t, "args")))
		},
		"decide": func(t *rapid.T) {
			id, a := m.any(t), m.draw(t)
			was, c := m.decision(id), m.call(m.decision(id).CallID)
			m.heard(id, a, was)
			_, err := m.op.Decide(m.ctx, id, a)
			if want := m.expected(was, c, a); err == nil && want != "" || err != nil && reason(err) != want {
				m.t.Errorf("decide: %v, want %q for %+v", err, want, was)
			}
			if err != nil && was.Status == decision.Pending {
				m.forget(id)
			}
		},
		"agree": func(t *rapid.T) {
			id := m.any(t)
			m.heard(id, *yes("ana"), m.decision(id))
			if _, err := m.op.Decide(m.ctx, id, *yes("ana")); err != nil && m.before[id].Choice == "" {
				m.forget(id)
			}
		},
		"resume": func(t *rapid.T) { m.met(m.ex.Resume(m.ctx, m.grant(t), nil)) },
		"lose": func(t *rapid.T) { // a process, and notice it
			id := m.grant(t)
			m.hold(t, id)
			m.clock.advance(call.DefaultLease + time.Microsecond)
			m.met(m.ex.Resume(m.ctx, id, nil))
		},
		"resume with answer": func(t *rapid.T) {
			id, a := m.any(t), m.draw(t)
			was := m.decision(id)
			m.heard(id, a, was)
			res, err := m.ex.Resume(m.ctx, id, &a)
			m.met(res, err)
			if now := m.decision(id); was.Status == decision.Pending && now.Choice != decision.ChoiceApprove {
				m.forget(id)
			}
		},
		"hold":      func(t *rapid.T) { m.hold(t, m.grant(t)) },
		"let go on": func(t *rapid.T) { m.release(t, false) },
		"kill":      func(t *rapid.T) { m.release(t, true) },
		"envelope":  func(t *rapid.T) { m.met(m.ex.Handle(m.ctx, []byte(`{"v":1,"approval_id":"`+m.any(t)+`"}`))) },
		"withdraw": func(t *rapid.T) {
			_, err := m.op.Withdraw(m.ctx, m.any(t), "bot", "")
			m.met(call.Result{}, err)
		},
		"expire": func(t *rapid.T) {
			if rapid.Bool().Draw(t, "overdue") { // waits alone seldom add up to it
				m.clock.advance(4*time.Hour + time.Second)
			}
			if _, err := m.op.ExpireDue(m.ctx, 100); err != nil {
				m.t.Error(err)
			}
		},
		"sweep": func(t *rapid.T) {
			if _, err := m.ex.Sweep(m.ctx, 100); err != nil {
				m.t.Error(err)
			}
		},
		"wait": func(t *rapid.T) {
			m.clock.advance(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, call.DefaultLease, time.Hour, 2 * time.Hour}).Draw(t, "for"))
		},
		"policy": func(t *rapid.T) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.allows = false
			switch rapid.SampledFrom([]string{"ask", "ask", "ask otherwise", "allow", "deny"}).Draw(t, "policy") {
			case "ask":
				m.policy.set(nil)
			case "ask otherwise":
				m.policy.always(policy.Ruling{Outcome: policy.RequireApproval, Kind: "other"})
			case "allow":
				m.allows = true
				m.policy.always(policy.Ruling{Outcome: policy.Allow})
			case "deny":
				m.policy.always(policy.Ruling{Outcome: policy.Deny})
			}
		},
		"reopen": func(t *rapid.T) { // another process goes on; those that are held stay with their own
			m.st = m.open()
			m.ex = m.executor(m.st, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = 4*time.Hour, 2*time.Hour })
			m.op.Store = m.st
		},
		"": m.check,
	}
}

// expected is the sequential word on a decision (spec 1.3).
func (m *machine) expected(d decision.Decision, c call.Call, a decision.Answer) string {
	switch {
	case d.Status == decision.Expired:
		return "approval_expired"
	case d.Status != decision.Pending:
		return "not_pending"
	case c.ApprovalID != d.ID || c.Status != call.Pending && c.Status != call.Unknown:
		return "run_state"
	case m.clock.Now().After(d.ExpiresAt):
		return "approval_expired"
	case a.EditedArgs != nil && (d.ForbidEdits || d.Kind == decision.KindInterrupted):
		return "usage"
	}
	return ""
}

func (m *machine) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.said, id)
}

// hold starts a tool in a process of its own and leaves it in the middle.
func (m *machine) hold(t *rapid.T, id string) {
	life := &mortal{Store: m.st}
	ex := m.executor(life, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = 4*time.Hour, 2*time.Hour })
	p := &process{&stalled{newGate(), make(chan call.Result, 1), make(chan error, 1)}, life}
	m.spy.then(p.hold)
	go func() {
		res, err := ex.Resume(context.WithoutCancel(m.ctx), id, nil)
		p.res <- res
		p.err <- err
	}()
	select {
	case <-p.began:
		m.held = append(m.held, p)
		m.t.Cleanup(func() { p.end(true) })
	case err := <-p.err:
		m.met(<-p.res, err)
	}
	m.spy.then(nil)
}

func (p *process) end(kill bool) (call.Result, error) {
	select {
	case <-p.open:
		return call.Result{}, nil
	default:
	}
	p.life.dead.Store(kill)
	return p.goOn()
}

func (m *machine) release(t *rapid.T, kill bool) {
	if len(m.held) == 0 {
		t.Skip("nothing is held")
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(t, "which")
	p := m.held[i]
	m.held = append(m.held[:i:i], m.held[i+1:]...)
	res, err := p.end(kill)
	if kill {
		if !errors.Is(err, errDead) {
			m.t.Errorf("a dead process was told %+v, %v", res, err)
		}
		return
	}
	m.met(res, err)
}

var (
	nextDecision = map[decision.Status]string{
		decision.Pending: "pending approved rejected expired withdrawn superseded consumed", decision.Approved: "approved consumed expired superseded",
		decision.Rejected: "rejected consumed", decision.Expired: "expired", decision.Withdrawn: "withdrawn", decision.Superseded: "superseded", decision.Consumed: "consumed",
	}
	nextCall = map[call.Status]string{
		call.Pending: "pending running succeeded failed unknown denied expired cancelled", call.Running: "running succeeded failed unknown",
		call.Unknown: "unknown running succeeded failed", call.Succeeded: "succeeded", call.Failed: "failed", call.Denied: "denied", call.Expired: "expired", call.Cancelled: "cancelled",
	}
)

// check holds every row against how it was after the action before.
func (m *machine) check(*rapid.T) {
	m.view(func(tx store.Tx) error {
		ds, err := tx.Decisions(decision.Query{Space: "main", Limit: 500})
		if err != nil {
			return err
		}
		cs, err := tx.Calls(call.Query{Space: "main", Limit: 500})
		if err != nil {
			return err
		}
		for _, d := range ds {
			if _, known := m.before[d.ID]; !known {
				m.ids = append(m.ids, d.ID)
			}
			m.checkDecision(m.before[d.ID], d)
			m.before[d.ID] = d
		}
		for _, c := range cs {
			m.checkCall(m.callsWas[c.ID], c)
			m.callsWas[c.ID] = c
		}
		return nil
	})
}

func (m *machine) checkDecision(was, d decision.Decision) {
	if was.ID == "" {
		was = d
	}
	if !has(nextDecision[was.Status], string(d.Status)) {
		m.t.Errorf("an approval that was %s is %s", was.Status, d.Status)
	}
	if err := d.Intact(); err != nil {
		m.t.Error(err)
	}
	fixed := func(d decision.Decision) string {
		return fmt.Sprint(d.Owner, d.N, d.Kind, string(d.Request), d.Digest, d.SpentDigest, d.ArgsDigest, d.CreatedAt, d.ExpiresAt)
	}
	if diff := cmp.Diff(fixed(was), fixed(d)); diff != "" {
		m.t.Errorf("what was asked changed: %s", diff)
	}
	if was.Choice != "" && (was.Choice != d.Choice || was.DecidedBy != d.DecidedBy || !was.DecidedAt.Equal(d.DecidedAt) || !bytes.Equal(was.EditedArgs, d.EditedArgs)) {
		m.t.Errorf("an answer changed: %+v to %+v", was, d)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, agreed := m.said[d.ID]; agreed != (d.Choice == decision.ChoiceApprove) {
		m.t.Errorf("approval %s says %q, and people said yes: %v", d.ID, d.Choice, agreed)
	}
}

func (m *machine) checkCall(was, c call.Call) {
	if was.ID == "" {
		was = c
	}
	if !has(nextCall[was.Status], string(c.Status)) {
		m.t.Errorf("a call that was %s is %s", was.Status, c.Status)
	}
	if was.Status.Terminal() && (!bytes.Equal(was.Result, c.Result) || !was.EndedAt.Equal(c.EndedAt) || was.Attempts != c.Attempts) {
		m.t.Errorf("a call that had ended changed: %+v to %+v", was, c)
	}
	if !bytes.Equal(was.Args, c.Args) || was.Tool != c.Tool || was.RunID != c.RunID || c.Fence < was.Fence || c.Attempts < was.Attempts {
		m.t.Errorf("what is fixed changed: %+v to %+v", was, c)
	}
}

func has(words, word string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}

// No history in which a tool ran twice for one yes, ran without a grant, or ran other
// arguments than those agreed to.
func TestProperty(t *testing.T) {
	t.Parallel()
	happened := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt)
		rt.Repeat(m.actions())
		for _, d := range m.before {
			happened["approval "+string(d.Status)]++
			if d.Kind == decision.KindInterrupted {
				happened["asked to run again, "+string(d.Status)]++
			}
			if d.EditedArgs != nil {
				happened["edited, "+string(d.Status)]++
			}
		}
		for _, c := range m.callsWas {
			happened["call "+string(c.Status)]++
			happened[fmt.Sprintf("call of %d attempts", c.Attempts)]++
		}
	})
	for _, what := range []string{
		"approval pending", "approval approved", "approval rejected", "approval expired", "approval withdrawn", "approval superseded", "approval consumed",
		"asked to run again, withdrawn", "edited, consumed",
		"call unknown", "call succeeded", "call denied", "call expired", "call cancelled", "call running", "call of 2 attempts",
	} {
		if happened[what] == 0 && raceFactor == 1 && !t.Failed() {
			t.Errorf("it never came to: %s", what)
		}
	}
	t.Log(happened)
}
