package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/storetest"
	"github.com/placet-dev/placet/txn"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Backend{
		Name:      "PostgreSQL",
		Precision: time.Microsecond,
		Twice:     true,
		Strict:    true,
		Clock:     true,
		Blows:     []storetest.Blow{storetest.Fail, storetest.Sever, storetest.Lose},
		Processes: true,
		New:       func(t testing.TB) storetest.Instance { return place(pgtest.Schema(t)) },
		At:        func(_ testing.TB, address string) storetest.Instance { return place(address) },
	})
}

// place is a schema in which one store lies.
func place(url string) storetest.Instance {
	return storetest.Instance{
		Address: url,
		Open: func(t testing.TB, o storetest.Options) *store.Store {
			t.Helper()
			s, err := postgres.Open(context.Background(), url, options(t, o))
			if err != nil {
				t.Errorf("open: %v", err)
				t.FailNow()
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Quiet:  func(t testing.TB) { quiet(t, url) },
		Keep:   func(t testing.TB) func() { return keep(t, url) },
		Accept: func(ctx context.Context) error { return postgres.AcceptRestore(ctx, url) },
	}
}

// quiet returns once nobody writes in the schema: a COMMIT that was sent is carried out,
// whatever became of who sent it.
func quiet(t testing.TB, url string) {
	t.Helper()
	_, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	c := sql(t, url)
	for writing := true; writing; {
		err := c.QueryRow(patient(t), `SELECT EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.mode IN ('RowShareLock', 'RowExclusiveLock'))`, schema).Scan(&writing)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func options(t testing.TB, o storetest.Options) *postgres.Options {
	h := &postgres.Hooks{Twice: !o.Once, Strict: !o.Once, LateLock: func(sql string) {
		t.Errorf("a lock is taken after the clock was read: %s\n%s", sql, debug.Stack())
	}}
	if o.Before != nil {
		var lose atomic.Bool
		h.LoseCommit = func() bool { return lose.Swap(false) }
		h.BeforeStatement = func(sql string, kill func()) error {
			switch o.Before(sql) {
			case storetest.Fail:
				return errStruck
			case storetest.Sever:
				kill()
			case storetest.Lose:
				lose.Store(true)
			}
			return nil
		}
	}
	return &postgres.Options{BusyTimeout: o.Busy, Now: o.Now, Hooks: h, Logger: slog.New(slog.DiscardHandler), Conns: 8}
}

// errStruck is what a failing server comes to.
var errStruck = txn.ErrNotCommitted.Because(errors.New("struck by the test"))
