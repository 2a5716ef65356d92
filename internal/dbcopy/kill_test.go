package dbcopy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/internal/dbcopy"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/storetest"
)

// What a copy of the test binary is told to play a process that copies.
const (
	childFrom = "PLACET_DBCOPY_FROM"
	childTo   = "PLACET_DBCOPY_TO"
	childAt   = "PLACET_DBCOPY_AT" // moment at which it kills itself, or before which it says so
)

const beforeCommit = "verified"

// child copies, and is killed: by itself in the middle, or by its parent while it commits.
func child(from, to string) int {
	dbcopy.At(func(moment string) {
		switch {
		case moment != os.Getenv(childAt):
		case moment == beforeCommit:
			fmt.Println(moment)
		default:
			if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
				panic(err)
			}
		}
	})
	if _, err := dbcopy.Copy(context.Background(), from, to, dbcopy.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killed runs a child until it is killed.
func killed(t testing.TB, from, to, moment string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childFrom+"="+from, childTo+"="+to, childAt+"="+moment)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if moment == beforeCommit {
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("the process that copies says nothing: %v", err)
		}
		_ = c.Process.Kill() // it may have ended
	}
	err = c.Wait()
	if ended := (*exec.ExitError)(nil); moment != beforeCommit && (!errors.As(err, &ended) || ended.ExitCode() != -1) {
		t.Errorf("at %s it was not killed: %v", moment, err)
	}
}

// A process that is killed in the middle of a copy leaves nothing at the target, or all of
// it, and the source as it was.
func TestKilled(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a := from(t)
		lived := storetest.Fill(t, instance(a))
		b := to(t)
		for _, moment := range []string{"made", "event", "call", "delivery_attempt", "begun"} {
			killed(t, a, b, moment)
			if unused(t, b); t.Failed() {
				t.Fatalf("killed at %s", moment)
			}
		}
		for range 6 {
			b = to(t)
			if killed(t, a, b, beforeCommit); !isThere(t, b) {
				copied(t, a, b)
			}
			sound(t, b)
		}
		lived.GoesOn(t, instance(b))
		lived.GoesBack(t, instance(a))
	})
}

// isThere reports whether a store is at a place.
func isThere(t testing.TB, at string) bool {
	t.Helper()
	if postgres.IsURL(at) {
		return query(t, at, `SELECT count(*) FROM pg_namespace WHERE nspname = $1`, schemaOf(t, at)) > 0
	}
	_, err := os.Lstat(at)
	return err == nil
}

// unused fails if a store is at a place.
func unused(t testing.TB, at string) {
	t.Helper()
	if isThere(t, at) {
		t.Errorf("something is at %s", at)
	}
}

func schemaOf(t testing.TB, at string) string {
	t.Helper()
	_, schema, err := pgtest.SplitSchema(at)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// connect is a connection of another program's to the database, in the store's schema.
func connect(t testing.TB, at string) *pgx.Conn {
	t.Helper()
	plain, schema, err := pgtest.SplitSchema(at)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, plain)
	if err == nil {
		_, err = c.Exec(ctx, `SELECT set_config('search_path', $1, false)`, schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(ctx) })
	return c
}

func query(t testing.TB, at, sql string, args ...any) (n int64) {
	t.Helper()
	c := connect(t, at)
	defer c.Close(context.Background())
	if err := c.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// change runs a statement by hand at a place of either kind.
func change(t testing.TB, at, sql string) {
	t.Helper()
	var err error
	if postgres.IsURL(at) {
		c := connect(t, at)
		defer c.Close(context.Background())
		_, err = c.Exec(context.Background(), sql)
	} else {
		err = changeFile(at, sql)
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
