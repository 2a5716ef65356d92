package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// conflicts are what the server says of a transaction that others were quicker than.
var conflicts = map[string]string{"40001": "could not serialize access", "40P01": "deadlock detected"}

// failing has statements fail as the server would have them fail.
func failing(fails func(sql string) bool, code string) *postgres.Hooks {
	return &postgres.Hooks{BeforeStatement: func(sql string, _ func()) error {
		if fails(sql) {
			return fmt.Errorf("%.20s: %w", sql, &pgconn.PgError{Severity: "ERROR", Code: code, Message: conflicts[code]})
		}
		return nil
	}}
}

// A conflict is nobody's affair but the store's: each transaction is judged again (case 095).
func TestConflictAtEachCommit(t *testing.T) {
	t.Parallel()
	for code := range conflicts {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var commits, failed atomic.Int64
			hooks := failing(func(sql string) bool {
				if sql != "COMMIT" || commits.Add(1)%2 == 0 { // each of them fails once
					return false
				}
				failed.Add(1)
				return true
			}, code)
			p := openShop(t, open(t, pgtest.Schema(t), postgres.Options{Hooks: hooks}))
			for range 5 {
				if err := p.cycle(`{}`); err != nil {
					t.Error(err)
				}
			}
			if failed.Load() < 15 {
				t.Errorf("%d commits failed", failed.Load())
			}
		})
	}
}

// One that does not end is told as what it is, after a while.
func TestConflictForEver(t *testing.T) {
	t.Parallel()
	for code := range conflicts {
		var tries atomic.Int64
		s := open(t, pgtest.Schema(t), postgres.Options{Hooks: failing(func(sql string) bool {
			if sql == "COMMIT" {
				tries.Add(1)
			}
			return sql == "COMMIT"
		}, code)})
		if _, err := put(patient(t), s); !errors.Is(err, txn.ErrNotCommitted) || errors.Is(err, txn.ErrUnknown) {
			t.Errorf("%s: told %v", code, err)
		}
		if n := tries.Load(); n != 10 {
			t.Errorf("%s: it was tried %d times", code, n)
		}
	}
}

// Deadlocks of the server's own finding, with transactions that are none of ours.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	p := openShop(t, open(t, url, postgres.Options{}))
	a, b := p.mustAsk(), p.mustAsk()
	other := sql(t, url)
	run(t, other, "SET deadlock_timeout = '1h'") // so that it is the store's that is ended
	foreign := begin(t, other)
	const lock = "SELECT 1 FROM call WHERE id = $1 FOR UPDATE"
	run(t, foreign.Conn(), lock, b.CallID)
	tries := 0
	done := make(chan error, 1)
	err := txn.Update(p.ctx, p.s, func(tx store.Tx) error {
		tries++
		if tries == 2 { // the server gives a free lock to who asks, also before one that waits for it
			if err := await(t, "the other one", done); err != nil {
				t.Error(err)
			}
		}
		if _, err := tx.LockDecision(a.ApprovalID); err != nil {
			return err
		}
		if tries == 1 {
			go func() {
				_, err := other.Exec(p.ctx, lock, a.CallID)
				if err == nil {
					err = foreign.Rollback(p.ctx)
				}
				done <- err
			}()
			awaitLock(t, url)
		}
		_, err := tx.LockDecision(b.ApprovalID)
		return err
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// awaitLock returns once somebody waits for a lock in the store.
func awaitLock(t testing.TB, url string) {
	t.Helper()
	c := sql(t, url)
	for waits := false; !waits; {
		err := c.QueryRow(patient(t), `SELECT EXISTS (SELECT 1 FROM pg_locks AS w JOIN pg_stat_activity AS a USING (pid)
			WHERE NOT w.granted AND w.locktype = 'transactionid' AND a.query LIKE '%FROM call WHERE id = $1 FOR UPDATE')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever isolation the server begins transactions with, the store's have their own.
func TestSerializableByDefault(t *testing.T) {
	t.Parallel()
	url := isolated(t, "serializable")
	shops := []*shop{openShop(t, open(t, url, postgres.Options{})), openShop(t, open(t, url, postgres.Options{}))}
	a := shops[0].mustAsk()
	var yes atomic.Int64
	together(8, func(i int) {
		p := shops[i%2]
		for range 5 {
			if err := p.cycle(`{}`); err != nil {
				t.Error(err)
			}
		}
		switch err := p.approve(a); {
		case err == nil:
			yes.Add(1)
		case strings.Contains(err.Error(), "SQLSTATE"):
			t.Error(err)
		}
	})
	ran := 0
	together(8, func(i int) { _, _ = shops[i%2].Resume(shops[i%2].ctx, a.ApprovalID, nil) })
	for _, p := range shops {
		ran += p.times(a.CallID)
	}
	if yes.Load() != 1 || ran != 1 {
		t.Errorf("%d times yes, and the tool ran %d times", yes.Load(), ran)
	}
}

// isolated is a database in which transactions begin in another way.
func isolated(t testing.TB, level string) string {
	t.Helper()
	url := pgtest.Database(t)
	c := rawSQL(t, url)
	var name string
	if err := c.QueryRow(patient(t), "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	run(t, c, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", name, level))
	return url
}
