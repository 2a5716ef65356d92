package job_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/txn"
)

// counting notes how many events each transaction appends.
type counting struct {
	txn.Store
	most, all int
}

func (c *counting) Update(ctx context.Context, fn func(txn.Tx) error) error {
	n := 0
	err := c.Store.Update(ctx, func(tx txn.Tx) error {
		err := fn(tx)
		n = len(tx.(interface{ Appended() []event.Event }).Appended())
		return err
	})
	c.most, c.all = max(c.most, n), c.all+n
	return err
}

// What a job printed is taken in by at most a hundred events for each transaction.
func TestTakenInByTheHundred(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := &counting{Store: w.st}
	s := w.supervisor(func(conf *job.Config) { conf.Store = c })
	j := w.start(command("print", "350", "10"))
	w.s.Wait4Runners()
	before := w.events(j.ID)
	got, err := s.Get(w.ctx, j.ID)
	if err != nil || got.Status != job.Completed || got.Outputs != 350 {
		t.Fatalf("%+v, %v", got, err)
	}
	if c.most > 100 || c.all != len(w.events(j.ID))-len(before) {
		t.Errorf("up to %d events in a transaction, %d in all", c.most, c.all)
	}
}

// The end is told with the runner's own time, whenever it is taken in.
func TestEndHasTheRunnersTime(t *testing.T) {
	t.Parallel()
	clock := placettest.Clock{}
	w := setupAt(t, clock.Now)
	j := w.start(shell("true"))
	w.s.Wait4Runners()
	clock.Advance(1000 * time.Hour)
	j = w.get(j.ID)
	var st struct {
		StartedAt time.Time `json:"started_at"`
		EndedAt   time.Time `json:"ended_at"`
	}
	b, err := os.ReadFile(filepath.Join(w.dir, j.ID, "1", "status"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &st); err != nil {
		t.Fatal(err)
	}
	if !j.EndedAt.Equal(st.EndedAt) || !j.StartedAt.Equal(st.StartedAt) || j.EndedAt.IsZero() {
		t.Errorf("%s to %s; the runner says %s to %s", j.StartedAt, j.EndedAt, st.StartedAt, st.EndedAt)
	}
}

// A status of another claim is not this launch's.
func TestStatusOfAnotherClaim(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	path := filepath.Join(w.dir, j.ID, "1", "status")
	if err := os.WriteFile(path, []byte(`{"v":1,"claim":"other","status":"failed","exit_code":9,"ended_at":"2026-01-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := w.get(j.ID); now.Status != job.Running {
		t.Errorf("%+v", now)
	}
	w.send(j.ID, "end\n")
	if j = w.end(j.ID); j.Status != job.Completed || j.ExitCode != 0 {
		t.Errorf("%+v", j)
	}
}

// The command dies with its runner, also while no supervisor looks.
func TestCommandDiesWithItsRunner(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("hang"))
	line := w.until(j.ID, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "ready")))
	if err != nil {
		t.Fatal(err)
	}
	leader, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	w.killRunner(w.get(j.ID))
	awaitGone(t, []process.Identity{leader})
}

// A runner has no file of the store open, and does not know where it lies.
func TestRunnerKnowsNoStore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("echo"))
	proc := filepath.Join("/proc", strconv.Itoa(w.runner(j).PID))
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil || len(fds) == 0 {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name())); err == nil && strings.HasPrefix(to, filepath.Dir(w.db)) {
			t.Errorf("it has %s open", to)
		}
	}
	for _, name := range []string{"environ", "cmdline"} {
		if b, err := os.ReadFile(filepath.Join(proc, name)); err != nil || strings.Contains(string(b), w.db) {
			t.Errorf("its %s names the store: %v", name, err)
		}
	}
}
