package pgtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/internal/pgtest"
)

func pooled(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(bounded(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func TestPoolerHidesTheServer(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	at := pgtest.Via(direct, pgtest.Pooler(t, pgtest.Shared(t)))
	c := pooled(t, at)
	if got, want := read[string](t, c, "SELECT current_database()::text"), connect(t, direct).Config().Database; got != want {
		t.Errorf("the database is %s, not %s", got, want)
	}
	if got := read[int](t, c, "SELECT pg_backend_pid()"); got == int(c.PgConn().PID()) {
		t.Error("the process that the client was told is the one that serves it")
	}
	if _, err := pgx.Connect(bounded(t), at+"&application_name=x&lock_timeout=5"); err == nil || !strings.Contains(err.Error(), "unsupported startup parameter") {
		t.Errorf("a parameter at the start: %v", err)
	}
}

// Who listens through a pooler does not hear everything. That a notification has gone past
// is known from another that listens without one.
func TestPoolerLosesNotifications(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	c := pooled(t, pgtest.Via(direct, pgtest.Pooler(t, pgtest.Shared(t))))
	witness := connect(t, direct)
	teller := connect(t, direct)
	exec1(t, c, "LISTEN news")
	exec1(t, witness, "LISTEN news")
	over, cancel := context.WithCancel(bounded(t))
	cancel()
	// One comes through only where the server sends it during a transaction of the client's.
	for range 100 {
		exec1(t, teller, "NOTIFY news")
		if _, err := witness.WaitForNotification(bounded(t)); err != nil {
			t.Fatal(err)
		}
		exec1(t, c, "SELECT 1") // pgx would hand it out with the answer
		if _, err := c.WaitForNotification(over); errors.Is(err, context.Canceled) {
			return
		}
	}
	t.Error("no notification was lost on its way through the pooler")
}
