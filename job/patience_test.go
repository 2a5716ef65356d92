package job_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/txn"
)

// wantStopped wants a job stopped, and goes away.
func (w *world) wantStopped(id string) {
	w.Helper()
	if err := txn.Update(w.ctx, w.st, func(tx job.Tx) error { return job.Owner{Tx: tx, ID: id}.Cancel("ana", "", tx.Now) }); err != nil {
		w.Fatal(err)
	}
}

// A runner that hangs is killed once its time is over, whoever looks then: nobody has to
// wait for the stop, and the supervisor may be another one.
func TestStopOfHungRunnerIsCarriedOut(t *testing.T) {
	t.Parallel()
	var clock placettest.Clock
	w := setupAt(t, clock.Now)
	j := w.start(command("hang"))
	w.until(j.ID, "ready")
	all := w.identities(j)
	if err := unix.Kill(w.runner(j).PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.wantStopped(j.ID)
	w.pass()
	if now := w.get(j.ID); now.Status != job.Running {
		t.Errorf("before its time: %+v", now)
	}
	clock.Advance(job.DefaultKillAfter + job.ForceAfter + time.Microsecond)
	other := w.supervisor()
	if err := other.Pass(w.ctx); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, all[:1])
	if j = w.end(j.ID); j.Status != job.Cancelled {
		t.Errorf("%+v", j)
	}
	awaitGone(t, all)
	other.Wait4Runners()
}

// A command that does not heed is killed although the one who asked has gone, also by a
// supervisor that comes later.
func TestStopOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j := w.start(command("stubborn"))
	w.until(j.ID, "ready")
	ctx, hangUp := context.WithCancel(w.ctx)
	s := w.supervisor(func(c *job.Config) { c.Store = hangsUp{c.Store, hangUp} })
	if _, err := s.Stop(ctx, j.ID, "ana", time.Millisecond); err == nil {
		t.Fatal("the stop was waited for")
	}
	w.pass()
	if j = w.end(j.ID); j.Status != job.Cancelled {
		t.Errorf("%+v", j)
	}
	s.Wait4Runners()
}

// hangsUp is a store whose caller is gone after the first write.
type hangsUp struct {
	txn.Store
	hangUp func()
}

func (h hangsUp) Update(ctx context.Context, fn func(txn.Tx) error) error {
	defer h.hangUp()
	return h.Store.Update(ctx, fn)
}

// An order to stop that is more urgent counts from when it was given.
func TestMoreUrgentStop(t *testing.T) {
	t.Parallel()
	j := states()["running, to stop"] // at noon, after a second
	for name, tt := range map[string]struct {
		after, patience, want time.Duration
	}{
		"later and no sooner over": {time.Second / 2, time.Second / 2, time.Second},
		"sooner over":              {time.Second / 2, time.Second / 4, 3 * time.Second / 4},
	} {
		ch, err := j.Step(job.Stop{By: "bo", KillAfter: tt.patience}, noon.Add(tt.after))
		if err != nil || ch.Next.StopBy != "ana" || !ch.Next.StopAt.Add(ch.Next.KillAfter).Equal(noon.Add(tt.want)) {
			t.Errorf("%s: %+v, %v", name, ch.Next, err)
		}
	}
}

// A launch that takes long holds up neither the other jobs nor those who look at its own.
func TestSlowLaunchHoldsUpNobody(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	launching := make(chan struct{})
	w := setup(t)
	first := w.start(command("echo"))
	slow := w.after(first, shell("true"))
	quick := w.after(first, shell("true"))
	s := w.supervisor(func(c *job.Config) {
		c.Environ = func(_ context.Context, j job.Job) (map[string]string, error) {
			if j.ID == slow.ID {
				close(launching)
				<-goOn
			}
			return nil, nil
		}
	})
	w.loop(s)
	w.Cleanup(s.Wait4Runners)
	w.send(first.ID, "end\n")
	<-launching
	if got, err := s.Wait(w.ctx, job.Waiting{JobID: quick.ID, Types: []string{"completed"}}); err != nil || got.Result != job.GotEvent {
		t.Errorf("%+v, %v", got, err)
	}
	if j, err := s.Get(w.ctx, slow.ID); err != nil || j.Status != job.Launching {
		t.Errorf("%+v, %v", j, err)
	}
	close(goOn)
	if j := w.end(slow.ID); j.Status != job.Completed {
		t.Errorf("%+v", j)
	}
}

// A runner that never reads its order is given up.
func TestRunnerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.supervisor(func(c *job.Config) { c.Program = []string{"/bin/sh", "-c", "exec sleep 3600", "runner"} })
	s.SetBeginPatience(10 * time.Millisecond)
	spec := shell("true")
	spec.Env = map[string]string{"LARGE": strings.Repeat("x", job.MaxSpec-1000)}
	j, err := s.Start(w.ctx, job.Starting{Spec: spec})
	if err != nil || j.Status != job.Failed || !strings.Contains(j.Failure, os.ErrDeadlineExceeded.Error()) {
		t.Errorf("%+v, %v", j.Failure, err)
	}
	s.Wait4Runners()
}
