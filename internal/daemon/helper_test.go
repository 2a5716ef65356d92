package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/internal/tidy"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

// TestMain makes this binary the runner of the jobs that its tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == job.RunnerCommand {
		os.Exit(job.Runner(os.Args[2]))
	}
	tidy.MainWithin(m)
}

const (
	// patience bounds waits that end by a signal; only a failing test meets it.
	long   = 5 * time.Minute
	often  = 10 * time.Millisecond
	schema = `{"type":"object","properties":{"order":{"type":"string"}},"required":["order"],"additionalProperties":false}`
	order  = `{"order":"o-7"}`
)

// spy is a tool that notes how often it ran.
type spy struct {
	n  atomic.Int64
	mu sync.Mutex
	do tool.RunnerFunc
}

func (s *spy) Run(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	s.n.Add(1)
	s.mu.Lock()
	do := s.do
	s.mu.Unlock()
	if do != nil {
		return do(ctx, c)
	}
	return json.RawMessage(`"done"`), nil
}

func (s *spy) then(do tool.RunnerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

// gate holds a tool in the middle of its work, whatever its context says.
type gate struct {
	began chan struct{}
	open  chan struct{}
	once  sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{began: make(chan struct{}, 100), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func (g *gate) hold(context.Context, tool.Call) (json.RawMessage, error) {
	g.began <- struct{}{}
	<-g.open
	return json.RawMessage(`"held"`), nil
}

// clock is time as it passes, and as much more as a test wants.
type clock struct{ more atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.more.Load())) }
func (c *clock) advance(d time.Duration) { c.more.Add(int64(d)) }

// records are what a daemon logged.
type records struct {
	mu   sync.Mutex
	text []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	text := rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, text)
	return nil
}

// count is how many of them have these words.
func (r *records) count(words string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.text {
		if strings.Contains(s, words) {
			n++
		}
	}
	return n
}

// world is one test's own: a folder with a store, and a configuration.
type world struct {
	t      *testing.T
	db     string
	conf   *config.Config
	refund *spy
	clock  *clock
	log    *records

	mu   sync.Mutex
	came map[string]chan struct{} // for each loop: it came round
	hung map[string]chan struct{} // for each loop that a test holds: until it lets go
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: filepath.Join(t.TempDir(), "p.db"), refund: &spy{}, clock: &clock{}, log: &records{}, came: map[string]chan struct{}{}, hung: map[string]chan struct{}{}}
	w.conf = &config.Config{Tools: &tool.Registry{}, Policy: policy.Default(), Agents: map[string]config.Agent{}}
	w.tool("refund", tool.RemoteMutation)
	w.tool("look_up", tool.ReadOnly)
	return w
}

// tool is one that tells the spy; the first to change asks a person.
func (w *world) tool(name string, effect tool.SideEffect) {
	w.t.Helper()
	w.toolThat("A tool.", name, effect)
}

func (w *world) toolThat(does, name string, effect tool.SideEffect) {
	w.t.Helper()
	err := w.conf.Tools.Register(tool.Tool{
		Spec: tool.Spec{Name: name, Description: does, InputSchema: json.RawMessage(schema), SideEffect: effect}, Run: w.refund,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// serving is a daemon of the world's, in this process.
type serving struct {
	*world
	at    Started
	home  *httpapi.Client
	end   context.CancelFunc
	ended chan error
}

// start tells why a daemon does not serve, or serves until the test ends.
func (w *world) start(change ...func(*Config)) (*serving, error) {
	w.t.Helper()
	ready := make(chan Started, 1)
	c := Config{
		DB: place.File(w.db), Conf: w.conf, Listen: "127.0.0.1:0", Principal: "local:test", Program: []string{os.Args[0]}, Every: often,
		Now: w.clock.now, Ready: func(s Started) { ready <- s }, Log: slog.New(w.log), before: w.round,
	}
	for _, f := range change {
		f(&c)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &serving{world: w, end: end, ended: make(chan error, 1)}
	go func() { s.ended <- Serve(ctx, c) }()
	select {
	case s.at = <-ready:
	case err := <-s.ended:
		end()
		return nil, err
	}
	w.t.Cleanup(func() { s.stop() })
	secret, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		w.t.Fatal(err)
	}
	s.home = httpapi.NewClient(s.at.URL, strings.TrimSpace(string(secret)))
	return s, nil
}

func (w *world) serve(change ...func(*Config)) *serving {
	w.t.Helper()
	s, err := w.start(change...)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// stop tells the daemon to stop and waits until it has. Once more is fine.
func (s *serving) stop() error {
	s.t.Helper()
	s.end()
	select {
	case err := <-s.ended:
		s.ended <- err
		return err
	case <-time.After(long):
		s.t.Error("the daemon does not stop")
		return errors.New("it does not stop")
	}
}

// client speaks with a new token.
func (s *serving) client(scope token.Scope, name string) (*httpapi.Client, token.Object) {
	s.t.Helper()
	k, err := s.home.CreateToken(s.t.Context(), httpapi.NewToken{Scope: scope, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return httpapi.NewClient(s.at.URL, k.Secret), k
}

// who is an agent, and who decides.
func (s *serving) who() (agent, ana *httpapi.Client) {
	s.t.Helper()
	agent, _ = s.client(token.Agent, "bot")
	ana, _ = s.client(token.Reviewer, "ana")
	return agent, ana
}

func (s *serving) park(c *httpapi.Client) httpapi.Result {
	s.t.Helper()
	r, err := c.Call(s.t.Context(), "refund", []byte(order), "")
	if err != nil || r.Status != call.Pending {
		s.t.Fatalf("%+v %v", r, err)
	}
	return r
}

func (s *serving) approve(c *httpapi.Client, approvalID string) {
	s.t.Helper()
	a, err := c.GetApproval(s.t.Context(), approvalID)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Decide(s.t.Context(), approvalID, httpapi.Deciding{Approved: true, Digest: a.Digest}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *serving) becomes(c *httpapi.Client, callID string, want call.Status) call.Object {
	s.t.Helper()
	o, err := c.GetCall(s.t.Context(), callID, long)
	if err != nil || o.Status != want {
		s.t.Fatalf("%s is %s %q, want %s: %v", callID, o.Status, o.Message, want, err)
	}
	return o
}

// follow returns the next event of the stream that has one of the types.
func (s *serving) follow(stream string, types ...event.Type) event.Object {
	s.t.Helper()
	seen := errors.New("seen")
	var got event.Object
	err := s.home.Follow(s.t.Context(), stream, "", func(e event.Object) error {
		for _, t := range types {
			if e.Type == t {
				got = e
				return seen
			}
		}
		return nil
	})
	if !errors.Is(err, seen) {
		s.t.Fatal(err)
	}
	return got
}

// open opens the store as another process would.
func (w *world) open() *store.Store {
	w.t.Helper()
	st, err := sqlite.Open(w.t.Context(), w.db, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { st.Close() })
	return st
}

// round is called as a loop comes round.
func (w *world) round(name string) {
	w.mu.Lock()
	came, hung := w.came[name], w.hung[name]
	w.mu.Unlock()
	if came != nil {
		select {
		case came <- struct{}{}:
		default:
		}
	}
	if hung != nil {
		<-hung
	}
}

// comes waits until a loop has come round wholly once more.
func (w *world) comes(name string) {
	w.t.Helper()
	came := make(chan struct{}) // nobody is there: it passes on
	w.mu.Lock()
	w.came[name] = came
	w.mu.Unlock()
	for range 2 { // the first may be of a turn that was nearly over, and it is noted after it is told
		select {
		case <-came:
		case <-time.After(long):
			w.t.Fatalf("the loop %s does not come round", name)
		}
	}
	w.mu.Lock()
	delete(w.came, name)
	w.mu.Unlock()
}

// holdUp makes a loop hang when it comes round next, and waits until it does.
func (w *world) holdUp(name string) (letGo func()) {
	w.t.Helper()
	came, hung := make(chan struct{}, 1), make(chan struct{})
	letGo = sync.OnceFunc(func() { close(hung) })
	w.t.Cleanup(letGo)
	w.mu.Lock()
	w.came[name], w.hung[name] = came, hung
	w.mu.Unlock()
	select {
	case <-came:
	case <-time.After(long):
		w.t.Fatalf("the loop %s does not come round", name)
	}
	w.mu.Lock()
	delete(w.came, name)
	delete(w.hung, name)
	w.mu.Unlock()
	return letGo
}

// until asks again and again, until it holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(long); !holds(); {
		if time.Now().After(end) {
			w.t.Fatalf("in vain: %s", what)
		}
		w.comes("sweep")
	}
}

func (w *world) granted(st *store.Store, approvalID string) {
	w.t.Helper()
	_, err := decision.Operator{Store: st}.Decide(w.t.Context(), approvalID, decision.Answer{Approved: true, By: "ana"})
	if err != nil {
		w.t.Fatal(err)
	}
}
