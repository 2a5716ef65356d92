package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// A store of schema 2 has jobs that name their folder as their home. They keep it, and
// are seen as ever; its old program may go on, too: it knows no homes, and needs none.
func TestSchema2GoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "placet.db")
	old, err := openEngine(ctx, path, Options{}, upTo(t, 2))
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
	if err := writeOld(old, "job_late"); err != nil {
		t.Errorf("the old program does not write on: %v", err)
	}
	if fi, err := os.Stat(path + newestBackup(t)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", fi, err)
	}
	var js []job.Job
	if err := txn.Update(ctx, s, func(tx store.Tx) (err error) {
		h := job.Home{ID: "hom_a", Host: "a", Dir: "/a", Process: "p", Since: tx.Now(), LeaseUntil: tx.Now().Add(time.Minute), Epoch: 1}
		if err := tx.PutHome(job.Home{}, h); err != nil {
			return err
		}
		js, err = tx.ActiveJobs("/a", "", 9)
		return err
	}); err != nil || len(js) != 2 {
		t.Errorf("%+v, %v", js, err)
	}
	if r, err := event.Verify(ctx, s, nil); err != nil || r.Break != nil || r.Events != 2 {
		t.Errorf("%+v %v", r, err)
	}
}
