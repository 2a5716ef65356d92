package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Who asked has to hold a token of its own still when the call is about to run: that of
// a job which it started, and which goes on, is no right to act outside of that job.
func TestAWithdrawnRightStopsTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	agent, k := s.client(token.Agent, "bot")
	ana, _ := s.client(token.Reviewer, "ana")
	j, err := agent.StartJob(t.Context(), httpapi.Starting{Command: json.RawMessage(`["cat"]`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := agent.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"started"}, TimeoutSeconds: 60}); err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v %v", got, err)
	}
	p := s.park(agent)
	if _, err := s.home.RevokeToken(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	s.approve(ana, p.ApprovalID)
	e := s.follow("call:"+p.CallID, event.ResumeRefused, event.CallStarted)
	if e.Type != event.ResumeRefused || !strings.Contains(string(e.Payload), "not_authorised") {
		t.Fatalf("%s %s", e.Type, e.Payload)
	}
	if a, err := ana.GetApproval(t.Context(), p.ApprovalID); err != nil || a.Status != decision.Approved {
		t.Errorf("the yes is %s: %v", a.Status, err)
	}
	if o, err := ana.GetCall(t.Context(), p.CallID, 0); err != nil || o.Status != call.Pending || len(o.Attempts) != 0 || w.refund.n.Load() != 0 {
		t.Errorf("%+v %v", o, err)
	}
	if j, err := s.home.GetJob(t.Context(), j.JobID); err != nil || j.Status != job.Running {
		t.Errorf("its job is %s: %v", j.Status, err)
	}
	if _, err := s.home.StopJob(t.Context(), j.JobID, httpapi.Stopping{}); err != nil {
		t.Error(err)
	}
}

// answer is what a request in the background came to.
type answer[T any] struct {
	got T
	err error
}

func later[T any](do func() (T, error)) <-chan answer[T] {
	to := make(chan answer[T], 1)
	go func() {
		got, err := do()
		to <- answer[T]{got, err}
	}()
	return to
}

// Told to stop, a daemon lets what has begun end and answers for it, tells whoever
// waits, lets nothing new begin, and leaves the store without a log.
func TestStopLetsWorkEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(func(c *Config) { c.Drain = long })
	agent, ana := s.who()
	g := newGate(t)
	w.refund.then(g.hold)
	inFlight := later(func() (httpapi.Result, error) { return agent.Call(t.Context(), "look_up", []byte(order), "") })
	<-g.began
	p := s.park(agent)
	s.approve(ana, p.ApprovalID)
	<-g.began // the daemon goes on with it
	waiting := s.park(agent)
	j, err := agent.StartJob(t.Context(), httpapi.Starting{Command: json.RawMessage(`["cat"]`)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "?"})
	if err != nil {
		t.Fatal(err)
	}
	ofCall := later(func() (call.Object, error) { return agent.GetCall(t.Context(), waiting.CallID, time.Hour) })
	ofJob := later(func() (httpapi.Waited, error) {
		return agent.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"completed"}, TimeoutSeconds: 3600})
	})
	ofQuestion := later(func() (httpapi.Waited, error) { return agent.WaitForQuestion(t.Context(), q.DecisionID, "", time.Hour) })
	ofTail := later(func() (httpapi.Tail, error) {
		return agent.TailJob(t.Context(), j.JobID, job.Tailing{Stream: job.Stdout, Follow: true})
	})
	ofEvents := later(func() (int, error) {
		return 0, agent.Follow(t.Context(), "call:"+waiting.CallID, "", func(event.Object) error { return nil })
	})
	w.until("all five wait", func() bool { return s.figure("placet_http_waiters") == "5" })

	s.end()
	if a := <-ofCall; !errors.Is(a.err, httpapi.ErrShutdown) {
		t.Errorf("who waits for a call: %+v %v", a.got.Status, a.err)
	}
	if a := <-ofJob; a.err != nil || a.got.Result != job.GotShutdown {
		t.Errorf("who waits for a job: %+v %v", a.got, a.err)
	}
	if a := <-ofQuestion; a.err != nil || a.got.Result != job.GotShutdown {
		t.Errorf("who waits for a question: %+v %v", a.got, a.err)
	}
	if a := <-ofTail; !errors.Is(a.err, httpapi.ErrShutdown) {
		t.Errorf("who follows output: %+v %v", a.got, a.err)
	}
	if a := <-ofEvents; !errors.Is(a.err, httpapi.ErrShutdown) {
		t.Errorf("who follows events: %v", a.err)
	}
	select {
	case err := <-s.ended:
		t.Fatalf("it ended before what had begun: %v", err)
	default:
	}
	g.release()
	if a := <-inFlight; a.err != nil || a.got.Status != call.Succeeded {
		t.Errorf("who called: %+v %v", a.got, a.err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(w.db + "-wal"); err == nil && fi.Size() > 0 {
		t.Errorf("a log of %d bytes is left", fi.Size())
	}
	if _, err := os.Stat(w.db + ".serve.json"); err == nil {
		t.Error("it is said to be found still")
	}
	c, _ := w.stored(p.CallID)
	if c.Status != call.Succeeded || w.refund.n.Load() != 2 {
		t.Errorf("what it went on with is %s; the tools ran %d times", c.Status, w.refund.n.Load())
	}
	s = w.serve()
	if _, err := s.home.StopJob(t.Context(), j.JobID, httpapi.Stopping{}); err != nil {
		t.Error(err)
	}
}

// What outlasts the drain is left as a kill would leave it: the next daemon finds it,
// asks one question about it, and never runs it by itself.
func TestStopLeavesWhatTakesLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := func(c *Config) { c.Drain, c.Lease = 50*time.Millisecond, 3*time.Second }
	s := w.serve(short)
	agent, ana := s.who()
	g := newGate(t)
	w.refund.then(g.hold)
	p := s.park(agent)
	s.approve(ana, p.ApprovalID)
	<-g.began
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if w.log.count("left as it stands") != 1 {
		t.Errorf("logged: %q", w.log.text)
	}
	if c, as := w.stored(p.CallID); c.Status != call.Running || len(as) != 1 || as[0].Outcome != "" {
		t.Fatalf("left as %s: %+v", c.Status, as)
	}

	s = w.serve(short)
	agent.URL, ana.URL = s.at.URL, s.at.URL
	s.follow("call:"+p.CallID, event.CallUnknown)
	g.release() // in the dead daemon; nobody hears of it
	for range 3 {
		w.comes("sweep")
		w.comes("continue")
	}
	list, err := ana.Approvals(t.Context(), "pending", "", 10)
	if err != nil || len(list.Approvals) != 1 || list.Approvals[0].Kind != decision.KindInterrupted {
		t.Fatalf("asked: %+v %v", list, err)
	}
	if o, err := ana.GetCall(t.Context(), p.CallID, 0); err != nil || o.Status != call.Unknown || len(o.Attempts) != 1 || w.refund.n.Load() != 1 {
		t.Errorf("%+v %v; the tool ran %d times", o, err, w.refund.n.Load())
	}
	w.refund.then(nil)
	s.approve(ana, list.Approvals[0].ID)
	if o := s.becomes(agent, p.CallID, call.Succeeded); len(o.Attempts) != 2 || w.refund.n.Load() != 2 {
		t.Errorf("%+v; the tool ran %d times", o, w.refund.n.Load())
	}
}

// A loop that hangs keeps no daemon from ending.
func TestStopWhileALoopHangs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sweep", "continue", "decisions", "jobs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.serve()
			w.holdUp(name)
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// figure is one of /metrics.
func (s *serving) figure(name string) string {
	s.t.Helper()
	for line := range strings.Lines(s.figures()) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// stored reads a call from the store itself.
func (w *world) stored(callID string) (c call.Call, as []call.Attempt) {
	w.t.Helper()
	st, err := sqlite.Open(w.t.Context(), w.db, &sqlite.Options{ReadOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	err = txn.View(w.t.Context(), st, func(tx call.Tx) (err error) {
		if c, err = tx.Call(callID); err == nil {
			as, err = tx.Attempts(callID)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c, as
}

// agent is a program that calls refund and is done; it says when it was asked.
func (w *world) agent(name string) {
	w.t.Helper()
	dir := filepath.Dir(w.db)
	script := "#!/bin/sh\ncase $(cat) in *'\"tool_result\"'*) echo '{\"kind\":\"complete\",\"result\":\"ok\"}';; *) echo '{\"kind\":\"tool_call\",\"tool\":\"refund\",\"args\":" + order + "}';; esac\n"
	path := filepath.Join(dir, name+".sh")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.conf.Agents[name] = config.Agent{Name: name, Argv: []string{path}, Dir: dir}
}

// waiting is a run of that agent's that waits for a person, of another process.
func (w *world) waiting(st *store.Store, agent string, opts ...run.Option) run.Run {
	w.t.Helper()
	d := w.driver(st)
	r, err := d.Start(w.t.Context(), "refund", run.DefaultLimits(), append(opts, run.By(run.AgentRef{Name: agent}))...)
	if err != nil || r.Status != run.Waiting {
		w.t.Fatalf("%+v %v", r, err)
	}
	return r
}

func (w *world) driver(st *store.Store) *run.Driver {
	tools := &tool.Registry{}
	for _, t := range w.conf.Tools.List() {
		if err := tools.Register(tool.Tool{Spec: t.Spec, Run: w.refund}); err != nil {
			w.t.Fatal(err)
		}
	}
	return run.NewDriver(run.Config{Store: st, Tools: tools, Policy: policy.Default(), Agent: run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if in.Run.StepCount > 1 {
			return run.Proposal{Kind: run.Complete}, nil
		}
		return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(order)}, nil
	})})
}

// An operator who resumes a run is told that it goes on only where it does; what stands
// in the way is named, and nothing is promised.
func TestResumeRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("clerk")
	st := w.open()
	s := w.serve(func(c *Config) { c.atWork = 1 })
	resume := func(id string) (run.Object, error) { return s.home.ResumeRun(t.Context(), id) }
	refused := func(id, reason string, code fault.Code, words ...string) {
		t.Helper()
		before := w.events(st, id)
		_, err := resume(id)
		f := fault.From(err)
		if f == nil || f.Reason != reason || f.Code != code {
			t.Fatalf("got %v, want %s", err, reason)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is not in: %v", word, err)
			}
		}
		if after := w.events(st, id); after != before {
			t.Errorf("%s: something was noted: %s", reason, after)
		}
	}

	// The caller's own run: only somebody's word goes on with it, and then it does.
	r := w.waiting(st, "clerk")
	refused(r.ID, "run_state", fault.Conflict, "pending", "/decide")
	w.granted(st, r.ApprovalID)
	g := newGate(t)
	w.refund.then(g.hold)
	if got, err := resume(r.ID); err != nil || got.Status != run.Running {
		t.Fatalf("%+v %v", got, err)
	}
	<-g.began
	refused(r.ID, "run_leased", fault.Conflict, fmt.Sprint(os.Getpid()))

	// One more is too much at once.
	full := w.waiting(st, "clerk")
	w.granted(st, full.ApprovalID)
	refused(full.ID, "no_slot", fault.Unavailable)
	g.release()
	s.follow("run:"+r.ID, event.RunFinished)
	w.until("it is at work on nothing", func() bool { return s.figure("placet_work_under_way") == "0" })
	refused(r.ID, "run_state", fault.Conflict, "COMPLETED", fmt.Sprint(os.Getpid()), "worked on it last")
	w.refund.then(nil)

	// What this daemon lacks.
	other := w.waiting(st, "stranger")
	w.granted(st, other.ApprovalID)
	refused(other.ID, "no_agent", fault.Conflict, `"stranger"`)
	own := w.waiting(st, "", run.By(run.AgentRef{Argv: []string{"./a.sh"}}))
	w.granted(st, own.ApprovalID)
	refused(own.ID, "no_agent", fault.Conflict, "placet run resume "+own.ID)
	refused(w.flow(st).ID, "flow_run", fault.Conflict, "publishing", "flow.Runner.Resume")

	if n := w.refund.n.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	w.until("there is room again", func() bool { _, err := resume(full.ID); return err == nil })
	s.follow("run:"+full.ID, event.RunFinished)
}

// A daemon without the tool that a run stands at says so.
func TestResumeRunWithoutItsTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("clerk")
	st := w.open()
	r := w.waiting(st, "clerk", run.ContinuedBy(call.ByDaemon))
	w.granted(st, r.ApprovalID)
	w.conf.Tools = &tool.Registry{}
	s := w.serve()
	_, err := s.home.ResumeRun(t.Context(), r.ID)
	if f := fault.From(err); f == nil || f.Reason != "no_tool" || !strings.Contains(err.Error(), `"refund"`) {
		t.Errorf("got %v", err)
	}
}

// What keeps a run from going on is answered to who resumes it, and noted with a time
// only where the daemon tries again by itself.
func TestResumeRunThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, by := range []call.ContinueBy{call.ByCaller, call.ByDaemon} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.agent("clerk")
			st := w.open()
			r := w.waiting(st, "clerk", run.ContinuedBy(by))
			broken := errors.New("the rules cannot be read")
			w.conf.Policy = policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
				return policy.Ruling{}, broken
			})
			s := w.serve(func(c *Config) { c.Every = long }) // what is tried, this test tries
			w.granted(st, r.ApprovalID)
			if by == call.ByDaemon {
				s.follow("run:"+r.ID, event.ResumeRefused) // the yes woke it
			}
			_, err := s.home.ResumeRun(t.Context(), r.ID)
			for isReason(err, "at_work") { // for a moment still
				_, err = s.home.ResumeRun(t.Context(), r.ID)
			}
			if err == nil {
				t.Fatal("it is said to go on")
			}
			es := w.events(st, r.ID)
			if noted := strings.Contains(es, string(event.ResumeRefused)); noted != (by == call.ByDaemon) {
				t.Errorf("%v: %s", err, es)
			}
		})
	}
}

// flow is a flow's run that waits for a person, who has agreed.
func (w *world) flow(st *store.Store) run.Run {
	w.t.Helper()
	f := flow.Flow{Name: "publishing", Version: "1", Nodes: []flow.Node{flow.Approve{Name: "ask", Reason: "publish?", Next: "done"}, flow.End{Name: "done"}}}
	d, err := flow.NewRunner(f, run.Config{Store: st, Tools: &tool.Registry{}})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := d.Start(w.t.Context(), nil, nil)
	if err != nil || r.Status != run.Waiting {
		w.t.Fatalf("%+v %v", r, err)
	}
	w.granted(st, r.ApprovalID)
	return r
}

// events are the types of a run's events.
func (w *world) events(st *store.Store, runID string) string {
	w.t.Helper()
	page, err := event.Read(w.t.Context(), st, "run:"+runID, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		all = append(all, string(e.Type))
	}
	return strings.Join(all, " ")
}
