package call_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// reason names an error as programs know it.
func reason(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}

// clock is what a test's store, executors and operators all go by.
type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.us.Store(noon.UnixMicro())
	return c
}

func (c *clock) Now() time.Time          { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }
func (c *clock) set(t time.Time)         { c.us.Store(t.UnixMicro()) }

// rulings is a policy that a test changes as it goes.
type rulings struct {
	mu      sync.Mutex
	rule    policy.Func
	version string
	asked   []request.Request
}

func (p *rulings) Evaluate(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
	p.mu.Lock()
	rule := p.rule
	r2 := r
	r2.Args = bytes.Clone(r.Args)
	p.asked = append(p.asked, r2)
	p.mu.Unlock()
	if rule == nil {
		return policy.Default().Evaluate(ctx, r, v)
	}
	return rule(ctx, r, v)
}

func (p *rulings) Version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *rulings) set(rule policy.Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// always answers every request alike.
func (p *rulings) always(ru policy.Ruling) {
	p.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) { return ru, nil })
}

// spy is a tool that notes what it was called with.
type spy struct {
	mu   sync.Mutex
	runs []tool.Call
	do   func(ctx context.Context, c tool.Call) (json.RawMessage, error)
}

func (s *spy) Run(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	s.mu.Lock()
	s.runs = append(s.runs, c)
	do := s.do
	s.mu.Unlock()
	if do == nil {
		return json.RawMessage(`{"ran":` + string(c.Args) + `}`), nil
	}
	return do(ctx, c)
}

func (s *spy) then(do func(ctx context.Context, c tool.Call) (json.RawMessage, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *spy) calls() []tool.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tool.Call(nil), s.runs...)
}

// args lists what the tool ran with, in order.
func (s *spy) args() string {
	var all []string
	for _, c := range s.calls() {
		all = append(all, string(c.Args))
	}
	return strings.Join(all, " ")
}

// gate lets a tool be held in the middle of its work.
type gate struct{ began, open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

// hold is a tool's work that waits for the gate, whatever its context says.
func (g *gate) hold(_ context.Context, c tool.Call) (json.RawMessage, error) {
	g.began <- struct{}{}
	<-g.open
	return json.RawMessage(`"held"`), nil
}

const schema = `{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"integer","minimum":0},"n":{"type":"integer"}},"additionalProperties":false}`

// tester is what a world needs of *testing.T and of *rapid.T.
type tester interface {
	Helper()
	Log(args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	Context() context.Context
}

// world is one test's own: a store, a clock, a tool that needs approval, its spy.
type world struct {
	t      tester
	ctx    context.Context
	path   string
	clock  *clock
	st     *store.Store
	policy *rulings
	tools  *tool.Registry
	spy    *spy
	ex     *call.Executor
	op     decision.Operator

	hooks   *sqlite.Hooks
	altered bool // by hand: the store need not be sound at the end
}

// setup is a world whose every closure runs twice.
func setup(t *testing.T, change ...func(*call.Config)) *world {
	t.Helper()
	return setupIn(t, t.TempDir(), &sqlite.Hooks{Twice: true, Strict: true}, change...)
}

// quick is a world that runs as in production: for what is done very often, or
// races for real.
func quick(t *testing.T, change ...func(*call.Config)) *world {
	t.Helper()
	return setupIn(t, t.TempDir(), nil, change...)
}

func setupIn(t tester, dir string, hooks *sqlite.Hooks, change ...func(*call.Config)) *world {
	t.Helper()
	w := &world{t: t, hooks: hooks, ctx: t.Context(), path: filepath.Join(dir, "p.db"), clock: newClock(), policy: &rulings{version: "1"}, spy: &spy{}}
	w.st = w.open()
	t.Cleanup(func() {
		if !w.altered && !t.Failed() {
			w.sound()
		}
	})
	w.tools = &tool.Registry{}
	w.register(nil)
	w.ex = w.executor(w.st, change...)
	w.op = decision.Operator{Store: w.st, Now: w.clock.Now}
	return w
}

// open opens the store once more: as another process would.
func (w *world) open() *store.Store {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{
		Now: w.clock.Now, BusyTimeout: 5 * time.Minute, Hooks: w.hooks,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { st.Close() })
	return st
}

// register puts the tool refund in place, as the test changes it.
func (w *world) register(change func(*tool.Tool)) {
	w.t.Helper()
	rt := tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation},
		Run:  w.spy,
	}
	if change != nil {
		change(&rt)
	}
	if err := w.tools.Replace(rt); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) executor(st txn.Store, change ...func(*call.Config)) *call.Executor {
	c := call.Config{Store: st, Tools: w.tools, Policy: w.policy, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	ex := call.NewExecutor(c)
	w.t.Cleanup(func() { // late outcomes are stored before the store is closed
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := ex.Wait(ctx); err != nil {
			w.t.Errorf("a tool is still at work: %v", err)
		}
	})
	return ex
}

// park makes a call that needs a yes.
func (w *world) park(args string, opts ...call.Option) *call.PendingError {
	w.t.Helper()
	return w.parked(w.ex.Call(w.ctx, "refund", []byte(args), opts...))
}

// parked insists that a call was parked.
func (w *world) parked(res call.Result, err error) *call.PendingError {
	w.t.Helper()
	var p *call.PendingError
	if !errors.As(err, &p) {
		w.t.Fatalf("not parked: %+v, %v", res, err)
	}
	return p
}

func (w *world) approve(id string) decision.Decision {
	w.t.Helper()
	return w.decide(id, decision.Answer{Approved: true, By: "ana"})
}

func (w *world) reject(id string) decision.Decision {
	w.t.Helper()
	return w.decide(id, decision.Answer{By: "ana", Note: "not now"})
}

func (w *world) decide(id string, a decision.Answer) decision.Decision {
	w.t.Helper()
	d, err := w.op.Decide(w.ctx, id, a)
	if err != nil {
		w.t.Fatalf("decide %s: %v", id, err)
	}
	return d
}

// resumed insists that the resume ended with this status.
func (w *world) resumed(id string, want call.Status) call.Result {
	w.t.Helper()
	res, err := w.ex.Resume(w.ctx, id, nil)
	if err != nil || res.Status != want {
		w.t.Fatalf("resume: got %s %q, %v; want %s", res.Status, res.Message, err, want)
	}
	return res
}

// refused insists on an error of this reason.
func (w *world) refused(err error, want string) {
	w.t.Helper()
	if got := reason(err); got != want {
		w.t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func (w *world) matches(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Errorf("got %s (%v), want %v", reason(err), err, want)
	}
}

func (w *world) ran(want string) {
	w.t.Helper()
	if got := w.spy.args(); got != want {
		w.t.Errorf("the tool ran with %q, want %q", got, want)
	}
}

func (w *world) decision(id string) (d decision.Decision) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { d, err = tx.Decision(id); return err })
	return d
}

func (w *world) call(id string) (c call.Call) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { c, err = tx.Call(id); return err })
	return c
}

func (w *world) attempts(id string) (as []call.Attempt) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { as, err = tx.Attempts(id); return err })
	return as
}

func (w *world) view(fn func(store.Tx) error) {
	w.t.Helper()
	if err := viewTx(w.ctx, w.st, fn); err != nil {
		w.t.Fatal(err)
	}
}

// status insists on where a call and its approval stand.
func (w *world) status(p *call.PendingError, wantCall call.Status, wantApproval decision.Status) {
	w.t.Helper()
	if c, d := w.call(p.CallID), w.decision(p.ApprovalID); c.Status != wantCall || d.Status != wantApproval {
		w.t.Errorf("call %s and approval %s, want %s and %s", c.Status, d.Status, wantCall, wantApproval)
	}
}

// types lists a call's events.
func (w *world) types(callID string) string {
	w.t.Helper()
	page, err := event.Read(w.ctx, w.st, "call:"+callID, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		all = append(all, string(e.Type))
	}
	return strings.Join(all, " ")
}

func (w *world) latest(callID string) decision.Decision {
	w.t.Helper()
	return w.decision(w.call(callID).ApprovalID)
}

// raw runs a statement on a connection of its own, past every check of ours.
func (w *world) raw(query string, args ...any) {
	w.t.Helper()
	w.altered = true
	db := w.rawDB()
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

func (w *world) rawDB() *sql.DB {
	w.t.Helper()
	u := url.URL{Scheme: "file", Path: w.path}
	db, err := sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(20000)&_pragma=wal_autocheckpoint(0)&_pragma=ignore_check_constraints(1)&_pragma=foreign_keys(0)")
	if err != nil {
		w.t.Fatal(err)
	}
	return db
}

// number reads one figure past every check of ours.
func (w *world) number(query string, args ...any) (n int64) {
	w.t.Helper()
	db := w.rawDB()
	defer db.Close()
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return n
}
