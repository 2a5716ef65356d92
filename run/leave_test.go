package run_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

func continuableIDs(t *testing.T, st *store.Store, in time.Duration) (ids []string) {
	t.Helper()
	err := txn.View(t.Context(), st, func(tx run.Tx) error {
		ids = nil
		rs, err := tx.ContinuableRuns(event.MainSpace, tx.Now().Add(in), "", 10)
		for _, r := range rs {
			ids = append(ids, r.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// What is left to a daemon is found, tried again later after a refusal, and worked on
// from its first step.
func TestLeaveAndPostpone(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	d := run.NewDriver(run.Config{Store: st, Tools: &tool.Registry{}, Agent: run.AgentFunc(func(context.Context, run.StepInput) (run.Proposal, error) {
		return run.Proposal{Kind: run.Complete}, nil
	})})
	if _, err := d.Leave(t.Context(), "goal", run.DefaultLimits()); !errors.Is(err, run.ErrUsage) {
		t.Errorf("without an agent's name: %v", err)
	}
	r, err := d.Leave(t.Context(), "goal", run.DefaultLimits(), run.By(run.AgentRef{Name: "clerk"}))
	if err != nil || r.Status != run.Running || r.StepCount != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if ids := continuableIDs(t, st, 0); len(ids) != 1 || ids[0] != r.ID {
		t.Errorf("found %v", ids)
	}
	if err := d.Postpone(t.Context(), r, "no clerk", time.Minute); err != nil {
		t.Fatal(err)
	}
	if ids := continuableIDs(t, st, 0); len(ids) != 0 {
		t.Errorf("found %v, too early", ids)
	}
	if ids := continuableIDs(t, st, 2*time.Minute); len(ids) != 1 {
		t.Errorf("found %v after the wait", ids)
	}
	page, err := event.Read(t.Context(), st, r.Stream(), "", 0)
	if err != nil || page.Events[len(page.Events)-1].Type != event.ResumeRefused {
		t.Errorf("%v %v", page.Events, err)
	}
	if r, err = d.Resume(t.Context(), r.ID); err != nil || r.Status != run.Completed || r.StepCount != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if err := d.Postpone(t.Context(), r, "too late", time.Minute); err != nil {
		t.Error(err)
	}
	if ids := continuableIDs(t, st, time.Hour); len(ids) != 0 {
		t.Errorf("found %v, which has ended", ids)
	}
}
