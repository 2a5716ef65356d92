package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// Variable holds the URL of a server that is there already and serves every
	// process of a run; scripts/test-postgres sets it.
	Variable = "PLACET_TEST_POSTGRES"
	// SchemaParameter is the parameter of a URL that names the schema in it.
	SchemaParameter = "placet_schema"
)

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// Shared is the server that the tests of this process share. The first call starts
// it, unless [Variable] names one; [Main] stops it. A test that stops it or changes
// its settings would do so to all others: such a test starts its own.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = openShared()
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

func openShared() (*Server, error) {
	at := os.Getenv(Variable)
	if at == "" {
		// Not a test's context: the server outlives the test that happens to come first.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		return Start(ctx, Options{})
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	return &Server{at: u}, nil
}

// Main runs a package's tests, stops the shared server if one was started, and
// exits. It is the whole body of a TestMain.
func Main(m *testing.M) { os.Exit(Tests{m}.Run()) }

// Tests runs tests as [Main] does without exiting, for a TestMain that has more to
// do: goleak.VerifyTestMain(pgtest.Tests{M: m}).
type Tests struct{ M *testing.M }

// Run returns the exit code.
func (t Tests) Run() int {
	code := t.M.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil || shared.server.place == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	shared.server = nil
	return code
}

// Database is [Server.Database] of the shared server.
func Database(tb testing.TB) string {
	tb.Helper()
	return Shared(tb).Database(tb)
}

// Schema is [Server.Schema] of the shared server.
func Schema(tb testing.TB) string {
	tb.Helper()
	return Shared(tb).Schema(tb)
}

// Database makes an empty database and returns its URL. The database goes at the
// end of the test, with whatever is still connected to it.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := "t_" + unique()
	// template1 cannot be copied while somebody is connected to it; nobody ever is
	// to template0.
	s.must(tb, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'")
	tb.Cleanup(func() { s.clean(tb, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.URL(name)
}

// Schema returns the URL of a database that many tests share, with the name of a
// schema of the test's own in its parameter [SchemaParameter]. The schema is not
// there yet: who opens the URL makes it. It goes at the end of the test, and a
// connection that still holds a lock in it then is a fault of the test.
func (s *Server) Schema(tb testing.TB) string {
	tb.Helper()
	name := "t_" + unique()
	tb.Cleanup(func() { s.clean(tb, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	u := *s.at
	q := u.Query()
	q.Set(SchemaParameter, name)
	u.RawQuery = q.Encode()
	return u.String()
}

// SplitSchema takes the name of the schema out of a URL: PostgreSQL refuses
// parameters that it does not know.
func SplitSchema(at string) (plain, schema string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", "", err
	}
	q := u.Query()
	schema = q.Get(SchemaParameter)
	q.Del(SchemaParameter)
	u.RawQuery = q.Encode()
	return u.String(), schema, nil
}

func unique() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func (s *Server) must(tb testing.TB, sql string) {
	tb.Helper()
	if err := s.exec(sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// clean is silent about a server that the test left down: its files go with it.
func (s *Server) clean(tb testing.TB, sql string) {
	tb.Helper()
	if !s.running() {
		return
	}
	if err := s.exec(sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

// exec has a time of its own: at the end of a test its context is over.
func (s *Server) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.admin(ctx, s.at.Path[1:], func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql)
		return err
	})
}
