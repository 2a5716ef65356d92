package job_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
)

// patience only ends what hangs.
const patience = 5 * time.Minute

// whole bounds a test in all, however slow the machine is: it only ends what hangs.
const whole = 20 * time.Minute

type world struct {
	*testing.T
	ctx context.Context
	st  *store.Store
	s   *job.Supervisor
	op  decision.Operator
	db  string
	dir string

	stopped bool // what it started was stopped
}

func setup(t *testing.T, change ...func(*job.Config)) *world {
	t.Helper()
	return setupAt(t, nil, change...)
}

// setupAt is setup with a store whose clock is now; nil: its own.
func setupAt(t *testing.T, now func() time.Time, change ...func(*job.Config)) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), whole)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, db: filepath.Join(t.TempDir(), "placet.db"), dir: t.TempDir()}
	w.st = placettest.OpenFile(t, w.db, &sqlite.Options{Now: now, Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
	w.s = w.supervisor(change...)
	w.op = decision.Operator{Store: w.st, Principal: "user:ana"}
	t.Cleanup(w.stopAll)
	return w
}

func (w *world) supervisor(change ...func(*job.Config)) *job.Supervisor {
	c := job.Config{Store: w.st, Dir: w.dir, Program: []string{os.Args[0]}, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	return job.NewSupervisor(c)
}

// loop runs the supervisor's loop until the test ends.
func (w *world) loop(s *job.Supervisor) {
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Loop(ctx); err != nil {
			w.Errorf("loop: %v", err)
		}
	}()
	w.Cleanup(func() { stop(); <-done })
}

// stopAll leaves nothing of the test running. It needs the store open.
func (w *world) stopAll() {
	if w.stopped {
		return
	}
	w.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := w.supervisor()
	js, err := s.List(ctx, job.Query{Active: true, Limit: 500})
	if err != nil {
		w.Errorf("list: %v", err)
	}
	for _, j := range js {
		if _, err := s.Stop(ctx, j.ID, "test", time.Millisecond); err != nil {
			w.Errorf("stop %s: %v", j.ID, err)
		}
	}
	s.Wait4Runners()
	w.s.Wait4Runners()
}

// vanish removes a folder at once, although somebody still writes into it.
func (w *world) vanish(folder string) {
	w.Helper()
	away := filepath.Join(w.TempDir(), "away")
	if err := os.Rename(folder, away); err != nil {
		w.Fatal(err)
	}
}

// helper is a command in which the test binary plays a role.
func command(role string, args ...string) job.Spec {
	return job.Spec{Command: append([]string{os.Args[0], "helper", role}, args...), Cwd: os.TempDir()}
}

func shell(line string) job.Spec { return job.Spec{Shell: line, Cwd: os.TempDir()} }

func (w *world) start(spec job.Spec) job.Job {
	w.Helper()
	j, err := w.s.Start(w.ctx, job.Starting{Spec: spec})
	if err != nil {
		w.Fatalf("start: %v", err)
	}
	return j
}

// end waits for the job's end.
func (w *world) end(id string) job.Job {
	w.Helper()
	got, err := w.s.Wait(w.ctx, job.Waiting{JobID: id, Types: []string{"completed", "failed", "timeout", "cancelled", "orphaned"}})
	if err != nil || got.Result != job.GotEvent {
		w.Fatalf("wait: %+v, %v", got, err)
	}
	return w.get(id)
}

func (w *world) get(id string) job.Job {
	w.Helper()
	j, err := w.s.Get(w.ctx, id)
	if err != nil {
		w.Fatalf("get: %v", err)
	}
	return j
}

// run starts a job and waits for its end.
func (w *world) run(spec job.Spec) job.Job {
	w.Helper()
	return w.end(w.start(spec).ID)
}

// output is all that the job printed to one stream, read in small pieces.
func (w *world) output(id string, stream job.Stream) string {
	w.Helper()
	var b strings.Builder
	q := job.Tailing{Stream: stream, MaxBytes: 7, Follow: true}
	for {
		t, err := w.s.Tail(w.ctx, id, q)
		if err != nil {
			w.Fatalf("tail: %v", err)
		}
		b.Write(t.Data)
		if t.End {
			return b.String()
		}
		q.Offset = t.Next
	}
}

// until reads the job's output up to a text.
func (w *world) until(id, text string) string {
	w.Helper()
	var b strings.Builder
	q := job.Tailing{Follow: true}
	for !strings.Contains(b.String(), text) {
		t, err := w.s.Tail(w.ctx, id, q)
		if err != nil || t.End {
			w.Fatalf("tail: %v; it printed %q", err, b.String())
		}
		b.Write(t.Data)
		q.Offset = t.Next
	}
	return b.String()
}

func (w *world) events(id string) []event.Event {
	w.Helper()
	var all []event.Event
	var after event.Cursor
	for {
		page, err := event.Read(w.ctx, w.st, job.RefOf(id).Stream(), after, 1000)
		if err != nil {
			w.Fatalf("events: %v", err)
		}
		if len(page.Events) == 0 {
			return all
		}
		all, after = append(all, page.Events...), page.Cursor
	}
}

func types(es []event.Event) string {
	var list []string
	for _, e := range es {
		list = append(list, string(e.Type))
	}
	return strings.Join(list, " ")
}
