package inbox_test

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // its driver
)

// alter writes to a database as somebody would who does not go through Placet.
func alter(t testing.TB, path, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
}
