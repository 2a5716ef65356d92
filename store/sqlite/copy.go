package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	driversqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/placet-dev/placet/store/sqlrows"
)

// copyTo writes a consistent copy of the database to a new file in dir, 0600
// and flushed, under a temporary name that it returns. The file is not opened by
// us again while SQLite has it: closing it would drop SQLite's locks.
func copyTo(ctx context.Context, c *conn, dir string) (tmp string, err error) {
	f, err := os.CreateTemp(dir, ".placet-copy-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer f.Close()
	tmp = f.Name()
	if _, err = c.exec(ctx, `VACUUM INTO ?`, tmp); err == nil {
		err = f.Sync()
	}
	if err != nil {
		os.Remove(tmp)
		return "", err
	}
	return tmp, nil
}

// copyOver replaces everything in the open database by the file at src, in one
// transaction of SQLite's: whoever reads sees all of the old or all of the new,
// and so does whoever opens it after a crash.
func copyOver(c *conn, src string) error {
	r, ok := c.raw.(interface {
		NewRestore(string) (*driversqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the SQLite driver cannot restore")
	}
	b, err := r.NewRestore(dsn(src, forReading, time.Second, "mode=ro"))
	if err != nil {
		return err
	}
	more, err := b.Step(-1)
	if err == nil && more {
		err = errors.New("the copy ended early")
	}
	if e := b.Finish(); err == nil {
		err = e
	}
	return err
}

// putFile moves src to path, where nothing usable lies. What lies there is kept
// under another name, together with its log, which would spoil the new file.
func putFile(src, path string) error {
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000")
	for _, ext := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+ext, aside+ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move %s aside: %w", path+ext, err)
		}
	}
	// Not linked: a store with two names is refused, and a crash would leave that.
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	if err := os.Rename(src, path); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// isDamage: SQLite can make nothing of the file.
func isDamage(err error) bool {
	p := primary(err)
	return p == sqlite3.SQLITE_NOTADB || p == sqlite3.SQLITE_CORRUPT
}

// findFaults has SQLite look through everything.
func findFaults(ctx context.Context, c *conn) (faults []string, err error) {
	err = c.query(ctx, `PRAGMA integrity_check`, nil, func(r sqlrows.Row) error {
		if s := r.Str(0); s != "ok" {
			faults = append(faults, s)
		}
		return nil
	})
	if err != nil {
		return faults, err
	}
	err = c.query(ctx, `PRAGMA foreign_key_check`, nil, func(r sqlrows.Row) error {
		faults = append(faults, fmt.Sprintf("row %d of %s points to a row of %s that does not exist", r.Int(1), r.Str(0), r.Str(2)))
		return nil
	})
	return faults, err
}
