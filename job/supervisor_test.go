package job_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

func TestStartIsChecked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	with := func(change func(*job.Starting)) job.Starting {
		r := job.Starting{Spec: shell("true")}
		change(&r)
		return r
	}
	for name, r := range map[string]job.Starting{
		"nothing to run":    {},
		"two things to run": with(func(r *job.Starting) { r.Command = []string{"true"} }),
		"an empty program":  {Spec: job.Spec{Command: []string{""}}},
		"NUL":               with(func(r *job.Starting) { r.Shell = "a\x00" }),
		"a relative folder": with(func(r *job.Starting) { r.Cwd = "here" }),
		"half a second":     with(func(r *job.Starting) { r.Timeout = time.Second / 2 }),
		"less than no time": with(func(r *job.Starting) { r.Timeout = -time.Second }),
		"no such status":    with(func(r *job.Starting) { r.Trigger = job.Trigger{JobID: "job_1", Status: "running"} }),
		"a trigger of none": with(func(r *job.Starting) { r.Trigger = job.Trigger{Status: job.Failed} }),
		"a bad variable":    with(func(r *job.Starting) { r.Env = map[string]string{"A=B": "c"} }),
		"our own variable":  with(func(r *job.Starting) { r.Env = map[string]string{"PLACET_TOKEN": "c"} }),
		"no such target":    with(func(r *job.Starting) { r.WakeTargets = []delivery.Adding{{Type: "pigeon"}} }),
		"a long name":       with(func(r *job.Starting) { r.Name = strings.Repeat("n", job.MaxName+1) }),
		"an empty tag":      with(func(r *job.Starting) { r.Tags = []string{""} }),
		"too much":          with(func(r *job.Starting) { r.Env = map[string]string{"A": strings.Repeat("x", job.MaxSpec)} }),
	} {
		if _, err := w.s.Start(w.ctx, r); !errors.Is(err, job.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.s.Start(w.ctx, with(func(r *job.Starting) { r.Trigger = job.Trigger{JobID: "job_none", Status: job.Failed} }))
	if !errors.Is(err, job.ErrNotFound) {
		t.Errorf("a trigger that is not there: %v", err)
	}
	if js, err := w.s.List(w.ctx, job.Query{}); err != nil || len(js) != 0 {
		t.Errorf("%d jobs were made, %v", len(js), err)
	}
	if _, err := job.NewSupervisor(job.Config{}).Start(w.ctx, with(func(*job.Starting) {})); !errors.Is(err, job.ErrUsage) {
		t.Errorf("an empty configuration: %v", err)
	}
}

// The same request again is the same job, also when many ask at once.
func TestIdempotentStart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	witness := filepath.Join(t.TempDir(), "witness")
	r := job.Starting{Spec: shell("echo once >> " + witness), IdempotencyKey: "k", Principal: "bot"}
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			j, err := w.s.Start(w.ctx, r)
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("%v", ids)
		}
	}
	w.end(ids[0])
	if b, err := os.ReadFile(witness); err != nil || string(b) != "once\n" {
		t.Errorf("it ran otherwise than once: %q, %v", b, err)
	}
	other := r
	other.Shell = "true"
	if _, err := w.s.Start(w.ctx, other); !errors.Is(err, job.ErrKeyConflict) {
		t.Errorf("the key for something else: %v", err)
	}
	other.Principal = "another"
	if j, err := w.s.Start(w.ctx, other); err != nil || j.ID == ids[0] {
		t.Errorf("the same key of another principal: %v", err)
	}
}

func TestTrigger(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop(w.s)
	first := w.start(shell("read x"))
	after := func(s job.Status) job.Job {
		spec := shell("true")
		spec.Trigger = job.Trigger{JobID: first.ID, Status: s}
		return w.start(spec)
	}
	met, unmet := after(job.Completed), after(job.Failed)
	if met.Status != job.Queued || unmet.Status != job.Queued {
		t.Fatalf("%s, %s", met.Status, unmet.Status)
	}
	if err := w.s.Send(w.ctx, first.ID, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	if j := w.end(met.ID); j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
	if j := w.end(unmet.ID); j.Status != job.Cancelled || !strings.Contains(j.Failure, first.ID) {
		t.Errorf("%+v", j)
	}
	if j := w.end(after(job.Completed).ID); j.Status != job.Completed {
		t.Errorf("once it has ended: %+v", j)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.start(shell("read x"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: first.ID, Status: job.Completed}
	j := w.start(spec)
	for range 2 {
		if got, err := w.s.Pause(w.ctx, j.ID, "ana"); err != nil || !got.Paused {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if _, err := w.s.Pause(w.ctx, first.ID, "ana"); !errors.Is(err, job.ErrRunState) {
		t.Errorf("a running one: %v", err)
	}
	if err := w.s.Send(w.ctx, first.ID, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	w.end(first.ID)
	if err := w.s.Pass(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.get(j.ID); got.Status != job.Queued {
		t.Fatalf("%+v", got)
	}
	if _, err := w.s.Resume(w.ctx, j.ID, "ana"); err != nil {
		t.Fatal(err)
	}
	if j = w.end(j.ID); j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
	if got := types(w.events(j.ID)); got != "queued paused unpaused started completed" {
		t.Errorf("events: %s", got)
	}
}

func TestStopQueued(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.start(command("hang"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: first.ID, Status: job.Completed}
	j := w.start(spec)
	for range 2 {
		if got, err := w.s.Stop(w.ctx, j.ID, "ana", 0); err != nil || got.Status != job.Cancelled {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if got := types(w.events(j.ID)); got != "queued cancelled" {
		t.Errorf("events: %s", got)
	}
	if _, err := w.s.Stop(w.ctx, "job_none", "ana", 0); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("no such job: %v", err)
	}
}

// A stop that comes while the job is launched is carried out, and the job cannot slip
// through.
func TestStopWhileLaunching(t *testing.T) {
	t.Parallel()
	w := setup(t)
	claimed, goOn := make(chan string, 1), make(chan struct{})
	s := w.supervisor(func(c *job.Config) {
		c.Environ = func(_ context.Context, j job.Job) (map[string]string, error) {
			claimed <- j.ID
			<-goOn
			return nil, nil
		}
	})
	started := make(chan error, 1)
	go func() {
		_, err := s.Start(w.ctx, job.Starting{Spec: command("hang")})
		started <- err
	}()
	id := <-claimed
	if err := txn.Update(w.ctx, w.st, func(tx job.Tx) error { return job.Owner{Tx: tx, ID: id}.Cancel("ana", "", tx.Now) }); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if j := w.end(id); j.Status != job.Cancelled || j.StopBy != "ana" {
		t.Errorf("%+v", j)
	}
	if got := types(w.events(id)); got != "queued started cancelled" {
		t.Errorf("events: %s", got)
	}
	s.Wait4Runners()
}

// Two supervisors with one home: each job is launched, taken in and ended once.
func TestTwoSupervisors(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.supervisor()
	w.Cleanup(other.Wait4Runners)
	w.loop(w.s)
	w.loop(other)
	first := w.start(shell("read x"))
	var ids []string
	for i := range 10 {
		spec := shell(`for i in 1 2 3 4 5; do echo "AGENT_EVENT {\"type\":\"n\"}"; done`)
		if i%2 == 0 {
			spec.Trigger = job.Trigger{JobID: first.ID, Status: job.Completed}
		}
		j, err := []*job.Supervisor{w.s, other}[i%2].Start(w.ctx, job.Starting{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	if err := other.Send(w.ctx, first.ID, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if j := w.end(id); j.Status != job.Completed || j.Launches != 1 || j.Outputs != 5 {
			t.Errorf("%+v", j)
		}
		if got := types(w.events(id)); got != "queued started"+strings.Repeat(" job.output", 5)+" completed" {
			t.Errorf("events: %s", got)
		}
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	for i := range 3 {
		if err := w.s.Send(w.ctx, j.ID, fmt.Appendf(nil, "line %d\n", i), i == 2); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.output(j.ID, job.Stdout); got != "ready\ngot line 0\ngot line 1\ngot line 2\neof\n" {
		t.Errorf("%q", got)
	}
	w.end(j.ID)
	if err := w.s.Send(w.ctx, j.ID, []byte("x"), false); !errors.Is(err, job.ErrRunState) {
		t.Errorf("to one that has ended: %v", err)
	}
}

// What a runner says no to is told apart from every other conflict.
func TestRunnersRefusal(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop(w.s)
	j := w.start(command("hang"))
	if err := w.s.Send(w.ctx, j.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, j.ID, []byte("x"), false); !errors.Is(err, job.ErrRefused) {
		t.Errorf("to a standard input that is closed: %v", err)
	}
}

// An offset behind the end is where nothing is yet, however far behind it is.
func TestTailBehindTheEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.run(shell("echo done"))
	for _, offset := range []int64{5, 6, 1 << 40, math.MaxInt64 - 1<<20, math.MaxInt64 - 1, math.MaxInt64} {
		for _, most := range []int{1, job.MaxTail} {
			got, err := w.s.Tail(w.ctx, j.ID, job.Tailing{Offset: offset, MaxBytes: most, Follow: true})
			if err != nil || len(got.Data) != 0 || got.Next != offset || !got.End {
				t.Errorf("%d bytes at %d: %+v, %v", most, offset, got, err)
			}
		}
	}
}

// Without a loop and without a wait, whoever looks takes in what the runner left.
func TestLookingTakesIn(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*world, string) bool{
		"tail": func(w *world, id string) bool {
			got, err := w.s.Tail(w.ctx, id, job.Tailing{Offset: 5})
			if err != nil {
				w.Fatal(err)
			}
			return got.End
		},
		"get": func(w *world, id string) bool { return w.get(id).Status.Terminal() },
		"list": func(w *world, id string) bool {
			js, err := w.s.List(w.ctx, job.Query{Status: job.Completed})
			if err != nil {
				w.Fatal(err)
			}
			return len(js) == 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			j := w.start(shell("echo done"))
			w.s.Wait4Runners()
			if !look(w, j.ID) {
				t.Error("it does not see the end")
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(shell(`echo 'AGENT_EVENT {"type":"progress","data":{"n":1}}'; read x`))
	wait := func(ctx context.Context, q job.Waiting) (job.Waited, error) {
		q.JobID = j.ID
		return w.s.Wait(ctx, q)
	}
	got, err := wait(w.ctx, job.Waiting{Types: []string{"failed"}, Progress: true})
	if err != nil || got.Result != job.GotProgress {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = wait(w.ctx, job.Waiting{Types: []string{"failed"}, After: got.Cursor, Timeout: time.Millisecond})
	if err != nil || got.Result != job.GotTimeout || got.Cursor == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancelCause(w.ctx)
	cancel(job.ErrShutdown)
	if got, err := job.Wait(ctx, w.st, event.MainSpace, job.Waiting{JobID: j.ID, Types: []string{"failed"}, After: got.Cursor}); err != nil || got.Result != job.GotShutdown {
		t.Errorf("going down: %+v, %v", got, err)
	}
	for name, q := range map[string]job.Waiting{
		"nothing": {}, "an empty list": {Types: []string{}}, "no such type": {Types: []string{"finished"}}, "output of no name": {Types: []string{"output:"}},
		"printed output": {Types: []string{"job.output"}}, "too long": {Types: []string{"failed"}, Timeout: job.MaxWait + 1},
	} {
		if _, err := wait(w.ctx, q); !errors.Is(err, job.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wait(w.ctx, job.Waiting{Types: []string{"failed"}, After: "s9-000000000000"}); !errors.Is(err, event.ErrCursor) {
		t.Errorf("a cursor of nothing: %v", err)
	}
	if _, err := wait(w.ctx, job.Waiting{DecisionID: "dec_none"}); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("no such question: %v", err)
	}
	if err := w.s.Send(w.ctx, j.ID, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	got, err = wait(w.ctx, job.Waiting{Types: []string{"failed"}, After: got.Cursor})
	if err != nil || got.Result != job.GotEnd {
		t.Errorf("the end: %+v, %v", got, err)
	}
	if again, err := wait(w.ctx, job.Waiting{Types: []string{"failed"}, After: got.Cursor}); err != nil || again.Result != job.GotEnd {
		t.Errorf("behind the end: %+v, %v", again, err)
	}
	stream := job.RefOf(j.ID).Stream()
	if err := event.Redact(w.ctx, w.st, stream, 1, "ana", "why"); err != nil { // which is an event of the stream
		t.Fatal(err)
	}
	head, err := event.Read(w.ctx, w.st, stream, got.Cursor, 10)
	if err != nil || len(head.Events) != 1 {
		t.Fatalf("%+v, %v", head, err)
	}
	for what, at := range map[string]event.Cursor{"at": got.Cursor, "behind": head.Cursor} {
		again, err := wait(w.ctx, job.Waiting{Types: []string{"failed"}, After: at, Timeout: time.Second})
		if err != nil || again.Result != job.GotEnd {
			t.Errorf("%s the end, once something was emptied: %+v, %v", what, again, err)
		}
	}
	if _, err := w.s.Wait(w.ctx, job.Waiting{JobID: "job_none", Types: []string{"failed"}}); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("no such job: %v", err)
	}
}

// Many wait for one question in one process; one answer reaches all.
func TestManyWaitForOneQuestion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	q, err := w.op.Ask(w.ctx, "main", j.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const waiters = 2000 / raceFactor
	all.Add(waiters)
	for range waiters {
		_, err := job.Await(w.ctx, w.st, "main", job.Waiting{JobID: j.ID, DecisionID: q.ID, After: q.Cursor}, func(got job.Waited, err error) {
			defer all.Done()
			if err != nil || got.Event.Type != event.DecisionResolved {
				t.Errorf("%+v, %v", got, err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.op.Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	ended := make(chan job.Waited, 1)
	stop, err := job.Await(w.ctx, w.st, "main", job.Waiting{JobID: j.ID, Types: []string{"failed"}}, func(got job.Waited, _ error) { ended <- got })
	if err != nil {
		t.Fatal(err)
	}
	if at, stopped := stop(); !stopped || at == "" {
		t.Errorf("stopped %v at %q", stopped, at)
	}
	if err := w.s.Send(w.ctx, j.ID, []byte("end\n"), false); err != nil {
		t.Fatal(err)
	}
	w.end(j.ID)
	if _, err := job.Await(w.ctx, w.st, "main", job.Waiting{JobID: j.ID, Types: []string{"failed"}}, func(got job.Waited, _ error) { ended <- got }); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.Result != job.GotEnd {
		t.Errorf("%+v", got)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	w := setup(t)
	asking := w.start(command("hang"))
	done := w.run(shell("true"))
	failed := w.run(shell("false"))
	running := w.start(command("hang"))
	last := w.run(shell("true"))
	if _, err := w.op.Ask(w.ctx, "main", asking.ID, decision.Asking{Prompt: "Go on?", By: "bot"}); err != nil {
		t.Fatal(err)
	}
	want := []string{asking.ID, failed.ID, running.ID, last.ID, done.ID}
	for limit := 1; limit <= 5; limit++ {
		js, err := w.s.View(w.ctx, job.Query{Limit: limit})
		if err != nil || len(js) != limit {
			t.Fatalf("%d jobs, %v", len(js), err)
		}
		for i, j := range js {
			if j.ID != want[i] {
				t.Errorf("place %d of %d: %s %s", i, limit, j.ID, j.Status)
			}
		}
	}
}

// What is cleaned is gone with all that belongs to it, and is told from what was cut.
func TestClean(t *testing.T) {
	t.Parallel()
	w := setup(t)
	spec := command("print", "1200", "10")
	spec.Name = "old"
	old, keep := w.run(spec), w.start(command("echo"))
	asker := w.start(shell("read x"))
	q, err := w.op.Ask(w.ctx, "main", asker.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.op.Resolve(w.ctx, asker.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Send(w.ctx, asker.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	w.end(asker.ID)
	before, err := event.Verify(w.ctx, w.st, nil)
	if err != nil || before.Break != nil {
		t.Fatalf("%+v, %v", before, err)
	}
	if ids, err := w.s.Clean(w.ctx, job.Cleaning{OlderThan: time.Hour, By: "ana"}); err != nil || len(ids) != 0 {
		t.Errorf("too young: %v, %v", ids, err)
	}
	for _, dry := range []bool{true, false} {
		ids, err := w.s.Clean(w.ctx, job.Cleaning{By: "ana", DryRun: dry})
		if err != nil || len(ids) != 2 {
			t.Fatalf("%v, %v", ids, err)
		}
	}
	for _, id := range []string{old.ID, asker.ID} {
		if _, err := w.s.Get(w.ctx, id); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := os.Stat(filepath.Join(w.dir, id)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its folder: %v", err)
		}
		if _, err := event.Read(w.ctx, w.st, job.RefOf(id).Stream(), "", 1); !errors.Is(err, event.ErrNoStream) {
			t.Errorf("its events: %v", err)
		}
	}
	err = txn.View(w.ctx, w.st, func(tx job.Tx) error {
		es, err := tx.Events(event.Query{Limit: 1000})
		for _, e := range es {
			if e.Stream != keep.Stream() {
				t.Errorf("event %d of %s is left", e.StreamSeq, e.Stream)
			}
		}
		if _, e := tx.Decision(q.ID); !errors.Is(e, job.ErrNotFound) {
			t.Errorf("the question: %v", e)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	after, err := event.Verify(w.ctx, w.st, before.Heads)
	if err != nil || after.Break != nil || after.Streams != 1 || after.Cleaned != 2 {
		t.Errorf("%+v, %v", after, err)
	}
	forged := before.Heads[0]
	for _, h := range before.Heads {
		if h.Stream == old.Stream() {
			forged = h
		}
	}
	forged.Seq++
	if r, err := event.Verify(w.ctx, w.st, []event.Head{forged}); err != nil || r.Break == nil {
		t.Errorf("a head behind the tombstone's: %+v, %v", r, err)
	}
}

// A folder that cannot be deleted holds up no other, and no key stays taken.
func TestCleanGoesOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stuck := job.Job{
		ID: "job_0" + strings.Repeat("x", 300), Space: "main", Home: w.dir, Spec: shell("true"), Status: job.Completed, // a name that no file can have
		CreatedAt: noon, EndedAt: noon, Version: 1,
	}
	err := txn.Update(w.ctx, w.st, func(tx job.Tx) error {
		return tx.InsertJob(job.Change{Next: stuck, Events: []event.Event{event.New(event.JobCompleted, stuck.ID, "system", nil)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	r := job.Starting{Spec: shell("true"), IdempotencyKey: "k"}
	first, err := w.s.Start(w.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	w.end(first.ID)
	if ids, err := w.s.Clean(w.ctx, job.Cleaning{By: "ana"}); err == nil || len(ids) != 2 {
		t.Errorf("%v, %v", ids, err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, first.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other's folder: %v", err)
	}
	err = txn.View(w.ctx, w.st, func(tx job.Tx) error {
		js, err := tx.CleanedJobs(w.dir, "", 10)
		if len(js) != 1 || js[0].ID != stuck.ID {
			t.Errorf("%d jobs are left", len(js))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if again, err := w.s.Start(w.ctx, r); err != nil || again.ID == first.ID {
		t.Errorf("the key was not freed: %v", err)
	}
}

// The age holds for the dry run too.
func TestDryRunHeedsTheAge(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(shell("true"))
	if ids, err := w.s.Clean(w.ctx, job.Cleaning{OlderThan: time.Hour, By: "ana", DryRun: true}); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
}

// endWitness hears of each end, and asks at once for the job's good tokens.
type endWitness struct {
	w    *world
	ends []event.Type
}

func (o *endWitness) Observe(e event.Event) {
	if !job.Status(e.Type).Terminal() {
		return
	}
	o.ends = append(o.ends, e.Type)
	ts, err := token.List(o.w.ctx, o.w.st, token.Query{Space: "main", JobID: e.Subject, Good: true})
	if err != nil || len(ts) != 0 {
		o.w.Errorf("%s: %d good tokens, %v", e.Type, len(ts), err)
	}
}

// A job's tokens end with it, in the same transaction, however it ends.
func TestTokensEndWithTheJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	o := &endWitness{w: w}
	w.s = w.supervisor(func(c *job.Config) { c.Observer = o })
	give := func(j job.Job) job.Job {
		t.Helper()
		for range 2 {
			if _, _, err := token.Create(w.ctx, w.st, token.New{Space: "main", Scope: token.Agent, Name: "n", JobID: j.ID}); err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	completes, fails, hangs := give(w.start(command("echo"))), give(w.start(shell("read x; exit 1"))), give(w.start(command("hang")))
	limited := shell("read x")
	limited.Timeout = time.Second
	late := give(w.start(limited))
	stopped, never := give(w.after(hangs, shell("true"))), give(w.after(hangs, shell("true")))
	w.send(completes.ID, "end\n")
	w.end(completes.ID)
	w.send(fails.ID, "\n")
	w.end(fails.ID)
	w.end(late.ID)
	if _, err := w.s.Stop(w.ctx, stopped.ID, "ana", 0); err != nil {
		t.Fatal(err)
	}
	w.killRunner(hangs)
	w.end(hangs.ID)
	w.pass()
	w.end(never.ID)
	if len(o.ends) != 6 {
		t.Errorf("ends: %v", o.ends)
	}
}
