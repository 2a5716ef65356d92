package sqlite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		Blows:     []storetest.Blow{storetest.Fail, storetest.Sever, storetest.Lose},
		Processes: true,
		New:       func(t testing.TB) storetest.Instance { return place(filepath.Join(t.TempDir(), "placet.db")) },
		At:        func(_ testing.TB, address string) storetest.Instance { return place(address) },
	})
}

// place is a file in which one store lies.
func place(path string) storetest.Instance {
	return storetest.Instance{
		Address: path,
		Open: func(t testing.TB, o storetest.Options) *store.Store {
			t.Helper()
			s, err := sqlite.Open(context.Background(), path, options(path, o))
			if err != nil {
				t.Errorf("open: %v", err)
				t.FailNow()
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Keep:   func(t testing.TB) func() { return keep(t, path) },
		Accept: func(ctx context.Context) error { return sqlite.AcceptRestore(ctx, path) },
		Backup: func(ctx context.Context) (func(context.Context) error, error) {
			copied := path + ".backup"
			return func(ctx context.Context) error { return sqlite.Restore(ctx, path, copied) }, sqlite.Backup(ctx, path, copied)
		},
	}
}

// keep copies the file that a closed store is, and nothing beside it.
func keep(t testing.TB, path string) (putBack func()) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func options(path string, o storetest.Options) *sqlite.Options {
	h := &sqlite.Hooks{Twice: !o.Once, Strict: !o.Once}
	if o.Before != nil {
		var c driver.Conn
		h.Opened = func(opened driver.Conn) { c = opened }
		h.BeforeStatement = func(_ int, sql string) error { return strike(c, path, o.Before(sql)) }
	}
	return &sqlite.Options{BusyTimeout: o.Busy, Now: o.Now, Hooks: h, Logger: slog.New(slog.DiscardHandler)}
}

// errStruck is what a failing disk comes to.
var errStruck = txn.ErrNotCommitted.Because(errors.New("struck by the test"))

// strike does to the writer's connection what was asked for.
func strike(c driver.Conn, path string, b storetest.Blow) error {
	switch b {
	case storetest.Fail:
		return errStruck
	case storetest.Sever:
		// Without an open transaction there is nothing to sever.
		_, _ = c.(driver.ExecerContext).ExecContext(context.Background(), "ROLLBACK", nil)
	case storetest.Lose:
		return breakLog(path + "-wal")
	}
	return nil
}

// breakLog makes every later write to an open log fail in the middle of a commit,
// as a disk does that goes away: the descriptors that this process has of it can
// only be read from now on.
func breakLog(path string) error {
	broken, err := os.Open(path)
	if err != nil {
		return err
	}
	defer broken.Close()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd == int(broken.Fd()) {
			continue
		}
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || to != path {
			continue
		}
		if err := unix.Dup2(int(broken.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}
