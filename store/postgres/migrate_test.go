package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// upTo are the first steps of the schema, and more.
func upTo(t *testing.T, n int, more ...string) fs.FS {
	t.Helper()
	names, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	steps := fstest.MapFS{}
	for _, name := range names[:n] {
		sql, err := fs.ReadFile(migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		steps[name] = &fstest.MapFile{Data: sql}
	}
	for i, sql := range more {
		steps[fmt.Sprintf("%04d_more.sql", n+1+i)] = &fstest.MapFile{Data: []byte(sql)}
	}
	return steps
}

func openWith(t *testing.T, url string, steps fs.FS) *store.Store {
	t.Helper()
	e, err := openEngine(context.Background(), url, Options{Conns: 2, Logger: slog.New(slog.DiscardHandler)}, steps)
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(e)
	t.Cleanup(func() { s.Close() })
	return s
}

// made makes a store of the first steps, and closes it.
func made(t *testing.T, url string, n int) {
	t.Helper()
	if err := openWith(t, url, upTo(t, n)).Close(); err != nil {
		t.Fatal(err)
	}
}

// newest is how many steps there are.
func newest(t *testing.T) int {
	t.Helper()
	names, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func putToken(s *store.Store) (string, error) {
	name := id.New(id.Token)
	return name, txn.Update(context.Background(), s, func(tx store.Tx) error {
		return tx.InsertToken(token.Token{
			ID: name, Space: event.MainSpace, Scope: token.Agent, Name: name, Principal: "agent:a", Hash: bytes.Repeat([]byte{1}, 32), CreatedAt: tx.Now(),
		})
	})
}

// connected is a connection of its own, whose statements find the store's tables.
func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	plain, schema, err := pgtest.SplitSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := pgx.ParseConfig(plain)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(context.Background(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	must(t, c, "SET search_path = "+schema)
	return c
}

// shape is all that a schema consists of, as text.
func shape(t *testing.T, c *pgx.Conn) (s string) {
	t.Helper()
	err := c.QueryRow(context.Background(), `SELECT string_agg(x, E'\n' ORDER BY x) FROM (
		SELECT 'column ' || c.relname || '.' || attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull AS x
			FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid WHERE relnamespace = current_schema()::regnamespace AND attnum > 0
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
		UNION ALL SELECT 'trigger ' || tgname || ' ' || CAST(tgenabled AS text) FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal
		UNION ALL SELECT 'meta ' || schema || ' ' || min_writer || ' ' || min_reader || ' ' || epoch FROM meta) AS all_of_it`).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Many programs that open an older store at once all come up, and it is brought forward
// once (case 166).
func TestMigratedTogether(t *testing.T) {
	t.Parallel()
	fresh := pgtest.Schema(t)
	made(t, fresh, newest(t))
	want := shape(t, connected(t, fresh))
	for from := range newest(t) {
		t.Run(fmt.Sprintf("from %d", from), func(t *testing.T) {
			t.Parallel()
			url := pgtest.Schema(t)
			_, schema, _ := pgtest.SplitSchema(url)
			c := connected(t, url)
			for range 17 { // of three beginnings: 51
				if from > 0 {
					made(t, url, from)
				}
				openTogether(t, url)
				if got := shape(t, c); got != want {
					t.Fatalf("the schema is\n%s\nwant\n%s", got, want)
				}
				must(t, c, "DROP SCHEMA "+schema+" CASCADE")
			}
		})
	}
}

// openTogether opens, writes and closes as eight programs at one moment.
func openTogether(t *testing.T, url string) {
	t.Helper()
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 8 {
		all.Go(func() {
			<-start
			s, err := Open(context.Background(), url, &Options{Conns: 1})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if _, err := putToken(s); err != nil {
				t.Errorf("write: %v", err)
			}
			s.Close()
		})
	}
	close(start)
	all.Wait()
}

// childURL tells a copy of the test binary to migrate a store.
const childURL = "PLACET_TEST_MIGRATE"

// A program that is killed while it brings a store forward leaves it as it was.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	if url := os.Getenv(childURL); url != "" {
		_ = Migrate(context.Background(), url) // it is killed before that returns
		return
	}
	url := pgtest.Schema(t)
	made(t, url, 1)
	c, other := connected(t, url), connected(t, url)
	before := shape(t, c)
	must(t, other, "BEGIN")
	must(t, other, "CREATE TABLE home(n int)") // which a later step makes too: it waits
	child := exec.Command(os.Args[0], "-test.run=^TestMigrateKilled$", "-test.timeout=5m")
	child.Env = append(os.Environ(), childURL+"="+url)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	awaitWaiting(t, c, fmt.Sprintf("%% %d@%%", child.Process.Pid))
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	must(t, other, "ROLLBACK")
	openTogether(t, url)
	fresh := pgtest.Schema(t)
	made(t, fresh, newest(t))
	if got, want := shape(t, c), shape(t, connected(t, fresh)); got != want || got == before {
		t.Errorf("the schema is\n%s\nwant\n%s", got, want)
	}
}

// awaitWaiting returns once a session of that name waits for a lock.
func awaitWaiting(t *testing.T, c *pgx.Conn, name string) {
	t.Helper()
	for waits, end := false, time.Now().Add(2*time.Minute); !waits; {
		err := c.QueryRow(context.Background(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name LIKE $1 AND wait_event_type = 'Lock')", name).Scan(&waits)
		if err != nil || time.Now().After(end) {
			t.Fatalf("nobody of the name %s waits: %v", name, err)
		}
	}
}

// An older program goes on beside a newer one, over the migration, until the store says
// that it may not write any more, or not read.
func TestOlderGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, step        string
		mayWrite, mayRead bool
	}{
		{"adds", "CREATE TABLE more(n bigint)", true, true},
		{"raises min_writer", "UPDATE meta SET min_writer = %d", false, true},
		{"raises min_reader", "UPDATE meta SET min_writer = %[1]d, min_reader = %[1]d", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, n := pgtest.Schema(t), newest(t)
			if strings.Contains(c.step, "%") {
				c.step = fmt.Sprintf(c.step, n+1)
			}
			w := writeOn(openWith(t, url, upTo(t, n)))
			w.await(t, 5)
			next := openWith(t, url, upTo(t, n, c.step))
			if c.mayWrite {
				w.await(t, 5)
			}
			old := w.stop()
			_, err := putToken(old)
			if c.mayWrite && err != nil || !c.mayWrite && (!errors.Is(err, store.ErrNewer) || !errors.Is(err, txn.ErrNotCommitted)) {
				t.Errorf("the older one writes: %v", err)
			}
			_, err = tokens(old)
			if c.mayRead && err != nil || !c.mayRead && !errors.Is(err, store.ErrNewer) {
				t.Errorf("the older one reads: %v", err)
			}
			if _, err := putToken(next); err != nil {
				t.Errorf("the newer one: %v", err)
			}
			ids, err := tokens(next)
			if err != nil {
				t.Fatal(err)
			}
			w.check(t, ids)
		})
	}
}

func tokens(s *store.Store) (ids map[string]bool, err error) {
	err = txn.View(context.Background(), s, func(tx store.Tx) error {
		ids = map[string]bool{}
		for after := ""; ; {
			ts, err := tx.Tokens(token.Query{Space: event.MainSpace, After: after, Limit: 500})
			if err != nil || len(ts) == 0 {
				return err
			}
			for _, t := range ts {
				ids[t.ID] = true
			}
			after = ts[len(ts)-1].ID
		}
	})
	return ids, err
}

// writer writes rows until it is stopped.
type writer struct {
	s    *store.Store
	quit chan struct{}
	done chan struct{}
	came chan struct{}
	n    atomic.Int64
	told map[string]error
}

func writeOn(s *store.Store) *writer {
	w := &writer{s: s, quit: make(chan struct{}), done: make(chan struct{}), came: make(chan struct{}, 1), told: map[string]error{}}
	go func() {
		defer close(w.done)
		for {
			select {
			case <-w.quit:
				return
			default:
			}
			name, err := putToken(s)
			if w.told[name] = err; err == nil {
				w.n.Add(1)
				store.Hint(w.came)
			}
		}
	}()
	return w
}

// await returns once so many more are written.
func (w *writer) await(t *testing.T, more int64) {
	t.Helper()
	for want := w.n.Load() + more; w.n.Load() < want; {
		select {
		case <-w.came:
		case <-time.After(5 * time.Minute):
			t.Fatal("nothing is written any more")
		}
	}
}

func (w *writer) stop() *store.Store {
	close(w.quit)
	<-w.done
	return w.s
}

// check fails unless what was told is so.
func (w *writer) check(t *testing.T, is map[string]bool) {
	t.Helper()
	for name, err := range w.told {
		if err != nil && !errors.Is(err, store.ErrNewer) {
			t.Errorf("the older one was told %v", err)
		}
		if is[name] != (err == nil) {
			t.Errorf("the older one was told %v, and the row is there: %v", err, is[name])
		}
	}
}

// Steps that are numbered twice, or not at all, are no steps (case 168); and both backends
// have the same.
func TestSteps(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	for name, c := range map[string]struct {
		steps fstest.MapFS
		says  []string
	}{
		"double": {fstest.MapFS{"0001_a.sql": {}, "0002_b.sql": {}, "0002_c.sql": {}}, []string{"0002_b.sql", "0002_c.sql"}},
		"gap":    {fstest.MapFS{"0001_a.sql": {}, "0003_c.sql": {}}, []string{"step 2", "0003_c.sql"}},
	} {
		_, err := openEngine(context.Background(), url, Options{}, c.steps)
		for _, s := range c.says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if e, err := openEngine(context.Background(), url, Options{ReadOnly: true}, migrations()); err == nil {
		e.Close()
		t.Error("a store was made")
	}
	ours, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	others, err := fs.Glob(os.DirFS("../sqlite/migrations"), "*.sql")
	if err != nil || fmt.Sprint(ours) != fmt.Sprint(others) {
		t.Errorf("the steps are %v here, and %v on SQLite: %v", ours, others, err)
	}
}
