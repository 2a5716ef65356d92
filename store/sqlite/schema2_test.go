package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

func queued(id string, at time.Time) (job.Job, event.Event) {
	j := job.Job{ID: id, Space: event.MainSpace, Home: "/a", Spec: job.Spec{Shell: "true"}, Status: job.Queued, ExitCode: -1, CreatedAt: at, Epoch: 1, Version: 1}
	return j, event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})
}

// writeOld writes a job as a program of schema 1 does.
func writeOld(e *engine, jobID string) error {
	return e.update(context.Background(), func(h *handle) error {
		x := sqlrows.Of(h)
		j, e := queued(jobID, h.Now())
		e = event.Seal(e, event.Head{Stream: j.Stream()}, j.Space, id.New(id.Event), h.Now(), make([]byte, 16))
		j.Head = event.NextHead(e)
		return errors.Join(x.InsertJob(j), x.InsertEvents([]event.Event{e}))
	})
}

// A store of schema 1 goes on with all that was in it, beside a backup of it. Its old
// program may not write it any more, also where it has it open: nobody would hear of
// what it tells.
func TestSchema1GoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "placet.db")
	first, err := embedded.ReadFile("migrations/0001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	old, err := openEngine(ctx, path, Options{}, fstest.MapFS{"0001_init.sql": {Data: first}})
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	if err := writeOld(old, "job_old"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := writeOld(old, "job_late"); !errors.Is(err, ErrNewer) {
		t.Errorf("the old program writes on: %v", err)
	}
	if fi, err := os.Stat(path + newestBackup(t)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", fi, err)
	}
	desk := delivery.Desk{Store: s, Space: event.MainSpace}
	to, err := desk.Add(ctx, "", "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{string(event.JobQueued), string(event.JobPaused)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Update(ctx, s, func(tx store.Tx) error {
		j, e := queued("job_new", tx.Now())
		if err := tx.InsertJob(job.Change{Next: j, Events: []event.Event{e}}); err != nil {
			return err
		}
		return tx.Append("job:job_old", event.New(event.JobPaused, "job_old", "tester", map[string]string{"job_id": "job_old"}))
	}); err != nil {
		t.Fatal(err)
	}
	got, err := desk.Poll(ctx, delivery.Polling{TargetID: to.ID, Lease: time.Minute})
	if err != nil || len(got) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	if r, err := event.Verify(ctx, s, nil); err != nil || r.Break != nil || r.Events != 3 {
		t.Errorf("%+v %v", r, err)
	}
}
