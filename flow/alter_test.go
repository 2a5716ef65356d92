package flow_test

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite"
)

// alter changes the file behind the store's back.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d rows were altered: %v", n, err)
	}
}
