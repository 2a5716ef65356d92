package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
)

// served is the real program, serving the world's store.
type served struct {
	*world
	cmd  *exec.Cmd
	err  *bytes.Buffer
	home *httpapi.Client
	at   struct {
		URL, Socket string
		PID         int
		TokenFile   string `json:"token_file"`
		Warnings    []string
	}
}

func (w *world) serve(more ...string) *served {
	w.t.Helper()
	s := &served{world: w, err: &bytes.Buffer{}}
	s.cmd = w.command(append([]string{"--json", "serve", "--listen", "127.0.0.1:0"}, more...)...)
	s.cmd.Stderr = s.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &s.at) != nil {
		_ = s.cmd.Wait()
		w.t.Fatalf("it does not serve: %v %s %s", err, line, s.err)
	}
	secret, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		w.t.Fatal(err)
	}
	s.home = httpapi.NewSocketClient(s.at.Socket, strings.TrimSpace(string(secret)))
	w.t.Cleanup(s.stopJobs)
	return s
}

// stopJobs ends the jobs that a test leaves: they would outlive it.
func (s *served) stopJobs() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, _ := s.home.Jobs(ctx, httpapi.JobQuery{Status: job.Running, Limit: 500}) // where the daemon is gone there is nobody to ask
	for _, j := range l.Jobs {
		_, _ = s.home.StopJob(ctx, j.JobID, httpapi.Stopping{KillAfterSeconds: 1})
	}
}

func (s *served) end(sig os.Signal) {
	s.t.Helper()
	if sig == syscall.SIGTERM {
		s.stopJobs()
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	err := s.cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		s.t.Errorf("it ended with %v: %s", err, s.err)
	}
}

// client speaks with a new token of that scope.
func (s *served) client(scope token.Scope, name string) *httpapi.Client {
	s.t.Helper()
	out, _, code := s.run("--json", "token", "create", "--scope", string(scope), "--name", name)
	var t token.Object
	if err := json.Unmarshal([]byte(out), &t); err != nil || code != 0 || t.Secret == "" {
		s.t.Fatalf("exit code %d: %s", code, out)
	}
	return httpapi.NewClient(s.at.URL, t.Secret)
}

func (s *served) parkOver(c *httpapi.Client) httpapi.Result {
	s.t.Helper()
	r, err := c.Call(s.t.Context(), "refund", []byte(`{"order_id":"o-1","amount":60}`), "")
	if err != nil || r.Status != call.Pending {
		s.t.Fatalf("%+v %v", r, err)
	}
	return r
}

func (s *served) ended(c *httpapi.Client, callID string, want call.Status) call.Object {
	s.t.Helper()
	o, err := c.GetCall(s.t.Context(), callID, patience)
	if err != nil || o.Status != want {
		s.t.Fatalf("%s is %s %s: %v %s", callID, o.Status, o.Message, err, s.err)
	}
	return o
}

// A call that came in over HTTP runs by itself once a person has agreed, whichever
// door they used, and what is decided twice runs once (002, 010).
func TestServeCarriesOutWhatIsApproved(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	p := s.parkOver(agent)
	if _, err := agent.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); !errors.Is(err, decision.ErrForbidden) {
		t.Errorf("an agent decides: %v", err)
	}
	for range 2 {
		d, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest, Note: "fine"})
		if err != nil || d.DecidedBy != "ana" || d.Verified == nil || !*d.Verified {
			t.Fatalf("%+v %v", d, err)
		}
	}
	o := s.ended(agent, p.CallID, call.Succeeded)
	if len(o.Attempts) != 1 {
		t.Errorf("%d attempts", len(o.Attempts))
	}
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Digest: p.Digest}); !errors.Is(err, decision.ErrNotPending) {
		t.Errorf("another answer: %v", err)
	} else if st, ok := decision.StandingOf(err); !ok || st.By != "ana" {
		t.Errorf("the standing decision does not survive: %+v", st)
	}

	other := s.parkOver(agent) // decided at the terminal, on the store itself
	if _, stderr, code := s.run("approve", other.ApprovalID, "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	s.ended(agent, other.CallID, call.Succeeded)

	no := s.parkOver(agent)
	if _, err := ana.Decide(t.Context(), no.ApprovalID, httpapi.Deciding{Digest: no.Digest, Note: "too much"}); err != nil {
		t.Fatal(err)
	}
	if o := s.ended(agent, no.CallID, call.Denied); !strings.Contains(o.Message, "too much") || len(o.Attempts) > 0 {
		t.Errorf("%+v", o)
	}
	if _, stderr, code := s.run("resume", p.ApprovalID); code != 1 || !strings.Contains(stderr, "HTTP tool server") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s.end(syscall.SIGTERM)
}

// What a library or placet call parked waits for its own caller, daemon or not.
func TestServeLeavesTheCallersWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.park()
	s := w.serve()
	ana, agent := s.client(token.Reviewer, "ana"), s.client(token.Agent, "bot")
	if d, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); err != nil || d.CallStatus != call.Pending {
		t.Fatalf("%+v %v", d, err)
	}
	mark := s.parkOver(agent)
	if _, err := ana.Decide(t.Context(), mark.ApprovalID, httpapi.Deciding{Approved: true, Digest: mark.Digest}); err != nil {
		t.Fatal(err)
	}
	s.ended(agent, mark.CallID, call.Succeeded) // by now the other one would have run as well
	if o, err := ana.GetCall(t.Context(), p.CallID, 0); err != nil || o.Status != call.Pending {
		t.Errorf("%s %v", o.Status, err)
	}
	if _, stderr, code := s.run("resume", p.ApprovalID); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s.end(syscall.SIGTERM)
}

// A killed daemon and one that was told to stop leave the same behind: what was
// decided meanwhile is carried out by the next one (015, 020).
func TestServeAgain(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.serve()
			agent := s.client(token.Agent, "bot")
			p, pending := s.parkOver(agent), s.parkOver(agent)
			s.end(sig)
			if h, err := daemon.HomeOf(place.File(w.db())); err != nil || h.Served() {
				t.Fatalf("served still: %v", err)
			}
			if _, stderr, code := w.run("approve", p.ApprovalID, "--yes"); code != 0 {
				t.Fatal(stderr)
			}
			again := w.serve()
			agent.URL = again.at.URL // the token is the store's
			again.ended(agent, p.CallID, call.Succeeded)
			if o, err := agent.GetCall(t.Context(), pending.CallID, 0); err != nil || o.Status != call.Pending {
				t.Errorf("%s %v", o.Status, err)
			}
			again.end(syscall.SIGTERM)
		})
	}
}

// Who asked has to be allowed to ask still when the call is about to run.
func TestServeAuthorisesAgain(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	p := s.parkOver(agent)
	who, err := agent.Whoami(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := s.run("token", "revoke", who.ID); code != 0 {
		t.Fatal(stderr)
	}
	if _, err := agent.Whoami(t.Context()); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("a revoked token: %v", err)
	}
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("seen")
	err = ana.Follow(t.Context(), "call:"+p.CallID, "", func(e event.Object) error {
		if e.Type == event.ResumeRefused {
			if !strings.Contains(string(e.Payload), "not_authorised") || !strings.Contains(string(e.Payload), "next_try_at") {
				t.Errorf("%s", e.Payload)
			}
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if a, err := ana.GetApproval(t.Context(), p.ApprovalID); err != nil || a.Status != decision.Approved {
		t.Errorf("%s %v", a.Status, err)
	}
	if o, err := ana.GetCall(t.Context(), p.CallID, 0); err != nil || o.Status != call.Pending || len(o.Attempts) > 0 {
		t.Errorf("%s %v", o.Status, err)
	}
	s.end(syscall.SIGTERM)
}

func TestServeHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, stderr, code := w.run("doctor"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	s := w.serve()
	for _, f := range []string{".serve.lock", ".serve.json", ".sock", ".admin-token"} {
		fi, err := os.Stat(w.db() + f)
		if err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", f, fi, err)
		}
	}
	secret, err := os.ReadFile(s.at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := os.ReadFile(w.db() + ".serve.json"); err != nil || bytes.Contains(found, bytes.TrimSpace(secret)) || !bytes.Contains(found, []byte(s.at.URL)) {
		t.Errorf("discovery: %s %v", found, err)
	}
	over := httpapi.NewSocketClient(s.at.Socket, strings.TrimSpace(string(secret)))
	if who, err := over.Whoami(t.Context()); err != nil || who.Scope != token.Admin || !strings.HasPrefix(who.Principal, "local:") {
		t.Errorf("%+v %v", who, err)
	}
	if _, err := httpapi.NewSocketClient(s.at.Socket, "").Whoami(t.Context()); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("over the socket without a token: %v", err)
	}
	if _, stderr, code := w.run("serve", "--listen", "127.0.0.1:0"); code != 1 || !strings.Contains(stderr, "Another placet serve") || !strings.Contains(stderr, s.at.URL) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	link := filepath.Join(t.TempDir(), "link.db") // the lock is on the real path
	if err := os.Symlink(w.db(), link); err != nil {
		t.Fatal(err)
	}
	if h, err := daemon.HomeOf(place.File(link)); err != nil || !h.Served() {
		t.Errorf("by another name it is not served: %v", err)
	}
	if out, _, code := w.run("--json", "doctor"); code != 0 || !strings.Contains(out, `"name":"daemon","state":"ok"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/v1/openapi.yaml": 200} {
		res, err := http.Get(s.at.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	s.end(syscall.SIGTERM)
	for _, f := range []string{".serve.json"} {
		if _, err := os.Stat(w.db() + f); err == nil {
			t.Errorf("%s is left", f)
		}
	}
	again := w.serve()
	if kept, err := os.ReadFile(again.at.TokenFile); err != nil || !bytes.Equal(kept, secret) {
		t.Errorf("the home has another token now: %v", err)
	}
	again.end(syscall.SIGTERM)
}

// Whoever waits is told, and does not hold the daemon up.
func TestServeStopsWithWaiters(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	agent := s.client(token.Agent, "bot")
	p := s.parkOver(agent)
	waited, followed := make(chan error, 1), make(chan error, 1)
	began := make(chan struct{})
	go func() {
		_, err := agent.GetCall(t.Context(), p.CallID, time.Hour)
		waited <- err
	}()
	go func() {
		followed <- agent.Follow(t.Context(), "call:"+p.CallID, "", func(e event.Object) error {
			if e.Type == event.ApprovalRequested {
				close(began)
			}
			return nil
		})
	}()
	<-began
	s.end(syscall.SIGTERM)
	if err := <-followed; !errors.Is(err, httpapi.ErrShutdown) {
		t.Errorf("a follower is told %v", err)
	}
	if err := <-waited; !errors.Is(err, httpapi.ErrShutdown) && !httpapi.IsUnreachable(err) {
		t.Errorf("a waiter is told %v", err)
	}
}

// A job started at the terminal asks with the token that it was given, a person
// answers, and the daemon's death in between loses nothing.
func TestServeJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, line := range [][]string{{"job", "list"}, {"ask", "job_1", "?"}, {"decisions"}, {"resolve", "dec_1", "yes"}, {"job", "start", "--", "true"}} {
		if _, stderr, code := w.run(line...); code != 1 || !strings.Contains(stderr, "placet") || !strings.Contains(stderr, "serve") {
			t.Errorf("%v without a daemon: exit code %d: %s", line, code, stderr)
		}
	}
	s := w.serve()
	out, stderr, code := w.run("--json", "job", "start", "--name", "train", "--", "sh", "-c",
		`placet --json ask "$PLACET_JOB_ID" 'Go on?' --option 0 --option no; read line; echo "said $line"`)
	var j httpapi.Job
	if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
		t.Fatalf("exit code %d: %s %s", code, out, stderr)
	}
	if _, stderr, code := w.run("job", "wait", j.JobID, "--type", "decision_requested", "--timeout", "60s"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	s.end(syscall.SIGKILL)
	s = w.serve()
	out, _, _ = w.run("--json", "decisions")
	var q httpapi.Question
	if err := json.Unmarshal([]byte(out), &q); err != nil || q.JobID != j.JobID || q.Prompt != "Go on?" {
		t.Fatalf("%s %v", out, err)
	}
	if list, _, _ := w.run("job", "list"); !strings.Contains(list, "asks: Go on?") {
		t.Errorf("listed: %s", list)
	}
	if _, stderr, code := w.run("resolve", q.DecisionID, "0"); code != 0 {
		t.Fatal(stderr)
	}
	if out, _, code := w.run("--json", "job", "wait", j.JobID, "--decision", q.DecisionID); code != 0 || !strings.Contains(out, `"choice":"0"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, stderr, code := w.run("job", "send", j.JobID, "hello"); code != 0 {
		t.Fatal(stderr)
	}
	if out, stderr, code := w.run("job", "wait", j.JobID); code != 0 || !strings.Contains(out, "completed") {
		t.Fatalf("exit code %d: %s %s", code, out, stderr)
	}
	if out, _, code := w.run("job", "tail", j.JobID); code != 0 || !strings.Contains(out, "said hello") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, _, code := w.run("token", "list"); code != 0 || !strings.Contains(out, j.JobID) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, _, code := w.run("--json", "job", "cleanup", "--older-than", "0s"); code != 0 || !strings.Contains(out, j.JobID) {
		t.Errorf("exit code %d: %s", code, out)
	}
	s.end(syscall.SIGTERM)
}

// A run that is left to the daemon is worked on, waits, and goes on once a person has agreed.
func TestServeWorksOnRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf, err := os.ReadFile(filepath.Join(w.dir, "placet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	agent := `#!/bin/sh
case $(cat) in *'"tool_result"'*) echo '{"kind":"complete","result":"ok"}';; *) echo '{"kind":"tool_call","tool":"refund","args":{"order_id":"o-1","amount":60}}';; esac
`
	for name, text := range map[string]string{"placet.yaml": string(conf) + "agents:\n  clerk: {exec: [./clerk.sh]}\n", "clerk.sh": agent} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, code := w.run("--json", "run", "start", "--goal", "refund o-1", "--agent", "clerk", "--daemon")
	var r run.Object
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Status != run.Running {
		t.Fatalf("exit code %d: %s %s", code, out, stderr)
	}
	s := w.serve() // it finds what was left before it was there
	ana := s.client(token.Reviewer, "ana")
	seen := errors.New("seen")
	until := func(want event.Type) {
		t.Helper()
		err := ana.Follow(t.Context(), "run:"+r.RunID, "", func(e event.Object) error {
			if e.Type == want {
				return seen
			}
			return nil
		})
		if !errors.Is(err, seen) {
			t.Fatalf("%v %s", err, s.err)
		}
	}
	until(event.ApprovalRequested)
	if r, err = ana.GetRun(t.Context(), r.RunID); err != nil || r.PendingApproval == "" {
		t.Fatalf("%+v %v", r, err)
	}
	d, err := ana.GetApproval(t.Context(), r.PendingApproval)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ana.Decide(t.Context(), d.ID, httpapi.Deciding{Approved: true, Digest: d.Digest}); err != nil {
		t.Fatal(err)
	}
	until(event.RunFinished)
	if r, err = ana.GetRun(t.Context(), r.RunID); err != nil || r.Status != run.Completed || len(r.Steps) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := ana.ResumeRun(t.Context(), r.RunID); !errors.Is(err, token.ErrUnauthenticated) && !errors.Is(err, decision.ErrForbidden) {
		t.Errorf("a reviewer resumes: %v", err)
	}
	s.end(syscall.SIGTERM)
}
