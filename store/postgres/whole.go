package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/placet-dev/placet/internal/migrate"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// wholeSide is a connection on which one transaction lasts as long as the copying does.
type wholeSide struct {
	at    place
	steps []migrate.Step
	c     *conn
	meta  meta
	open  bool // the transaction is

	tables []whole.Table
}

// wholeSettings are for a transaction that takes as long as there are rows. They are no
// SELECT: at REPEATABLE READ that would fix what is seen before the lock is held.
const wholeSettings = `SET LOCAL search_path = %s; SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0;
	SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL client_min_messages = warning; SET LOCAL synchronous_commit = on`

// wholeBusy is how long a lock on the store is waited for.
const wholeBusy = 5 * time.Second

// connectWhole connects to a store that nobody else has open, and begins.
func connectWhole(ctx context.Context, url, begin string) (s *wholeSide, err error) {
	s = &wholeSide{}
	if s.at, s.steps, err = admin(url); err != nil {
		return nil, err
	}
	if s.c, err = s.at.dial(ctx); err != nil {
		return nil, err
	}
	if err = s.c.alone(ctx, s.at); err == nil {
		err = s.script(begin + "; " + fmt.Sprintf(wholeSettings, quoted(s.at.schema), wholeBusy.Milliseconds()))
	}
	if err != nil {
		s.c.release()
		return nil, err
	}
	s.open = true
	return s, nil
}

// script runs statements that have no arguments.
func (s *wholeSide) script(sql string) error {
	s.patient()
	return told(s.c.script(sql))
}

// patient lets what follows take as long as it does.
func (s *wholeSide) patient() { _ = s.c.pg.Conn().SetDeadline(time.Time{}) } // one that is gone says so when it is used

// wholePatience is for one statement over a whole table.
const wholePatience = 12 * time.Hour

// run is [conn.run] for a statement that takes as long as there are rows.
func (s *wholeSide) run(sql string, args []any, each func(sqlrows.Row)) error {
	err := s.c.send(request{sql: sql, each: func(r sqlrows.Row) error {
		if each != nil {
			each(r)
		}
		return nil
	}}, args)
	if err == nil {
		err = s.c.flush(wholePatience)
	}
	return told(err)
}

func (s *wholeSide) close() error {
	if s.open {
		_ = s.c.run(rollbackSQL, nil, nil) // a connection that is gone has done so
	}
	s.c.release()
	return nil
}

// there is whether the schema has a store in it.
func (s *wholeSide) there() (there bool, err error) {
	err = s.run(`SELECT CAST(to_regclass(?) IS NOT NULL AS int)`, []any{s.at.schema + ".meta"}, func(r sqlrows.Row) { there = r.Int(0) == 1 })
	return there, err
}

// readMeta reads the row about the store, and refuses any schema but this program's.
func (s *wholeSide) readMeta() error {
	found := false
	err := s.run(metaAtAnySchema, nil, func(r sqlrows.Row) {
		found = true
		s.meta.scanAny(r)
	})
	newest := int64(len(s.steps))
	switch {
	case code(err) == undefinedColumn:
		return refuse(s.at.url, "has a table meta of another program in the schema %s", s.at.schema).Because(err)
	case err != nil:
		return err
	case !found:
		return errNoMeta
	case s.meta.minWriter == whole.Retired:
		return whole.Moved(s.at.String())
	case s.meta.schema > newest:
		return store.ErrNewer.Say("%s has schema %d, newer than this program's %d. Nothing was copied.", s.at, s.meta.schema, newest).Hint("Use the newer Placet.")
	case s.meta.schema < newest:
		return refuse(s.at.url, "has schema %d, older than this program's %d", s.meta.schema, newest).Hint("Run placet db migrate first; make a backup before.")
	}
	return s.run(`SELECT targets FROM meta WHERE id = 1`, nil, func(r sqlrows.Row) { s.meta.targets = r.Int(0) })
}

// wholeSource is read on a picture of the store that is taken under the lock.
type wholeSource struct {
	*wholeSide
	retire bool
	last   int64 // the highest place of an event
}

// ReadWhole opens the store at url to be copied as a whole, or to be moved with retire.
// Until it is closed, nobody else reads or writes it: whoever writes holds the weakest of
// locks on meta until its end, and only a lock that keeps readers out too keeps those out.
// It is [whole.ErrOpen] where other processes have it open, and an error if the store is
// not of this program's schema, not where it was, or retired.
func ReadWhole(ctx context.Context, url string, retire bool) (_ whole.Source, err error) {
	begin := beginViewSQL
	if retire {
		begin = `BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE`
	}
	side, err := connectWhole(ctx, url, begin)
	if err != nil {
		return nil, err
	}
	s := &wholeSource{wholeSide: side, retire: retire}
	if err = s.look(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *wholeSource) look() error {
	switch err := s.script(lockMetaSQL); code(err) {
	case undefinedTable, invalidSchema:
		return missing(s.at)
	case insufficientRights:
		return refuse(s.at.url, "does not let this role lock the store").Hint("Copy it as the role that Placet uses (docs/guide/postgres.md).").Because(err)
	default:
		if err != nil {
			return err
		}
	}
	if err := s.c.others(s.at); err != nil { // who came before the lock
		return err
	}
	if err := s.readMeta(); err != nil {
		return err
	}
	if err := s.meta.mayGoOn(s.c.place); err != nil {
		return err
	}
	if err := s.readTables(); err != nil {
		return err
	}
	return s.run(`SELECT greatest((SELECT last FROM event_order), (SELECT max(pos) FROM event)) + (SELECT count(*) FROM event WHERE pos IS NULL)`,
		nil, func(r sqlrows.Row) { s.last = r.Int(0) })
}

// Life is what the store says about itself.
func (s *wholeSource) Life() whole.Life {
	m := s.meta
	return whole.Life{StoreID: m.store, Epoch: m.epoch, Last: s.last, LastAt: m.lastAt, Targets: m.targets}
}

// Tables are the store's.
func (s *wholeSource) Tables() []whole.Table { return s.tables }

// Rows are in the order of the key. An event that has no place yet gets the next ones, as it
// would in the store itself.
func (s *wholeSource) Rows(ctx context.Context, t whole.Table) whole.Rows {
	return s.rows(ctx, t, placedSQL(t))
}

// Retire writes that no program may write any more.
func (s *wholeSource) Retire(context.Context) error {
	if !s.retire {
		return errors.New("the store was not opened to be retired")
	}
	if err := s.run(`UPDATE meta SET min_writer = ? WHERE id = 1`, []any{int64(whole.Retired)}, nil); err != nil {
		return err
	}
	return s.commit()
}

// Close lets others read and write again.
func (s *wholeSource) Close() error { return s.close() }

func (s *wholeSide) commit() error {
	s.open = false
	return s.c.commit(s.at, wholePatience)
}

// wholeTarget is a transaction that makes the tables, where there are none, and fills them.
type wholeTarget struct {
	*wholeSide
	was  int64 // schema that is there; 0: none
	next whole.Life
}

// MakeWhole opens the place at url to take a whole store. It is [whole.ErrUsed] if there is
// anything in a store there, and [whole.ErrOpen] where other processes have it open.
func MakeWhole(ctx context.Context, url string) (_ whole.Target, err error) {
	side, err := connectWhole(ctx, url, beginUpdateSQL)
	if err != nil {
		return nil, err
	}
	t := &wholeTarget{wholeSide: side}
	if err = t.look(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// look takes the lock under which a store is made, so that another program which wants to
// make one waits, and finds this one.
func (t *wholeTarget) look() error {
	if err := t.run(migrateLockSQL, []any{"placet migrate " + t.at.schema}, nil); err != nil {
		return err
	}
	there, err := t.there()
	if err != nil || !there {
		return err
	}
	if err := t.script(lockMetaSQL); err != nil {
		return mayNotChange(t.at, err)
	}
	if err := t.c.others(t.at); err != nil {
		return err
	}
	if err := t.readMeta(); err != nil {
		return err
	}
	t.was = t.meta.schema
	if err := t.readTables(); err != nil {
		return err
	}
	for _, tab := range t.tables {
		used := false
		err := t.run(`SELECT 1::bigint FROM `+whole.Quoted(tab.Name)+` LIMIT 1`, nil, func(sqlrows.Row) { used = true })
		if err != nil {
			return err
		}
		if used {
			return whole.ErrUsed.Say("%s has the store %s in it, with rows in the table %s. Nothing was copied.", t.at, t.meta.store, tab.Name).
				Hint("Give another schema (?%s=NAME) or database; if nothing in this one is needed, drop it first: DROP SCHEMA %s CASCADE.", schemaParam, t.at.schema)
		}
	}
	return nil
}

// Make makes the tables where there are none.
func (t *wholeTarget) Make(context.Context) error {
	if t.was > 0 {
		return nil
	}
	if _, err := madeSchema(t.c, t.at); err != nil {
		return err
	}
	for _, s := range t.steps {
		t.patient()
		if err := applyStep(t.c, s); err != nil {
			return fmt.Errorf("make the tables in %s by %s: %w; nothing was copied", t.at, s.Name, told(err))
		}
	}
	if err := t.run(writeSchemaSQL, []any{len(t.steps)}, nil); err != nil {
		return err
	}
	return t.readTables()
}

// Tables are the store's.
func (t *wholeTarget) Tables() []whole.Table { return t.tables }

const (
	wholeLifeSQL = `UPDATE meta SET store_id = ?, epoch = ?, targets = ?, restored_at = greatest(?, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)),
		restored_to = ?, system_id = ?, timeline = ?, database_oid = ?, table_oid = CAST('meta'::regclass::oid AS bigint) WHERE id = 1`
)

// Begin writes the row about the store, and where the order of events goes on.
func (t *wholeTarget) Begin(_ context.Context, was whole.Life) (epoch int64, err error) {
	t.next = was
	t.next.Epoch = was.Epoch + 1
	p, to := t.c.place, any(was.LastAt)
	if was.LastAt == 0 {
		to = nil
	}
	if err := t.run(wholeLifeSQL, []any{was.StoreID, t.next.Epoch, was.Targets, was.LastAt, to, p.system, p.timeline, p.database}, nil); err != nil {
		return 0, err
	}
	return t.next.Epoch, t.run(`UPDATE event_order SET last = ?`, []any{was.Last}, nil)
}

// Rows are in the order of the key.
func (t *wholeTarget) Rows(ctx context.Context, tab whole.Table) whole.Rows {
	return t.rows(ctx, tab, plainSQL(tab))
}

// Verify looks at what the rows do not show, and runs check on what the transaction sees.
func (t *wholeTarget) Verify(_ context.Context, check func(txn.Store) error) error {
	var strays int64
	err := t.run(`SELECT count(*) FROM event WHERE pos IS DISTINCT FROM seq`, nil, func(r sqlrows.Row) { strays = r.Int(0) })
	if err != nil {
		return err
	}
	if strays > 0 {
		return fmt.Errorf("%d events have another place than they should", strays)
	}
	e := &engine{where: t.at, o: Options{}.withDefaults(), schema: int64(len(t.steps))}
	m := t.meta
	m.store, m.epoch = t.next.StoreID, t.next.Epoch
	return check(store.New(&inside{e: e, c: t.c, meta: m}))
}

// Commit makes it the store. The numbers of events go on behind those that are there; that
// is no part of the transaction, and so comes last.
func (t *wholeTarget) Commit(context.Context) error {
	if t.next.Last > 0 {
		if err := t.run(`SELECT setval('event_seq', ?)`, []any{t.next.Last}, nil); err != nil {
			return err
		}
	}
	return t.commit()
}

// Close undoes what was not committed.
func (t *wholeTarget) Close() error { return t.close() }

// inside is what a transaction that is under way sees, as a store that can be read.
type inside struct {
	e    *engine
	c    *conn
	meta meta
}

func (s *inside) Update(context.Context, func(store.Rows) error, func(bool) error) error {
	return txn.ErrNotCommitted.Say("A store that is being copied cannot be written to.")
}

func (s *inside) View(ctx context.Context, fn func(store.Rows) error) error {
	h := &handle{e: s.e, c: s.c, ctx: ctx, meta: s.meta, known: true, begun: true, heard: true, arranged: true, began: time.Now()}
	err := fn(sqlrows.Of(h))
	h.over = true
	if err == nil && h.err != nil {
		err = toldReader(h.err)
	}
	return err
}

func (s *inside) Watch(...string) (<-chan struct{}, func()) { return nil, func() {} }

func (s *inside) Close() error { return nil }
