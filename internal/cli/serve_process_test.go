//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// seen waits for an event of the stream.
func (s *served) seen(stream string, types ...event.Type) event.Object {
	s.t.Helper()
	done := errors.New("seen")
	var got event.Object
	err := s.home.Follow(s.t.Context(), stream, "", func(e event.Object) error {
		for _, t := range types {
			if e.Type == t {
				got = e
				return done
			}
		}
		return nil
	})
	if !errors.Is(err, done) {
		s.t.Fatalf("%v %s", err, s.err)
	}
	return got
}

// told lists a stream's events of the types, with who did it.
func (w *world) told(stream string, types ...event.Type) (list []string) {
	w.t.Helper()
	page, err := event.Read(w.t.Context(), w.store, stream, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Events {
		for _, t := range types {
			if e.Type == t {
				list = append(list, string(e.Type)+" by "+e.Actor)
			}
		}
	}
	return list
}

// write puts files into the world's folder.
func (w *world) write(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
}

// slow makes refund a tool that notes that it ran, says so, and waits to be let go on.
func (w *world) slow() (began func(), letGo func()) {
	w.t.Helper()
	w.write(map[string]string{"refund.sh": "#!/bin/sh\necho x >>effects; echo x >began; read x <go; echo '{\"ok\":true}'\n"})
	for _, name := range []string{"began", "go"} {
		if err := syscall.Mkfifo(filepath.Join(w.dir, name), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	// Whoever holds both ends keeps nobody waiting, here or there.
	gate, err := os.OpenFile(filepath.Join(w.dir, "go"), os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { gate.Close() })
	letGo = func() {
		if _, err := gate.WriteString("x\n"); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(func() { _, _ = gate.WriteString("x\nx\nx\n") }) // of what outlived its daemon
	return func() {
		w.t.Helper()
		if _, err := os.ReadFile(filepath.Join(w.dir, "began")); err != nil { // blocks until the tool writes to it
			w.t.Fatal(err)
		}
	}, letGo
}

func (w *world) effects() string {
	b, err := os.ReadFile(filepath.Join(w.dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(b)
}

// began waits until a program that was started has had its first effect: it may be killed
// before that, too.
func (w *world) began() {
	w.t.Helper()
	for end := time.Now().Add(patience); w.effects() == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("what was started has had no effect")
		}
	}
}

// Told to stop while a tool runs, the daemon lets it end, and what came of it is stored.
func TestServeStopsAfterItsTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, letGo := w.slow()
	s := w.serve()
	agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	p := s.parkOver(agent)
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); err != nil {
		t.Fatal(err)
	}
	began()
	followed := make(chan error, 1)
	following := make(chan struct{})
	go func() {
		followed <- agent.Follow(t.Context(), "call:"+p.CallID, "", func(e event.Object) error {
			if e.Type == event.CallStarted {
				close(following)
			}
			return nil
		})
	}()
	<-following
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; !errors.Is(err, httpapi.ErrShutdown) { // it heard the signal
		t.Errorf("a follower is told %v", err)
	}
	letGo()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, s.err)
	}
	if c, as := w.call(p.CallID); c.Status != call.Succeeded || len(as) != 1 || w.effects() != "x\n" {
		t.Errorf("the call is %s after %d attempts; effects %q", c.Status, len(as), w.effects())
	}
}

// Killed while a tool runs, the daemon leaves the attempt to be found: its outcome is
// unknown once its lease is over, a person is asked once, and it never runs by itself.
func TestServeIsKilledWhileAToolRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, _ := w.slow()
	s := w.serve()
	agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	p := s.parkOver(agent)
	if _, err := ana.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest}); err != nil {
		t.Fatal(err)
	}
	began()
	s.end(syscall.SIGKILL)
	if c, _ := w.call(p.CallID); c.Status != call.Running {
		t.Fatalf("the call is %s", c.Status)
	}
	w.endLease(p.CallID)
	s = w.serve()
	ana.URL = s.at.URL
	s.seen("call:"+p.CallID, event.CallUnknown)
	list, err := ana.Approvals(t.Context(), "pending", "", 10)
	if err != nil || len(list.Approvals) != 1 || list.Approvals[0].Kind != decision.KindInterrupted {
		t.Fatalf("asked: %+v %v", list, err)
	}
	s.end(syscall.SIGKILL)
	s = w.serve() // once more changes nothing
	ana.URL, agent.URL = s.at.URL, s.at.URL
	mark := s.parkOver(agent)
	if _, err := ana.Decide(t.Context(), mark.ApprovalID, httpapi.Deciding{Digest: mark.Digest}); err != nil {
		t.Fatal(err)
	}
	if list, err = ana.Approvals(t.Context(), "pending", "", 10); err != nil || len(list.Approvals) != 1 {
		t.Errorf("asked again: %+v %v", list, err)
	}
	if c, as := w.call(p.CallID); c.Status != call.Unknown || len(as) != 1 || w.effects() != "x\n" {
		t.Errorf("the call is %s after %d attempts; effects %q", c.Status, len(as), w.effects())
	}
	s.end(syscall.SIGTERM)
}

func (w *world) call(id string) (c call.Call, as []call.Attempt) {
	w.t.Helper()
	err := txn.View(w.t.Context(), w.store, func(tx call.Tx) (err error) {
		if c, err = tx.Call(id); err == nil {
			as, err = tx.Attempts(id)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c, as
}

// endLease makes the lease of a running call end now, as time would.
func (w *world) endLease(id string) {
	w.t.Helper()
	err := txn.Update(w.t.Context(), w.store, func(tx call.Tx) error {
		c, err := tx.Call(id)
		if err != nil {
			return err
		}
		next := c
		next.LeaseUntil = tx.Now().Add(-time.Second)
		return tx.PutCall(c, next)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// What is overdue ends by the daemon itself: requests, yeses, questions and runs, each
// with one event by the system.
func TestServeSweeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	past := func() time.Time { return time.Now().Add(-time.Hour) }
	old := call.NewExecutor(call.Config{Store: w.store, Tools: w.ex.Config().Tools, Policy: w.ex.Config().Policy, Now: past, ApprovalTTL: time.Minute, GrantTTL: time.Minute})
	park := func() *call.PendingError {
		t.Helper()
		_, err := old.Call(ctx, "refund", []byte(`{"order_id":"o-1","amount":60}`))
		var p *call.PendingError
		if !errors.As(err, &p) {
			t.Fatal(err)
		}
		return p
	}
	request, grant := park(), park()
	if _, err := (decision.Operator{Store: w.store, Now: past}).Decide(ctx, grant.ApprovalID, decision.Answer{Approved: true, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	l := run.DefaultLimits()
	l.ApprovalTTL = time.Minute
	d := run.NewDriver(run.Config{Store: w.store, Tools: w.ex.Config().Tools, Policy: policy.Default(), Now: past, Agent: run.AgentFunc(refunds)})
	r, err := d.Start(ctx, "refund", l)
	if err != nil || r.Status != run.Waiting {
		t.Fatalf("%+v %v", r, err)
	}

	s := w.serve()
	agent := s.client(token.Agent, "bot")
	j, err := agent.StartJob(ctx, httpapi.Starting{Command: json.RawMessage(`["cat"]`)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := (decision.Operator{Store: w.store, Principal: "bot", Now: past}).Ask(ctx, event.MainSpace, j.JobID, decision.Asking{Prompt: "?", Timeout: time.Minute, By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		stream string
		types  []event.Type
		want   string
	}{
		{"call:" + request.CallID, []event.Type{event.ApprovalExpired, event.CallFinished}, "approval.expired by system, call.finished by system"},
		{"call:" + grant.CallID, []event.Type{event.ApprovalExpired, event.CallFinished}, "approval.expired by system, call.finished by system"},
		{"run:" + r.ID, []event.Type{event.ApprovalExpired, event.RunFinished}, "approval.expired by system, run.finished by system"},
		{"job:" + j.JobID, []event.Type{event.DecisionExpired}, "decision_expired by system"},
	} {
		s.seen(o.stream, o.types[len(o.types)-1])
		if got := strings.Join(w.told(o.stream, o.types...), ", "); got != o.want {
			t.Errorf("%s: %s", o.stream, got)
		}
	}
	if a, err := s.home.GetQuestion(ctx, q.ID); err != nil || a.Status != decision.Expired {
		t.Errorf("the question is %s: %v", a.Status, err)
	}
	if o, err := s.home.GetRun(ctx, r.ID); err != nil || o.Status != run.Cancelled || o.Reason != run.ApprovalExpired {
		t.Errorf("the run is %s %s: %v", o.Status, o.Reason, err)
	}
	if _, err := agent.StopJob(ctx, j.JobID, httpapi.Stopping{}); err != nil {
		t.Error(err)
	}
	s.end(syscall.SIGTERM)
}

// refunds is an agent that refunds once, and is done.
func refunds(_ context.Context, in run.StepInput) (run.Proposal, error) {
	if in.Run.StepCount > 1 {
		return run.Proposal{Kind: run.Complete}, nil
	}
	return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(`{"order_id":"o-1","amount":60}`)}, nil
}

// Flags of serve: who decides their own, by which names it goes, how long a yes lasts.
func TestServeFlags(t *testing.T) {
	t.Parallel()
	own := func(s *served) error {
		t.Helper()
		s.client(token.Agent, "ana")
		p := s.parkOver(s.client(token.Agent, "ana"))
		_, err := s.client(token.Reviewer, "ana").Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest})
		return err
	}
	named := func(s *served, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		s := newWorld(t).serve()
		if err := own(s); !errors.Is(err, decision.ErrSelfDecision) {
			t.Errorf("their own: %v", err)
		}
		if got := named(s, "placet.example:443"); got != http.StatusForbidden {
			t.Errorf("by another name: %d", got)
		}
		if d := s.lasts(); d != 24*time.Hour {
			t.Errorf("a yes lasts %s", d)
		}
		s.end(syscall.SIGTERM)
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		s := newWorld(t).serve("--may-own", "--host", "placet.example:443", "--host", "other:1", "--grant-ttl", "90m")
		if err := own(s); err != nil {
			t.Errorf("their own: %v", err)
		}
		for host, want := range map[string]int{"placet.example:443": 200, "other:1": 200, "placet.example": 200, "other": 403, "evil:443": 403} {
			if got := named(s, host); got != want {
				t.Errorf("by the name %s: %d", host, got)
			}
		}
		if d := s.lasts(); d != 90*time.Minute {
			t.Errorf("a yes lasts %s", d)
		}
		s.end(syscall.SIGTERM)
	})
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, flags := range [][]string{{"--grant-ttl", "100000h"}, {"--listen", "here"}} {
			if out, stderr, code := w.run(append([]string{"serve"}, flags...)...); code != 1 || out != "" {
				t.Errorf("%v: exit code %d: %s%s", flags, code, out, stderr)
			}
		}
	})
}

// lasts is how long a yes to what came in over HTTP may stay unused.
func (s *served) lasts() time.Duration {
	s.t.Helper()
	p := s.parkOver(s.client(token.Agent, "bot"))
	d, err := s.client(token.Reviewer, "bo").Decide(s.t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest})
	if err != nil {
		s.t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339Nano, d.DecidedAt)
	until, uerr := time.Parse(time.RFC3339Nano, d.GrantExpiresAt)
	if err != nil || uerr != nil {
		s.t.Fatal(err, uerr)
	}
	return until.Sub(at)
}

// What is decided with the home's token, which an agent of the same user could read, is
// not verified; what a reviewer's token proves is.
func TestServeVerifies(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	agent := s.client(token.Agent, "bot")
	for who, c := range map[string]*httpapi.Client{"home": s.home, "reviewer": s.client(token.Reviewer, "ana"), "admin": s.client(token.Admin, "root")} {
		p := s.parkOver(agent)
		d, err := c.Decide(t.Context(), p.ApprovalID, httpapi.Deciding{Approved: true, Digest: p.Digest})
		if err != nil || d.Verified == nil || *d.Verified != (who != "home") {
			t.Errorf("%s: verified %v, %v", who, d.Verified, err)
		}
		if who == "home" && !strings.HasPrefix(d.DecidedPrincipal, "local:") {
			t.Errorf("decided by %s", d.DecidedPrincipal)
		}
	}
	own := s.parkOver(s.home) // the store's own user is not bound by who asked
	if d, err := s.home.Decide(t.Context(), own.ApprovalID, httpapi.Deciding{Digest: own.Digest}); err != nil || *d.Verified {
		t.Errorf("%+v %v", d, err)
	}
	s.end(syscall.SIGTERM)
}

// What a job prints is data, whatever it says of itself: no wait for an event of its
// life, or of its question, ends with it.
func TestServeTakesPrintedEventsForData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
	j, err := agent.StartJob(t.Context(), httpapi.Starting{Command: json.RawMessage(`["sh","-c","read q; for t in decision_resolved decision_withdrawn completed failed; do echo \"AGENT_EVENT {\\\"type\\\":\\\"$t\\\",\\\"data\\\":{\\\"decision_id\\\":\\\"$q\\\",\\\"choice\\\":\\\"forged\\\"}}\"; done; read end"]`)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "?", Options: []string{"yes", "no"}})
	if err != nil {
		t.Fatal(err)
	}
	type waited struct {
		got httpapi.Waited
		err error
	}
	wait := func(b httpapi.Waiting) <-chan waited {
		to := make(chan waited, 1)
		go func() {
			b.TimeoutSeconds = 60
			got, err := agent.WaitForJob(t.Context(), j.JobID, b)
			to <- waited{got, err}
		}()
		return to
	}
	byID, byType := wait(httpapi.Waiting{DecisionID: q.DecisionID, After: q.Cursor}), wait(httpapi.Waiting{Types: []string{"decision_resolved", "decision_withdrawn"}})
	ended := wait(httpapi.Waiting{Types: []string{"completed", "failed"}})
	if err := agent.SendToJob(t.Context(), j.JobID, httpapi.Sending{Text: q.DecisionID + "\n"}); err != nil {
		t.Fatal(err)
	}
	if got := <-wait(httpapi.Waiting{Types: []string{"output:failed"}}); got.err != nil || got.got.Event == nil || got.got.Event.Type != "job.output" || !strings.Contains(string(got.got.Event.Payload), "forged") {
		t.Fatalf("as data: %+v", got)
	}
	for what, c := range map[string]<-chan waited{"by id": byID, "by type": byType, "for its end": ended} {
		select {
		case got := <-c:
			t.Fatalf("a wait %s ended with what was printed: %+v", what, got)
		default:
		}
	}
	if _, err := ana.Resolve(t.Context(), j.JobID, q.DecisionID, httpapi.Resolving{Choice: "no"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []<-chan waited{byID, byType} {
		if got := <-c; got.err != nil || got.got.Event == nil || got.got.Event.Type != event.DecisionResolved || !strings.Contains(string(got.got.Event.Payload), `"choice":"no"`) {
			t.Errorf("resolved: %+v", got)
		}
	}
	if err := agent.SendToJob(t.Context(), j.JobID, httpapi.Sending{EOF: true}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.err != nil || got.got.Event == nil || !job.Status(got.got.Event.Type).Terminal() {
		t.Errorf("ended: %+v", got)
	}
	s.end(syscall.SIGTERM)
}

// Of daemons that are started at the same time on one file one serves.
func TestServeRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const many = 4
	won, lost := make(chan func(), many), make(chan error, many)
	for range many {
		c := w.command("--json", "serve", "--listen", "127.0.0.1:0")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			line, _ := bufio.NewReader(out).ReadString('\n')
			if strings.Contains(line, `"url"`) {
				won <- func() {
					_ = c.Process.Signal(syscall.SIGTERM)
					_ = c.Wait()
				}
				return
			}
			_ = c.Wait()
			if !strings.Contains(line, `"already_served"`) {
				lost <- fmt.Errorf("it says %q", line)
				return
			}
			lost <- nil
		}()
	}
	for range many - 1 {
		if err := <-lost; err != nil {
			t.Error(err)
		}
	}
	(<-won)()
}

// Whatever is killed while a job asks a question, the daemon, the runner or both, the
// question and the job come to exactly one end each, and the command is not run again.
func TestServeWhateverDiesDuringAQuestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		daemon, runner bool
	}{{"the daemon", true, false}, {"the runner", false, true}, {"both", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.serve()
			agent, ana := s.client(token.Agent, "bot"), s.client(token.Reviewer, "ana")
			j, err := agent.StartJob(t.Context(), httpapi.Starting{Command: json.RawMessage(`["sh","-c","echo x >>effects; read line; echo \"said $line\""]`), Cwd: w.dir})
			if err != nil {
				t.Fatal(err)
			}
			s.seen("job:"+j.JobID, event.JobStarted)
			w.began()
			q, err := agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}})
			if err != nil {
				t.Fatal(err)
			}
			if c.daemon {
				s.end(syscall.SIGKILL)
			}
			if c.runner {
				w.killRunner(j.JobID)
			}
			if c.daemon {
				s = w.serve()
				agent.URL, ana.URL = s.at.URL, s.at.URL
			}
			want, asked := job.Orphaned, decision.Withdrawn
			if !c.runner {
				want, asked = job.Completed, decision.Resolved
				if _, err := ana.Resolve(t.Context(), j.JobID, q.DecisionID, httpapi.Resolving{Choice: "yes"}); err != nil {
					t.Fatal(err)
				}
				if err := agent.SendToJob(t.Context(), j.JobID, httpapi.Sending{Text: "yes\n", EOF: true}); err != nil {
					t.Fatal(err)
				}
			}
			s.seen("job:"+j.JobID, event.Type(want))
			got, err := agent.GetJob(t.Context(), j.JobID)
			if err != nil || got.Status != want {
				t.Errorf("the job is %s, want %s: %v", got.Status, want, err)
			}
			if d, err := agent.GetQuestion(t.Context(), q.DecisionID); err != nil || d.Status != asked {
				t.Errorf("the question is %s, want %s: %v", d.Status, asked, err)
			}
			if c.runner {
				if _, err := ana.Resolve(t.Context(), j.JobID, q.DecisionID, httpapi.Resolving{Choice: "yes"}); !errors.Is(err, decision.ErrWithdrawn) {
					t.Errorf("answered after that: %v", err)
				}
			}
			s.end(syscall.SIGKILL)
			s = w.serve() // once more changes nothing
			if err := s.home.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			ends := w.told("job:"+j.JobID, event.JobStarted, event.DecisionRequested, event.DecisionResolved, event.DecisionWithdrawn, event.JobCompleted, event.JobOrphaned)
			if len(ends) != 4 || w.effects() != "x\n" {
				t.Errorf("%q; effects %q", ends, w.effects())
			}
			s.end(syscall.SIGTERM)
		})
	}
}

// killRunner kills the process that owns a job's command.
func (w *world) killRunner(jobID string) {
	w.t.Helper()
	var j job.Job
	err := txn.View(w.t.Context(), w.store, func(tx job.Tx) (err error) {
		j, err = tx.Job(jobID)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := process.Parse(j.Runner)
	if err != nil || !process.Alive(id) {
		w.t.Fatalf("the runner is %q: %v", j.Runner, err)
	}
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
}

// A run that is left to the daemon is begun exactly once, although its start and the
// daemon's passes race.
func TestServeBeginsARunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conf, err := os.ReadFile(filepath.Join(w.dir, "placet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(map[string]string{
		"placet.yaml": string(conf) + "agents:\n  clerk: {exec: [./clerk.sh]}\n",
		"clerk.sh":    "#!/bin/sh\ncat >/dev/null; echo x >>effects; echo '{\"kind\":\"complete\",\"result\":1}'\n",
	})
	s := w.serve()
	const many = 6
	ids := make(chan string, many)
	for range many {
		c := w.command("--json", "run", "start", "--goal", "tidy", "--agent", "clerk", "--daemon")
		go func() {
			out, _ := c.Output()
			var r run.Object
			_ = json.Unmarshal(out, &r)
			ids <- r.RunID
		}()
	}
	for range many {
		id := <-ids
		if id == "" {
			t.Fatal("a run was not started")
		}
		s.seen("run:"+id, event.RunFinished)
		if got := strings.Join(w.told("run:"+id, event.RunResumed, event.LeaseTakenOver, event.StepStarted, event.ResumeRefused, event.RunFinished), ", "); strings.Count(got, "run.resumed") != 1 ||
			strings.Count(got, "step.started") != 1 || strings.Contains(got, "taken_over") || strings.Contains(got, "refused") {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got := strings.Count(w.effects(), "x"); got != many {
		t.Errorf("the agent was asked %d times for %d runs", got, many)
	}
	s.end(syscall.SIGTERM)
}

// A store that went back in time is served to be read, and its operator told.
func TestServeSaysThatTheStoreWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	s.end(syscall.SIGTERM)
	if err := w.store.Close(); err != nil { // nobody has it open: it is one file
		t.Fatal(err)
	}
	kept, err := os.ReadFile(w.db())
	if err != nil {
		t.Fatal(err)
	}
	s = w.serve()
	if len(s.at.Warnings) != 0 {
		t.Errorf("warned: %q", s.at.Warnings)
	}
	s.client(token.Agent, "bot")
	s.end(syscall.SIGTERM)
	if err := os.WriteFile(w.db(), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	s = w.serve()
	if len(s.at.Warnings) != 1 || !strings.Contains(s.at.Warnings[0], "accept-restore") {
		t.Errorf("warned: %q", s.at.Warnings)
	}
	if out, _, code := w.run("--json", "doctor"); code != 1 || !strings.Contains(out, `"name":"daemon","state":"attention"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	s.end(syscall.SIGTERM)
}

// Doctor names what came in over HTTP, was approved, and that nobody carries out.
func TestDoctorNamesWhatNobodyCarriesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.ex.Server(httpapi.Origin).Call(t.Context(), "bot", "refund", []byte(`{"order_id":"o-1","amount":60}`))
	var p *call.PendingError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	doctor := func(code int, wants ...string) {
		t.Helper()
		out, stderr, got := w.run("doctor")
		if got != code {
			t.Errorf("exit code %d: %s%s", got, out, stderr)
		}
		mustContain(t, out, wants...)
	}
	doctor(0)
	long := decision.Operator{Store: w.store, Now: func() time.Time { return time.Now().Add(-2 * time.Minute) }}
	if _, err := long.Decide(t.Context(), p.ApprovalID, decision.Answer{Approved: true, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	doctor(1, "unserved", "1 call came in over HTTP", p.CallID, "placet serve")
	if c, _ := w.call(p.CallID); w.ex.Postpone(t.Context(), c, "not_authorised: bot is gone", time.Hour) != nil {
		t.Fatal("not noted")
	}
	doctor(1, "unserved", "it is tried again at", "placet events call:"+p.CallID)
	w.write(map[string]string{"placet.yaml": "tools: []\n"})
	doctor(1, "unserved", p.CallID+" is approved, no process here has tool refund", "placet withdraw "+p.CallID)
	w.write(map[string]string{"placet.yaml": "tools:\n  - name: refund\n    description: Another one.\n    side_effect: remote_mutation\n    exec: [./refund.sh]\n"})
	doctor(1, "unserved", "tool refund has changed since", "placet withdraw "+p.CallID)
	if out, stderr, code := w.run("withdraw", p.CallID); code != 0 || !strings.Contains(out, "is taken back; its call is cancelled") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	doctor(0)
	if _, _, code := w.run("withdraw", p.CallID); code != 1 {
		t.Errorf("once more: exit code %d", code)
	}
}

func isReason(err error, want string) bool { f := fault.From(err); return f != nil && f.Reason == want }

// A job's token is refused for every other job, for deciding, and after its job ended.
func TestServeRefusesAJobsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent := s.client(token.Agent, "bot")
	start := func(command string) httpapi.Job {
		t.Helper()
		j, err := agent.StartJob(t.Context(), httpapi.Starting{Command: json.RawMessage(command)})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	fifo := filepath.Join(w.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	one := start(`"printf %s \"$PLACET_TOKEN\" >` + fifo + `; cat"`)
	other := start(`["cat"]`)
	secret, err := os.ReadFile(fifo) // blocks until the job writes to it
	if err != nil {
		t.Fatal(err)
	}
	c := httpapi.NewClient(s.at.URL, string(secret))
	if j, err := c.GetJob(t.Context(), one.JobID); err != nil || j.JobID != one.JobID {
		t.Fatalf("its own: %+v %v", j, err)
	}
	q, err := c.Ask(t.Context(), one.JobID, httpapi.Asking{Prompt: "?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetJob(t.Context(), other.JobID); !isReason(err, "not_found") {
		t.Errorf("another job: %v", err)
	}
	if _, err := c.Ask(t.Context(), other.JobID, httpapi.Asking{Prompt: "?"}); !isReason(err, "not_found") {
		t.Errorf("for another job: %v", err)
	}
	if _, err := c.Resolve(t.Context(), one.JobID, q.DecisionID, httpapi.Resolving{Choice: "approve"}); !isReason(err, "forbidden") {
		t.Errorf("its own question: %v", err)
	}
	if _, err := c.Call(t.Context(), "look", []byte(`{}`), ""); !isReason(err, "forbidden") {
		t.Errorf("a tool: %v", err)
	}
	if err := agent.SendToJob(t.Context(), one.JobID, httpapi.Sending{EOF: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := agent.WaitForJob(t.Context(), one.JobID, httpapi.Waiting{Types: []string{"completed"}, TimeoutSeconds: 60}); err != nil || got.Event == nil {
		t.Fatalf("%+v %v", got, err)
	}
	if _, err := c.GetJob(t.Context(), one.JobID); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("after its job ended: %v", err)
	}
	if _, err := agent.StopJob(t.Context(), other.JobID, httpapi.Stopping{}); err != nil {
		t.Error(err)
	}
	s.end(syscall.SIGTERM)
}
