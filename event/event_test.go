package event_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one test's own store, with streams that belong to bare calls.
type world struct {
	t    *testing.T
	ctx  context.Context
	path string
	st   *store.Store
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "p.db")}
	w.st = w.open(&sqlite.Hooks{Twice: true, Strict: true})
	return w
}

func (w *world) open(hooks *sqlite.Hooks) *store.Store {
	w.t.Helper()
	st, err := sqlite.Open(context.Background(), w.path, &sqlite.Options{Hooks: hooks, BusyTimeout: 5 * time.Minute})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { st.Close() })
	return st
}

// stream makes a stream with n events.
func (w *world) stream(id string, n int) string {
	w.t.Helper()
	c := call.Call{
		ID: id, Space: event.MainSpace, RunID: "run_1", Tool: "t", Args: []byte(`{}`), ContinueBy: call.ByCaller,
		Status: call.Denied, CreatedAt: time.Now(), EndedAt: time.Now(),
	}
	err := txn.Update(w.ctx, w.st, func(tx store.Tx) error { return tx.InsertCall(c) })
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		w.add(w.st, c.Stream(), i)
	}
	return c.Stream()
}

type payload struct {
	I    int    `json:"i"`
	Text string `json:"text"`
}

func (w *world) add(st *store.Store, stream string, i int) {
	w.t.Helper()
	if err := add(w.ctx, st, stream, i); err != nil {
		w.t.Error(err)
	}
}

func add(ctx context.Context, st txn.Store, stream string, i int) error {
	return txn.Update(ctx, st, func(tx event.Tx) error {
		return tx.Append(stream, event.New(event.Type(fmt.Sprintf("t%d", i%3)), fmt.Sprintf("s%d", i), "ana", payload{i, "<&>\u2028é"}))
	})
}

// raw changes rows past every check of ours.
func (w *world) raw(query string, args ...any) {
	w.t.Helper()
	u := url.URL{Scheme: "file", Path: w.path}
	db, err := sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(20000)&_pragma=wal_autocheckpoint(0)&_pragma=ignore_check_constraints(1)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{`DROP TRIGGER IF EXISTS event_update`, `DROP TRIGGER IF EXISTS event_delete`} {
		if _, err := db.Exec(q); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := db.Exec(query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

func (w *world) verify(expect ...event.Head) event.Report {
	w.t.Helper()
	rep, err := event.Verify(w.ctx, w.st, expect)
	if err != nil {
		w.t.Fatal(err)
	}
	return rep
}

func TestChain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := w.stream("call_a", 5), w.stream("call_b", 3)
	rep := w.verify()
	if rep.Break != nil || rep.Streams != 2 || rep.Events != 8 || rep.Redacted != 0 {
		t.Errorf("%+v", rep)
	}
	page, err := event.Read(w.ctx, w.st, a, "", 0)
	if err != nil || len(page.Events) != 5 {
		t.Fatalf("%d events, %v", len(page.Events), err)
	}
	prev := make([]byte, 32)
	salts := map[string]bool{}
	for i, e := range page.Events {
		if e.StreamSeq != int64(i+1) || e.Stream != a || e.V != event.Version || !bytes.Equal(e.PrevHash, prev) || len(e.Salt) != 16 || len(e.Hash) != 32 || e.Redacted {
			t.Errorf("event %d: %+v", i, e)
		}
		prev = e.Hash
		salts[string(e.Salt)] = true
		var p payload
		if err := json.Unmarshal(e.Payload, &p); err != nil || p.Text != "<&>\u2028é" || p.I != i {
			t.Errorf("payload %s", e.Payload)
		}
	}
	if len(salts) != 5 {
		t.Errorf("%d salts", len(salts))
	}
	if h := rep.Heads[0]; h.Stream != a || h.Seq != 5 || !bytes.Equal(h.Hash, prev) {
		t.Errorf("head %+v", h)
	}
	for _, h := range rep.Heads {
		got, err := event.ParseHead(h.String())
		if err != nil || cmp.Diff(h, got) != "" {
			t.Errorf("%s: %+v, %v", h, got, err)
		}
	}
	for _, bad := range []string{"", "call:x", "call:x:1", "call:x:0:" + strings.Repeat("0", 64), "call:x:1:00", ":1:" + strings.Repeat("0", 64), "call:x:one:" + strings.Repeat("0", 64)} {
		if _, err := event.ParseHead(bad); err == nil {
			t.Errorf("%q is taken for a head", bad)
		}
	}
	_ = b
}

// Every column of every event, altered by itself: found, at its place. Only seq
// stands outside (design §6), and a body can be emptied.
func TestVerifyFindsEveryAlteration(t *testing.T) {
	t.Parallel()
	alterations := map[string][]string{
		"space": {"''", "space || 'x'"}, "stream": {"'call:call_c'", "'call:x'"}, "stream_seq": {"stream_seq + 100", "stream_seq + 1000000"},
		"id": {"''", "id || 'x'", "upper(id)"}, "v": {"0", "2"}, "at": {"at + 1", "at - 1", "0"}, "type": {"''", "'T1'", "type || ' '"},
		"subject": {"''", "subject || 'x'"}, "actor": {"''", "'bo'", "'ana '", "NULL"}, "salt": {"x''", "NULL", "zeroblob(16)", "zeroblob(15)"},
		"payload":   {"x''", "CAST(replace(CAST(payload AS TEXT), ':2', ':3') AS BLOB)", "CAST(CAST(payload AS TEXT) || ' ' AS BLOB)"},
		"body_hash": {"x''", "zeroblob(32)"}, "prev_hash": {"x''", "zeroblob(32)", "x'01'"}, "hash": {"x''", "zeroblob(32)", "x'0102'"},
	}
	w := setup(t)
	w.stream("call_a", 4)
	w.stream("call_b", 2)
	w.stream("call_c", 0)
	w.raw(`CREATE TABLE saved AS SELECT * FROM event`)
	restore := func() {
		w.raw(`DELETE FROM event`)
		w.raw(`INSERT INTO event SELECT * FROM saved`)
	}
	columns := map[string]bool{}
	for column, forged := range alterations {
		columns[column] = true
		for _, f := range forged {
			for _, at := range []int{1, 3, 4} {
				where := fmt.Sprintf(` WHERE stream = 'call:call_a' AND stream_seq = %d AND %s IS NOT %s`, at, column, f)
				w.raw(`UPDATE event SET ` + column + ` = ` + f + where)
				rep := w.verify()
				if same := column == "prev_hash" && f == "zeroblob(32)" && at == 1 || column == "payload" && strings.Contains(f, ":2") && at != 3; same {
					if rep.Break != nil {
						t.Errorf("%s = %s at %d changed nothing and is found: %+v", column, f, at, rep.Break)
					}
				} else if rep.Break == nil {
					t.Errorf("%s = %s at %d is not found", column, f, at)
				} else if rep.Break.Stream == "call:call_a" && rep.Break.StreamSeq != int64(at) && rep.Break.StreamSeq != int64(at+1) && column != "stream_seq" {
					t.Errorf("%s = %s at %d is found at %d: %s", column, f, at, rep.Break.StreamSeq, rep.Break.Problem)
				}
				// Whatever stands there, reading and waiting does not fall over.
				page, _ := event.Read(w.ctx, w.st, "call:call_a", "", 0)
				_, _ = event.Read(w.ctx, w.st, "call:call_a", page.Cursor, 0)
				_, _ = event.Read(w.ctx, w.st, "", "", 0)
				restore()
			}
		}
	}
	if rep := w.verify(); rep.Break != nil {
		t.Fatalf("the restored log is broken: %+v", rep.Break)
	}
	// Every byte of a payload, a salt and the hashes.
	for _, column := range []string{"payload", "salt", "body_hash", "prev_hash", "hash"} {
		n := 0
		w.query(`SELECT length(`+column+`) FROM event WHERE stream = 'call:call_a' AND stream_seq = 2`, &n)
		for i := 1; i <= n; i++ {
			w.raw(fmt.Sprintf(`UPDATE event SET %[1]s = CAST(substr(%[1]s, 1, %[2]d - 1) || CASE substr(%[1]s, %[2]d, 1) WHEN x'21' THEN x'22' ELSE x'21' END || substr(%[1]s, %[2]d + 1) AS BLOB) WHERE stream = 'call:call_a' AND stream_seq = 2`, column, i))
			if rep := w.verify(); rep.Break == nil {
				t.Errorf("byte %d of %s altered: not found", i, column)
			}
			restore()
		}
	}
	for _, c := range w.columns() {
		if !columns[c] && c != "seq" {
			t.Errorf("the test does not know the column %s", c)
		}
	}
}

func (w *world) query(query string, into any) {
	w.t.Helper()
	u := url.URL{Scheme: "file", Path: w.path}
	db, err := sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(20000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(into); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) columns() []string {
	w.t.Helper()
	var all string
	w.query(`SELECT group_concat(name) FROM pragma_table_info('event')`, &all)
	return strings.Split(all, ",")
}

// Rows that are missing, moved or added, and heads that were altered with them or not.
// One stream is looked at alone: what is wrong in another is not its fault.
func TestVerifyStream(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := w.stream("call_a", 5), w.stream("call_b", 3)
	w.raw(`UPDATE event SET payload = CAST('{"i":7}' AS BLOB) WHERE stream = ? AND stream_seq = 2`, b)
	rep, err := event.VerifyStream(w.ctx, w.st, a)
	if err != nil || rep.Break != nil || rep.Events != 5 || len(rep.Heads) != 1 || rep.Heads[0].Seq != 5 || rep.Heads[0].Stream != a {
		t.Errorf("%+v %v", rep, err)
	}
	rep, err = event.VerifyStream(w.ctx, w.st, b)
	if err != nil || rep.Break == nil || rep.Break.Stream != b || rep.Break.StreamSeq != 2 {
		t.Errorf("%+v %v", rep, err)
	}
	if _, err := event.VerifyStream(w.ctx, w.st, "call:none"); !errors.Is(err, event.ErrNoStream) {
		t.Errorf("a stream that is not there: %v", err)
	}
}

func TestVerifyFindsMissing(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, sql, problem string }{
		{"the first", `DELETE FROM event WHERE stream = 'call:call_a' AND stream_seq = 1`, "missing before it"},
		{"one between", `DELETE FROM event WHERE stream = 'call:call_a' AND stream_seq = 3`, "missing before it"},
		{"the last", `DELETE FROM event WHERE stream = 'call:call_a' AND stream_seq = 4`, "the stream ends here"},
		{"all", `DELETE FROM event WHERE stream = 'call:call_a'`, "the stream ends here"},
		{"two swapped", `UPDATE event SET stream_seq = CASE stream_seq WHEN 2 THEN 30 ELSE stream_seq END WHERE stream = 'call:call_a'`, "missing before it"},
		{"the root", `DELETE FROM call WHERE id = 'call_a'`, "no root"},
		{"head seq higher", `UPDATE call SET head_seq = 9 WHERE id = 'call_a'`, "the stream ends here"},
		{"head seq lower", `UPDATE call SET head_seq = 2 WHERE id = 'call_a'`, "the head in the root's row"},
		{"head put back", `UPDATE call SET head_seq = 2, head = (SELECT hash FROM event WHERE stream = 'call:call_a' AND stream_seq = 2) WHERE id = 'call_a'`, "behind the head"},
		{"head", `UPDATE call SET head = zeroblob(32) WHERE id = 'call_a'`, "the head in the root's row"},
		{"no head", `UPDATE call SET head = NULL, head_seq = 0 WHERE id = 'call_a'`, "behind the head"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.stream("call_a", 4)
			w.stream("call_b", 2)
			w.raw(tt.sql)
			rep := w.verify()
			if rep.Break == nil || !strings.Contains(rep.Break.Problem, tt.problem) || rep.Break.Stream != "call:call_a" {
				t.Errorf("got %+v, want %q", rep.Break, tt.problem)
			}
		})
	}
	t.Run("a tail cut with its head", func(t *testing.T) { // seen only against a head kept elsewhere
		t.Parallel()
		w := setup(t)
		a := w.stream("call_a", 4)
		kept := w.verify().Heads
		w.add(w.st, a, 4)
		if rep := w.verify(kept...); rep.Break != nil {
			t.Errorf("a stream that grew: %+v", rep.Break)
		}
		w.raw(`UPDATE call SET head_seq = 3, head = (SELECT hash FROM event WHERE stream_seq = 3) WHERE id = 'call_a'`)
		w.raw(`DELETE FROM event WHERE stream_seq > 3`)
		if rep := w.verify(); rep.Break != nil {
			t.Errorf("nothing can be seen of it: %+v", rep.Break)
		}
		if rep := w.verify(kept...); rep.Break == nil || !strings.Contains(rep.Break.Problem, "kept is number 4") {
			t.Errorf("got %+v", rep.Break)
		}
		w.add(w.st, a, 7) // another fourth event
		if rep := w.verify(kept...); rep.Break == nil || rep.Break.StreamSeq != 4 {
			t.Errorf("got %+v", rep.Break)
		}
		if rep := w.verify(event.Head{Stream: "call:call_x", Seq: 1, Hash: make([]byte, 32)}); rep.Break == nil || !strings.Contains(rep.Break.Problem, "not in this store") {
			t.Errorf("got %+v", rep.Break)
		}
	})
}

// A redacted body is gone; its place and everything behind it still verify.
func TestRedact(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 3)
	if err := event.Redact(w.ctx, w.st, a, 2, "ana", "a secret"); err != nil {
		t.Fatal(err)
	}
	rep := w.verify()
	if rep.Break != nil || rep.Events != 4 || rep.Redacted != 1 {
		t.Errorf("%+v", rep)
	}
	page, err := event.Read(w.ctx, w.st, a, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	e, last := page.Events[1], page.Events[3]
	if !e.Redacted || e.Payload != nil || e.Salt != nil || e.Actor != "" || e.Subject != "s1" {
		t.Errorf("redacted %+v", e)
	}
	if last.Type != event.EventRedacted || last.Actor != "ana" || string(last.Payload) != `{"stream_seq":2,"note":"a secret"}` {
		t.Errorf("%+v %s", last, last.Payload)
	}
	for _, err := range []error{
		event.Redact(w.ctx, w.st, a, 2, "ana", ""), event.Redact(w.ctx, w.st, a, 9, "ana", ""), event.Redact(w.ctx, w.st, a, 0, "ana", ""),
	} {
		if !errors.Is(err, event.ErrNoEvent) {
			t.Errorf("got %v", err)
		}
	}
	if err := event.Redact(w.ctx, w.st, "call:call_x", 1, "ana", ""); !errors.Is(err, event.ErrNoStream) {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][2]string{{"", ""}, {"\xff", ""}, {"ana", "\x00"}} {
		if err := event.Redact(w.ctx, w.st, a, 1, bad[0], bad[1]); !errors.Is(err, event.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if rep := w.verify(); rep.Events != 4 {
		t.Errorf("a refused redaction was noted: %+v", rep)
	}
	w.raw(`UPDATE event SET actor = 'eve' WHERE stream_seq = 2`) // nothing may be put into the hole
	if rep := w.verify(); rep.Break == nil {
		t.Error("an actor in a redacted event is not found")
	}
}

// The log itself refuses to be changed; only whole bodies can go.
func TestLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.stream("call_a", 2)
	u := url.URL{Scheme: "file", Path: w.path}
	db, err := sql.Open("sqlite", u.String()+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{
		`UPDATE event SET actor = 'x'`, `UPDATE event SET payload = NULL`, `UPDATE event SET hash = x'00', actor = NULL, payload = NULL, salt = NULL`,
		`UPDATE event SET subject = 'x'`, `UPDATE event SET v = 2`, `DELETE FROM event`, `DELETE FROM event WHERE stream_seq = 2`,
		`UPDATE event SET seq = seq + 100`,
	} {
		if _, err := db.Exec(q); err == nil {
			t.Errorf("taken: %s", q)
		}
	}
	if rep := w.verify(); rep.Break != nil || rep.Events != 2 {
		t.Errorf("%+v", rep)
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := w.stream("call_a", 5), w.stream("call_b", 5)
	var all []event.Event
	cursor := event.Cursor("")
	for { // page by page, each once
		page, err := event.Read(w.ctx, w.st, "", cursor, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			if page.Cursor != cursor {
				t.Errorf("an empty page moves the cursor to %s", page.Cursor)
			}
			break
		}
		all = append(all, page.Events...)
		cursor = page.Cursor
	}
	if len(all) != 10 {
		t.Fatalf("%d events", len(all))
	}
	for i, e := range all {
		if e.Pos != int64(i+1) {
			t.Errorf("event %d at pos %d", i, e.Pos)
		}
	}
	first, err := event.Read(w.ctx, w.st, a, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	if first.Cursor != event.CursorOf(first.Events[1]) || event.CursorAt(event.Head{Stream: a}) != "" {
		t.Errorf("cursor %s", first.Cursor)
	}
	other, _ := event.Read(w.ctx, w.st, b, "", 2)
	good := string(first.Cursor)
	for _, c := range []string{
		"x", "s", "s1", "s1-", "s0-" + good[3:], "s-1-" + good[3:], "s9-" + good[3:], "p2-" + good[3:], good + "0", good[:len(good)-1], good[:len(good)-1] + "z",
		strings.ToUpper(good), "+" + good, "s+2" + good[2:], " " + good, "s02" + good[2:], string(other.Cursor), string(event.PosCursorOf(first.Events[1])),
		"s1000000000000000000000-" + good[3:], "s1y2p0ij32e8e7-" + good[3:],
	} {
		if _, err := event.Read(w.ctx, w.st, a, event.Cursor(c), 0); !errors.Is(err, event.ErrCursor) {
			t.Errorf("cursor %q: %v", c, err)
		}
		if _, err := event.Wait(w.ctx, w.st, event.Waiting{Stream: a, After: event.Cursor(c)}); !errors.Is(err, event.ErrCursor) {
			t.Errorf("wait after %q: %v", c, err)
		}
	}
	if _, err := event.Read(w.ctx, w.st, "", first.Cursor, 0); !errors.Is(err, event.ErrCursor) {
		t.Errorf("a stream's cursor among all: %v", err)
	}
	if _, err := event.Read(w.ctx, w.st, "call:call_x", "", 0); !errors.Is(err, event.ErrNoStream) {
		t.Errorf("got %v", err)
	}
	if _, err := event.Read(w.ctx, w.st, "nothing", "", 0); !errors.Is(err, event.ErrBadStream) {
		t.Errorf("got %v", err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 6)
	wait := func(x event.Waiting) event.Waited {
		t.Helper()
		got, err := event.Wait(w.ctx, w.st, x)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// What is stored already is returned at once (case 013).
	got := wait(event.Waiting{Stream: a, Types: []event.Type{"t2"}})
	if got.Outcome != event.Matched || got.Event.StreamSeq != 3 || got.Cursor != event.CursorOf(got.Event) {
		t.Errorf("%+v", got)
	}
	got = wait(event.Waiting{Stream: a, After: got.Cursor, Types: []event.Type{"t2", "t9"}})
	if got.Event.StreamSeq != 6 {
		t.Errorf("%+v", got)
	}
	if got := wait(event.Waiting{Stream: a, Subject: "s4"}); got.Event.StreamSeq != 5 {
		t.Errorf("%+v", got)
	}
	if got := wait(event.Waiting{Subject: "s4"}); got.Event.Pos != 5 || got.Cursor != event.PosCursorOf(got.Event) {
		t.Errorf("%+v", got)
	}
	// A wait that runs out keeps its place behind what it has read (case 050).
	got = wait(event.Waiting{Stream: a, Types: []event.Type{"t7"}, Timeout: time.Millisecond})
	if got.Outcome != event.TimedOut || got.Cursor == "" {
		t.Errorf("%+v", got)
	}
	after := got.Cursor
	w.add(w.st, a, 7)
	if got := wait(event.Waiting{Stream: a, After: after}); got.Event.StreamSeq != 7 {
		t.Errorf("%+v", got)
	}
	if got := wait(event.Waiting{Stream: a, After: after, Types: []event.Type{"t9"}, Timeout: time.Millisecond}); got.Outcome != event.TimedOut {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancelCause(w.ctx)
	why := errors.New("stopping")
	cancel(why)
	if _, err := event.Wait(ctx, w.st, event.Waiting{Stream: a, Types: []event.Type{"t9"}}); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// register is a store that tells when a watcher has registered.
type register struct {
	txn.Store
	between func()
}

func (r register) Watch(streams ...string) (<-chan struct{}, func()) {
	c, stop := r.Store.Watch(streams...)
	r.between()
	return c, stop
}

// An event between the registration and the reading, and one before both, is not missed.
func TestWaitMissesNothingInBetween(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 0)
	r := register{w.st, func() { w.add(w.st, a, 1) }}
	got, err := event.Wait(w.ctx, r, event.Waiting{Stream: a})
	if err != nil || got.Event.StreamSeq != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Five hundred wait, each for its own; all are woken, by this process or another
// handle, and no read connection is kept by a waiter (case 163).
func TestManyWaiters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 0)
	other := w.open(nil)
	const waiters = 500
	var registered, ended sync.WaitGroup
	var failed atomic.Int64
	for i := range waiters {
		registered.Add(1)
		var once sync.Once
		ended.Go(func() {
			r := register{w.st, func() { once.Do(registered.Done) }}
			got, err := event.Wait(w.ctx, r, event.Waiting{Stream: a, Subject: fmt.Sprintf("s%d", i%10)})
			if err != nil || got.Event.Subject != fmt.Sprintf("s%d", i%10) {
				failed.Add(1)
			}
		})
	}
	registered.Wait()
	for i := range 10 {
		w.add([]*store.Store{w.st, other}[i%2], a, i)
	}
	ended.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of %d waiters were not told", n, waiters)
	}
}

// A follower of everything, by pos, misses nothing and sees nothing twice while many
// write from two handles.
func TestFollower(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stores := []*store.Store{w.open(nil), w.open(nil)}
	const writers = 6
	each := 200 / raceFactor
	var streams []string
	for i := range writers {
		streams = append(streams, w.stream(fmt.Sprintf("call_%d", i), 0))
	}
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for k := range each {
				w.add(stores[i%2], streams[i], k)
			}
		})
	}
	follower := w.open(nil)
	next := map[string]int64{}
	cursor, pos := event.Cursor(""), int64(0)
	for n := range writers * each {
		got, err := event.Wait(w.ctx, follower, event.Waiting{After: cursor, Timeout: time.Minute})
		if err != nil || got.Outcome != event.Matched {
			t.Fatalf("after %d: %+v, %v", n, got, err)
		}
		e := got.Event
		if next[e.Stream]++; e.StreamSeq != next[e.Stream] || e.Pos != pos+1 {
			t.Fatalf("pos %d after %d, %s number %d, want %d", e.Pos, pos, e.Stream, e.StreamSeq, next[e.Stream])
		}
		cursor, pos = got.Cursor, e.Pos
	}
	writing.Wait()
	if rep := w.verify(); rep.Break != nil || rep.Events != writers*each {
		t.Errorf("%+v", rep)
	}
}

// Verifying goes on while others write.
func TestVerifyWhileWriting(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 0)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				w.add(w.st, a, i)
			}
		}
	})
	for range 50 / raceFactor {
		if rep := w.verify(); rep.Break != nil {
			t.Errorf("%+v", rep.Break)
		}
	}
	close(stop)
	writing.Wait()
}

// An observer hears of what was committed, after its commit and in its order; of
// nothing that was taken back; and its panic harms nobody (cases 081, 083).
func TestObserver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.stream("call_a", 0)
	var seen []event.Event
	o := event.ObserverFunc(func(e event.Event) {
		page, err := event.Read(w.ctx, w.st, a, "", 0)
		if err != nil || len(page.Events) != 2 {
			t.Errorf("observed before it was committed: %d, %v", len(page.Events), err)
		}
		seen = append(seen, e)
		panic("oh")
	})
	refused := errors.New("refused")
	err := event.Update(w.ctx, w.st, o, func(tx event.Tx) error {
		if err := tx.Append(a, event.New("t", "s", "ana", payload{})); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) || len(seen) != 0 {
		t.Errorf("observed %v, %v", seen, err)
	}
	err = event.Update(w.ctx, w.st, o, func(tx event.Tx) error {
		return tx.Append(a, event.New("t", "s1", "ana", payload{}), event.New("t", "s2", "ana", payload{}))
	})
	if err != nil || len(seen) != 2 || seen[0].Subject != "s1" || seen[1].StreamSeq != 2 {
		t.Errorf("observed %v, %v", seen, err)
	}
	page, err := event.Read(w.ctx, w.st, a, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.Events, seen); diff != "" {
		t.Errorf("-stored +observed:\n%s", diff)
	}
}
