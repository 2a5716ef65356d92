package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// saboteur makes one statement of the writer fail, or ends the transaction
// before it. It is armed from inside a closure, so nothing races.
type saboteur struct {
	t    *testing.T
	raw  driver.Conn
	kind string
	at   int // the at-th statement from arming; 0: not armed
	seen int
	died int    // transactions that SQLite itself ended
	hit  string // the statement it hit
	more string // a statement to fail as well, once
	do   func() // for kind "cancel"
	conn func() *conn
}

func (s *saboteur) hooks() *Hooks { return &Hooks{Opened: s.opened, BeforeStatement: s.before} }

func (s *saboteur) opened(c driver.Conn) {
	s.raw = c
	s.exec(context.Background(), `CREATE TEMP TABLE trap(i)`)
	s.exec(context.Background(), `CREATE TEMP TRIGGER spring BEFORE INSERT ON trap BEGIN SELECT RAISE(ROLLBACK, 'sprung'); END`)
}

func (s *saboteur) exec(ctx context.Context, sql string) error {
	_, err := s.raw.(driver.ExecerContext).ExecContext(ctx, sql, nil)
	if err != nil && ctx.Done() == nil && !strings.Contains(sql, "trap") && !strings.Contains(sql, "zeroblob") {
		s.t.Errorf("%s: %v", sql, err)
	}
	return err
}

func (s *saboteur) arm(kind string, at int) { s.kind, s.at, s.seen, s.hit = kind, at, 0, "" }

var errInjected = errors.New("injected")

func (s *saboteur) before(_ int, sql string) error {
	if s.raw != nil && sql == beginSQL {
		s.exec(context.Background(), `PRAGMA max_page_count = 1073741823`)
	}
	if s.more != "" && sql == s.more {
		s.more = ""
		return errInjected
	}
	if s.at == 0 {
		return nil
	}
	if s.seen++; s.seen != s.at {
		return nil
	}
	s.hit = sql
	err := s.strike()
	if s.conn().dead {
		s.died++
	}
	return err
}

func (s *saboteur) strike() error {
	switch s.kind {
	case "error":
		return errInjected
	case "twoErrors":
		s.more = rollbackSQL
		return errInjected
	case "raise":
		s.exec(context.Background(), `INSERT INTO trap VALUES (1)`)
	case "full":
		s.exec(context.Background(), `PRAGMA max_page_count = 1`) // as many as there are
	case "fullNow":
		s.exec(context.Background(), `PRAGMA max_page_count = 1`)
		s.exec(context.Background(), `INSERT INTO event(seq, stream, body) VALUES (-1, '', zeroblob(4000000))`)
	case "interrupt":
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		s.exec(ctx, `INSERT INTO junk WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000000) SELECT i FROM n`)
	case "cancel":
		s.do()
	}
	return nil
}

// Whatever goes wrong at whichever statement of a batch of three: who was told
// an error has left nothing, who was told nil is there, also after opening again.
func TestFaultAtEveryStatement(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"error", "twoErrors", "raise", "full", "fullNow", "interrupt", "cancel"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := &saboteur{t: t}
			b := setup(t, Options{Hooks: s.hooks()})
			b.writer.maxWork = time.Minute
			s.conn = func() *conn { return b.writer.c }
			b.fillPage()
			fate := map[string]error{}
			hits := map[string]bool{}
			for at := 1; ; at++ {
				ids, errs := b.threeWith(s, kind, at)
				b.judge(kind, s.hit, ids, errs)
				for i, id := range ids {
					fate[id] = errs[i]
				}
				if s.hit == "" {
					break
				}
				hits[s.hit] = true
			}
			for _, sql := range []string{savepointSQL, insertEventSQL, insertNoteSQL, releaseSQL, writeMetaSQL, commitSQL} {
				if !hits[sql] {
					t.Errorf("never struck at %s", brief(sql))
				}
			}
			if dies := kind == "raise" || kind == "fullNow" || kind == "interrupt"; dies != (s.died > 0) {
				t.Errorf("SQLite ended %d transactions", s.died)
			}
			b.sound()
			b.agreeAfterReopening(fate)
		})
	}
}

// fillPage leaves little room, so that a full disk is met at once.
func (b *bundle) fillPage() {
	for i := range 20 {
		b.mustWrite(fmt.Sprint("fill-", i))
	}
}

// threeWith runs three closures in one batch, each of two rows that need a page of their own.
func (b *bundle) threeWith(s *saboteur, kind string, at int) (ids []string, errs []error) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.do = cancel
	var once sync.Once // a closure may run again
	fns := []func(*handle) error{func(*handle) error { once.Do(func() { s.arm(kind, at) }); return nil }}
	ctxs := []context.Context{context.Background()}
	for _, c := range "abc" {
		id := fmt.Sprintf("%d-%c", at, c)
		ids = append(ids, id)
		fns = append(fns, func(h *handle) error { return writeWide(h, id) })
		ctxs = append(ctxs, ctx)
	}
	errs = b.togetherWith(ctxs, fns...)[1:]
	s.at, s.more = 0, "" // all were answered: the writer rests
	return ids, errs
}

func writeWide(h *handle, id string) error {
	seq, err := h.nextSeq()
	if err != nil {
		return err
	}
	if _, err := h.Exec(insertEventSQL, seq, "run:1", make([]byte, 6000)); err != nil {
		return err
	}
	_, err = h.Exec(insertNoteSQL, id, seq, make([]byte, 6000))
	return err
}

func (b *bundle) judge(kind, hit string, ids []string, errs []error) {
	b.t.Helper()
	wrong := 0
	for i, id := range ids {
		if has := b.has(id); has != (errs[i] == nil) {
			b.t.Errorf("struck at %s: %s was told %v, and its row is there: %v", brief(hit), id, errs[i], has)
		}
		if errs[i] != nil {
			wrong++
			if !errors.Is(errs[i], txn.ErrNotCommitted) && !errors.Is(errs[i], errInjected) {
				b.t.Errorf("struck at %s: %s was told %v", brief(hit), id, errs[i])
			}
		}
	}
	// Only the culprit is told; the others are run again. A full disk stays full
	// for the others, and leaving callers leave together.
	if most := map[string]int{"full": 3, "cancel": 3}[kind]; wrong > max(most, 1) {
		b.t.Errorf("struck at %s: %d were told an error", brief(hit), wrong)
	}
}

func (b *bundle) agreeAfterReopening(fate map[string]error) {
	b.t.Helper()
	if err := b.close(); err != nil {
		b.t.Errorf("close: %v", err)
	}
	again := reopen(b.t, b.path, Options{})
	for id, err := range fate {
		if again.has(id) != (err == nil) {
			b.t.Errorf("after opening again: %s was told %v", id, err)
		}
	}
	again.sound()
}

// Those who did not cause it are run once more, each alone, and no more than that.
func TestOthersAreRunAgainOnce(t *testing.T) {
	t.Parallel()
	s := &saboteur{t: t}
	begins := 0
	hooks := s.hooks()
	hooks.BeforeStatement = func(n int, sql string) error {
		if sql == beginSQL {
			begins++
		}
		return s.before(n, sql)
	}
	b := setup(t, Options{Hooks: hooks})
	b.writer.maxWork = time.Minute
	var runs [3]int
	own := errors.New("saw something")
	count := func(i int, err error) func(*handle) error {
		return func(h *handle) error {
			runs[i]++
			if i == 1 && runs[1] == 1 {
				s.exec(context.Background(), `INSERT INTO trap VALUES (1)`)
			}
			return errors.Join(write(h, fmt.Sprint(i)), err)
		}
	}
	errs := b.together(count(0, nil), count(1, nil), count(2, own))
	if errs[0] != nil || !errors.Is(errs[1], txn.ErrNotCommitted) || !errors.Is(errs[2], own) {
		t.Errorf("told %v", errs)
	}
	if runs != [3]int{2, 1, 1} {
		t.Errorf("ran %v times", runs) // the third had not begun when the batch died
	}
	if !b.has("0") || b.has("1") || b.has("2") {
		t.Error("what is there does not agree")
	}
	b.sound()
}

// A closure may not go on in a dead batch, whatever it does with the errors.
func TestDeadBatchRunsNothing(t *testing.T) {
	t.Parallel()
	s := &saboteur{t: t}
	b := setup(t, Options{Hooks: s.hooks()})
	err := b.update(context.Background(), func(h *handle) error {
		_ = write(h, "before")
		s.exec(context.Background(), `INSERT INTO trap VALUES (1)`)
		if err := write(h, "after"); !errors.Is(err, txn.ErrNotCommitted) {
			t.Errorf("a statement after the end said %v", err)
		}
		if err := h.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil }); !errors.Is(err, txn.ErrNotCommitted) {
			t.Errorf("a query after the end said %v", err)
		}
		return nil // it swallows them
	})
	if !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("told %v", err)
	}
	if b.has("before") || b.has("after") {
		t.Error("something stayed")
	}
	b.mustWrite("later")
	b.sound()
}

func TestCertain(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{
		sqlite3.SQLITE_FULL: true, sqlite3.SQLITE_BUSY: true, sqlite3.SQLITE_CONSTRAINT_TRIGGER: true,
		sqlite3.SQLITE_IOERR: false, sqlite3.SQLITE_IOERR_FSYNC: false, sqlite3.SQLITE_IOERR_SHMSIZE: false,
		sqlite3.SQLITE_NOMEM: false, sqlite3.SQLITE_CORRUPT: false, sqlite3.SQLITE_CANTOPEN: false,
	} {
		if certain(code) != want {
			t.Errorf("after code %d the outcome is certain: %v", code, !want)
		}
	}
}

// What a closure concluded from another's row, which then was not committed, is
// not what its caller hears: it looks again.
func TestNobodyHearsOfWhatWasNotCommitted(t *testing.T) {
	t.Parallel()
	s := &saboteur{t: t}
	b := setup(t, Options{Hooks: s.hooks()})
	b.writer.maxWork = time.Minute
	var runs [3]int
	taken := errors.New("taken")
	errs := b.together(
		func(h *handle) error { // the second time it thinks better of it
			if runs[0]++; runs[0] > 1 {
				return nil
			}
			return write(h, "a")
		},
		func(h *handle) error {
			runs[1]++
			found, err := h.queryRow(findNoteSQL, []any{"a"}, func(sqlrows.Row) error { return nil })
			if found {
				return taken
			}
			return err
		},
		func(h *handle) error {
			runs[2]++
			s.exec(context.Background(), `INSERT INTO trap VALUES (1)`)
			return write(h, "c")
		})
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], txn.ErrNotCommitted) {
		t.Errorf("told %v", errs)
	}
	if runs != [3]int{2, 2, 1} {
		t.Errorf("ran %v times", runs)
	}
	b.sound()
}
