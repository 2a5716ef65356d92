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

// askOld asks a question of a job, as a program of schema 3 does.
func askOld(e *engine, jobID, questionID string, expires time.Time) error {
	return e.update(context.Background(), func(h *handle) error {
		return sqlrows.Of(h).InsertDecision(decision.Decision{
			ID: questionID, Space: event.MainSpace, Type: decision.Question, Owner: decision.Ref{Kind: decision.OwnerJob, ID: jobID}, N: 1,
			Prompt: "Go on?", CreatedAt: h.Now(), ExpiresAt: expires, Status: decision.Pending, Open: true, Needs: 1, Epoch: 1,
		})
	})
}

// A store of schema 3 has a queue from the moment at which it is opened; and its old
// program, which knows none, may go on: what it asks is in the queue too.
func TestSchema3GoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "placet.db")
	old, err := openEngine(ctx, path, Options{}, upTo(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	if err := errors.Join(writeOld(old, "job_a"), writeOld(old, "job_b"), askOld(old, "job_a", "dec_a", time.Time{})); err != nil {
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
	if err := askOld(old, "job_b", "dec_b", time.Now().Add(time.Hour)); err != nil {
		t.Errorf("the old program does not write on: %v", err)
	}
	var p decision.QueuePage
	var cs []decision.QueueCount
	if err := txn.View(ctx, s, func(tx store.Tx) (err error) {
		if p, err = tx.Queue(decision.Queued{Space: event.MainSpace}); err == nil {
			cs, err = tx.QueueCounts(event.MainSpace)
		}
		return err
	}); err != nil || len(p.Decisions) != 2 || p.Decisions[0].ID != "dec_b" || p.Decisions[1].ID != "dec_a" || len(cs) != 1 || cs[0].N != 2 {
		t.Errorf("%+v, %+v, %v", p, cs, err)
	}
	if r, err := event.Verify(ctx, s, nil); err != nil || r.Break != nil || r.Events != 2 {
		t.Errorf("%+v %v", r, err)
	}
}
