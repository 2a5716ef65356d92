package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// A run that is left has no step, and whoever knows its agent begins it. One that was
// begun and has lost its steps is altered.
func TestLeave(t *testing.T) {
	t.Parallel()
	w := setup(t, proposes("look", `{}`), run.Proposal{Kind: run.Complete})
	r, err := w.d.Leave(w.ctx, "look", run.DefaultLimits(), run.By(run.AgentRef{Name: "x"}))
	if err != nil || r.Status != run.Running || r.Current.ID != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
	w.ran(`look{}`)
	r, err = w.d.Leave(w.ctx, "look", run.DefaultLimits(), run.By(run.AgentRef{Name: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	w.altered = true
	w.raw(`UPDATE run SET model_calls = 1 WHERE id = ?`, r.ID)
	_, err = w.d.Resume(w.ctx, r.ID)
	w.refused(err, "approval_hash")
}

// Whoever takes such a run while it is told to stop gives it back as it was.
func TestLeaveAndStop(t *testing.T) {
	t.Parallel()
	w := setup(t, run.Proposal{Kind: run.Complete})
	r, err := w.d.Leave(w.ctx, "look", run.DefaultLimits(), run.By(run.AgentRef{Name: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	b := &broken{Store: w.st}
	d := w.driver(func(c *run.Config) { c.Store = b })
	b.fail = func() error { d.Stop(); return nil }
	_, err = d.Resume(w.ctx, r.ID)
	w.refused(err, "stopped")
	w.stands(w.resume(r), run.Completed, run.GoalCompleted)
}

// A run whose question was answered by an outcome learnt late is a daemon's to go on
// with: nobody else is asked anything any more.
func TestDaemonGoesOnWithWhatIsLearnt(t *testing.T) {
	t.Parallel()
	for _, agreed := range []bool{false, true} {
		s := newSlow(t)
		r := s.interrupted(t, run.By(run.AgentRef{Name: "x"}), run.ContinuedBy(call.ByDaemon))
		if n := s.continuable(t); n != 0 {
			t.Fatalf("%d can be gone on with before anybody agreed", n)
		}
		if agreed {
			if err := s.drive.Approve(t.Context(), r.ID, r.ApprovalID, "ana", ""); err != nil {
				t.Fatal(err)
			}
		}
		s.late(t)
		if d := s.approval(t, r.ApprovalID); d.Status != decision.Withdrawn && d.Status != decision.Superseded {
			t.Fatalf("the question is %s", d.Status)
		}
		if n := s.continuable(t); n != 1 {
			t.Fatalf("%d can be gone on with, agreed: %v", n, agreed)
		}
		if r, err := s.drive.Resume(t.Context(), r.ID); err != nil || r.Status != run.Completed || s.continuable(t) != 0 {
			t.Errorf("%v: %s", err, r.Status)
		}
	}
}

func (s slow) continuable(t *testing.T) (n int) {
	t.Helper()
	err := txn.View(t.Context(), s.store, func(tx run.Tx) error {
		rs, err := tx.ContinuableRuns("main", time.Now(), "", 10)
		n = len(rs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Resuming a run that has ended says who worked on it, and how it ended.
func TestResumeOfAnEndedRunNamesWhoWorkedOnIt(t *testing.T) {
	t.Parallel()
	w := setup(t, proposes("look", `{}`), run.Proposal{Kind: run.Complete})
	r, err := w.d.Leave(w.ctx, "look", run.DefaultLimits(), run.By(run.AgentRef{Name: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	daemon := w.driver(func(c *run.Config) { c.LeaseOwner = "far:77" })
	if r, err = daemon.Resume(w.ctx, r.ID); err != nil || r.Status != run.Completed {
		t.Fatalf("%v: %+v", err, r)
	}
	_, err = w.d.Resume(w.ctx, r.ID)
	w.refused(err, "run_state")
	for _, word := range []string{"COMPLETED", "goal_completed", "far:77"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

// Who resumes is told once the lease is taken, before anything is carried out, and not
// where nothing was begun.
func TestResumeThen(t *testing.T) {
	t.Parallel()
	w := setup(t, proposes("push", `{}`), run.Proposal{Kind: run.Complete})
	r := w.waiting()
	told := 0
	_, err := w.d.ResumeThen(w.ctx, r.ID, func() { told++ })
	if w.refused(err, "run_state"); told != 0 {
		t.Fatal("told, and it waits for a person")
	}
	w.approve(r)
	var then run.Run
	r, err = w.d.ResumeThen(w.ctx, r.ID, func() {
		told++
		then = w.run(r.ID)
		w.ran("")
	})
	if err != nil || told != 1 || then.Status != run.Running || then.LeaseUntil.IsZero() {
		t.Errorf("%v: told %d times, when it was %s", err, told, then.Status)
	}
	w.stands(r, run.Completed, run.GoalCompleted)
	if _, err := w.d.ResumeThen(w.ctx, r.ID, func() { told++ }); err == nil || told != 1 {
		t.Errorf("%v: told %d times", err, told)
	}
}
