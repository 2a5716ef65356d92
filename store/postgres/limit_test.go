package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// Whoever waits too long for what others have locked is told so, and nothing was written.
func TestLockedForTooLong(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{BusyTimeout: 50 * time.Millisecond}))
	a := p.mustAsk()
	tx := begin(t, sql(t, url))
	run(t, tx.Conn(), "SELECT 1 FROM call WHERE id = $1 FOR UPDATE", a.CallID)
	if err := p.approve(a); !errors.Is(err, txn.ErrBusy) || !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("approve: %v", err)
	}
	if d, err := p.op.Show(p.ctx, a.ApprovalID); err != nil || d.Status != "pending" {
		t.Errorf("it stands at %s, %v", d.Status, err)
	}
	commit(t, tx)
	if err := p.approve(a); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// All connections in use, and a wait for one that is bounded.
func TestNoConnectionFree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a connection that does not come")
	}
	s := open(t, pgtest.Schema(t), postgres.Options{BusyTimeout: time.Millisecond, Conns: 1})
	ctx := patient(t)
	err := txn.View(ctx, s, func(tx store.Tx) error {
		told := make(chan error, 1)
		go func() { _, err := put(ctx, s); told <- err }()
		return await(t, "the other one", told)
	})
	if !errors.Is(err, txn.ErrBusy) {
		t.Errorf("told %v", err)
	}
	if _, err := put(ctx, s); err != nil {
		t.Error(err)
	}
}

// A read that takes longer than a second is ended, by the server where it waits for it.
func TestLongRead(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	a := p.mustAsk()
	tx := begin(t, sql(t, url))
	run(t, tx.Conn(), "LOCK TABLE attempt IN ACCESS EXCLUSIVE MODE") // so that a statement takes long
	err := txn.View(p.ctx, p.s, func(tx store.Tx) error { _, err := tx.Attempts(a.CallID); return err })
	if !errors.Is(err, store.ErrLong) {
		t.Errorf("a statement that takes long: %v", err)
	}
	commit(t, tx)
	if as := p.attempts(a.CallID); len(as) != 0 {
		t.Errorf("%d attempts", len(as))
	}
}

// A closure that hangs is ended by the server, which gives its locks to others; it is told
// so, and nothing of it stays.
func TestHangingClosure(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	other := openShop(t, open(t, url, postgres.Options{}))
	a := p.mustAsk()
	err := txn.Update(p.ctx, p.s, func(tx store.Tx) error {
		if _, err := tx.LockDecision(a.ApprovalID); err != nil {
			return err
		}
		endIdle(t, url)
		if err := other.approve(a); err != nil { // nobody holds it any more
			t.Errorf("another one: %v", err)
		}
		return putNamed(tx, "tok_hung")
	})
	if !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("told %v", err)
	}
	stands(t, p.s, "tok_hung", false)
}

// endIdle ends sessions of the store that hold a transaction open and do nothing, as the
// server does by itself after half a minute.
func endIdle(t testing.TB, url string) {
	t.Helper()
	c, ended := sql(t, url), int64(0)
	for ended == 0 {
		tag, err := c.Exec(patient(t), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE state = 'idle in transaction' AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'meta'::regclass)`)
		if err != nil {
			t.Fatal(err)
		}
		ended = tag.RowsAffected()
	}
}

// What keeps the record from being changed is not there any more: that is said.
func TestGuardsGone(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{
		"DROP TRIGGER event_update ON event",
		"DROP TRIGGER decision_holds ON decision",
		"ALTER TABLE event DISABLE TRIGGER event_delete",
		"ALTER TABLE event ENABLE REPLICA TRIGGER event_update",
		"CREATE RULE nope AS ON INSERT TO vote DO INSTEAD NOTHING",
	} {
		url := pgtest.Schema(t)
		open(t, url, postgres.Options{Conns: 1})
		before, err := postgres.Check(patient(t), url)
		if err != nil {
			t.Fatal(err)
		}
		run(t, sql(t, url), statement)
		after, err := postgres.Check(patient(t), url)
		if err != nil || len(after.Problems) != len(before.Problems)+1 && statement[:5] != "ALTER" || len(after.Problems) <= len(before.Problems) {
			t.Errorf("%s: %q, %v", statement, after.Problems, err)
		}
	}
}
