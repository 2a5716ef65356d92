package dbcopy_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/placet-dev/placet/internal/dbcopy"
	"github.com/placet-dev/placet/internal/pgtest"
)

// What a copy of the test binary is told to play a process that copies.
const (
	childFrom = "PLACET_DBCOPY_FROM"
	childTo   = "PLACET_DBCOPY_TO"
)

func child(from, to string) int {
	if _, err := dbcopy.Copy(context.Background(), from, to, dbcopy.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
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
	if err := connect(t, at).QueryRow(context.WithoutCancel(t.Context()), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}
