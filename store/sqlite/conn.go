package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	driversqlite "modernc.org/sqlite"

	"github.com/placet-dev/placet/store/sqlrows"
)

// use says what a connection is for; it is the only difference between their settings.
type use int

const (
	forWriting use = iota
	forReading
)

// settings are the same on every connection. They stand in the name a
// connection is opened by, because a PRAGMA run later on one connection does not
// reach the others (case 086). The journal mode is not among them: it is a
// property of the file, set once by whoever creates it.
func settings(busy time.Duration) []string {
	return []string{
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"foreign_keys(1)",
		"synchronous(FULL)",
		"trusted_schema(0)",
		"cell_size_check(1)",
		"wal_autocheckpoint(0)", // only fold writes to the database file: see stamp
		"temp_store(MEMORY)",    // what a savepoint keeps aside never reaches /tmp
	}
}

// dsn names the file at path; extra are URI parameters of SQLite itself.
func dsn(path string, u use, busy time.Duration, extra ...string) string {
	q := url.Values{"mode": {"rw"}, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"}}
	for _, s := range settings(busy) {
		q.Add("_pragma", s)
	}
	if u == forWriting { // the pages of what some hundred callers have under way, and the inner ones of a long store's indexes
		q.Add("_pragma", "cache_size(-8000)")
	}
	if u == forReading {
		q.Set("_query_only", "1")
	}
	for _, e := range extra {
		k, v, _ := strings.Cut(e, "=")
		q.Set(k, v)
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// driverConn is what the driver's connections can do beyond driver.Conn.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driversqlite.HookRegisterer
}

// conn is one connection. It belongs to one goroutine at a time; who hands it on
// does so through a channel.
type conn struct {
	raw   driverConn
	stmts map[string]*stmt
	args  []driver.NamedValue

	// dead is set by SQLite's rollback hook: the transaction that was open is
	// gone. A SAVEPOINT would open another, and its RELEASE would commit it.
	dead bool
}

const maxStatements = 400

// stmt is a statement prepared once for its connection.
type stmt struct {
	driver.StmtExecContext
	driver.StmtQueryContext
	raw  driver.Stmt
	vals []driver.Value
	busy bool // its rows are being read
}

// drv is our own: what the host program registers on the package's driver
// (functions, hooks) does not reach our connections.
var drv = &driversqlite.Driver{}

func openConn(name string) (*conn, error) {
	raw, err := drv.Open(name)
	if err != nil {
		return nil, err
	}
	dc, ok := raw.(driverConn)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver's connection is a %T, which lacks a method that Placet needs", raw)
	}
	c := &conn{raw: dc, stmts: map[string]*stmt{}}
	dc.RegisterRollbackHook(func() { c.dead = true })
	return c, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.raw.Close() // nothing to do about it: the connection goes next
	}
	c.stmts = nil
	return c.raw.Close()
}

// prepared returns the statement for sql, or a second one while the first is
// being read: one statement holds one place in one result.
func (c *conn) prepared(sql string) (s *stmt, done func(), err error) {
	s = c.stmts[sql]
	if s != nil && !s.busy {
		return s, nil, nil
	}
	again := s != nil
	raw, err := c.raw.PrepareContext(context.Background(), sql)
	if err != nil {
		return nil, nil, err
	}
	s = &stmt{StmtExecContext: raw.(driver.StmtExecContext), StmtQueryContext: raw.(driver.StmtQueryContext), raw: raw}
	if again {
		return s, func() { _ = raw.Close() }, nil
	}
	c.forget()
	c.stmts[sql] = s
	return s, nil, nil
}

// forget keeps the statements few: lists of conditions make ever new ones.
func (c *conn) forget() {
	if len(c.stmts) < maxStatements {
		return
	}
	for sql, s := range c.stmts {
		if !s.busy {
			_ = s.raw.Close()
			delete(c.stmts, sql)
		}
	}
}

// exec runs sql. The context is never a caller's: ending it would roll back
// what others have in the same transaction.
func (c *conn) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	s, done, err := c.prepared(sql)
	if err != nil {
		return 0, err
	}
	if done != nil {
		defer done()
	}
	if err := c.bind(args); err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, c.args)
	clear(c.args) // the arguments may be large; SQLite has its own copy
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs sql and calls each for every row.
func (c *conn) query(ctx context.Context, sql string, args []any, each func(sqlrows.Row) error) (err error) {
	s, rows, done, err := c.open(ctx, sql, args)
	if err != nil {
		return err
	}
	defer func() { // each may panic
		if e := done(); err == nil {
			err = e
		}
	}()
	return s.read(rows, each)
}

// hold runs sql, which has no arguments, and calls each for its first row; the snapshot
// lasts until done is called.
func (c *conn) hold(sql string, each func(sqlrows.Row) error) (done func() error, err error) {
	s, rows, done, err := c.open(context.Background(), sql, nil)
	if err != nil {
		return nil, err
	}
	switch err = s.next(rows, row{&fields{vals: s.vals}}, each); err {
	case nil, io.EOF:
		return done, nil
	}
	_ = done() // the first error says why
	return nil, err
}

// open begins to run sql. The statement is free for others once done was called.
func (c *conn) open(ctx context.Context, sql string, args []any) (s *stmt, rows driver.Rows, done func() error, err error) {
	s, drop, err := c.prepared(sql)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = c.bind(args); err == nil {
		rows, err = s.QueryContext(ctx, c.args)
		clear(c.args)
	}
	if err != nil {
		if drop != nil {
			drop()
		}
		return nil, nil, nil, err
	}
	s.busy = true
	if n := len(rows.Columns()); len(s.vals) != n {
		s.vals = make([]driver.Value, n)
	}
	return s, rows, func() error {
		s.busy = false
		err := rows.Close()
		if drop != nil {
			drop()
		}
		return err
	}, nil
}

func (s *stmt) read(rows driver.Rows, each func(sqlrows.Row) error) error {
	r := row{&fields{vals: s.vals}}
	for {
		if err := s.next(rows, r, each); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (s *stmt) next(rows driver.Rows, r row, each func(sqlrows.Row) error) error {
	if err := rows.Next(s.vals); err != nil {
		return err
	}
	if err := each(r); err != nil {
		return err
	}
	return r.err
}

// script runs several statements that have no arguments and no rows.
func (c *conn) script(ctx context.Context, sql string) error {
	_, err := c.raw.ExecContext(ctx, sql, nil)
	return err
}

// one returns the first column of sql's only row, for settings and figures.
func (c *conn) one(ctx context.Context, sql string) (string, error) {
	var s string
	err := c.query(ctx, sql, nil, func(r sqlrows.Row) error {
		s = fmt.Sprint(r.(row).vals[0])
		return nil
	})
	return s, err
}

func (c *conn) bind(args []any) error {
	c.args = c.args[:0]
	for i, a := range args {
		v, err := value(a)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return nil
}

func value(a any) (driver.Value, error) {
	switch v := a.(type) {
	case nil, string, int64:
		return a, nil // as it came: putting it into another interface would copy it
	case int:
		return int64(v), nil
	case []byte:
		if v == nil {
			return nil, nil
		}
		return a, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case time.Time:
		if v.IsZero() {
			return nil, nil
		}
		return v.UnixMicro(), nil
	default:
		return nil, fmt.Errorf("a %T cannot be stored; give nil, int, int64, string, []byte, bool or time.Time", a)
	}
}

// reads reports whether sql only looks. It errs to the side of writing: what
// wrote nothing but seems to costs one needless update of meta.
func reads(sql string) bool {
	sql = strings.TrimLeft(sql, " \t\r\n")
	return startsFold(sql, "SELECT") || startsFold(sql, "PRAGMA")
}

func startsFold(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word)
}
