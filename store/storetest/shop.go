package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// shop is the real engines over one handle, with tools that keep a record.
type shop struct {
	*world
	*call.Executor
	op    decision.Operator
	tools *tool.Registry
	ran   *effects
	slow  chan struct{} // what the slow tool waits for
	held  chan struct{} // what the held tool waits for
	begun chan struct{} // the held tool has begun
}

// effects are what tools did, by call and attempt.
type effects struct {
	mu sync.Mutex
	of map[string]map[int]int
	on func(c tool.Call) // also told; may be nil
}

func (e *effects) happen(c tool.Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of[c.CallID] == nil {
		e.of[c.CallID] = map[int]int{}
	}
	e.of[c.CallID][c.Attempt]++
	if e.on != nil {
		e.on(c)
	}
}

// tell makes f hear of what happens from now on.
func (e *effects) tell(f func(c tool.Call)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.on = f
}

// times is how often the tool ran for a call.
func (e *effects) times(callID string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.of[callID] {
		n += k
	}
	return n
}

// The tools, and what the default policy says to each.
const (
	refund = "refund" // a person is asked
	jot    = "jot"    // allowed
	drop   = "drop"   // denied
	slow   = "slow"   // a person is asked; it outlives its caller
	broken = "broken" // a person is asked; it fails
	keyed  = "keyed"  // a person is asked; a repeat does no harm
	held   = "held"   // a person is asked; it takes until it is let go
)

const anyObject = `{"type":"object"}`

// openShop makes engines over s; change may set what an executor can be told.
func (w *world) openShop(s txn.Store, change func(*call.Config)) *shop {
	w.Helper()
	p := &shop{
		world: w, ran: &effects{of: map[string]map[int]int{}},
		slow: make(chan struct{}), held: make(chan struct{}), begun: make(chan struct{}, 1),
	}
	spec := func(name string, effect tool.SideEffect) tool.Spec {
		return tool.Spec{Name: name, InputSchema: json.RawMessage(anyObject), SideEffect: effect, TimeoutMS: 30_000}
	}
	run := tool.RunnerFunc(p.run)
	var err error
	p.tools, err = tool.NewRegistry(
		tool.Tool{Spec: spec(refund, tool.RemoteMutation), Run: run},
		tool.Tool{Spec: spec(jot, tool.LocalMutation), Run: run, Cost: 2},
		tool.Tool{Spec: spec(drop, tool.Destructive), Run: run},
		tool.Tool{Spec: spec(slow, tool.RemoteMutation), Run: run},
		tool.Tool{Spec: spec(broken, tool.RemoteMutation), Run: run},
		tool.Tool{Spec: spec(held, tool.RemoteMutation), Run: run},
		tool.Tool{Spec: spec(keyed, tool.RemoteMutation), Run: run, Idempotent: true},
	)
	if err != nil {
		w.Fatal(err)
	}
	c := call.Config{Store: s, Tools: p.tools}
	if change != nil {
		change(&c)
	}
	p.Executor = call.NewExecutor(c)
	p.op = decision.Operator{Store: s, Principal: "user:ana"}
	return p
}

// run is every tool. Its start has to be committed before it is called: that is
// looked for through a handle that nothing is done to.
func (p *shop) run(_ context.Context, c tool.Call) (json.RawMessage, error) {
	p.ran.happen(c)
	a, err := try(p.world, func(tx store.Tx) (call.Attempt, error) { return tx.Attempt(c.CallID, int64(c.Attempt)) })
	if err != nil || a.Outcome != "" && c.Tool != slow { // which may be given up by now
		p.Errorf("attempt %d at %s runs, and the store has %q, %v", c.Attempt, c.CallID, a.Outcome, err)
	}
	switch c.Tool {
	case slow:
		<-p.slow
	case held:
		p.begun <- struct{}{}
		<-p.held
	case broken:
		return nil, errors.New("no funds")
	}
	return json.RawMessage(`{"args":` + string(c.Args) + `}`), nil
}

// parkCall parks a call and returns its approval.
func (p *shop) parkCall(ctx context.Context, toolName string, opts ...call.Option) (*call.PendingError, error) {
	_, err := p.Call(ctx, toolName, []byte(`{"amount": 10}`), opts...)
	return pending(err)
}

// pending takes the approval that somebody is told to wait for out of an error.
func pending(err error) (*call.PendingError, error) {
	var p *call.PendingError
	if errors.As(err, &p) {
		return p, nil
	}
	if err == nil {
		err = errors.New("nobody was asked")
	}
	return nil, err
}

// mustPark parks a call.
func (p *shop) mustPark(toolName string) *call.PendingError {
	p.Helper()
	got, err := p.parkCall(p.ctx, toolName)
	if err != nil {
		p.Fatalf("park: %v", err)
	}
	return got
}

// mustGrant parks a call and says yes to it.
func (p *shop) mustGrant(toolName string) *call.PendingError {
	p.Helper()
	got := p.mustPark(toolName)
	if err := p.approve(p.ctx, got); err != nil {
		p.Fatalf("approve: %v", err)
	}
	return got
}

func (p *shop) approve(ctx context.Context, a *call.PendingError) error {
	return p.op.ApproveShown(ctx, a.RunID, a.ApprovalID, a.Digest, "Ana", "fine")
}

// die makes an attempt under a grant as a process does that is lost right after
// its start was committed.
func (p *shop) die(ctx context.Context, s txn.Store, a *call.PendingError, how call.Recovery, lease time.Duration) error {
	return txn.Update(ctx, s, func(tx store.Tx) error {
		d, err := tx.LockDecision(a.ApprovalID)
		if err != nil {
			return err
		}
		c, err := tx.Call(a.CallID)
		if err != nil {
			return err
		}
		spent, err := d.Step(decision.Consume{Attempt: c.Attempts + 1}, tx.Now())
		if err != nil {
			return err
		}
		begun, err := c.Step(call.Begin{
			ApprovalID: d.ID, GrantDigest: d.Digest, SpecDigest: c.SpecDigest, Recovery: how, Owner: "gone",
			Epoch: tx.Epoch(), Lease: lease, Attempts: c.Attempts,
		}, tx.Now())
		if err != nil {
			return err
		}
		if err := tx.PutDecision(d, spent); err != nil {
			return err
		}
		if err := tx.PutCall(c, begun.Next, begun.Events...); err != nil {
			return err
		}
		return tx.InsertAttempt(*begun.Attempt)
	})
}

// otherKind is a policy that asks for another sort of yes than the default one.
func otherKind() policy.Policy {
	return policy.Func(func(_ context.Context, _ request.Request, _ policy.View) (policy.Ruling, error) {
		return policy.Ruling{Outcome: policy.RequireApproval, Kind: "second_thoughts", Reason: "the rules changed"}, nil
	})
}

// once fails unless the tool ran once for the call.
func (p *shop) once(callID string) {
	p.Helper()
	if n := p.ran.times(callID); n != 1 {
		p.Errorf("the tool ran %d times for %s", n, callID)
	}
}

// stands fails unless a call and its approvals, in their order, stand so.
func (w *world) stands(callID string, want call.Status, ds ...decision.Status) {
	w.Helper()
	c := w.call(callID)
	got := []string{string(c.Status)}
	list := read(w, func(tx store.Tx) ([]decision.Decision, error) {
		return tx.Decisions(decision.Query{Space: c.Space, CallID: callID})
	})
	for i := len(list) - 1; i >= 0; i-- {
		got = append(got, string(list[i].Status))
	}
	if expect := append([]string{string(want)}, texts(ds)...); fmt.Sprint(got) != fmt.Sprint(expect) {
		w.Errorf("call %s stands at %v, want %v", callID, got, expect)
	}
}

func texts(ds []decision.Status) (s []string) {
	for _, d := range ds {
		s = append(s, string(d))
	}
	return s
}
