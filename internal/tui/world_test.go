package tui

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// TestMain keeps tests from opening somebody's editor.
func TestMain(m *testing.M) {
	os.Setenv("VISUAL", "false")
	os.Exit(m.Run())
}

// world is a store with tools whose calls wait for a person.
type world struct {
	t      testing.TB
	store  *store.Store
	clock  *placettest.Clock
	ex     *call.Executor
	ruling func(request.Request) policy.Ruling
	rest   *rest
	ids    atomic.Int64
	lose   bool                 // no tool tells what came of a call
	blind  atomic.Bool          // nothing can be read at the terminals
	tries  atomic.Int64         // that were made of it
	gate   atomic.Pointer[gate] // of what is read there; nil: it is open
	path   string
}

// start is when every world begins.
var start = time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: &placettest.Clock{}, rest: newRest()}
	w.clock.Set(start)
	w.path = filepath.Join(t.TempDir(), "p.db")
	w.reopen()
	w.ruling = func(request.Request) policy.Ruling {
		return policy.Ruling{Outcome: policy.RequireApproval, Reason: "refunds above 50 need a person", ApprovalTTL: 10 * time.Minute}
	}
	w.useTools("Refunds an order.")
	return w
}

func (w *world) reopen() {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{Now: w.clock.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { st.Close() })
	w.store = st
}

// useTools makes the executor anew, with a tool of that description.
func (w *world) useTools(about string) {
	w.t.Helper()
	echo := tool.RunnerFunc(func(_ context.Context, in tool.Call) (json.RawMessage, error) {
		if w.lose {
			return nil, tool.ErrOutcomeUnknown
		}
		return in.Args, nil
	})
	schema := `{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number","minimum":0},"api_key":{"type":"string"}}}`
	tools, err := tool.NewRegistry(
		tool.Tool{Spec: tool.Spec{Name: "refund", Description: about, InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation, Implementation: "go refund@1", TimeoutMS: 60_000}, Run: echo},
		tool.Tool{Spec: tool.Spec{Name: "wipe", Description: "Empties a folder.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.Destructive, TimeoutMS: 60_000}, Run: echo})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ex = call.NewExecutor(call.Config{Store: w.store, Tools: tools, Policy: judge{w}, Now: w.clock.Now, NewID: w.newID})
}

// newID makes ids that are the same in every run of a test.
func (w *world) newID(prefix string) string {
	return fmt.Sprintf("%s00000000-0000-7000-8000-%012d", prefix, w.ids.Add(1))
}

// judge asks the world.
type judge struct{ w *world }

func (j judge) Evaluate(_ context.Context, r request.Request, _ policy.View) (policy.Ruling, error) {
	return j.w.ruling(r), nil
}

// park makes a call that waits.
func (w *world) park(name, args string, opts ...call.Option) *call.PendingError {
	w.t.Helper()
	_, err := w.ex.Call(w.t.Context(), name, []byte(args), opts...)
	var parked *call.PendingError
	if !errors.As(err, &parked) {
		w.t.Fatalf("not parked: %v", err)
	}
	return parked
}

func (w *world) refund() *call.PendingError {
	w.t.Helper()
	return w.park("refund", `{"order_id":"o-7","amount":500}`, call.As("agent-7"))
}

// ask makes a job ask something.
func (w *world) ask(q decision.Asking) string {
	w.t.Helper()
	j := job.Job{
		ID: id.New(id.Job), Space: event.MainSpace, Home: "/elsewhere", Spec: job.Spec{Shell: "true", Name: "train"}, Principal: "ci",
		Status: job.Queued, ExitCode: -1, CreatedAt: w.clock.Now(), Version: 1,
	}
	e := event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})
	if err := txn.Update(w.t.Context(), w.store, func(tx job.Tx) error { return tx.InsertJob(job.Change{Next: j, Events: []event.Event{e}}) }); err != nil {
		w.t.Fatal(err)
	}
	d, err := decision.Operator{Store: w.store}.Ask(w.t.Context(), event.MainSpace, j.ID, q)
	if err != nil {
		w.t.Fatal(err)
	}
	return d.ID
}

func (w *world) decision(id string) (d decision.Decision) {
	w.t.Helper()
	err := txn.View(context.Background(), w.store, func(tx decision.Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) check(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

// alter changes a decision behind the back of everybody.
func (w *world) alter(id, column, value string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err == nil {
		defer db.Close()
		_, err = db.Exec("UPDATE decision SET "+column+" = ? WHERE id = ?", value, id)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// mustPend fails where something was decided.
func (w *world) mustPend(id string) {
	w.t.Helper()
	if d := w.decision(id); d.Status != decision.Pending || d.DecidedBy != "" {
		w.t.Errorf("%s is %s by %q", id, d.Status, d.DecidedBy)
	}
}

func (w *world) operator(name string) decision.Operator {
	return decision.Operator{Store: w.store, Now: w.clock.Now, Principal: "local:" + name, MayOwn: true}
}

func (w *world) config(name string) Config {
	return Config{
		Store: blinded{w.store, w}, Space: event.MainSpace, Operator: w.operator(name), By: name, Now: w.clock.Now,
		Command: func(words ...string) string { return "placet " + strings.Join(words, " ") },
		After:   w.rest.after,
	}
}

// blinded is a store from which nothing can be read at times, or not at once.
type blinded struct {
	txn.Store
	w *world
}

func (b blinded) View(ctx context.Context, fn func(txn.Tx) error) error {
	if b.w.blind.Load() {
		b.w.tries.Add(1)
		return txn.ErrBusy
	}
	if g := b.w.gate.Load(); g != nil {
		g.once.Do(func() { close(g.came) })
		<-g.open
	}
	return b.Store.View(ctx, fn)
}

// gate holds up readings.
type gate struct {
	once       sync.Once
	came, open chan struct{}
}

// rest is where waiting ends: a test says when a time is over.
type rest struct {
	mu      sync.Mutex
	waiting map[chan struct{}]time.Duration
}

func newRest() *rest { return &rest{waiting: map[chan struct{}]time.Duration{}} }

func (r *rest) after(d time.Duration, msg tea.Msg) tea.Cmd {
	over := make(chan struct{})
	r.mu.Lock()
	r.waiting[over] = d
	r.mu.Unlock()
	return func() tea.Msg {
		<-over
		return msg
	}
}

// pass ends what waits for at most d, and reports whether anything did.
func (r *rest) pass(d time.Duration) (any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for over, wait := range r.waiting {
		if wait <= d {
			close(over)
			delete(r.waiting, over)
			any = true
		}
	}
	return any
}

// person is somebody at a terminal of a fixed size.
type person struct {
	t  testing.TB
	w  *world
	tm *teatest.TestModel
	*probe
}

// probe is the program, watched: tests wait for what it shows.
type probe struct {
	*app
	mu   sync.Mutex
	grew *sync.Cond
	raw  string // what the renderer was given
	seen string
	over bool

	ended error // why it ended by itself
}

func (p *probe) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch m := msg.(type) {
	case func():
		m()
		return p, nil
	case func() tea.Cmd:
		cmd = m()
	default:
		_, cmd = p.app.Update(msg)
	}
	p.mu.Lock()
	p.raw = p.app.View().Content
	p.seen, p.ended = ansi.Strip(p.raw), p.app.err
	p.grew.Broadcast()
	p.mu.Unlock()
	return p, cmd
}

func (p *probe) View() tea.View { return p.app.View() }

// at seats somebody at a terminal.
func (w *world) at(name string, width, height int) *person {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	pr := &probe{app: newApp(ctx, w.config(name))}
	pr.grew = sync.NewCond(&pr.mu)
	p := &person{t: w.t, w: w, probe: pr, tm: teatest.NewTestModel(w.t, pr, teatest.WithInitialTermSize(width, height))}
	for sized := false; !sized; { // its size comes as a message of its own
		done := make(chan bool)
		p.tm.Send(func() { done <- pr.w == width && pr.h == height })
		sized = <-done
	}
	w.t.Cleanup(func() {
		_ = p.tm.Quit()
		p.tm.WaitFinished(w.t, teatest.WithFinalTimeout(time.Minute))
		stop()
	})
	return p
}

// until waits for all of these texts to be on the screen, and is the screen then.
func (p *person) until(texts ...string) string {
	p.t.Helper()
	return p.untilIs(fmt.Sprintf("%q", texts), func(s string) bool {
		for _, text := range texts {
			if !strings.Contains(s, text) {
				return false
			}
		}
		return true
	})
}

// without waits for a text to be gone from the screen.
func (p *person) without(text string) string {
	p.t.Helper()
	return p.untilIs("no "+text, func(s string) bool { return !strings.Contains(s, text) })
}

const patience = 5 * time.Minute // that only a failing test meets

func (p *person) untilIs(what string, is func(string) bool) string {
	p.t.Helper()
	late := time.AfterFunc(patience, func() {
		p.mu.Lock()
		p.over = true
		p.grew.Broadcast()
		p.mu.Unlock()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !is(p.seen) {
		if p.over {
			p.t.Fatalf("there is no %s on the screen; it ended with %v:\n%s", what, p.ended, p.seen)
		}
		p.grew.Wait()
	}
	return p.seen
}

// keys presses keys, each by its name or as the text that it writes.
func (p *person) keys(names ...string) {
	for _, n := range names {
		p.tm.Send(keyOf(n))
	}
}

// types writes a text, letter by letter.
func (p *person) types(text string) {
	for _, r := range text {
		p.keys(string(r))
	}
}

var named = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp},
	"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+e": {Code: 'e', Mod: tea.ModCtrl}, " ": {Code: tea.KeySpace, Text: " "},
	"\n": {Code: tea.KeyEnter},
}

func keyOf(name string) tea.KeyPressMsg {
	if k, ok := named[name]; ok {
		return tea.KeyPressMsg(k)
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg(tea.Key{Code: r, Text: name})
}

// settle lets the keyboard rest until the word is asked for.
func (p *person) settle() {
	p.t.Helper()
	for {
		p.sync()
		p.mu.Lock()
		seen := p.seen
		p.mu.Unlock()
		if !strings.Contains(seen, "One moment") {
			return
		}
		p.w.rest.pass(look100)
	}
}

// rests lets the keyboard rest until keys do something again.
func (p *person) rests() {
	p.t.Helper()
	for open := false; !open; {
		done := make(chan bool)
		p.tm.Send(func() { done <- p.hush.open })
		if open = <-done; !open {
			p.w.rest.pass(look100)
		}
	}
}

// sync returns once everything that was sent before was taken.
func (p *person) sync() {
	p.t.Helper()
	done := make(chan struct{})
	p.tm.Send(func() { close(done) })
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Fatal("the program takes nothing any more")
	}
}

// open shows a decision.
func (p *person) open(id string) {
	p.t.Helper()
	p.until("Waiting for a person")
	p.tm.Send(func() tea.Cmd { return p.stack[0].(*queue).show(id) })
}

// search shows a decision by its id, from the queue.
func (p *person) search(id string) {
	p.t.Helper()
	p.until("Waiting for a person")
	p.keys("/")
	p.types(id)
	p.keys("enter")
}

// confirms gives an answer: the key that leads there, and the word.
func (p *person) confirms(key, word string) {
	p.t.Helper()
	p.keys(key)
	p.until("What will be recorded")
	p.settle()
	p.types(word)
	p.until("> " + word)
	p.keys("enter")
}

var (
	anyID     = regexp.MustCompile(`(apr|dec|call|run|stp|job|evt)_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyDigest = regexp.MustCompile(`sha256-placet1:[0-9a-f]*`)
	anyRest   = regexp.MustCompile(`(?m)^([ │]*)[0-9a-f]{10,64}$`)
)

// steady is a screen with what differs from run to run replaced by something as wide.
func steady(screen string) string {
	blank := func(s string) string {
		return regexp.MustCompile(`[0-9a-f]`).ReplaceAllString(s, "0")
	}
	screen = anyID.ReplaceAllStringFunc(screen, func(s string) string {
		prefix, rest, _ := strings.Cut(s, "_")
		return prefix + "_" + blank(rest)
	})
	screen = anyDigest.ReplaceAllStringFunc(screen, func(s string) string { return s[:15] + blank(s[15:]) })
	screen = anyRest.ReplaceAllStringFunc(screen, blank)
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
