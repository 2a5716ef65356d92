package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// metaKnown are the columns of meta that a copy of the whole store takes care of.
const metaKnown = `id schema min_writer min_reader store_id epoch next_seq last_at restored_at restored_to targets`

// ReadWhole opens the store at path to be copied as a whole, or to be moved with retire.
// Until it is closed, nobody else writes to it; readers are not disturbed. It is an error
// if the store is not of this program's schema, went back in time or was retired.
func ReadWhole(ctx context.Context, path string, retire bool) (whole.Source, error) {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return nil, err
	}
	return a.readWhole(ctx, retire)
}

// wholeSource is a store whose locks are held: the files that order writers, and SQLite's
// own, by which a program that does not know those is kept out too.
type wholeSource struct {
	l      *locked
	retire bool
	open   bool // the transaction is
	tables []whole.Table
}

func (a *admin) readWhole(ctx context.Context, retire bool) (_ whole.Source, err error) {
	if found, err := checkFile(a.path, true); err != nil {
		return nil, err
	} else if !found || emptyFile(a.path) {
		return nil, missing(a.path)
	}
	s := &wholeSource{retire: retire}
	if s.l, err = a.lockStore(ctx); err != nil {
		return nil, err
	}
	if err = s.begin(ctx); err != nil {
		s.l.close()
		return nil, err
	}
	return s, nil
}

func (s *wholeSource) begin(ctx context.Context) error {
	if err := s.l.open(ctx); err != nil {
		return err
	}
	if err := s.l.mayCopy(); err != nil {
		return err
	}
	if _, err := s.l.conn.exec(ctx, beginSQL); err != nil {
		return openError(s.l.a.path, err)
	}
	s.open = true
	g, err := s.l.conn.tables(ctx)
	if err == nil {
		s.l.meta, err = readMetaBy(ctx, s.l.conn, writerMetaSQL) // with targets
	}
	s.tables = g.Tables
	if err != nil {
		s.rollback()
		return odd(s.l.a.path, err)
	}
	return nil
}

// mayCopy refuses a store of which no copy should go on.
func (l *locked) mayCopy() error {
	newest := l.a.newest()
	switch {
	case l.conn == nil:
		return refuse(l.a.path, "is damaged, or has no store in it").Hint("Run placet db check.")
	case l.meta.minWriter == whole.Retired:
		return whole.Moved(l.a.path)
	case l.meta.schema > newest:
		return store.ErrNewer.Say("%s has schema %d, newer than this program's %d. Nothing was copied.", l.a.path, l.meta.schema, newest).Hint("Use the newer Placet.")
	case l.meta.schema < newest:
		return refuse(l.a.path, "has schema %d, older than this program's %d", l.meta.schema, newest).
			Hint("Run placet db migrate first; a backup is written beside it.")
	case l.spoilt:
		return tampered(l.a.path)
	}
	if why := l.meta.wentBack(l.was, l.marked); why != "" {
		return restored(l.a.path, why)
	}
	return nil
}

func (s *wholeSource) rollback() {
	if s.open {
		_, _ = s.l.conn.exec(context.Background(), rollbackSQL) // the connection is closed next
	}
}

// Life is what the store says about itself.
func (s *wholeSource) Life() whole.Life {
	m := s.l.meta
	return whole.Life{StoreID: m.store, Epoch: m.epoch, Last: m.nextSeq - 1, LastAt: m.lastAt, Targets: m.targets}
}

// Tables are the store's.
func (s *wholeSource) Tables() []whole.Table { return s.tables }

// Rows are in the order of the key.
func (s *wholeSource) Rows(ctx context.Context, t whole.Table) whole.Rows {
	return s.l.conn.all(ctx, t)
}

// Retire writes that no program may write any more.
func (s *wholeSource) Retire(ctx context.Context) error {
	if !s.retire {
		return errors.New("the store was not opened to be retired")
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := s.l.conn.exec(ctx, `UPDATE meta SET min_writer = ? WHERE id = 1`, int64(whole.Retired)); err != nil {
		return txn.ErrNotCommitted.Because(err)
	}
	if _, err := s.l.conn.exec(ctx, commitSQL); err != nil {
		return txn.ErrUnknown.Because(err)
	}
	s.open = false
	return nil
}

// Close gives the locks back.
func (s *wholeSource) Close() error {
	s.rollback()
	s.l.close()
	return nil
}

const (
	columnsSQL = `SELECT t.name, c.name, lower(c.type), c.pk FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY t.name, c.cid`
	refersSQL = `SELECT t.name, f."table" FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS f WHERE t.type = 'table' ORDER BY t.name, f.id`
)

var kinds = map[string]whole.Kind{"integer": whole.Integer, "text": whole.Text, "blob": whole.Bytes}

// tables are what is copied of this store.
func (c *conn) tables(ctx context.Context) (g whole.Group, err error) {
	err = c.query(ctx, columnsSQL, nil, func(r sqlrows.Row) error {
		kind, ok := kinds[r.Str(2)]
		if !ok {
			kind = whole.Kind(r.Str(2))
		}
		g.Add(r.Str(0), r.Str(1), kind, r.Int(3))
		return nil
	})
	if err != nil {
		return g, err
	}
	err = c.query(ctx, refersSQL, nil, func(r sqlrows.Row) error { g.Refer(r.Str(0), r.Str(1)); return nil })
	if err != nil {
		return g, err
	}
	return g, errors.Join(g.Keep("meta", metaKnown), g.Keep("sign_in", whole.SignInKnown), g.Sound())
}

// odd tells a failure to read from tables that are not as they should be.
func odd(path string, err error) error {
	if code(err) != 0 {
		return openError(path, err)
	}
	return whole.Odd(path, err)
}

var errEnough = errors.New("no more rows are wanted")

// all are a table's rows in the order of its key.
func (c *conn) all(ctx context.Context, t whole.Table) whole.Rows {
	sql := `SELECT ` + whole.List(t.Names()) + ` FROM ` + whole.Quoted(t.Name) + ` ORDER BY ` + whole.List(t.Key)
	return func(yield func([]any, error) bool) {
		vals := make([]any, len(t.Columns))
		err := c.query(ctx, sql, nil, func(r sqlrows.Row) error {
			for i, col := range t.Columns {
				vals[i] = valueOf(r, i, col.Kind)
			}
			if r.(row).err != nil {
				return r.(row).err
			}
			if !yield(vals, nil) {
				return errEnough
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("read the table %s: %w", t.Name, err))
		}
	}
}

func valueOf(r sqlrows.Row, i int, kind whole.Kind) any {
	switch {
	case r.Null(i):
		return nil
	case kind == whole.Integer:
		return r.Int(i)
	case kind == whole.Text:
		return r.Str(i)
	}
	return r.Bytes(i)
}

// MakeWhole opens the place at path to take a whole store. Until it is closed, nobody
// else writes there. It is [whole.ErrUsed] if the store there was ever written to.
func MakeWhole(ctx context.Context, path string) (whole.Target, error) {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return nil, err
	}
	return a.makeWhole(ctx)
}

// wholeTarget is a new file beside the place, which it comes to at the end.
type wholeTarget struct {
	l      *locked
	tmp    string
	conn   *conn // to tmp; nil before Make and after Verify
	next   meta
	tables []whole.Table
}

func (a *admin) makeWhole(ctx context.Context) (_ whole.Target, err error) {
	t := &wholeTarget{tmp: a.path + ".copying"}
	if t.l, err = a.lockStore(ctx); err != nil {
		return nil, err
	}
	if err = t.l.open(ctx); err == nil {
		err = t.l.mayTake()
	}
	if err != nil {
		t.l.close()
		return nil, err
	}
	return t, nil
}

// mayTake refuses a place that has, or had, a store of somebody's.
func (l *locked) mayTake() error {
	path := l.a.path
	switch {
	case l.conn == nil && hasFile(path) && !emptyFile(path), l.spoilt:
		return refuse(path, "is damaged, or not a store").Hint("Give the path of a new file.")
	case l.conn == nil && l.marked && l.was.lastAt > 0:
		return lostFile(path, l.was)
	case l.conn == nil:
		return nil
	case l.meta.nextSeq > 1, l.meta.lastAt > 0:
		return whole.ErrUsed.Say("%s has the store %s in it, which was used. Nothing was copied.", path, l.meta.store).
			Hint("Give the path of a new file, or move this one away with what lies beside it (%s.*).", filepath.Base(path))
	}
	return l.meta.mayWrite(l.a.newest())
}

func hasFile(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Make makes the file. What a copy that was killed has left there is removed: the write
// lock is held, so it is nobody's.
func (t *wholeTarget) Make(ctx context.Context) (err error) {
	t.discard()
	if err := createFile(t.tmp); err != nil {
		return err
	}
	p := &prepared{path: t.tmp, o: t.l.a.o}
	if p.conn, err = openConn(dsn(t.tmp, forWriting, t.l.a.o.BusyTimeout)); err != nil {
		return openError(t.tmp, err)
	}
	t.conn = p.conn
	// Nobody else has the file, and it is flushed before it is used.
	if _, err := t.conn.one(ctx, `PRAGMA journal_mode = MEMORY`); err != nil {
		return openError(t.tmp, err)
	}
	if err := t.conn.script(ctx, `PRAGMA synchronous = OFF`); err != nil {
		return openError(t.tmp, err)
	}
	if err := p.apply(ctx, migrate.Pending(t.l.a.steps, 0)); err != nil {
		return err
	}
	g, err := t.conn.tables(ctx)
	if err != nil {
		return odd(t.l.a.path, err)
	}
	t.tables = g.Tables
	_, err = t.conn.exec(ctx, beginSQL)
	return err
}

// Tables are those of a new store.
func (t *wholeTarget) Tables() []whole.Table { return t.tables }

// Fill inserts rows.
func (t *wholeTarget) Fill(ctx context.Context, tab whole.Table, rows whole.Rows) error {
	sql := `INSERT INTO ` + whole.Quoted(tab.Name) + `(` + whole.List(tab.Names()) + `) VALUES (?` + strings.Repeat(`, ?`, len(tab.Columns)-1) + `)`
	for row, err := range rows {
		if err != nil {
			return err
		}
		if _, err := t.conn.exec(ctx, sql, row...); err != nil {
			return fmt.Errorf("write a row of the table %s: %w", tab.Name, err)
		}
	}
	return nil
}

// Begin writes the row about the store.
func (t *wholeTarget) Begin(ctx context.Context, was whole.Life) (epoch int64, err error) {
	if was.Last == math.MaxInt64 {
		return 0, errors.New("the events' numbers are used up")
	}
	t.next = t.l.nextLife(meta{store: was.StoreID, epoch: was.Epoch, nextSeq: was.Last + 1, lastAt: was.LastAt})
	if err := writeLife(ctx, t.conn, t.next); err != nil {
		return 0, err
	}
	_, err = t.conn.exec(ctx, `UPDATE meta SET store_id = ?, targets = ? WHERE id = 1`, was.StoreID, was.Targets)
	return t.next.epoch, err
}

// Rows are in the order of the key.
func (t *wholeTarget) Rows(ctx context.Context, tab whole.Table) whole.Rows {
	return t.conn.all(ctx, tab)
}

// Verify has SQLite look through the file, and then opens it as a store.
func (t *wholeTarget) Verify(ctx context.Context, check func(txn.Store) error) error {
	if _, err := t.conn.exec(ctx, commitSQL); err != nil {
		return err
	}
	if _, err := t.conn.one(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return openError(t.tmp, err)
	}
	if err := sound(ctx, t.conn, t.tmp); err != nil {
		return err
	}
	err := t.conn.close()
	t.conn = nil
	if err != nil {
		return err
	}
	st, err := Open(ctx, t.tmp, &Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(check(st), st.Close())
}

// Commit puts the file in place. A mark is there before it: where the file is missing it
// says nothing that counts, and it fits the file. So the copy can be used from the moment at
// which it has its name.
func (t *wholeTarget) Commit(context.Context) error {
	if err := syncFile(t.tmp); err != nil {
		return err
	}
	first := t.next.mark()
	first.lastAt = 0
	if err := t.l.mark.writeDurably(first); err != nil {
		return err
	}
	if t.l.conn == nil && emptyFile(t.l.a.path) {
		if err := os.Remove(t.l.a.path); err != nil { // rather than kept under another name
			return err
		}
	}
	if err := t.l.put(t.tmp, t.next); err != nil {
		return err
	}
	if t.l.conn != nil { // the store went on under its name: the file beside it is done with
		t.discard()
	}
	if err := t.l.mark.writeDurably(t.next.mark()); err != nil {
		return txn.ErrUnknown.Say("%s was copied, but its mark could not be written.", t.l.a.path).Hint("Run placet db check.").Because(err)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (t *wholeTarget) discard() {
	for _, ext := range []string{"", "-journal", "-wal", "-shm"} {
		_ = os.Remove(t.tmp + ext) // most are not there
	}
}

// Close removes what was not put in place.
func (t *wholeTarget) Close() error {
	if t.conn != nil {
		_ = t.conn.close()
	}
	t.discard()
	t.l.close()
	return nil
}
