package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"

	"github.com/placet-dev/placet/event"
	placetsqlite "github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

const (
	floorTables = `CREATE TABLE floor_a(id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
		CREATE TABLE floor_b(id INTEGER PRIMARY KEY, a INTEGER NOT NULL, body BLOB NOT NULL) STRICT`
	insertA = `INSERT INTO floor_a(id, body) VALUES (?, ?)`
	insertB = `INSERT INTO floor_b(id, a, body) VALUES (?, ?, ?)`
)

var floorBody = []byte("0123456789012345678901234567890123456789")

// floor writes two plain rows in a transaction of the store's own writer: its
// queue, its grouping, its flushes and its book-keeping, and nothing else.
type floor struct {
	world *world
	twoRows
}

func openFloor(ctx context.Context, path string) (*floor, error) {
	f := &floor{}
	var conn driver.Conn
	w, err := openWorld(ctx, path, &placetsqlite.Hooks{Opened: func(c driver.Conn) { conn = c }})
	if err != nil {
		return nil, err
	}
	f.world = w
	return f, w.store.Update(ctx, func(txn.Tx) error { return f.prepare(conn) })
}

// once is a transaction. The writer's connection is the closure's while it runs.
func (f *floor) once(ctx context.Context) error {
	return txn.Update(ctx, f.world.store, func(tx counting) error {
		if err := tx.Add(event.MainSpace, "floor", 1); err != nil { // a store that knows of a write writes its own row too
			return err
		}
		return f.write()
	})
}

// counting is the part of a store's transaction that changes counters.
type counting interface {
	event.Tx
	Add(space, name string, n int64) error
}

// bare is the same two rows by a loop around the driver, a flush for each.
type bare struct {
	twoRows
	conn driver.Conn
	mu   sync.Mutex
}

func openBare(dir string) (*bare, error) {
	d := &sqlite.Driver{}
	c, err := d.Open("file:" + filepath.Join(dir, "bare.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	f := &bare{conn: c}
	return f, f.prepare(c)
}

func (f *bare) once(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := f.write(); err != nil {
		return err
	}
	return f.exec("COMMIT")
}

// twoRows are prepared statements on one connection.
type twoRows struct {
	conn  driver.Conn
	stmts map[string]driver.Stmt
	n     int64
}

func (t *twoRows) prepare(c driver.Conn) error {
	t.conn, t.stmts = c, map[string]driver.Stmt{}
	_, err := c.(driver.ExecerContext).ExecContext(context.Background(), floorTables, nil)
	return err
}

func (t *twoRows) write() error {
	t.n++
	if err := t.exec(insertA, t.n, floorBody); err != nil {
		return err
	}
	return t.exec(insertB, t.n, t.n, floorBody)
}

func (t *twoRows) exec(sql string, args ...driver.Value) error {
	s, ok := t.stmts[sql]
	if !ok {
		var err error
		if s, err = t.conn.Prepare(sql); err != nil {
			return fmt.Errorf("prepare %s: %w", sql, err)
		}
		t.stmts[sql] = s
	}
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), named)
	return err
}
