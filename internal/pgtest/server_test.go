package pgtest_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/placet-dev/placet/internal/pgtest"
)

// ownerVariable makes this test binary the owner of a server in the folder it names.
const ownerVariable = "PGTEST_OWNER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		own(dir)
	}
	goleak.VerifyTestMain(pgtest.Tests{M: m})
}

// own starts a server, says where it is, and waits to be killed.
func own(dir string) {
	s, err := pgtest.Start(context.Background(), pgtest.Options{Dir: dir})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL("postgres"))
	select {}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o pgtest.Options) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(bounded(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(bounded(t), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func exec1(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(bounded(t), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func read[T any](t *testing.T, c *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := c.QueryRow(bounded(t), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestServerKeepsDataThroughEveryEnd(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Options{})
	at := s.Database(t)
	exec1(t, connect(t, at), "CREATE TABLE kept (how text)")
	ends := map[string]func() error{
		"fast":      func() error { return s.Restart(bounded(t), pgtest.Fast) },
		"immediate": func() error { return s.Restart(bounded(t), pgtest.Immediate) },
		"kill": func() error {
			if err := s.Kill(); err != nil {
				return err
			}
			return s.Start(bounded(t))
		},
	}
	want := 0
	for how, end := range ends {
		c := connect(t, at)
		exec1(t, c, "INSERT INTO kept VALUES ($1)", how)
		want++
		if err := end(); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if err := c.Ping(bounded(t)); err == nil {
			t.Errorf("%s: a connection outlived the server", how)
		}
		if got := read[int](t, connect(t, at), "SELECT count(*) FROM kept"); got != want {
			t.Errorf("%s: %d rows are left of %d", how, got, want)
		}
	}
}

func TestServerRecoversWhileClientsWrite(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Options{})
	at := s.Database(t)
	exec1(t, connect(t, at), "CREATE TABLE kept (writer int, n int)")
	var writers sync.WaitGroup
	acknowledged := make([]int, 4)
	under := make(chan struct{}, len(acknowledged))
	for w := range acknowledged {
		c := connect(t, at)
		writers.Go(func() {
			for n := 1; ; n++ {
				if _, err := c.Exec(bounded(t), "INSERT INTO kept VALUES ($1, $2)", w, n); err != nil {
					return
				}
				if acknowledged[w] = n; n == 20 {
					under <- struct{}{}
				}
			}
		})
	}
	for range acknowledged {
		<-under
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	if err := s.Start(bounded(t)); err != nil {
		t.Fatal(err)
	}
	c := connect(t, at)
	for w, n := range acknowledged {
		if got := read[int](t, c, "SELECT count(*) FROM kept WHERE writer = $1 AND n <= $2", w, n); got != n {
			t.Errorf("writer %d: %d rows are left of %d that were acknowledged", w, got, n)
		}
	}
}

func TestServerSettings(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Options{Durable: true, Config: []string{"work_mem = '3MB'"}})
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"work_mem": "3MB", "max_connections": "300", "server_encoding": "UTF8",
	} {
		if got := read[string](t, connect(t, s.URL("postgres")), "SELECT current_setting($1)", name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	c := connect(t, s.URL("postgres"))
	// Before version 15 a cluster is ordered by the system's locales, of which only C is always there.
	if read[int](t, c, "SELECT current_setting('server_version_num')::int") >= 150000 && !read[bool](t, c, "SELECT 'a' < 'B'") {
		t.Error("text is ordered by its bytes")
	}
	if err := s.Config(bounded(t), "work_mem = '5MB'", "max_connections = 50"); err != nil {
		t.Fatal(err)
	}
	if got := read[string](t, connect(t, s.URL("postgres")), "SHOW work_mem"); got != "5MB" {
		t.Errorf("after Config work_mem is %s", got)
	}
	if err := s.Restart(bounded(t), pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	if got := read[string](t, connect(t, s.URL("postgres")), "SHOW max_connections"); got != "50" {
		t.Errorf("after Config and Restart max_connections is %s", got)
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Options{})
	if err := s.Start(bounded(t)); err == nil {
		t.Error("a running server was started again")
	}
	if err := s.Down("slow"); err == nil {
		t.Error("a mode that is none was taken")
	}
	if _, err := pgtest.Start(bounded(t), pgtest.Options{Config: []string{"no_such_setting = 1"}}); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("a server with a setting that does not exist: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := parent(t)
	s := start(t, pgtest.Options{Dir: dir})
	at := s.URL("postgres")
	connect(t, at)
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if left := entries(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := pgx.Connect(bounded(t), at); err == nil {
		t.Error("the server still answers")
	}
}

// parent is a folder that the server's user can reach; t.TempDir is not.
func parent(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	var at string
	t.Run("Uses", func(t *testing.T) {
		var made sync.WaitGroup
		ats := make([]string, 8)
		for i := range ats {
			made.Go(func() { ats[i] = pgtest.Database(t) })
		}
		made.Wait()
		for _, one := range ats {
			c := connect(t, one)
			exec1(t, c, "CREATE TABLE mine ()") // fails where two have the same
			if got := read[string](t, c, "SHOW server_encoding"); got != "UTF8" {
				t.Errorf("encoding %s", got)
			}
		}
		at = ats[0]
	})
	if _, err := pgx.Connect(bounded(t), at); err == nil || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("after the test its database answers: %v", err)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	var plain, schema string
	t.Run("Uses", func(t *testing.T) {
		at := pgtest.Schema(t)
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		plain, schema, err = pgtest.SplitSchema(at)
		if err != nil || schema == "" || schema != u.Query().Get(pgtest.SchemaParameter) {
			t.Fatalf("SplitSchema(%s) = %q, %q, %v", at, plain, schema, err)
		}
		c := connect(t, plain)
		exec1(t, c, "CREATE SCHEMA "+schema)
		exec1(t, c, "CREATE TABLE "+schema+".mine ()")
	})
	if got := read[int](t, connect(t, plain), "SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema); got != 0 {
		t.Error("the schema outlived its test")
	}
}

func TestSharedFromOutside(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Options{})
	child := exec.Command(os.Args[0], "-test.run", "^(TestDatabase|TestSchema)$")
	child.Env = append(os.Environ(), pgtest.Variable+"="+s.URL("postgres"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := read[int](t, connect(t, s.URL("postgres")), "SELECT count(*) FROM pg_database WHERE datname LIKE 't\\_%'"); got != 0 {
		t.Errorf("%d databases are left", got)
	}
	if got := read[int](t, connect(t, s.URL("postgres")), "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'postgres'"); got < 10 {
		t.Errorf("the tests made only %d transactions in the server that they were given", got)
	}
}
