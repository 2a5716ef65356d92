package sqlite

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// stamp is how a database file looks from outside. While a log lies beside it,
// only folding changes the file, and only under the write lock: the mark says how
// it was left. A file that was copied over ours while its log stayed would show the
// log's newer pages among its own older ones, and the newer row about itself too.
//
// The zero stamp is that of a file which is being folded, or whose folding was cut
// short: nothing is known of it until the next fold.
type stamp struct{ size, mtime int64 }

func stampOf(s *unix.Stat_t) stamp {
	return stamp{s.Size, s.Mtim.Nano()}
}

func look(path string) (stamp, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return stamp{}, fmt.Errorf("look at %s: %w", path, err)
	}
	return stampOf(&s), nil
}

// spoilt is the stamp of a file that was found to be changed. It stays in the mark
// until the operator has spoken: folding would hide the difference.
var spoilt = stamp{-1, -1}

// changed tells whether something else than Placet changed the file.
func (k mark) changed(now stamp) bool {
	return k.main == spoilt || k.main != stamp{} && k.main != now
}

const overwritten = "the database file was changed by something else than Placet while a log lay beside it, so it may be a mixture of old and new"

func tampered(path string) error {
	return txn.ErrRestored.Say("%s cannot be trusted: %s. Nothing was changed.", path, overwritten).
		Hint("Go back to a backup with placet db restore FILE. If it is meant to be used as it is, run placet db accept-restore; what was approved before then needs a new yes.")
}

// judge compares the file with its mark, before SQLite sees it and folds the log.
// Where there is no log, the file is all there is, and its own row tells its age.
func (m *markFile) judge(path string) (bad bool, err error) {
	k, ok, err := m.read()
	if err != nil || !ok {
		return false, err
	}
	now, err := look(path)
	if err != nil || k.main != spoilt && !hasLog(path) || !k.changed(now) {
		return false, nil // a missing file is somebody else's to report
	}
	return true, m.spoil(k)
}

// spoil keeps what was found.
func (m *markFile) spoil(k mark) error {
	if k.main == spoilt {
		return nil
	}
	k.main = spoilt
	return m.writeDurably(k)
}

// hasLog reports whether a log with something in it lies beside the database.
func hasLog(path string) bool {
	var s unix.Stat_t
	return unix.Stat(path+"-wal", &s) == nil && s.Size > 0
}

// readMode opens for reading so that closing folds nothing: whoever only reads
// holds no lock and keeps no mark. Where there is no log, SQLite would make one and
// not remove it again.
func readMode(path string) string {
	if hasLog(path) {
		return "mode=ro"
	}
	return "mode=rw"
}

const (
	foldPassive  = `PRAGMA wal_checkpoint(PASSIVE)`
	foldTruncate = `PRAGMA wal_checkpoint(TRUNCATE)`
)

// checkpoint runs one of the two, and reports whether the whole log is in the file
// now. SQLite flushes the file only then.
func (c *conn) checkpoint(sql string) (whole bool, err error) {
	err = c.query(context.Background(), sql, nil, func(r sqlrows.Row) error {
		whole = r.Int(0) == 0 && r.Int(1) == r.Int(2)
		return nil
	})
	return whole, err
}

// fold runs one checkpoint under the write lock, which is held. The mark says
// durably that the file is about to change, for a process that is killed in the
// middle, and then how it was left. A file that was changed is not folded into.
func (m *markFile) fold(c *conn, path, sql string) error {
	k, ok, err := m.read()
	if err != nil || !ok {
		return err
	}
	if now, err := look(path); err != nil || k.changed(now) {
		return err
	}
	if err := m.folding(k); err != nil {
		return err
	}
	whole, err := c.checkpoint(sql)
	if err != nil || !whole {
		return err
	}
	if k.main, err = look(path); err != nil {
		return err
	}
	return m.write(k)
}

func (m *markFile) folding(k mark) error {
	if k.main == (stamp{}) {
		return nil
	}
	k.main = stamp{}
	if err := m.write(k); err != nil {
		return err
	}
	return m.f.Sync()
}

// closeFolding closes a connection that may be the last, whose closing folds the
// log. The write lock is held.
func (m *markFile) closeFolding(c *conn, path string) error {
	var err error
	if hasLog(path) {
		err = m.fold(c, path, foldPassive)
	}
	return errors.Join(err, c.close())
}
