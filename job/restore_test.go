package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
)

func (w *world) backup() string {
	w.Helper()
	dest := filepath.Join(w.TempDir(), "backup.db")
	if err := sqlite.Backup(w.ctx, w.db, dest); err != nil {
		w.Fatal(err)
	}
	return dest
}

// restore puts a backup in the store's place while no daemon runs, as `db restore` does.
func (w *world) restore(from string) {
	w.Helper()
	w.s.Wait4Runners()
	w.reopen(func() error { return sqlite.Restore(w.ctx, w.db, from) })
}

func (w *world) reopen(meanwhile func() error) {
	w.Helper()
	if err := w.st.Close(); err != nil {
		w.Fatal(err)
	}
	if err := meanwhile(); err != nil {
		w.Fatal(err)
	}
	w.st = placettest.OpenFile(w.T, w.db, &sqlite.Options{Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
	w.s = w.supervisor()
	w.op.Store = w.st
	w.Cleanup(w.stopAll)
}

func (w *world) pass() {
	w.Helper()
	if err := w.s.Pass(w.ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *world) send(id, text string) {
	w.Helper()
	if err := w.s.Send(w.ctx, id, []byte(text), false); err != nil {
		w.Fatal(err)
	}
}

// after is a job that starts once another has completed.
func (w *world) after(first job.Job, spec job.Spec) job.Job {
	w.Helper()
	spec.Trigger = job.Trigger{JobID: first.ID, Status: job.Completed}
	return w.start(spec)
}

func (w *world) ranOnce(witness string) {
	w.Helper()
	if b, err := os.ReadFile(witness); err != nil || string(b) != "once\n" {
		w.Errorf("it ran otherwise than once: %q, %v", b, err)
	}
}

// A job that ran after a backup does not run again when that is restored: its folder
// is the witness. What it printed is told once.
func TestRestoredJobRunsOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	witness := filepath.Join(t.TempDir(), "witness")
	first := w.start(command("echo"))
	second := w.after(first, shell(`echo once >> `+witness+`; echo out; echo 'AGENT_EVENT {"type":"n"}'; exit 3`))
	backup := w.backup()
	w.send(first.ID, "end\n")
	w.end(first.ID)
	w.pass()
	if j := w.end(second.ID); j.Status != job.Failed {
		t.Fatalf("%+v", j)
	}
	w.restore(backup)
	w.pass()
	w.pass()
	w.ranOnce(witness)
	j := w.end(second.ID)
	if j.Status != job.Failed || j.ExitCode != 3 || !strings.Contains(j.Failure, "went back") || !strings.Contains(j.Failure, "status 3") {
		t.Errorf("%+v", j)
	}
	if got := w.output(j.ID, job.Stdout); strings.Count(got, "out\n") != 1 {
		t.Errorf("it printed %q", got)
	}
	if got := types(w.events(j.ID)); got != "queued started job.output failed" {
		t.Errorf("events: %s", got)
	}
	if j := w.get(first.ID); j.Status != job.Completed {
		t.Errorf("the one that ran all the time: %+v", j)
	}
}

// One that runs while the store goes back runs on, and is looked after; one whose
// runner was lost meanwhile is orphaned, and not started again.
func TestRestoredWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"it runs on": false, "its runner is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			witness := filepath.Join(t.TempDir(), "witness")
			first := w.start(command("echo"))
			second := w.after(first, shell(`echo once >> `+witness+`; echo ready; read x`))
			backup := w.backup()
			w.send(first.ID, "end\n")
			w.end(first.ID)
			w.pass()
			w.until(second.ID, "ready")
			all := w.identities(w.get(second.ID))
			want := job.Completed
			if lost {
				want = job.Orphaned
				w.killRunner(w.get(second.ID))
				w.s.Wait4Runners()
			}
			w.reopen(func() error { return sqlite.Restore(w.ctx, w.db, backup) })
			w.pass()
			if !lost {
				if j := w.get(second.ID); j.Status != job.Running {
					t.Fatalf("%+v", j)
				}
				w.send(second.ID, "\n")
			}
			if j := w.end(second.ID); j.Status != want || !strings.Contains(j.Failure, "went back") {
				t.Errorf("%+v", j)
			}
			w.ranOnce(witness)
			awaitGone(t, all)
		})
	}
}

// A job that was queued in an earlier life of the store waits for somebody who wants it
// to run: nothing shows that it did not run since.
func TestRestoredQueuedJobWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	witness := filepath.Join(t.TempDir(), "witness")
	first := w.start(command("echo"))
	second := w.after(first, shell(`echo once >> `+witness))
	backup := w.backup()
	w.send(first.ID, "end\n")
	w.end(first.ID)
	w.restore(backup)
	w.pass()
	w.pass()
	j := w.get(second.ID)
	if j.Status != job.Queued || !j.Paused {
		t.Fatalf("%+v", j)
	}
	es := w.events(j.ID)
	if got := types(es); got != "queued paused" || es[1].Actor != "system" || !strings.Contains(string(es[1].Payload), "went back to") {
		t.Errorf("events: %s, %s", got, es[len(es)-1].Payload)
	}
	if _, err := w.s.Resume(w.ctx, j.ID, "ana"); err != nil {
		t.Fatal(err)
	}
	if j = w.end(j.ID); j.Status != job.Completed || j.Failure != "" {
		t.Errorf("%+v", j)
	}
	w.ranOnce(witness)
}

// What runs of a job that the store does not know any more is ended; its folder stays.
// A job that the store knows is left alone.
func TestStrayJobIsEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	known := w.start(command("echo"))
	backup := w.backup()
	stray := w.start(command("family"))
	w.until(stray.ID, "ready")
	all := w.identities(stray)
	dead := w.start(command("hang"))
	w.until(dead.ID, "ready")
	if err := os.RemoveAll(filepath.Join(w.dir, dead.ID, "1", "lock")); err != nil { // as if its runner were lost
		t.Fatal(err)
	}
	all = append(all, w.identities(dead)...)
	w.reopen(func() error { return sqlite.Restore(w.ctx, w.db, backup) })
	w.loop(w.s)
	awaitGone(t, all)
	if _, err := os.Stat(filepath.Join(w.dir, stray.ID, "1", "out")); err != nil {
		t.Errorf("its folder: %v", err)
	}
	if j := w.get(known.ID); j.Status != job.Running {
		t.Errorf("%+v", j)
	}
}

// awaitGone returns when none of the processes runs.
func awaitGone(t *testing.T, all []process.Identity) {
	t.Helper()
	for _, id := range all {
		fd, err := unix.PidfdOpen(id.PID, 0)
		if err != nil {
			continue // there is none
		}
		defer unix.Close(fd)
		if !process.Alive(id) {
			continue
		}
		n := 0
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		}
		if n != 1 || err != nil {
			t.Errorf("process %d still runs, %v", id.PID, err)
		}
	}
}

// A stop of a job that the restored store believes queued reaches the launch that runs.
func TestStopOfARestoredJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.start(command("echo"))
	second := w.after(first, shell("echo ready; exec sleep 600"))
	backup := w.backup()
	w.send(first.ID, "end\n")
	w.end(first.ID)
	w.pass()
	w.until(second.ID, "ready")
	all := w.identities(w.get(second.ID))
	w.reopen(func() error { return sqlite.Restore(w.ctx, w.db, backup) })
	j, err := w.s.Stop(w.ctx, second.ID, "ana", time.Second)
	if err != nil || j.Status != job.Cancelled {
		t.Fatalf("%s: %s %v", j.Status, j.Failure, err)
	}
	w.gone(all[1:]) // the first is the runner, which ends once it has told
}
