package sqlite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/store/storetest"
	"github.com/placet-dev/placet/txn"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Backend{
		Name:      "SQLite",
		Precision: time.Microsecond,
		Twice:     true,
		Strict:    true,
		Clock:     true,
		Blows:     []storetest.Blow{storetest.Fail, storetest.Sever},
		New:       func(t testing.TB) storetest.Instance { return place(filepath.Join(t.TempDir(), "placet.db")) },
	})
}

// place is a file in which one store lies.
func place(path string) storetest.Instance {
	return storetest.Instance{
		Address: path,
		Open: func(t testing.TB, o storetest.Options) *store.Store {
			t.Helper()
			s, err := sqlite.Open(context.Background(), path, options(o))
			if err != nil {
				t.Errorf("open: %v", err)
				t.FailNow()
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	}
}

func options(o storetest.Options) *sqlite.Options {
	h := &sqlite.Hooks{Twice: !o.Once, Strict: true, SlowPanics: false}
	if o.Before != nil {
		var c driver.Conn
		h.Opened = func(opened driver.Conn) { c = opened }
		h.BeforeStatement = func(_ int, sql string) error { return strike(c, o.Before(sql)) }
	}
	return &sqlite.Options{BusyTimeout: o.Busy, Now: o.Now, Hooks: h, Logger: slog.New(slog.DiscardHandler)}
}

// errStruck is what a failing disk comes to.
var errStruck = txn.ErrNotCommitted.Because(errors.New("struck by the test"))

// strike does to the writer's connection what was asked for.
func strike(c driver.Conn, b storetest.Blow) error {
	switch b {
	case storetest.Fail:
		return errStruck
	case storetest.Sever:
		// Without an open transaction there is nothing to sever.
		_, _ = c.(driver.ExecerContext).ExecContext(context.Background(), "ROLLBACK", nil)
	}
	return nil
}
