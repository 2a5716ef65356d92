package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/internal/tidy"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/mcpserver"
	"github.com/placet-dev/placet/policy"
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

// patience bounds waits that end by a signal; only a failing test meets it.
const patience = 5 * time.Minute

// versions are the revisions of the protocol that are served.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// sent is an operation that reached a fake door.
type sent struct {
	method, path, query, key, body string
}

func (s sent) String() string {
	line := s.method + " " + s.path
	if s.query != "" {
		line += "?" + s.query
	}
	if s.key != "" {
		line += " key=" + s.key
	}
	return strings.TrimSpace(line + " " + s.body)
}

// door is an API that answers as a test wants, however late, and notes what it was asked.
// Status 0 is no answer: the caller gave up.
type door struct {
	mu     sync.Mutex
	asked  []sent
	scope  string
	log    atomic.Int64 // warnings of the server behind it
	answer func(ctx context.Context, s sent) (int, string)
}

func (d *door) Send(ctx context.Context, method, path string, q url.Values, h http.Header, body []byte) (int, []byte, error) {
	s := sent{method, path, q.Encode(), h.Get("Idempotency-Key"), string(body)}
	if path == "/v1/whoami" {
		return http.StatusOK, fmt.Appendf(nil, `{"id":"tok_1","scope":%q,"principal":"ana"}`, d.scope), nil
	}
	d.mu.Lock()
	d.asked = append(d.asked, s)
	answer := d.answer
	d.mu.Unlock()
	status, text := http.StatusOK, `{"ok":true}`
	if answer != nil {
		status, text = answer(ctx, s)
	}
	if status == 0 {
		return 0, nil, context.Cause(ctx)
	}
	return status, []byte(text), nil
}

func (d *door) lines() (lines []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.asked {
		lines = append(lines, s.String())
	}
	return lines
}

// warnings counts them.
type warnings struct {
	slog.Handler
	n *atomic.Int64
}

func (w warnings) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (w warnings) Handle(context.Context, slog.Record) error {
	w.n.Add(1)
	return nil
}

// then makes the door answer so.
func (d *door) then(answer func(ctx context.Context, s sent) (int, string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// at is a client of a server behind a door, in memory.
func at(t *testing.T, d *door, c mcpserver.Config, o *mcp.ClientOptions, version string, hears ...mcp.Middleware) *mcp.ClientSession {
	t.Helper()
	if d.scope == "" {
		d.scope = "agent"
	}
	c.Door = func(http.Header) mcpserver.Door { return d }
	c.Log = slog.New(warnings{slog.DiscardHandler, &d.log})
	s := mcpserver.New(c)
	theirs, ours := mcp.NewInMemoryTransports()
	ended := make(chan error, 1)
	go func() { ended <- s.Connect(context.WithoutCancel(t.Context()), ours) }()
	session := connect(t, theirs, o, version, hears...)
	t.Cleanup(func() {
		session.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the server does not notice that its client has gone")
		}
	})
	return session
}

// connect makes a client. hears see what the server asks of it.
func connect(t *testing.T, over mcp.Transport, o *mcp.ClientOptions, version string, hears ...mcp.Middleware) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	c.AddReceivingMiddleware(hears...)
	session, err := c.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// answer is a tool's result as a test looks at it.
type answer struct {
	*mcp.CallToolResult
	body map[string]any
	text string
}

func (a answer) get(path ...string) string {
	var v any = a.body
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// invoke calls a tool, which has to answer. args are JSON.
func invoke(t *testing.T, s *mcp.ClientSession, tool, args string) answer {
	t.Helper()
	a, err := tryCall(t, s, tool, args)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return a
}

func tryCall(t *testing.T, s *mcp.ClientSession, tool, args string) (answer, error) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return answer{}, err
	}
	return read(t, r), nil
}

func read(t *testing.T, r *mcp.CallToolResult) answer {
	t.Helper()
	a := answer{CallToolResult: r}
	if len(r.Content) > 0 {
		if c, ok := r.Content[0].(*mcp.TextContent); ok {
			a.text = c.Text
		}
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &a.body)
	}
	var same map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(a.text), &same)
	}
	if err != nil || fmt.Sprint(same) != fmt.Sprint(a.body) {
		t.Fatalf("the text is %q, the structured content %s: %v", a.text, b, err)
	}
	return a
}

// ok calls a tool that has to do it.
func ok(t *testing.T, s *mcp.ClientSession, tool, args string) answer {
	t.Helper()
	a := invoke(t, s, tool, args)
	if a.IsError {
		t.Fatalf("%s %s: %s", tool, args, a.text)
	}
	return a
}

// refused calls a tool that has to refuse for that reason.
func refused(t *testing.T, s *mcp.ClientSession, tool, args, reason string) answer {
	t.Helper()
	a := invoke(t, s, tool, args)
	if !a.IsError || a.get("error", "reason") != reason || a.get("error", "code") == "" || a.get("error", "message") == "" {
		t.Fatalf("%s %s: %v %s, want the reason %s", tool, args, a.IsError, a.text, reason)
	}
	return a
}

// world is a daemon in this process, with tools and a store of its own.
type world struct {
	t    *testing.T
	db   place.Place
	at   daemon.Started
	home *httpapi.Client
	http *http.Transport
	ran  chan string // the arguments with which the tool refund ran
	stop func() error
}

const order = `{"order":"o-7"}`

func serve(t *testing.T, change ...func(*daemon.Config)) *world {
	t.Helper()
	w := &world{t: t, http: &http.Transport{}, ran: make(chan string, 100)}
	conf := &config.Config{Tools: &tool.Registry{}, Policy: policy.Default(), Agents: map[string]config.Agent{}}
	for name, effect := range map[string]tool.SideEffect{"refund": tool.RemoteMutation, "look_up": tool.ReadOnly} {
		err := conf.Tools.Register(tool.Tool{
			Spec: tool.Spec{Name: name, Description: "A tool.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: effect},
			Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
				w.ran <- string(c.Args)
				return json.RawMessage(`{"ran":true}`), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ready, ended := make(chan daemon.Started, 1), make(chan error, 1)
	c := daemon.Config{
		DB: place.File(filepath.Join(t.TempDir(), "p.db")), Conf: conf, Listen: "127.0.0.1:0", Principal: "local:test", Program: []string{os.Args[0]},
		Every: 10 * time.Millisecond, Ready: func(s daemon.Started) { ready <- s }, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	w.db = c.DB
	ctx, end := context.WithCancel(context.Background())
	go func() { ended <- daemon.Serve(ctx, c) }()
	w.stop = sync.OnceValue(func() error {
		w.http.CloseIdleConnections() // a server waits for one on which nothing was asked yet
		end()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("the daemon does not stop")
		}
	})
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case w.at = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	secret, err := os.ReadFile(w.at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	w.home = httpapi.NewClient(w.at.URL, strings.TrimSpace(string(secret)))
	t.Cleanup(w.stopJobs)
	return w
}

// stopJobs ends the jobs that a test leaves: they would outlive it.
func (w *world) stopJobs() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, _ := w.home.Jobs(ctx, httpapi.JobQuery{Status: job.Running, Limit: 500}) // where the daemon has ended, the test has ended them
	for _, j := range l.Jobs {
		_, _ = w.home.StopJob(ctx, j.JobID, httpapi.Stopping{KillAfterSeconds: 1})
	}
}

// token makes one.
func (w *world) token(scope token.Scope, name string) token.Object {
	w.t.Helper()
	k, err := w.home.CreateToken(w.t.Context(), httpapi.NewToken{Scope: scope, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

// bearer sends a token with each request.
type bearer struct {
	secret string
	over   *http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.secret)
	return b.over.RoundTrip(r)
}

func (w *world) transport(secret string) *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{
		Endpoint: w.at.URL + "/mcp", HTTPClient: &http.Client{Transport: &bearer{secret, w.http}}, MaxRetries: -1, DisableStandaloneSSE: true,
	}
}

// connect is a client with that token, over HTTP.
func (w *world) connect(secret, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	w.t.Helper()
	s := connect(w.t, w.transport(secret), o, version)
	w.t.Cleanup(func() { s.Close() })
	return s
}

// job starts one that runs until it is stopped.
func (w *world) job(s *mcp.ClientSession) string {
	w.t.Helper()
	return ok(w.t, s, "job_start", `{"command":["cat"]}`).get("job_id")
}

func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
