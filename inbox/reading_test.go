package inbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

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
		js, err := w.jobs.List(ctx, job.Query{Active: true, Limit: 500})
		if err != nil {
			w.t.Error(err)
		}
		for _, j := range js {
			if _, err := w.jobs.Stop(ctx, j.ID, "test", time.Second); err != nil {
				w.t.Error(err)
			}
		}
		stop()
		<-done
	})
}

// start starts a job, and waits until something of it has happened.
func (w *world) start(spec string, until ...string) string {
	w.t.Helper()
	c := httpapi.NewClient(w.http.URL, w.agent)
	var j httpapi.Job
	if err := c.Do(w.t.Context(), http.MethodPost, "/v1/jobs", json.RawMessage(spec), &j); err != nil {
		w.t.Fatal(err)
	}
	if len(until) > 0 {
		got, err := c.WaitForJob(w.t.Context(), j.JobID, httpapi.Waiting{Types: until, TimeoutSeconds: 60})
		if err != nil || got.Result != job.GotEvent {
			w.t.Fatalf("%s: waiting for %v: %+v %v", spec, until, got, err)
		}
	}
	return j.JobID
}

// prints is the spec of a job that prints what is in a text, and goes on until it is sent
// something if it stays.
func (w *world) prints(text string, more string) string {
	w.t.Helper()
	at := filepath.Join(w.t.TempDir(), "text")
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return `{"command":["sh","-c",` + string(mustJSON(more)) + `,` + string(mustJSON(at)) + `],"name":"train","tags":["gpu"]}`
}

// agent is one that proposes these, one after the other, and then is done.
func proposing(ps ...run.Proposal) run.Agent {
	return run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if n := len(in.Steps); n < len(ps) {
			return ps[n], nil
		}
		return run.Proposal{Kind: run.Complete, Result: json.RawMessage(`{"refunded":true}`)}, nil
	})
}

func use(name, args string) run.Proposal {
	return run.Proposal{Kind: run.CallTool, Tool: name, Args: json.RawMessage(args)}
}

// goes starts a run.
func (w *world) goes(goal string, tools *tool.Registry, a run.Agent, l run.Limits) run.Run {
	w.t.Helper()
	d := run.NewDriver(run.Config{Store: w.st, Tools: tools, Agent: a, Log: slog.New(slog.DiscardHandler)})
	r, err := d.Start(w.t.Context(), goal, l, run.As("bot"))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) tools(run tool.Runner) *tool.Registry {
	w.t.Helper()
	reg, err := tool.NewRegistry(
		tool.Tool{Spec: tool.Spec{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.ReadOnly}, Run: run},
		tool.Tool{Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation}, Run: run},
	)
	if err != nil {
		w.t.Fatal(err)
	}
	return reg
}

func echo(_ context.Context, c tool.Call) (json.RawMessage, error) {
	return json.RawMessage(`{"echo":` + string(c.Args) + `}`), nil
}

// Without anything in the store each list says what would be there.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	b := setup(t).as(token.Reviewer, "ana")
	b.get("/runs").want(200).has("No run yet")
	b.get("/jobs").want(200).has("No job yet")
	b.get("/deliveries").want(200).has("Nothing was sent yet", "Nobody. A wake target is added with")
	b.get("/events").want(200).has("Nothing has happened yet")
	for _, at := range []string{"/runs?status=FAILED", "/jobs?status=failed", "/jobs?name=x", "/deliveries?status=dead", "/events?type=run.created"} {
		b.get(at).want(200).has("Nothing of that sort")
	}
}

// What is not there is not there, and what cannot be asked for is said to be.
func TestReadingRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Operator, "ines")
	for _, at := range []string{
		"/runs/run_none", "/runs/x", "/calls/call_none", "/jobs/job_none", "/jobs/job_none/output?stream=stdout", "/deliveries/dlv_none",
		"/events?stream=run:none", "/runs/a%2Fb", "/jobs/..%2F..%2Fv1",
	} {
		b.get(at).want(404).has("Not here")
	}
	for _, at := range []string{
		"/runs?status=x", "/runs?after=run_none", "/jobs?status=x", "/jobs?after=x", "/deliveries?status=x", "/events?stream=x", "/events?type=x", "/events?order=x", "/events?after=x",
		"/runs/x?after=-1", "/runs/x?step=one", "/jobs/x/output?stream=both", "/jobs/x/output?stream=stdout&offset=-1",
	} {
		b.get(at).want(400).has("It cannot be shown")
	}
	f := url.Values{"form_token": {b.get("/").form("/sign-out").Get("form_token")}}
	b.post("/deliveries/dlv_none/retry", f).want(404)
	for _, at := range []string{"/runs", "/runs/x", "/calls/x", "/jobs", "/jobs/x", "/jobs/x/output", "/events", "/deliveries", "/deliveries/x"} {
		if p := b.post(at, f); p.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", at, p.status)
		}
	}
	for _, at := range []string{"/runs", "/jobs", "/events", "/deliveries", "/runs/x", "/calls/x", "/jobs/x"} {
		if p := w.browser().get(at); !strings.HasPrefix(p.path, "/sign-in") {
			t.Errorf("%s is shown to whoever is not signed in: %d %s", at, p.status, p.path)
		}
	}
}

// A run's page shows what it is for, each step with what came of it, and what it waits for.
func TestRunPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tools := w.tools(tool.RunnerFunc(echo))
	limits := run.DefaultLimits()
	limits.MaxSteps = 4
	waits := w.goes("Refund o-7.", tools, proposing(use("look", `{"order":"o-7"}`), use("nothing", `{}`), use("refund", `{"order":"o-7","amount":60}`)), limits)
	done := w.goes("Look it up.", tools, proposing(use("look", `{"deep":{"a":[1,2]}}`)), run.DefaultLimits())
	limits.MaxSteps = 1
	over := w.goes("Go on and on.", tools, proposing(use("look", `{"n":1}`), use("look", `{"n":2}`)), limits)
	if waits.Status != run.Waiting || done.Status != run.Completed || over.Reason != run.LimitSteps {
		t.Fatalf("%s, %s, %s", waits.Status, done.Status, over.Reason)
	}
	b := w.as(token.Reviewer, "ana")
	list := b.get("/runs").want(200).has("Refund o-7.", "Look it up.", "waits", "completed", "The agent said that it is done.", "It had all the steps that it may take.")
	if links := list.links(); !slices.Contains(links, "/runs/"+waits.ID) || !slices.Contains(links, "/approvals/"+waits.ApprovalID) {
		t.Errorf("the list leads to %v", links)
	}
	b.get("/runs?status=COMPLETED").has("Look it up.").hasNot("Refund o-7.")
	p := b.get("/runs/"+waits.ID).want(200).has("Refund o-7.", "It waits for a person.", "look", "o-7", "amount 60", "The policy allowed it.", "The policy asks a person.",
		"What the agent wanted was no valid step.", "The agent was given the tool's result.", "echo", "3 of 4, 1 left", "Times the model was asked")
	if links := p.links(); !slices.Contains(links, "/approvals/"+waits.ApprovalID) || !slices.Contains(links, "/events?stream=run%3A"+waits.ID) || !slices.Contains(links, "/runs/"+waits.ID+"?step=2") {
		t.Errorf("the run leads to %v", links)
	}
	if len(p.elements("progress")) != 1 || attr(p.elements("body")[0], "data-live") == "" {
		t.Error("it has no bar for its limit, or is not told of what happens")
	}
	b.get("/runs/"+done.ID).want(200).has("The agent said that it is done.", "refunded true", "deep a 1 2").hasNot("It waits for a person")
	b.get("/runs/"+over.ID).want(200).has("It had all the steps that it may take.", "1 of 1, 0 left")
	b.get("/runs/"+waits.ID+"?step=1").want(200).has("Step 1 of a run", "o-7").hasNot("amount")
	b.get("/runs/" + waits.ID + "?step=9").want(404).has("has no step 9")
	// What a person said yes to waits for no person any more, and it is said who goes on with it.
	people := decision.Operator{Store: w.st, Principal: "ben"}
	if err := people.ApproveShown(t.Context(), "", waits.ApprovalID, w.read(waits.ApprovalID).Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	b.get("/runs/"+waits.ID).want(200).has("A run approved", "refund approved", "Approved by ben. Nothing has run yet. Whoever started the run goes on with it: placet run resume "+waits.ID).hasNot("It waits for a person")
	b.get("/runs").has("approved not gone on with yet: what was approved").hasNot("what it waits for")
	b.get("/decided").has("approved not run yet")
	d := run.NewDriver(run.Config{Store: w.st, Tools: tools, Agent: proposing(use("look", `{"order":"o-7"}`), use("nothing", `{}`), use("refund", `{"order":"o-7","amount":60}`)), Log: slog.New(slog.DiscardHandler)})
	if _, err := d.Resume(t.Context(), waits.ID); err != nil {
		t.Fatal(err)
	}
	b.get("/decided").has("refund approved succeeded").hasNot("not run yet")
}

// An agent's step is shown with what its run is for and why the agent wants it, without the
// run's secrets, and with who goes on after a yes.
func TestWhatItIsFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const secret = "sk-of-another-step"
	wanted := use("refund", `{"order":"o-7"}`)
	wanted.Text = "The customer sent it back; the key is " + secret + "."
	r := w.goes("Settle parcels with "+secret+".", w.tools(tool.RunnerFunc(echo)), proposing(use("look", `{"api_key":"`+secret+`"}`), wanted), run.DefaultLimits())
	p := w.as(token.Reviewer, "ana").get("/approvals/"+r.ApprovalID).want(200).
		has("What it is for", "The run's goal Settle parcels with [masked].", "Why the agent wants this The customer sent it back; the key is [masked].", "A yes starts nothing here: whoever started the run goes on with it.")
	if strings.Contains(p.raw, secret) {
		t.Error("a secret is in the page")
	}
}

// A call's page shows its attempts; a run id that only groups calls lists them.
func TestCallPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	b := w.as(token.Reviewer, "ana")
	at := "/calls/" + d.CallID
	b.get(at).want(200).has("refund", "It waits for a person", "None: nothing was started.", "waits")
	if err := (decision.Operator{Store: w.st, Principal: "ben"}).ApproveShown(t.Context(), "", d.ID, d.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.calls.Server(httpapi.Origin).Continue(t.Context(), d.CallID, func(txn.Tx, call.Call) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	p := b.get(at).want(200).has("succeeded", "done true", "Attempts", "1").hasNot("It waits for a person")
	for _, to := range []string{"/approvals/" + d.ID, "/runs/" + d.RunID, "/events?stream=call%3A" + d.CallID} {
		if !slices.Contains(p.links(), to) {
			t.Errorf("the call does not lead to %s: %v", to, p.links())
		}
	}
	if len(p.elements("tr")) != 2 {
		t.Errorf("it does not show one attempt: %s", p.text)
	}
	group := b.get("/runs/"+d.RunID).want(200).has("Calls of one run id", "refund", "succeeded")
	if !slices.Contains(group.links(), at) {
		t.Errorf("the group leads to %v", group.links())
	}
	// One that hangs below a run's step tells of itself in the run's stream.
	r := w.goes("Look.", w.tools(tool.RunnerFunc(echo)), proposing(use("look", `{}`)), run.DefaultLimits())
	var hosted string
	for _, to := range b.get("/runs/" + r.ID).links() {
		if strings.HasPrefix(to, "/calls/") {
			hosted = to
		}
	}
	if p := b.get(hosted).want(200); !slices.Contains(p.links(), "/events?stream=run%3A"+r.ID) {
		t.Errorf("a hosted call leads to %v", p.links())
	}
}

// A job's page shows what it printed, what it asks, and the numbers that it told over time.
func TestJobPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	var told strings.Builder
	for i := range 30 {
		fmt.Fprintf(&told, "AGENT_EVENT {\"type\":\"progress\",\"data\":{\"done\":%d,\"of\":40,\"loss\":%g}}\n", i+1, 2/float64(i+1))
	}
	told.WriteString("AGENT_EVENT {\"type\":\"progress\",\"message\":\"the last\",\"data\":{\"done\":30,\"of\":40}}\nplain words\n")
	running := w.start(w.prints(told.String(), `cat "$0"; echo oops >&2; read x`), "output:progress")
	failed := w.start(`{"command":["sh","-c","echo bye; exit 3"],"name":"export"}`, "failed")
	later := w.start(fmt.Sprintf(`{"command":["true"],"trigger":{"job_id":%q,"status":"failed"}}`, running))
	asked, err := decision.Operator{Store: w.st, Principal: "bot"}.Ask(t.Context(), event.MainSpace, running, decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}})
	if err != nil {
		t.Fatal(err)
	}
	w.until(running, "the last")
	b := w.as(token.Reviewer, "ana")
	list := b.get("/jobs").want(200).has("train", "gpu", "running", "asks a question", "75%", "export", "failed", "exited with status 3")
	if first := list.links()[slices.IndexFunc(list.links(), func(l string) bool { return strings.HasPrefix(l, "/jobs/") })]; first != "/jobs/"+running {
		t.Errorf("first is %s, not the one that asks", first)
	}
	b.get("/jobs?status=failed").has("export").hasNot("train")
	b.get("/jobs?tag=gpu").has("train").hasNot("export")
	b.get("/jobs?view=newest").has("newest first", "train", "export")
	p := b.get("/jobs/"+running).want(200).has("It runs.", "plain words", "oops", "Go on?", "75%", "done 30 of 40", "What it printed as errors", "The job told something", "the last",
		"loss", "2", "0.066667", "values from", "lowest 0.066667, highest 2, the last 0.066667", "75 %")
	if !slices.Contains(p.links(), "/questions/"+asked.ID) || len(p.elements("svg")) != 2 || len(p.elements("polyline")) != 2 {
		t.Errorf("it leads to %v and has %d drawings", p.links(), len(p.elements("svg")))
	}
	b.get("/jobs/"+failed).want(200).has("It failed.", "Its exit code is 3.", "bye", "export").hasNot("Numbers that it told")
	b.get("/jobs/"+later).want(200).has("It starts when another job is failed.", "Nothing yet. What it prints appears here.")
	b.get("/events?stream=job:"+running).want(200).has("The job was queued", "The command began", "The job told something", "A question was asked", "The chain of", "events holds, up to hash")
}

// until waits for a job to have told something.
func (w *world) until(jobID, message string) {
	w.t.Helper()
	_, err := event.Wait(w.t.Context(), w.st, event.Waiting{Stream: job.RefOf(jobID).Stream(), Timeout: time.Minute, Match: func(e event.Event) bool {
		return strings.Contains(string(e.Payload), message)
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Of much output the end is shown, and all of it in pieces that are joined without a gap.
func TestWholeOutput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	id := w.start(w.prints(text.String(), `cat "$0"`), "completed")
	b := w.as(token.Reviewer, "ana")
	p := b.get("/jobs/"+id).want(200).has("The first", "are not shown here", "line 19999").hasNot("line 100 ")
	at := "/jobs/" + id + "/output?stream=stdout&offset=0"
	if !slices.Contains(p.links(), at) {
		t.Fatalf("it leads to %v", p.links())
	}
	var got strings.Builder
	for pieces := 0; at != ""; pieces++ {
		p := b.get(at).want(200)
		for _, pre := range p.elements("pre") {
			got.WriteString(pre.FirstChild.Data)
		}
		at = ""
		for _, a := range p.elements("a") {
			if attr(a, "rel") == "next" {
				at = attr(a, "href")
			}
		}
		if pieces > 10 {
			t.Fatal("the pieces do not end")
		}
	}
	if got.String() != text.String() {
		t.Errorf("the pieces make %d bytes, not the %d that were printed", got.Len(), text.Len())
	}
}

// The events of one stream, or of all, come in pages from either end; a chain that was
// altered is said to be.
func TestEventPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	for range 60 {
		w.park("refund", small)
	}
	b := w.as(token.Reviewer, "ana")
	p := b.get("/events").want(200).has("Events", "newest first", "A person was asked", "A call was asked for", "approval.requested", "call.created", "approval of refund", "in call of refund")
	if len(p.elements("tr")) != 51 {
		t.Errorf("%d rows", len(p.elements("tr")))
	}
	seen := 0
	for at := "/events?type=call.created&order=oldest"; at != ""; {
		p := b.get(at).want(200)
		seen += len(p.elements("tr")) - 1
		at = ""
		for _, a := range p.elements("a") {
			if attr(a, "rel") == "next" {
				at = attr(a, "href")
			}
		}
	}
	if seen != 61 {
		t.Errorf("%d calls were created, says the list", seen)
	}
	stream := "call:" + d.CallID
	if err := event.Redact(t.Context(), w.st, stream, 1, "ben", "it named a customer"); err != nil {
		t.Fatal(err)
	}
	b.get("/events?stream="+stream).want(200).has("The chain of 3 events holds, up to hash", "What one of them told was removed by a person", "It was removed by a person. That it happened stands.", "oldest first")
	w.unguard()
	alter(t, w.path, `UPDATE event SET subject = 'x' WHERE stream = ? AND stream_seq = 2`, stream)
	b.get("/events?stream=" + stream).want(200).has("breaks at event 2: its envelope was altered").hasNot("holds, up to hash")
}

// unguard takes away what keeps events from being changed.
func (w *world) unguard() {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.path+"?_pragma=busy_timeout(5000)")
	if err == nil {
		_, err = db.Exec(`DROP TRIGGER event_update`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Who operates tries a dead delivery again, from a form of their own page; who reviews
// sees it, and no button.
func TestDeliveryPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := httpapi.NewClient(w.http.URL, w.token(token.Operator, "ops"))
	for _, body := range []string{`{"events":["approval.requested"],"name":"pager"}`, `{"events":["completed"],"name":"quiet one"}`} {
		if err := c.Do(t.Context(), http.MethodPost, "/v1/relay/register", json.RawMessage(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.park("refund", small)
	id := w.dead()
	ana, ines := w.as(token.Reviewer, "ana"), w.as(token.Operator, "ines")
	ana.get("/deliveries").want(200).has("A person was asked approval of refund", "pager", "given up", "quiet one", "in use", "all runs, calls and jobs: a person was asked")
	ana.get("/deliveries?status=pending").has("Nothing of that sort")
	at := "/deliveries/" + id
	ana.get(at).want(200).has("A person was asked", "About approval of refund", "It was given up.", "cannot try it again", "Attempts", "Refused").hasNot("Try it again")
	f := url.Values{"form_token": {ana.get("/").form("/sign-out").Get("form_token")}}
	ana.post(at+"/retry", f).want(403).has("It is not tried again")
	ines.get(at).want(200).has("no such place", "Try it again")
	form := ines.get(at).form(at + "/retry")
	ines.post(at+"/retry", with(form, "form_token", "made up")).want(403)
	ines.get(at).has("It was given up.")
	if p := ines.post(at+"/retry", form).want(200).has("Tried again by ines", "A person tried it again"); p.path != at {
		t.Errorf("it led to %s", p.path)
	}
	w.park("refund", small)
	fresh := w.newest()
	ines.get("/deliveries/" + fresh).has("It was not tried yet.").hasNot("Try it")
	ines.post("/deliveries/"+fresh+"/retry", form).want(409).has("It is not tried again")
}

// newest is the newest delivery.
func (w *world) newest() (id string) {
	w.t.Helper()
	err := txn.View(w.t.Context(), w.st, func(tx delivery.Tx) error {
		ds, err := tx.Deliveries(delivery.Query{Space: event.MainSpace, Limit: 1})
		if err == nil {
			id = ds[0].ID
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// dead makes the only delivery one that was given up.
func (w *world) dead() (id string) {
	w.t.Helper()
	err := txn.Update(w.t.Context(), w.st, func(tx delivery.Tx) error {
		ds, err := tx.Deliveries(delivery.Query{Space: event.MainSpace})
		if err != nil || len(ds) != 1 {
			return fmt.Errorf("%d deliveries: %w", len(ds), err)
		}
		d := ds[0]
		t, err := tx.Target(d.TargetID)
		if err != nil {
			return err
		}
		for _, cmd := range []delivery.Command{
			delivery.Claim{Target: t, Owner: "w", Lease: time.Minute}, delivery.Settle{Target: t, Fence: 1, Outcome: delivery.Outcome{Result: delivery.Refused, Message: "no such place"}},
		} {
			ch, err := d.Step(cmd, tx.Now())
			if err == nil {
				_, err = tx.PutDelivery(d, ch)
			}
			if err != nil {
				return err
			}
			d = ch.Next
		}
		id = d.ID
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// What is secret in arguments, in what a tool said of them, in a form and in what a job
// was given is on no page.
func TestReadingHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret = "Planted-Secret-7f3a"
	w := setup(t)
	w.loop()
	says := tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Tool == "look" {
			return json.RawMessage(`{"echo":` + string(c.Args) + `,"said":"it was ` + secret + `"}`), nil
		}
		return nil, errors.New("no entry with " + secret)
	})
	d := w.park("refund", `{"order":"o-7","amount":5,"password":"`+secret+`","note":"as agreed"}`)
	r := w.goes("Look with "+secret, w.tools(says), proposing(use("look", `{"password":"`+secret+`"}`), use("refund", `{"password":"`+secret+`"}`)), run.DefaultLimits())
	line := `AGENT_EVENT {"type":"progress","message":"with ` + secret + `","data":{"token":"` + secret + `","done":3}}` + "\n"
	id := w.start(w.prints(line, `cat "$0"; read x`), "output:progress")
	env := w.start(`{"command":"echo it is $KEY; read x","env":{"KEY":"`+secret+`-env"},"secret_env":["KEY"]}`, "started")
	form := `{"type":"object","properties":{"password":{"type":"string","format":"password"}}}`
	people := decision.Operator{Store: w.st, Principal: "ben"}
	q, err := decision.Operator{Store: w.st, Principal: "bot"}.Ask(t.Context(), event.MainSpace, id, decision.Asking{Prompt: "Which?", Options: []string{"yes", "no"}, Form: []byte(form)})
	if err == nil {
		_, err = people.Resolve(t.Context(), "", q.ID, decision.Answering{Choice: "yes", By: "ben", Input: []byte(`{"password":"` + secret + `"}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*browser{w.as(token.Reviewer, "ana"), w.as(token.Operator, "bot")} { // the second has the principal that brought it all
		for _, at := range []string{
			"/runs", "/runs/" + r.ID, "/runs/" + r.ID + "?step=1", "/runs/" + r.ID + "?step=2", "/calls/" + d.CallID, "/runs/" + d.RunID, "/jobs", "/jobs/" + env, "/events", "/events?order=oldest",
			"/events?stream=run:" + r.ID, "/events?stream=call:" + d.CallID, "/events?stream=job:" + id, "/deliveries", "/jobs/" + env + "/output?stream=stdout&offset=0",
		} {
			p := b.get(at).want(200)
			if i := strings.Index(p.raw, secret); i >= 0 {
				t.Errorf("%s shows it: …%s…", at, p.raw[max(0, i-200):i+40])
			}
		}
		b.get("/runs/"+r.ID).has("hidden", "Look with [masked]", "it was [masked]")
		b.get("/calls/"+d.CallID).has("hidden", "as agreed")
		b.get("/events?stream=job:"+id).has("progress", "hidden")
	}
}

// A policy's sentence that repeats a secret stands in the history of a step, too.
func TestHistoryHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret = "Planted-Secret-7f3a"
	w := setup(t)
	c := run.Config{Store: w.st, Tools: w.tools(tool.RunnerFunc(echo)), Policy: ruling("it is done with " + secret), Log: slog.New(slog.DiscardHandler)}
	c.Agent = proposing(use("refund", `{"password":"`+secret+`"}`))
	if _, err := run.NewDriver(c).Start(t.Context(), "pay", run.DefaultLimits(), run.As("bot")); err != nil {
		t.Fatal(err)
	}
	b := w.as(token.Reviewer, "ana")
	p := b.get("/approvals/"+b.get("/").rows()[0]).want(200).has("The policy ruled: require approval it is done with [masked]", "A person was asked by bot it is done with [masked]")
	if i := strings.Index(p.raw, secret); i >= 0 {
		t.Errorf("it is shown: …%s…", p.raw[max(0, i-200):i+40])
	}
}

// ruling is a policy that always asks a person, in these words.
type ruling string

func (r ruling) Evaluate(context.Context, request.Request, policy.View) (policy.Ruling, error) {
	return policy.Ruling{Outcome: policy.RequireApproval, Reason: string(r)}, nil
}

// Text in every field that a page of these shows is text and nothing else.
func TestReadingHostileText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	w.agent = w.token(token.Agent, plain(hostile)[:60])
	args := `{"order":` + string(mustJSON(hostile)) + `,` + string(mustJSON(hostile)) + `:[` + string(mustJSON(hostile)) + `]}`
	says := tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Tool == "look" {
			return json.RawMessage(`{"a":` + string(c.Args) + `}`), nil
		}
		return nil, errors.New(hostile)
	})
	r := w.goes(hostile, w.tools(says), proposing(use("look", args), use("look", `{}`), use(plain(hostile)[:50], args), run.Proposal{Kind: run.Fail, Text: hostile}), run.DefaultLimits())
	d := w.park("wipe", args)
	fails := w.goes("x", w.tools(says), proposing(use("refund", args)), run.DefaultLimits())
	text := hostile + "\n" + strings.Repeat(hostile, 30) + "\nAGENT_EVENT {\"type\":" + string(mustJSON(plain(hostile))) + "}\nAGENT_EVENT {\"type\":\"progress\",\"message\":" + string(mustJSON(hostile)) +
		",\"data\":{" + string(mustJSON(hostile)) + ":1,\"x\":" + string(mustJSON(hostile)) + "}}\nAGENT_EVENT {\"type\":\"progress\",\"data\":{" + string(mustJSON(hostile)) + ":2}}\n"
	at := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(map[string]any{
		"command": []string{"sh", "-c", `cat "$0"; cat "$0" >&2; exit 1`, at, plain(hostile)}, "name": string([]rune(plain(hostile))[:190]), "tags": []string{plain(hostile)[:60]},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := w.start(string(spec), "failed")
	line := w.start(`{"command":`+string(mustJSON("true # "+strings.ReplaceAll(plain(hostile), "\n", " ")))+`}`, "completed")
	ops := httpapi.NewClient(w.http.URL, w.token(token.Operator, "ops"))
	if err := ops.Do(t.Context(), http.MethodPost, "/v1/relay/register", json.RawMessage(`{"events":["approval.requested"],"name":`+string(mustJSON(plain(hostile)[:150]))+`}`), nil); err != nil {
		t.Fatal(err)
	}
	w.park("refund", small)
	dlv := w.dead()
	b := w.as(token.Operator, "ines")
	for _, at := range []string{
		"/runs", "/runs/" + r.ID, "/runs/" + r.ID + "?step=1", "/runs/" + r.ID + "?step=3", "/runs/" + fails.ID, "/calls/" + d.CallID, "/jobs", "/jobs/" + id, "/jobs/" + line,
		"/jobs/" + id + "/output?stream=stdout&offset=0", "/jobs/" + id + "/output?stream=stderr&offset=0", "/events", "/events?stream=job:" + id, "/events?stream=run:" + r.ID, "/deliveries", "/deliveries/" + dlv,
		"/jobs?name=" + url.QueryEscape(plain(hostile)[:60]), "/jobs?tag=" + url.QueryEscape(plain(hostile)[:60]), "/events?stream=" + url.QueryEscape(plain(hostile)[:60]),
		"/runs/" + url.PathEscape(plain(hostile)[:60]), "/jobs/" + url.PathEscape(plain(hostile)[:60]), "/runs?status=" + url.QueryEscape(plain(hostile)[:60]),
	} {
		checkHostile(t, b.get(at))
	}
	p := b.get("/jobs/"+id).want(200).has("<script>alert(1)</script>", `\u{202e}`)
	if len(p.elements("svg")) != 1 {
		t.Errorf("%d drawings", len(p.elements("svg")))
	}
}

// However much is stored, a page stays one that a browser can show.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	const most = 300 << 10
	w := setup(t)
	w.loop()
	unseenMuch := strings.Repeat("\u202e\u200b<&", 8<<10)
	docs := []string{
		`{"text":` + string(mustJSON(strings.Repeat("x", 100<<10))) + `}`,
		`{"list":[` + strings.TrimSuffix(strings.Repeat(`{"a":"`+strings.Repeat("y", 50)+`"},`, 1500), ",") + `]}`,
		`{"text":` + string(mustJSON(unseenMuch)) + `,"n":[` + strings.TrimSuffix(strings.Repeat(string(mustJSON(unseenMuch[:600]))+",", 40), ",") + `]}`,
	}
	var ps []run.Proposal
	for i := range 60 {
		ps = append(ps, use("look", strings.Replace(docs[i%len(docs)], "{", fmt.Sprintf(`{"i":%d,`, i), 1)))
	}
	limits := run.DefaultLimits()
	limits.MaxSteps = 1000
	r := w.goes(unseenMuch, w.tools(tool.RunnerFunc(echo)), proposing(ps...), limits)
	if r.StepCount != 61 {
		t.Fatalf("%d steps: %s", r.StepCount, r.Detail)
	}
	id := w.start(w.prints(strings.Repeat(unseenMuch+"\n", 20), `cat "$0"; cat "$0" >&2; exit 1`), "failed")
	b := w.as(token.Reviewer, "ana")
	at := "/runs/" + r.ID
	for pages := 0; at != ""; pages++ {
		p := b.get(at).want(200)
		if len(p.raw) > most {
			t.Errorf("%s has %d bytes", at, len(p.raw))
		}
		at = ""
		for _, a := range p.elements("a") {
			if attr(a, "rel") == "next" {
				at = attr(a, "href")
			}
		}
		if pages > 3 {
			t.Fatal("there are too many pages")
		}
	}
	for _, at := range []string{"/runs", "/runs/" + r.ID + "?step=1", "/runs/" + r.ID + "?step=2", "/runs/" + r.ID + "?step=3", "/jobs", "/jobs/" + id, "/jobs/" + id + "/output?stream=stdout&offset=0", "/events", "/events?stream=run:" + r.ID} {
		if p := b.get(at).want(200); len(p.raw) > most {
			t.Errorf("%s has %d bytes", at, len(p.raw))
		}
	}
	b.get("/runs/"+r.ID+"?step=2").has("i 1", "a "+strings.Repeat("y", 50))
}
