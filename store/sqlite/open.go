package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// prepared is a database that has been looked over and can be used.
type prepared struct {
	path string
	o    Options
	file dbFile
	meta meta
	seen mark

	metaSQL string // for the writer

	// Nil when opened for reading only.
	conn *conn
	lock *lockFiles
	mark *markFile

	hadLog bool // before SQLite opened it
	spoilt bool // something else changed it
}

func prepare(ctx context.Context, path string, o Options, steps []migrate.Step) (*prepared, error) {
	if err := checkVersion(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, refuse(path, "is not a path").Because(err)
	}
	p := &prepared{path: abs, o: o}
	if o.ReadOnly {
		return p, p.look(ctx, steps)
	}
	if err := p.open(ctx, steps); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *prepared) close() {
	if p.conn != nil {
		_ = p.conn.close()
	}
	if p.mark != nil {
		p.mark.close()
	}
	if p.lock != nil {
		p.lock.close()
	}
}

// look opens a database to be read, and leaves everything as it is.
func (p *prepared) look(ctx context.Context, steps []migrate.Step) error {
	if found, err := checkFile(p.path, false); err != nil {
		return err
	} else if !found {
		return missing(p.path)
	}
	c, err := openConn(dsn(p.path, forReading, p.o.BusyTimeout, readMode(p.path)))
	if err != nil {
		return openError(p.path, err)
	}
	defer c.close()
	if err := p.readMeta(ctx, c); err != nil {
		return err
	}
	if p.meta.schema == 0 {
		return refuse(p.path, "is empty: no store has been made in it yet").Hint("Run placet db migrate.")
	}
	if p.meta.schema < int64(len(steps)) {
		return refuse(p.path, "has schema %d, older than this program's %d", p.meta.schema, len(steps)).
			Hint("Run placet db migrate; a backup is written beside it first.")
	}
	if p.file, err = identify(p.path); err != nil {
		return err
	}
	return p.meta.mayRead(int64(len(steps)))
}

// open opens a database to be written. Creating it, switching it to WAL and
// changing its schema need it alone: all of that happens under the write lock.
func (p *prepared) open(ctx context.Context, steps []migrate.Step) (err error) {
	if _, err := checkFile(p.path, true); err != nil {
		return err
	}
	if p.lock, err = openLockFiles(p.path); err != nil {
		return err
	}
	if err := p.lock.lock(patience(ctx, p.o.BusyTimeout)); err != nil {
		return fmt.Errorf("open %s: %w", p.path, err)
	}
	defer p.lock.unlock()
	defer func() {
		if err != nil && p.conn != nil { // under the lock: it may be the last one
			_ = p.mark.closeFolding(p.conn, p.path)
			p.conn = nil
		}
	}()
	if p.mark, err = openMark(p.path); err != nil {
		return err
	}
	if err := p.openFile(); err != nil {
		return err
	}
	if err := p.readMeta(ctx, p.conn); err != nil {
		return err
	}
	if err := p.migrate(ctx, steps); err != nil {
		return err
	}
	p.metaSQL = readMetaSQL
	switch n, err := p.conn.one(ctx, hasTargetsSQL); {
	case err != nil:
		return openError(p.path, err)
	case n == "1":
		p.metaSQL = writerMetaSQL
	}
	return p.findMark()
}

// patience waits for a lock until ctx or the busy time-out ends.
func patience(ctx context.Context, busy time.Duration) func(int) error {
	end := time.Now().Add(busy)
	return func(int) error {
		if ctx.Err() != nil {
			return store.NotBegun(ctx)
		}
		if time.Now().After(end) {
			return txn.ErrBusy.Because(errLocked)
		}
		time.Sleep(time.Millisecond)
		return nil
	}
}

// openFile opens the database file, or makes it.
func (p *prepared) openFile() (err error) {
	found, err := checkFile(p.path, true) // again: it was looked at before the lock was held
	if err != nil {
		return err
	}
	k, marked, err := p.mark.read()
	if err != nil {
		return err
	}
	if !found || emptyFile(p.path) {
		if marked && k.lastAt > 0 {
			return lostFile(p.path, k)
		}
		if err := createFile(p.path); err != nil {
			return err
		}
	}
	if err := tighten(p.path); err != nil {
		return err
	}
	if p.spoilt, err = p.mark.judge(p.path); err != nil {
		return err
	}
	p.hadLog = hasLog(p.path)
	if p.conn, err = openConn(dsn(p.path, forWriting, p.o.BusyTimeout)); err != nil {
		return openError(p.path, err)
	}
	if p.file, err = identify(p.path); err != nil {
		return err
	}
	return p.useWAL()
}

// useWAL is done under the lock: SQLite's own wait does not cover it (6 of 400
// first opens at one time failed).
func (p *prepared) useWAL() error {
	mode, err := p.conn.one(context.Background(), `PRAGMA journal_mode`)
	if err == nil && mode != "wal" {
		mode, err = p.conn.one(context.Background(), `PRAGMA journal_mode = WAL`)
	}
	if err != nil {
		return openError(p.path, err)
	}
	if mode != "wal" {
		return refuse(p.path, "lies on a file system without shared memory, which SQLite's log needs").
			Hint("Put the database on a local disk.")
	}
	return nil
}

// readMeta reads what the store says about itself. Schema 0 is a database with
// nothing in it.
func (p *prepared) readMeta(ctx context.Context, c *conn) error {
	n, err := c.one(ctx, `SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return openError(p.path, err)
	}
	if n == "0" {
		return nil
	}
	p.meta, err = readMeta(ctx, c)
	if primary(err) == sqlite3.SQLITE_ERROR { // no such table, no such column
		return refuse(p.path, "is a database of another program").Hint("Give Placet a path of its own.").Because(err)
	}
	if err != nil {
		return openError(p.path, err)
	}
	return nil
}

// findMark compares the store with its mark. One that went back in time is
// opened all the same: it can be read, and every update says so.
func (p *prepared) findMark() error {
	k, ok, err := p.mark.read()
	if err != nil {
		return err
	}
	if p.spoilt || p.meta.wentBack(k, ok) != "" {
		p.seen = k // without a mark nothing is known
		return nil
	}
	p.seen = p.meta.mark()
	if p.hadLog && k.main != (stamp{}) {
		p.seen.main = k.main
		return p.mark.write(p.seen)
	}
	return p.newStamp(ok)
}

// newStamp notes how the file is now, for the first time or after it could not be
// known. A log is folded first: that leaves the file flushed.
func (p *prepared) newStamp(marked bool) (err error) {
	log := hasLog(p.path)
	if !log {
		if p.seen.main, err = look(p.path); err != nil {
			return err
		}
	}
	if log || !marked {
		if err := p.mark.writeDurably(p.seen); err != nil {
			return err
		}
	} else if err := p.mark.write(p.seen); err != nil {
		return err
	}
	if log {
		err = p.mark.fold(p.conn, p.path, foldPassive)
	}
	return err
}

// checkFile refuses a path at which no store should be, and reports whether a file is there.
func checkFile(path string, write bool) (found bool, err error) {
	if found, err = checkPlain(path, write); found && err == nil {
		err = checkOneName(path)
	}
	return found, err
}

// checkOneName refuses a file that can be reached under a second name. The log,
// the locks and the mark go by the name: who comes by another has others of each,
// and two processes would write over one another.
func checkOneName(path string) error {
	var s unix.Stat_t
	switch err := unix.Lstat(path, &s); {
	case err != nil:
		return refuse(path, "cannot be looked at").Because(err)
	case s.Nlink > 1:
		return refuse(path, "%s", manyNames(uint64(s.Nlink))).Hint("%s", oneNameHint)
	case isMountPoint(path):
		return refuse(path, "is mounted by itself, and the log and the locks beside it are not").
			Hint("Mount the folder in which the database lies instead of the file.")
	}
	return nil
}

const oneNameHint = "Remove the other name (find -samefile shows it); to share the database, share its folder."

func manyNames(n uint64) string {
	return fmt.Sprintf("has %d names (hard links), and each name has a log and locks of its own", n)
}

// checkPlain is for a file that is only read, such as a backup: it may have many names.
func checkPlain(path string, write bool) (found bool, err error) {
	if err := checkFolder(filepath.Dir(path), write); err != nil {
		return false, err
	}
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, refuse(path, "cannot be looked at").Because(err)
	case fi.IsDir():
		return false, refuse(path, "is a folder").Hint("Give the path of a file, such as %s.", filepath.Join(path, "placet.db"))
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, refuse(path, "is a symbolic link").Hint("Give the path of the file itself: the lock files beside it must be the same for everyone.")
	case !fi.Mode().IsRegular():
		return false, refuse(path, "is not a regular file")
	case fi.Mode().Perm()&0o022 != 0:
		return false, refuse(path, "can be written by other users (mode %04o)", fi.Mode().Perm()).
			Hint("What it holds decides what is run. Look at it, then chmod 600 %s.", path)
	}
	return true, checkAccess(path, fi, write)
}

func checkFolder(dir string, write bool) error {
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(dir, "does not exist").Hint("Make the folder first: mkdir -p %s.", dir)
	case err != nil:
		return refuse(dir, "cannot be looked at").Because(err)
	case !fi.IsDir():
		return refuse(dir, "is not a folder")
	case !write:
		return nil
	case fi.Mode().Perm()&0o200 == 0 || unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		return refuse(dir, "is read-only, and SQLite keeps a log beside the database").Hint("Make the folder writable: chmod u+w %s.", dir)
	}
	return nil
}

// checkAccess looks at the mode as well as at the rights: root may do what the
// mode forbids, and whoever made a file read-only meant it.
func checkAccess(path string, fi fs.FileInfo, write bool) error {
	if unix.Access(path, unix.R_OK) != nil {
		return refuse(path, "cannot be read by this user").Hint("It must belong to the user who runs Placet: chown it, or run as its owner.")
	}
	if write && (fi.Mode().Perm()&0o200 == 0 || unix.Access(path, unix.W_OK) != nil) {
		return refuse(path, "is read-only (mode %04o)", fi.Mode().Perm()).Hint("Run chmod 600 %s, as its owner.", path)
	}
	return nil
}

func emptyFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Size() == 0
}

// createFile makes an empty file and its name durable. A file that SQLite has
// open is never opened by us: closing it would drop SQLite's locks on it.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return refuse(path, "cannot be created").Because(err)
	}
	if err := f.Close(); err != nil {
		return refuse(path, "cannot be created").Because(err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("flush folder %s: %w", dir, err)
	}
	return nil
}

// tighten makes the file private; SQLite makes its log like it.
func tighten(path string) error {
	fi, err := os.Lstat(path)
	if err == nil && fi.Mode().Perm() != 0o600 {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return refuse(path, "cannot be made private").Hint("Run chmod 600 %s, as its owner.", path).Because(err)
	}
	return nil
}

func missing(path string) error {
	return fault.New(fault.NotFound, "There is no database at %s.", path).
		Hint("Check the path (--db, PLACET_DB); the first command that writes creates it.")
}

// lostFile is about a store that is not there although callers were told of its commits.
func lostFile(path string, k mark) error {
	return txn.ErrRestored.Say("%s is missing or empty, but %s.mark says that store %s was here, with events up to %d. Nothing was created.", path, path, k.store, k.seq).
		Hint("Bring it back with placet db restore FILE. If it was moved, give its new path. To begin anew, remove %s.mark first.", path)
}

// openError is the sentence for a file that SQLite will not take.
func openError(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return txn.ErrNotCommitted.Say("The wait to open %s was ended; nothing was changed.", path).Because(err)
	}
	switch primary(err) {
	case sqlite3.SQLITE_NOTADB:
		return refuse(path, "is not a SQLite database").Hint("Give Placet a path of its own.").Because(err)
	case sqlite3.SQLITE_CORRUPT:
		return refuse(path, "is damaged, perhaps cut short").Hint("Restore a backup with placet db restore FILE.").Because(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return txn.ErrBusy.Because(fmt.Errorf("open %s: %w", path, err))
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return refuse(path, "cannot be opened").Hint("The file and its folder must belong to the user who runs Placet.").Because(err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// oldestSQLite is the first without the fault by which a log that is being
// restarted loses commits.
const oldestSQLite = 3_051_003

var checkVersion = sync.OnceValue(func() error {
	c, err := drv.Open(":memory:")
	if err != nil {
		return fmt.Errorf("start SQLite: %w", err)
	}
	mem := &conn{raw: c.(driverConn), stmts: map[string]*stmt{}}
	defer mem.close()
	v, err := mem.one(context.Background(), `SELECT sqlite_version()`)
	if err != nil {
		return fmt.Errorf("ask SQLite for its version: %w", err)
	}
	return versionOK(v)
})

func versionOK(v string) error {
	n := 0
	for _, part := range strings.SplitN(v, ".", 3) {
		i, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("SQLite calls its version %q, which is not understood", v)
		}
		n = n*1000 + i
	}
	if n < oldestSQLite {
		return fault.New(fault.Internal, "This program was built with SQLite %s, which can lose commits.", v).
			Hint("Build it with modernc.org/sqlite v1.62.0 or later, which has 3.51.3 or later.")
	}
	return nil
}
