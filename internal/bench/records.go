package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// fill copies the rows of the one cycle that is in the file, again and again, in
// SQL: so many calls that were asked, approved and done. They are older than
// anything that is written later, and their bytes are of the usual number.
func fill(path string, records int64) error {
	conn, err := (&sqlite.Driver{}).Open("file:" + path + "?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-262144)")
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, t := range copies {
		sql, err := t.sql(conn)
		if err != nil {
			return err
		}
		if err := execute(conn, sql, records); err != nil {
			return fmt.Errorf("fill %s: %w", t.table, err)
		}
	}
	if err := execute(conn, `UPDATE meta SET next_seq = (SELECT max(seq) FROM event) + 1`); err != nil {
		return err
	}
	return execute(conn, `PRAGMA journal_mode(WAL)`)
}

// copied is a table and what differs from the row that is copied. X is the body
// of the copy's ids; like a UUIDv7 it grows with time.
type copied struct {
	table   string
	differs map[string]string
}

const idBody = `printf('018%05x-%04x-7000-8000-%012x', i / 65536, i % 65536, i)`

var copies = []copied{
	{"call", map[string]string{"id": `'call_' || X`, "run_id": `'run_' || X`, "approval_id": `'apr_' || X`}},
	{"decision", map[string]string{"id": `'apr_' || X`, "run_id": `'run_' || X`, "owner_id": `'call_' || X`, "call_id": `'call_' || X`}},
	{"vote", map[string]string{"decision_id": `'apr_' || X`}},
	{"attempt", map[string]string{"call_id": `'call_' || X`, "approval_id": `'apr_' || X`}},
	{"event", map[string]string{
		"seq": `1000 + i * 8 + t.stream_seq`, "stream": `'call:call_' || X`, "id": `'evt_' || X`,
		"subject": `CASE WHEN t.subject LIKE 'apr_%' THEN 'apr_' ELSE 'call_' END || X`,
	}},
}

// sql copies the rows that were there before the first copy.
func (c copied) sql(conn driver.Conn) (string, error) {
	names, err := columns(conn, c.table)
	if err != nil {
		return "", err
	}
	values := make([]string, len(names))
	for i, n := range names {
		values[i] = "t." + n
		if v, ok := c.differs[n]; ok {
			values[i] = strings.ReplaceAll(v, "X", "x")
		}
	}
	return fmt.Sprintf(`WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?),
		ids(i, x) AS (SELECT i, %s FROM n)
		INSERT INTO %s(%s) SELECT %s FROM ids CROSS JOIN (SELECT * FROM %s LIMIT 5) AS t`,
		idBody, c.table, strings.Join(names, ", "), strings.Join(values, ", "), c.table), nil
}

// columns are those that hold something: what is computed from others is left out.
func columns(conn driver.Conn, table string) (names []string, err error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(context.Background(), `SELECT name FROM pragma_table_info(?)`, []driver.NamedValue{{Ordinal: 1, Value: table}})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for row := []driver.Value{nil}; ; {
		if err := rows.Next(row); err == io.EOF {
			return names, nil
		} else if err != nil {
			return nil, err
		}
		names = append(names, row[0].(string))
	}
}

func execute(conn driver.Conn, sql string, args ...driver.Value) error {
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	_, err := conn.(driver.ExecerContext).ExecContext(context.Background(), sql, named)
	return err
}

// history compares a long file with an empty one.
func history(ctx context.Context, b *bench) error {
	b.title("records: a file with %d decided records (targets: rate 0.9 of an empty one's, a page of pending ones under 5 ms)", b.records)
	long, empty := b.path("long.db"), b.path("empty.db")
	if err := b.makeLong(ctx, long); err != nil {
		return err
	}
	if err := b.compareRates(ctx, empty, long); err != nil {
		return err
	}
	return b.compareMemory(ctx, empty, long)
}

func (b *bench) makeLong(ctx context.Context, path string) error {
	w, err := openWorld(ctx, path, nil)
	if err != nil {
		return err
	}
	if err := w.cycle(ctx); err != nil {
		return err
	}
	if err := w.store.Close(); err != nil {
		return err
	}
	began := time.Now()
	if err := fill(path, b.records); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	b.line("filled in %s; the file has %s", time.Since(began).Round(100*time.Millisecond), size(info.Size()))
	return nil
}

func (b *bench) compareRates(ctx context.Context, empty, long string) error {
	e, err := openWorld(ctx, empty, nil)
	if err != nil {
		return err
	}
	defer e.store.Close()
	l, err := openWorld(ctx, long, nil)
	if err != nil {
		return err
	}
	defer l.store.Close()
	for _, callers := range []int{1, 16} {
		got, err := b.turns(ctx, callers, side{"empty", e.cycle}, side{"long", l.cycle})
		if err != nil {
			return err
		}
		b.line("%3d callers: %6.0f cycles/s, in an empty file %6.0f/s, ratio %.2f", callers, got[1].rate(), got[0].rate(), got[1].ratio(&got[0], 1))
	}
	return b.pendingPage(ctx, l)
}

// pendingPage measures what an inbox asks for first, with many pending ones.
func (b *bench) pendingPage(ctx context.Context, w *world) error {
	for range b.parked {
		if _, err := w.park(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	list, err := w.op.Pending(ctx, 0)
	first := time.Since(began)
	if err != nil {
		return err
	}
	each, err := b.timeOf(func() error { _, err := w.op.Pending(ctx, 0); return err })
	b.line("first page of pending approvals, %d of %d: %s, the first time %s", len(list), b.parked, micro(each), micro(first))
	return err
}
