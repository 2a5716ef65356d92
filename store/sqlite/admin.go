package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/txn"
)

// Backup writes a consistent copy of the store at path to the new file dest,
// mode 0600, while others read and write. It never replaces a file, and a file
// at dest is always whole. The copy is in its next life already: whoever uses it
// where it lies needs a new yes for all that was approved in it.
func Backup(ctx context.Context, path, dest string) error {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return err
	}
	return a.backup(ctx, dest)
}

// Restore puts the backup at from in place of the store at path, which may be
// missing. The store begins a new life by it: its epoch rises, so that what was
// approved or running before counts no longer, and event numbers go on where
// they were, so that no cursor meets another event. Processes that have the
// store open go on with the restored one. Killed at any moment, it leaves the
// old store or the restored one.
func Restore(ctx context.Context, path, from string) error {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return err
	}
	return a.restore(ctx, from)
}

// AcceptRestore ends the refusal of a store that went back in time without
// Restore, or has no mark by which that could be told, or was written under a clock
// that was far ahead: its epoch rises, as with Restore. It is an error if there is nothing
// to accept.
func AcceptRestore(ctx context.Context, path string) error {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return err
	}
	return a.accept(ctx)
}

// admin is one command on a store that nobody of this process has open.
type admin struct {
	path  string
	o     Options
	steps []migrate.Step
}

func newAdmin(path string, schema fs.FS) (*admin, error) {
	if err := checkVersion(); err != nil {
		return nil, err
	}
	steps, err := migrate.Load(schema)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, refuse(path, "is not a path").Because(err)
	}
	return &admin{abs, Options{}.withDefaults(), steps}, nil
}

func (a *admin) newest() int64 { return int64(len(a.steps)) }

func (a *admin) backup(ctx context.Context, dest string) error {
	if _, err := os.Lstat(dest); err == nil {
		return refuse(dest, "exists already").Hint("Give the name of a new file.")
	}
	if err := checkFolder(filepath.Dir(dest), true); err != nil {
		return err
	}
	c, _, err := a.source(ctx, a.path, readMode(a.path))
	if err != nil {
		return err
	}
	defer c.close()
	tmp, err := copyTo(ctx, c, filepath.Dir(dest))
	if err != nil {
		return fmt.Errorf("back up %s: %w", a.path, err)
	}
	defer os.Remove(tmp)
	if err := a.seal(ctx, tmp); err != nil {
		return fmt.Errorf("back up %s: %w", a.path, err)
	}
	if err := os.Link(tmp, dest); errors.Is(err, fs.ErrExist) {
		return refuse(dest, "exists already").Hint("Give the name of a new file.")
	} else if err != nil {
		return fmt.Errorf("back up %s to %s: %w", a.path, dest, err)
	}
	if err := os.Remove(tmp); err != nil { // a store with two names is refused
		return fmt.Errorf("remove %s, which is a second name of %s: %w", tmp, dest, err)
	}
	return syncFolder(filepath.Dir(dest))
}

// seal gives a copy its next life.
func (a *admin) seal(ctx context.Context, tmp string) error {
	c, err := openConn(dsn(tmp, forWriting, a.o.BusyTimeout))
	if err != nil {
		return err
	}
	m, err := readMeta(ctx, c)
	if err == nil {
		m.epoch++
		m.restoredAt = time.UnixMicro(max(m.lastAt, time.Now().UnixMicro())).UTC()
		m.restoredTo = time.UnixMicro(m.lastAt).UTC()
		err = writeLife(ctx, c, m)
	}
	return errors.Join(err, c.close())
}

// source opens a store to be copied.
func (a *admin) source(ctx context.Context, path string, how ...string) (*conn, meta, error) {
	found, err := checkPlain(path, false)
	if path == a.path && found && err == nil {
		err = checkOneName(path)
	}
	if err != nil {
		return nil, meta{}, err
	} else if !found {
		return nil, meta{}, missing(path)
	}
	c, err := openConn(dsn(path, forWriting, a.o.BusyTimeout, how...)) // not query_only, which refuses VACUUM INTO
	if err != nil {
		return nil, meta{}, openError(path, err)
	}
	p := &prepared{path: path}
	err = p.readMeta(ctx, c)
	if err == nil && p.meta.schema == 0 {
		err = refuse(path, "is empty: there is no store in it")
	}
	if err != nil {
		_ = c.close()
		return nil, meta{}, err
	}
	return c, p.meta, nil
}

// backupFile opens a backup. Where no log lies beside it nobody has it open, and
// SQLite need not make one, which a folder of backups may not even allow.
func (a *admin) backupFile(ctx context.Context, path string) (*conn, meta, error) {
	if _, err := os.Lstat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		return a.source(ctx, path, "mode=ro", "immutable=1")
	}
	return a.source(ctx, path, "mode=ro")
}

func (a *admin) restore(ctx context.Context, from string) error {
	if err := a.apart(from); err != nil {
		return err
	}
	tmp, backup, err := a.checkedCopy(ctx, from)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	l, err := a.lockStore(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := l.mayReplace(backup); err != nil {
		return err
	}
	next := l.nextLife(backup)
	if err := a.prepareCopy(ctx, tmp, next); err != nil {
		return err
	}
	if err := l.put(tmp, next); err != nil {
		return err
	}
	return l.mark.writeDurably(next.mark())
}

// apart refuses a backup that is the store itself.
func (a *admin) apart(from string) error {
	live, err := os.Stat(a.path)
	if err != nil {
		return nil // looked at again under the lock
	}
	if b, err := os.Stat(from); err == nil && os.SameFile(live, b) {
		return refuse(from, "is the store itself").Hint("Give the file that placet db backup wrote.")
	}
	return nil
}

// checkedCopy makes a private copy of a backup that is sound, ours and not newer.
func (a *admin) checkedCopy(ctx context.Context, from string) (tmp string, m meta, err error) {
	c, m, err := a.backupFile(ctx, from)
	if err != nil {
		return "", m, err
	}
	defer c.close()
	if m.schema > a.newest() {
		return "", m, ErrNewer.Say("The backup %s has schema %d, newer than this program's %d. Nothing was changed.", from, m.schema, a.newest()).
			Hint("Use the newer Placet.")
	}
	if err := sound(ctx, c, from); err != nil {
		return "", m, err
	}
	if err := c.script(ctx, `PRAGMA page_size = 4096`); err != nil { // a store cannot take pages of another size
		return "", m, err
	}
	tmp, err = copyTo(ctx, c, filepath.Dir(a.path))
	if err != nil {
		return "", m, fmt.Errorf("copy %s: %w", from, err)
	}
	return tmp, m, nil
}

func sound(ctx context.Context, c *conn, name string) error {
	faults, err := findFaults(ctx, c)
	if err != nil {
		return openError(name, err)
	}
	if len(faults) > 0 {
		return refuse(name, "is damaged: %s", faults[0]).Hint("Use an older backup. Nothing was changed.")
	}
	return nil
}

// prepareCopy gives the copy the newest schema and its next life, before anyone
// can see it.
func (a *admin) prepareCopy(ctx context.Context, tmp string, next meta) error {
	p := &prepared{path: tmp, o: a.o}
	var err error
	if p.conn, err = openConn(dsn(tmp, forWriting, a.o.BusyTimeout)); err != nil {
		return openError(tmp, err)
	}
	defer p.close()
	if err := p.readMeta(ctx, p.conn); err != nil {
		return err
	}
	if steps := migrate.Pending(a.steps, int(p.meta.schema)); len(steps) > 0 {
		if err := p.apply(ctx, steps); err != nil {
			return err
		}
	}
	if err := writeLife(ctx, p.conn, next); err != nil {
		return err
	}
	return sound(ctx, p.conn, tmp) // somebody may have written to the backup meanwhile
}

func (a *admin) accept(ctx context.Context) error {
	l, err := a.lockStore(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.open(ctx); err != nil {
		return err
	}
	if l.conn == nil {
		return missing(a.path)
	}
	if err := l.meta.mayWrite(a.newest()); err != nil {
		return err
	}
	if l.spoilt {
		if err := sound(ctx, l.conn, a.path); err != nil {
			return err
		}
	} else if l.meta.wentBack(l.was, l.marked) == "" && !tooFar(l.meta.lastAt-time.Now().UnixMicro()) {
		return fault.New(fault.Conflict, "%s did not go back in time: there is nothing to accept.", a.path)
	}
	next := l.nextLife(l.meta)
	if err := writeLife(ctx, l.conn, next); err != nil {
		return txn.ErrNotCommitted.Because(err)
	}
	return l.mark.writeDurably(next.mark())
}

const writeLifeSQL = `
UPDATE meta SET
	epoch = ?,
	next_seq = ?,
	last_at = ?,
	restored_at = ?,
	restored_to = ?
WHERE id = 1`

func writeLife(ctx context.Context, c *conn, m meta) error {
	_, err := c.exec(ctx, writeLifeSQL, m.epoch, m.nextSeq, m.lastAt, m.restoredAt, m.restoredTo)
	return err
}

// locked is the store at a path, held against all who write.
type locked struct {
	a      *admin
	files  *lockFiles
	mark   *markFile
	was    mark // what the mark says
	marked bool
	spoilt bool // something else than Placet changed the file

	conn *conn // nil if there is no store
	meta meta
}

func (a *admin) lockStore(ctx context.Context) (l *locked, err error) {
	if _, err := checkFile(a.path, true); err != nil {
		return nil, err
	}
	l = &locked{a: a}
	if l.files, err = openLockFiles(a.path); err != nil {
		return nil, err
	}
	if err := l.files.lock(patience(ctx, a.o.BusyTimeout)); err != nil {
		l.files.close()
		return nil, err
	}
	return l, nil
}

func (l *locked) close() {
	if l.conn != nil {
		_ = l.mark.closeFolding(l.conn, l.a.path)
	}
	if l.mark != nil {
		l.mark.close()
	}
	l.files.unlock()
	l.files.close()
}

// open opens the store and reads its mark. A file that is missing, empty or too
// damaged to say what it is counts as no store.
func (l *locked) open(ctx context.Context) (err error) {
	if l.mark, err = openMark(l.a.path); err != nil {
		return err
	}
	if l.was, l.marked, err = l.mark.read(); err != nil {
		return err
	}
	found, err := checkFile(l.a.path, true)
	if err != nil || !found || emptyFile(l.a.path) {
		return err
	}
	if l.spoilt, err = l.mark.judge(l.a.path); err != nil {
		return err
	}
	p := &prepared{path: l.a.path, o: l.a.o}
	c, err := openConn(dsn(l.a.path, forWriting, l.a.o.BusyTimeout))
	if err == nil {
		p.conn = c
		err = p.readMeta(ctx, c)
	}
	if err != nil || p.meta.schema == 0 {
		p.close()
		return damagedIsNone(l.a.path, err)
	}
	l.conn, l.meta = c, p.meta
	return p.useWAL()
}

// damagedIsNone lets a damaged store be replaced, and nothing else.
func damagedIsNone(path string, err error) error {
	if err == nil || isDamage(err) {
		return nil
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return err
	}
	return openError(path, err)
}

// mayReplace refuses to put one store in place of another that has been used.
func (l *locked) mayReplace(backup meta) error {
	if l.conn == nil || l.meta.store == backup.store || l.meta.nextSeq <= 1 {
		return nil
	}
	return fault.New(fault.Conflict, "%s is store %s and the backup is of store %s: restoring it would lose the first. Nothing was changed.",
		l.a.path, l.meta.store, backup.store).Hint("If that is meant, move %s away first.", l.a.path)
}

// nextLife is what a store that goes back to m says about itself. Whatever only
// grows goes on from the highest that anybody was told.
func (l *locked) nextLife(m meta) meta {
	next := m
	next.epoch = max(m.epoch, l.meta.epoch, l.was.epoch) + 1
	next.nextSeq = max(m.nextSeq, l.meta.nextSeq, l.was.seq+1)
	now := time.Now().UnixMicro()
	next.lastAt = max(m.lastAt, l.meta.lastAt, l.was.lastAt, now)
	if tooFar(next.lastAt - now) { // a wrong clock's: in a new life, time may go on from now
		next.lastAt = now
	}
	next.restoredAt = time.UnixMicro(next.lastAt).UTC()
	next.restoredTo = time.UnixMicro(min(m.lastAt, next.lastAt)).UTC()
	return next
}

// put makes the copy the store.
func (l *locked) put(tmp string, next meta) error {
	if l.conn == nil {
		return putFile(tmp, l.a.path)
	}
	if err := copyOver(l.conn, tmp); err != nil {
		return fmt.Errorf("restore %s: %w; the store is as it was", l.a.path, err)
	}
	m, err := readMeta(context.Background(), l.conn)
	if err == nil && m.epoch != next.epoch {
		err = fmt.Errorf("epoch %d instead of %d", m.epoch, next.epoch)
	}
	if err != nil {
		return txn.ErrUnknown.Say("%s was restored, but does not read like it.", l.a.path).Hint("Run placet db check.").Because(err)
	}
	return nil
}
