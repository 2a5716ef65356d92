package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/job"
)

// Of a job that began, a log that is not there is no empty log.
func TestTailOfOutputThatIsGone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, id string) error{
		"folder": func(w *world, id string) error { return os.RemoveAll(filepath.Join(w.dir, id)) },
		"file":   func(w *world, id string) error { return os.Remove(filepath.Join(w.dir, id, "1", "out")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			j := w.run(shell("echo 0123456789 and more"))
			if err := lose(w, j.ID); err != nil {
				t.Fatal(err)
			}
			for _, q := range []job.Tailing{{}, {Offset: 10}, {Offset: 10, Follow: true}} {
				got, err := w.s.Tail(w.ctx, j.ID, q)
				if !errors.Is(err, job.ErrOutputGone) || got.End || !strings.Contains(err.Error(), j.ID) {
					t.Errorf("%+v: %+v, %v", q, got, err)
				}
			}
		})
	}
}

// Who follows a job while its folder vanishes is not told that it has ended well.
func TestFollowedOutputVanishes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop(w.s)
	j := w.start(shell("echo ready; read x"))
	w.until(j.ID, "ready")
	w.vanish(filepath.Join(w.dir, j.ID))
	if got, err := w.s.Tail(w.ctx, j.ID, job.Tailing{Offset: 6, Follow: true}); !errors.Is(err, job.ErrOutputGone) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A folder that loses a part, as one does that is being removed while its runner still
// writes, leaves nothing running that nobody could stop.
func TestFolderLosesAPart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(shell("echo ready; read x"))
	w.until(j.ID, "ready")
	launch := filepath.Join(w.dir, j.ID, "1")
	for _, name := range []string{"lock", "identity", "ctl"} {
		if err := os.Remove(filepath.Join(launch, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.loop(w.s)
	if got := w.end(j.ID); got.Status != job.Orphaned {
		t.Errorf("%+v", got)
	}
	w.s.Wait4Runners()
}

// Where there never was any output, there is none, and that is no error.
func TestTailOfNoOutput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	silent := w.run(shell("true"))
	missing := w.run(job.Spec{Command: []string{"/no/such/program"}, Cwd: os.TempDir()})
	if missing.Status != job.Failed {
		t.Fatalf("%+v", missing)
	}
	first := w.start(shell("read x"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: first.ID, Status: job.Completed}
	waiting := w.start(spec)
	for id, end := range map[string]bool{silent.ID: true, missing.ID: true, waiting.ID: false} {
		for _, offset := range []int64{0, 10} {
			got, err := w.s.Tail(w.ctx, id, job.Tailing{Offset: offset})
			if err != nil || len(got.Data) != 0 || got.End != end {
				t.Errorf("%s from %d: %+v, %v", id, offset, got, err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(w.dir, missing.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Stop(w.ctx, waiting.ID, "ana", 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{missing.ID, waiting.ID} { // neither began
		if got, err := w.s.Tail(w.ctx, id, job.Tailing{}); err != nil || !got.End {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}
