package run_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
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

// word names an error as programs know it; empty for none.
func word(err error) string {
	var e *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	}
	return err.Error()
}

// rulings is a policy that a test changes as it goes.
type rulings struct {
	mu      sync.Mutex
	rule    policy.Func
	version string
	views   []policy.View
}

func (p *rulings) Evaluate(ctx context.Context, r request.Request, v policy.View) (policy.Ruling, error) {
	p.mu.Lock()
	p.views = append(p.views, v)
	rule := p.rule
	p.mu.Unlock()
	if rule == nil {
		rule = policy.Default().Evaluate
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
func (p *rulings) always(ru policy.Ruling, err error) {
	p.set(func(context.Context, request.Request, policy.View) (policy.Ruling, error) { return ru, err })
}

func (p *rulings) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.views)
}

// spy is what all tools of a world do: they note what they were called with.
type spy struct {
	mu   sync.Mutex
	runs []tool.Call
	do   toolFunc
}

type toolFunc = func(ctx context.Context, c tool.Call) (json.RawMessage, error)

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

func (s *spy) then(do toolFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *spy) calls() []tool.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tool.Call(nil), s.runs...)
}

// ran lists tools and their arguments, in order.
func (s *spy) ran() string {
	var all []string
	for _, c := range s.calls() {
		all = append(all, c.Tool+string(c.Args))
	}
	return strings.Join(all, " ")
}

// gate lets foreign code be held in the middle of its work.
type gate struct{ began, open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

// pass waits for the gate, whatever any context says.
func (g *gate) pass() {
	g.began <- struct{}{}
	<-g.open
}

// hold is a tool's work that waits for the gate.
func (g *gate) hold(context.Context, tool.Call) (json.RawMessage, error) {
	g.pass()
	return json.RawMessage(`"held"`), nil
}

const schema = `{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}},"additionalProperties":false}`

// classes are the tools of a world.
var classes = map[string]tool.SideEffect{
	"look": tool.ReadOnly, "write": tool.LocalMutation, "push": tool.RemoteMutation, "drop": tool.Destructive,
}

// tester is what a world needs of *testing.T and of *rapid.T.
type tester interface {
	Helper()
	Log(args ...any)
	Logf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	Context() context.Context
}

// world is one test's own: a store, a clock, an agent, a policy and tools.
type world struct {
	t      tester
	ctx    context.Context
	path   string
	clock  *placettest.Clock
	st     *store.Store
	policy *rulings
	tools  *tool.Registry
	spy    *spy
	agent  run.Agent
	d      *run.Driver
	op     decision.Operator

	hooks   *sqlite.Hooks
	altered bool // by hand: the store need not be sound at the end
}

// setup is a world whose every closure runs twice, and whose agent proposes these.
func setup(t *testing.T, ps ...run.Proposal) *world {
	t.Helper()
	return setupIn(t, t.TempDir(), &sqlite.Hooks{Twice: true, Strict: true}, ps...)
}

// quick is a world that runs as in production: for what is done very often, or
// races for real.
func quick(t *testing.T, ps ...run.Proposal) *world {
	t.Helper()
	return setupIn(t, t.TempDir(), nil, ps...)
}

func setupIn(t tester, dir string, hooks *sqlite.Hooks, ps ...run.Proposal) *world {
	t.Helper()
	w := &world{
		t: t, ctx: t.Context(), path: filepath.Join(dir, "p.db"), clock: &placettest.Clock{},
		policy: &rulings{version: "1"}, tools: &tool.Registry{}, spy: &spy{}, agent: placettest.NewAgent(ps...), hooks: hooks,
	}
	w.st = w.open()
	t.Cleanup(func() {
		if !w.altered && !t.Failed() {
			w.sound()
		}
	})
	for name := range classes {
		w.register(name, nil)
	}
	w.use(nil)
	w.op = decision.Operator{Store: w.st, Now: w.clock.Now}
	return w
}

// sound checks all that must hold of the store, through a handle of its own.
func (w *world) sound() {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{ReadOnly: true, Now: w.clock.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	storetest.CheckInvariants(w.t, st)
}

// open opens the store once more: as another process would.
func (w *world) open() *store.Store {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{Now: w.clock.Now, BusyTimeout: 5 * time.Minute, Hooks: w.hooks})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { st.Close() })
	return st
}

// register puts a tool in place, as the test changes it.
func (w *world) register(name string, change func(*tool.Tool)) {
	w.t.Helper()
	rt := tool.Tool{
		Spec: tool.Spec{Name: name, Description: "A tool.", InputSchema: json.RawMessage(schema), SideEffect: classes[name]}, Run: w.spy,
	}
	if change != nil {
		change(&rt)
	}
	if err := w.tools.Replace(rt); err != nil {
		w.t.Fatal(err)
	}
}

// without is the registry without one tool.
func (w *world) without(name string) *tool.Registry {
	reg := &tool.Registry{}
	for _, rt := range w.tools.List() {
		if rt.Name != name {
			if err := reg.Register(tool.Tool{Spec: rt.Spec, Run: rt.Run}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return reg
}

// driver is a driver of its own, as another process has one.
func (w *world) driver(change func(*run.Config)) *run.Driver {
	c := run.Config{
		Store: w.st, Tools: w.tools, Policy: w.policy, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler),
		Agent: run.AgentFunc(func(ctx context.Context, in run.StepInput) (run.Proposal, error) { return w.agent.Decide(ctx, in) }),
	}
	if change != nil {
		change(&c)
	}
	d := run.NewDriver(c)
	w.t.Cleanup(func() { // late outcomes are stored before the store is closed
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := d.Wait(ctx); err != nil {
			w.t.Errorf("something is still at work: %v", err)
		}
	})
	return d
}

// use makes the world's driver another one.
func (w *world) use(change func(*run.Config)) { w.d = w.driver(change) }

func (w *world) start(change ...func(*run.Limits)) run.Run {
	w.t.Helper()
	l := run.DefaultLimits()
	for _, f := range change {
		f(&l)
	}
	r, err := w.d.Start(w.ctx, "do it", l)
	if err != nil {
		w.t.Fatalf("start: %v", err)
	}
	return r
}

// waiting insists that a new run waits.
func (w *world) waiting(change ...func(*run.Limits)) run.Run {
	w.t.Helper()
	r := w.start(change...)
	w.stands(r, run.Waiting, "")
	return r
}

func (w *world) stands(r run.Run, status run.Status, reason run.Reason) {
	w.t.Helper()
	if r.Status != status || r.Reason != reason {
		w.t.Fatalf("the run is %s %s (%s), want %s %s", r.Status, r.Reason, r.Detail, status, reason)
	}
}

func (w *world) approve(r run.Run) {
	w.t.Helper()
	if err := w.op.Approve(w.ctx, r.ID, w.run(r.ID).ApprovalID, "ana", "fine"); err != nil {
		w.t.Fatalf("approve: %v", err)
	}
}

// approved is a run whose latest approval said yes.
func (w *world) approved(change ...func(*run.Limits)) run.Run {
	w.t.Helper()
	r := w.waiting(change...)
	w.approve(r)
	return r
}

func (w *world) resume(r run.Run) run.Run {
	w.t.Helper()
	r, err := w.d.Resume(w.ctx, r.ID)
	if err != nil {
		w.t.Fatalf("resume: %v", err)
	}
	return r
}

// refused insists on an error of this reason.
func (w *world) refused(err error, want string) {
	w.t.Helper()
	if got := word(err); got != want {
		w.t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func (w *world) ran(want string) {
	w.t.Helper()
	if got := w.spy.ran(); got != want {
		w.t.Errorf("tools ran: %q, want %q", got, want)
	}
}

func (w *world) view(fn func(tx store.Tx) error) {
	w.t.Helper()
	if err := txn.View(context.Background(), w.st, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(id string) (r run.Run) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { r, err = tx.Run(id); return err })
	return r
}

func (w *world) steps(id string) (ss []run.Step) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { ss, err = tx.Steps(id, 0, 1000); return err })
	return ss
}

// told lists a run's steps as status:observation.
func (w *world) told(id string) string {
	w.t.Helper()
	var all []string
	for _, s := range w.steps(id) {
		all = append(all, strings.TrimSuffix(string(s.Status)+":"+string(s.Observation), ":"))
	}
	return strings.Join(all, " ")
}

func (w *world) decision(id string) (d decision.Decision) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) { d, err = tx.Decision(id); return err })
	return d
}

// asked is the latest approval of a run.
func (w *world) asked(id string) decision.Decision {
	w.t.Helper()
	return w.decision(w.run(id).ApprovalID)
}

func (w *world) approvals(id string) (ds []decision.Decision) {
	w.t.Helper()
	w.view(func(tx store.Tx) (err error) {
		ds, err = tx.Decisions(decision.Query{Space: "main", RunID: id, Limit: 500})
		return err
	})
	return ds
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

// types lists a run's events.
func (w *world) types(id string) string {
	w.t.Helper()
	page, err := event.Read(context.Background(), w.st, "run:"+id, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		all = append(all, string(e.Type))
	}
	return strings.Join(all, " ")
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

// mortal is a process's way to the store. Once it died nothing of it arrives there.
type mortal struct {
	txn.Store
	dying sync.Mutex
	dead  bool
}

var errDead = errors.New("the process is gone")

func (m *mortal) die() {
	m.dying.Lock()
	defer m.dying.Unlock()
	m.dead = true
}

func (m *mortal) gone() bool {
	m.dying.Lock()
	defer m.dying.Unlock()
	return m.dead
}

func (m *mortal) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if m.gone() {
		return errDead
	}
	return m.Store.Update(ctx, fn)
}

func (m *mortal) View(ctx context.Context, fn func(txn.Tx) error) error {
	if m.gone() {
		return errDead
	}
	return m.Store.View(ctx, fn)
}

// held is a process that is held in the middle of a tool or of its agent.
type held struct {
	*gate
	life *mortal
	res  chan run.Run
	err  chan error
}

// inTool leaves a process of its own in the middle of the tool that it starts.
func (w *world) inTool(do func(d *run.Driver) (run.Run, error)) *held {
	w.t.Helper()
	h := &held{gate: newGate(), life: &mortal{Store: w.st}, res: make(chan run.Run, 1), err: make(chan error, 1)}
	d := w.driver(func(c *run.Config) { c.Store = h.life })
	w.spy.then(h.hold)
	go func() {
		r, err := do(d)
		h.res <- r
		h.err <- err
	}()
	select {
	case <-h.began:
	case err := <-h.err:
		w.t.Fatalf("it did not come to the tool: %+v, %v", <-h.res, err)
	}
	w.spy.then(nil)
	w.t.Cleanup(func() { h.life.die(); h.letGo() })
	return h
}

func (h *held) letGo() {
	select {
	case <-h.open:
	default:
		close(h.open)
	}
}

// goOn lets the tool come to its end, and tells what its process was told.
func (h *held) goOn() (run.Run, error) {
	h.letGo()
	return <-h.res, <-h.err
}

// lost is a run whose process was killed in the middle of the tool, with its lease over.
func (w *world) lost() run.Run {
	w.t.Helper()
	id := fmt.Sprintf("run_lost-%d", w.clock.Now().UnixMicro())
	h := w.inTool(func(d *run.Driver) (run.Run, error) {
		return d.StartWithID(w.ctx, id, "do it", run.DefaultLimits())
	})
	h.life.die()
	_, _ = h.goOn()
	w.clock.Advance(run.DefaultLease + time.Microsecond)
	return w.run(id)
}

// counting tells of each transaction.
type counting struct {
	txn.Store
	more chan struct{}
}

func (c *counting) Update(ctx context.Context, fn func(txn.Tx) error) error {
	err := c.Store.Update(ctx, fn)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return err
}

func (c *counting) drain() {
	for {
		select {
		case <-c.more:
		default:
			return
		}
	}
}

// goexit is foreign code that ends its goroutine.
func goexit(context.Context, run.StepInput) (run.Proposal, error) {
	runtime.Goexit()
	return run.Proposal{}, nil
}

type requestOf = request.Request

// slowStore takes its time with each commit.
type slowStore struct {
	txn.Store
	spend time.Duration
}

func (s *slowStore) Update(ctx context.Context, fn func(txn.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	wait := time.NewTimer(s.spend)
	defer wait.Stop()
	<-wait.C
	return err
}

// stored reads a run past any world.
func stored(ctx context.Context, st txn.Store, id string) (r run.Run, err error) {
	err = txn.View(ctx, st, func(tx store.Tx) (err error) { r, err = tx.Run(id); return err })
	return r, err
}
