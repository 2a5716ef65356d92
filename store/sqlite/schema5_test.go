package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// endOld withdraws a question, as a program of schema 4 does.
func endOld(e *engine, questionID string) error {
	return e.update(context.Background(), func(h *handle) error {
		x := sqlrows.Of(h)
		d, err := x.Decision(questionID)
		if err != nil {
			return err
		}
		over := d
		over.Status, over.Open, over.SettledAt, over.Version = decision.Withdrawn, false, h.Now(), d.Version+1
		return x.UpdateDecision(d, over, true)
	})
}

// What a store of schema 4 has decided is listed from the moment at which it is opened; and
// its old program may go on: what it decides is listed too.
func TestSchema4GoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "placet.db")
	old, err := openEngine(ctx, path, Options{}, upTo(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	for _, of := range [][2]string{{"job_a", "dec_a"}, {"job_b", "dec_b"}, {"job_c", "dec_c"}} {
		if err := errors.Join(writeOld(old, of[0]), askOld(old, of[0], of[1], time.Time{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := endOld(old, "dec_a"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if fi, err := os.Stat(path + newestBackup(t)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", fi, err)
	}
	if err := endOld(old, "dec_b"); err != nil {
		t.Errorf("the old program does not write on: %v", err)
	}
	var ds []decision.Decision
	var cs []decision.QueueCount
	if err := txn.View(ctx, s, func(tx store.Tx) (err error) {
		if ds, err = tx.SettledDecisions(decision.Settled{Space: event.MainSpace}); err == nil {
			cs, err = tx.QueueCounts(event.MainSpace)
		}
		return err
	}); err != nil || len(ds) != 2 || ds[0].ID != "dec_b" || ds[1].ID != "dec_a" || len(cs) != 1 || cs[0].N != 1 {
		t.Errorf("%+v, %+v, %v", ds, cs, err)
	}
}
