package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// A target that cannot be read as it is stored stops no event: it hears of nothing, is
// listed as disabled, cannot be put in use, and can be removed.
func TestUnreadableTargetStopsNothing(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "placet.db")
	e, err := openEngine(ctx, path, Options{}, migrations())
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(backend{e})
	t.Cleanup(func() { st.Close() })
	desk := delivery.Desk{Store: st, Space: event.MainSpace}
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Spec: job.Spec{Shell: "true"}, Status: job.Queued, Paused: true, ExitCode: -1, CreatedAt: time.Now(), Version: 1}
	tell := func(es ...event.Event) error {
		return txn.Update(ctx, st, func(tx store.Tx) error { return tx.Append(j.Stream(), es...) })
	}
	if err := txn.Update(ctx, st, func(tx store.Tx) error { return tx.InsertJob(job.Change{Next: j}) }); err != nil {
		t.Fatal(err)
	}
	paused := event.New(event.JobPaused, j.ID, "ana", struct{}{})
	for _, stream := range []string{"", j.Stream()} {
		var bad, good delivery.Target
		for _, to := range []*delivery.Target{&bad, &good} {
			if *to, err = desk.Add(ctx, stream, "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{"paused"}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		err := e.update(ctx, func(h *handle) error {
			_, err := h.Exec(`UPDATE wake_target SET events = x'7b' WHERE id = ?`, bad.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		e.hears.Store(nil) // as in a process that starts now
		if err := tell(paused); err != nil {
			t.Fatalf("%q: %v", stream, err)
		}
		if n := deliveriesTo(ctx, t, st, bad.ID); n != 0 {
			t.Errorf("%q: the unreadable one got %d", stream, n)
		}
		if n := deliveriesTo(ctx, t, st, good.ID); n != 1 {
			t.Errorf("%q: the other got %d", stream, n)
		}
		if got, err := desk.Target(ctx, bad.ID); err != nil || got.InUse() || !strings.Contains(got.Disabled, "cannot be read") {
			t.Errorf("%+v %v", got, err)
		}
		if _, err := desk.Enable(ctx, bad.ID); err == nil {
			t.Error("it is in use again")
		}
		if _, err := desk.Remove(ctx, bad.ID); err != nil {
			t.Error(err)
		}
	}
}

// What an open store remembers of its targets is of one life: after a restore it asks
// anew, although as many changes of targets were made in the life that now goes on.
func TestTargetsOfAnotherLife(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	path, backup := filepath.Join(dir, "placet.db"), filepath.Join(dir, "backup.db")
	st, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	desk := delivery.Desk{Store: st, Space: event.MainSpace}
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Spec: job.Spec{Shell: "true"}, Status: job.Queued, Paused: true, ExitCode: -1, CreatedAt: time.Now(), Version: 1}
	if err := txn.Update(ctx, st, func(tx store.Tx) error { return tx.InsertJob(job.Change{Next: j}) }); err != nil {
		t.Fatal(err)
	}
	add := func(d delivery.Desk) delivery.Target {
		added, err := d.Add(ctx, "", "ana", delivery.Adding{Type: delivery.KindRelay, Events: []string{"paused"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return added
	}
	tell := func() {
		paused := event.New(event.JobPaused, j.ID, "ana", struct{}{})
		if err := txn.Update(ctx, st, func(tx store.Tx) error { return tx.Append(j.Stream(), paused) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := Backup(ctx, path, backup); err != nil {
		t.Fatal(err)
	}
	before := add(desk)
	tell()
	if n := deliveriesTo(ctx, t, st, before.ID); n != 1 {
		t.Fatalf("before the restore %d were made", n)
	}
	if err := Restore(ctx, path, backup); err != nil {
		t.Fatal(err)
	}
	other, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	after := add(delivery.Desk{Store: other, Space: event.MainSpace})
	tell()
	if n := deliveriesTo(ctx, t, st, after.ID); n != 1 {
		t.Errorf("the target of the restored store got %d", n)
	}
	if n := deliveriesTo(ctx, t, st, before.ID); n != 0 {
		t.Errorf("one that is not in it got %d", n)
	}
}

func deliveriesTo(ctx context.Context, t *testing.T, st *store.Store, targetID string) int {
	t.Helper()
	n := 0
	err := txn.View(ctx, st, func(tx delivery.Tx) error {
		ds, err := tx.Deliveries(delivery.Query{Space: event.MainSpace, TargetID: targetID})
		n = len(ds)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
