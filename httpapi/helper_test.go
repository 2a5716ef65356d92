package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

const schema = `{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"integer","minimum":0},"password":{"type":"string"}},"required":["order"],"additionalProperties":false}`

// world is one test's own daemon without the process: a store, tools, a server on loopback.
type world struct {
	t       testing.TB
	st      *store.Store
	calls   *call.Executor
	runs    *run.Driver
	tools   *tool.Registry
	conf    httpapi.Config
	jobs    *job.Supervisor
	api     *httpapi.Server
	http    *httptest.Server
	tokens  map[token.Scope]string
	refund  *spy
	resumed []string
	log     *logged
}

// logged is what a server told nobody else.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// spy is a tool that notes what it ran with.
type spy struct {
	mu   sync.Mutex
	args []string
	do   func(ctx context.Context) (json.RawMessage, error)
}

func (s *spy) Run(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	s.mu.Lock()
	s.args = append(s.args, string(c.Args))
	do := s.do
	s.mu.Unlock()
	if do != nil {
		return do(ctx)
	}
	return json.RawMessage(`{"ran":` + string(c.Args) + `}`), nil
}

func (s *spy) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.args...)
}

func setup(t testing.TB, change ...func(*httpapi.Config)) *world {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return setupOn(t, st, change...)
}

// setupOn is setup on a store that is there.
func setupOn(t testing.TB, st *store.Store, change ...func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{t: t, st: st, tokens: map[token.Scope]string{}, refund: &spy{}, log: &logged{}}
	reg, err := tool.NewRegistry(
		tool.Tool{Spec: tool.Spec{Name: "refund", Description: "Refund an order.", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: w.refund},
		tool.Tool{Spec: tool.Spec{Name: "look_up", Description: "Look an order up.", InputSchema: json.RawMessage(schema), SideEffect: tool.ReadOnly}, Run: w.refund},
	)
	if err != nil {
		t.Fatal(err)
	}
	w.tools = reg
	quiet := slog.New(slog.DiscardHandler)
	w.calls = call.NewExecutor(call.Config{Store: st, Tools: reg, Log: quiet})
	w.runs = run.NewDriver(run.Config{Store: st, Tools: reg, Log: quiet, Agent: run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		return model(in)
	})})
	w.jobs = job.NewSupervisor(job.Config{Store: st, Dir: t.TempDir(), Program: []string{os.Args[0]}, Log: quiet, Environ: w.environ})
	c := httpapi.Config{Store: st, Calls: w.calls, Jobs: w.jobs, Tools: reg, Log: slog.New(slog.NewTextHandler(w.log, nil)), Continue: func(_ context.Context, r run.Run) error {
		w.resumed = append(w.resumed, r.ID)
		return nil
	}}
	c.Channels = delivery.Channels{delivery.KindWebhook: anywhere{}, delivery.KindCommand: anywhere{}}
	w.http = httptest.NewUnstartedServer(nil)
	c.Hosts = []string{w.http.Listener.Addr().String()}
	for _, f := range change {
		f(&c)
	}
	w.conf, w.jobs = c, c.Jobs
	if w.api, err = httpapi.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text := w.log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "http: ") {
			t.Errorf("the server had something to say: %s", text)
		}
	})
	w.http.Config.Handler = w.api
	w.http.Config.ErrorLog = log.New(w.log, "", 0)
	w.http.Start()
	t.Cleanup(w.http.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.api.Shutdown(ctx)
	})
	for _, s := range token.Scopes() {
		w.tokens[s] = w.token(s, string(s))
	}
	return w
}

// in is the same world in a test inside the test.
func (w *world) in(t *testing.T) *world {
	inner := *w
	inner.t = t
	return &inner
}

func (w *world) token(s token.Scope, name string) string {
	w.t.Helper()
	_, secret, err := token.Create(w.t.Context(), w.st, token.New{Space: "main", Scope: s, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	body   map[string]any
	text   string
	header http.Header
}

func (r reply) read(text []byte) reply {
	r.text = string(text)
	_ = json.Unmarshal(text, &r.body)
	return r
}

// into reads the answer as what it is.
func (r reply) into(v any) {
	if err := json.Unmarshal([]byte(r.text), v); err != nil {
		panic(err)
	}
}

func (r reply) get(key string) string {
	s, _ := r.body[key].(string)
	return s
}

// do sends one request. as is a scope's token, or a secret, or "" for none.
func (w *world) do(as, method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := w.send(as, method, path, strings.NewReader(body), headers...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (w *world) send(as, method, path string, body io.Reader, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, body)
	if err != nil {
		return reply{}, err
	}
	if s, ok := w.tokens[token.Scope(as)]; ok {
		as = s
	}
	if as != "" {
		req.Header.Set("Authorization", "Bearer "+as)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := w.http.Client().Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	out := reply{status: res.StatusCode, header: res.Header}.read(text)
	if err == nil {
		keepsTo(w.t, method, req.URL.Path, out)
	}
	return out, err
}

func (w *world) want(r reply, status int, pairs ...string) reply {
	w.t.Helper()
	if r.status != status {
		w.t.Fatalf("got %d %s, want %d", r.status, r.text, status)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := r.get(pairs[i]); got != pairs[i+1] {
			w.t.Errorf("%s is %q, want %q: %s", pairs[i], got, pairs[i+1], r.text)
		}
	}
	if status >= 400 && r.header.Get("Content-Type") != "application/problem+json" {
		w.t.Errorf("a refusal of type %q", r.header.Get("Content-Type"))
	}
	return r
}

// park calls refund, which waits for a person.
func (w *world) park(as string) reply {
	w.t.Helper()
	return w.want(w.do(as, "POST", "/v1/tools/refund/call", `{"order":"o-7","amount":500}`), 202, "status", "pending")
}

func decide(approved bool, digest string, more ...string) string {
	b, _ := json.Marshal(map[string]any{"approved": approved, "digest": digest})
	if len(more) > 0 {
		b = append(bytes.TrimSuffix(b, []byte("}")), ","+strings.Join(more, ",")+"}"...)
	}
	return string(b)
}

// environ gives each job a token, as the daemon does.
func (w *world) environ(ctx context.Context, j job.Job) (map[string]string, error) {
	_, secret, err := token.Create(ctx, w.st, token.New{Space: "main", Scope: token.Agent, Name: j.ID, Principal: j.Principal, JobID: j.ID})
	return map[string]string{"PLACET_TOKEN": secret}, err
}

// loop looks after jobs until the test ends, and those that have not ended with it.
func (w *world) loop() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.jobs.Loop(ctx)
	}()
	w.t.Cleanup(func() {
		w.endJobs(ctx)
		stop()
		<-done
	})
}

// endJob stops a job, and is fine with one that has ended.
func (w *world) endJob(id string) {
	w.t.Helper()
	if _, err := w.jobs.Stop(context.Background(), id, "test", time.Millisecond); err != nil {
		w.t.Errorf("stop %s: %v", id, err)
	}
}

func (w *world) endJobs(ctx context.Context) {
	var left []job.Job
	for _, status := range []job.Status{job.Queued, job.Launching, job.Running} {
		js, err := w.jobs.List(ctx, job.Query{Status: status, Limit: 500})
		if err != nil {
			w.t.Error(err)
		}
		left = append(left, js...)
	}
	var all sync.WaitGroup
	for _, j := range left {
		if j.Status == job.Queued && j.Spec.Trigger.JobID != "" {
			continue // nothing of it has begun
		}
		all.Go(func() {
			if _, err := w.jobs.Stop(ctx, j.ID, "test", time.Second); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// anywhere is a way to any target; nothing is sent in these tests.
type anywhere struct{}

func (anywhere) Check(delivery.Target) error { return nil }

func (anywhere) Send(context.Context, delivery.Message) delivery.Outcome {
	return delivery.Outcome{Result: delivery.NotSent}
}
