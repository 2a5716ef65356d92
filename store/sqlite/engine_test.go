package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("PLACET_TEST_ROLE"); role != "" {
		os.Exit(playRole(role))
	}
	goleak.VerifyTestMain(m)
}

// testSchema is what the engine itself needs, and a table to write to.
const testSchema = `
CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, min_writer INTEGER NOT NULL, min_reader INTEGER NOT NULL, store_id TEXT NOT NULL, epoch INTEGER NOT NULL, next_seq INTEGER NOT NULL, last_at INTEGER NOT NULL, restored_at INTEGER, restored_to INTEGER) STRICT;
CREATE TABLE event(seq INTEGER PRIMARY KEY, stream TEXT NOT NULL, body BLOB) STRICT;
CREATE TABLE junk(i INTEGER) STRICT;
CREATE TABLE note(id TEXT PRIMARY KEY, seq INTEGER NOT NULL REFERENCES event(seq), body BLOB, CHECK (id <> 'forbidden')) STRICT;
`

func testMigrations(more ...string) fs.FS {
	m := fstest.MapFS{"0001_init.sql": {Data: []byte(testSchema)}}
	for i, sql := range more {
		m[fmt.Sprintf("%04d_more.sql", i+2)] = &fstest.MapFile{Data: []byte(sql)}
	}
	return m
}

// bundle is one test's own world.
type bundle struct {
	*engine
	t    *testing.T
	path string
	log  *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func setup(t *testing.T, o Options) *bundle {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "placet.db"), o)
}

func reopen(t *testing.T, path string, o Options, more ...string) *bundle {
	t.Helper()
	log := &syncBuffer{}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	e, err := openEngine(context.Background(), path, o, testMigrations(more...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() && log.String() != "" {
			t.Log(log.String())
		}
	})
	return &bundle{engine: e, t: t, path: path, log: log}
}

const (
	insertEventSQL = `INSERT INTO event(seq, stream, body) VALUES (?, ?, ?)`
	insertNoteSQL  = `INSERT INTO note(id, seq, body) VALUES (?, ?, ?)`
	countNotesSQL  = `SELECT count(*) FROM note`
	findNoteSQL    = `SELECT seq FROM note WHERE id = ?`
)

// write stores a note and its event: the two rows that stand or fall together.
func write(h *handle, id string) error { return writeTo(h, id, "run:1") }

func writeTo(h *handle, id, stream string) error {
	seq, err := h.nextSeq()
	if err != nil {
		return err
	}
	if _, err := h.Exec(insertEventSQL, seq, stream, []byte("0123456789012345678901234567890123456789")); err != nil {
		return err
	}
	if _, err := h.Exec(insertNoteSQL, id, seq, []byte("0123456789012345678901234567890123456789")); err != nil {
		return err
	}
	h.Touch(stream)
	return nil
}

func (b *bundle) write(id string) error {
	return b.update(context.Background(), func(h *handle) error { return write(h, id) })
}

func (b *bundle) mustWrite(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		if err := b.write(id); err != nil {
			b.t.Fatalf("write %s: %v", id, err)
		}
	}
}

func (b *bundle) has(id string) bool {
	b.t.Helper()
	found := false
	err := b.view(context.Background(), func(h *handle) (err error) {
		found, err = h.queryRow(findNoteSQL, []any{id}, func(sqlrows.Row) error { return nil })
		return err
	})
	if err != nil {
		b.t.Fatalf("look for %s: %v", id, err)
	}
	return found
}

func (b *bundle) number(sql string, args ...any) (n int64) {
	b.t.Helper()
	err := b.view(context.Background(), func(h *handle) error {
		return h.Query(sql, args, func(r sqlrows.Row) error { n = r.Int(0); return nil })
	})
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// sound checks what holds whatever happened: notes and events pair up, numbers
// are dense, and SQLite finds nothing wrong.
func (b *bundle) sound() {
	b.t.Helper()
	events, notes := b.number(`SELECT count(*) FROM event`), b.number(countNotesSQL)
	if events != notes {
		b.t.Errorf("%d events and %d notes", events, notes)
	}
	if last, next := b.number(`SELECT coalesce(max(seq), 0) FROM event`), b.number(`SELECT next_seq FROM meta`); last != events || next != last+1 {
		b.t.Errorf("%d events end at number %d, and %d comes next", events, last, next)
	}
	if n := b.number(`SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`); n != 0 {
		b.t.Errorf("SQLite finds %d faults", n)
	}
	if n := b.number(`SELECT count(*) FROM pragma_foreign_key_check`); n != 0 {
		b.t.Errorf("%d rows point to nothing", n)
	}
}

func TestUpdateAndView(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a", "b")
	if !b.has("a") || !b.has("b") || b.has("c") {
		t.Error("what was written is not what is read")
	}
	b.sound()
}

var _ = []any{errors.Is, runtime.Goexit, strings.Contains, atomic.AddInt64, time.Now, txn.ErrBusy}
