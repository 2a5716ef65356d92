package dbcopy_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/dbcopy"
	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/storetest"
)

func changeFile(path, statement string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

// What PostgreSQL cannot hold is named, before anything is there.
func TestUnstorableTexts(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{`'a' || char(0) || 'b'`: "NUL", `CAST(x'61ff' AS TEXT)`: "UTF-8", `CAST(x'eda080' AS TEXT)`: "UTF-8"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			a, b := kinds["SQLite"](t), kinds["PostgreSQL"](t)
			storetest.Fill(t, instance(a))
			change(t, a, `UPDATE token SET name = `+text+` WHERE revoked_at IS NOT NULL`)
			refused(t, a, b, nil, "column name", "table token", `id="tok_`, says)
			unused(t, b)
			copied(t, a, kinds["SQLite"](t))
		})
	}
}

// A row that the other side's indexes cannot take fails there, and leaves nothing.
func TestRowsThatDoNotFit(t *testing.T) {
	t.Parallel()
	a, b := kinds["SQLite"](t), kinds["PostgreSQL"](t)
	storetest.Fill(t, instance(a))
	change(t, a, `UPDATE call SET external_id = hex(randomblob(20000)) WHERE id = (SELECT min(id) FROM call WHERE step_id IS NULL)`)
	refused(t, a, b, dbcopy.ErrRow, "table call", "index row")
	unused(t, b)
}

// What one side alone has is noticed, whichever it is.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	for _, by := range []string{
		`CREATE TABLE extra(id %s PRIMARY KEY)`, `ALTER TABLE call ADD COLUMN extra %s`, `ALTER TABLE meta ADD COLUMN extra %s`,
		`CREATE TABLE extra(id real PRIMARY KEY, x %s)`,
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
				a, b := from(t), to(t)
				if err := open(t, a).Close(); err != nil {
					t.Fatal(err)
				}
				change(t, a, fmt.Sprintf(by, "text"))
				refused(t, a, b, whole.ErrTables, "extra")
				unused(t, b)
			})
		})
	}
}

// A table that is there on both sides is copied, whether this program knows it or not.
func TestLaterTables(t *testing.T) {
	t.Parallel()
	for name, from := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := from(t), kinds["PostgreSQL"](t)
			for _, at := range []string{a, b} {
				if err := open(t, at).Close(); err != nil {
					t.Fatal(err)
				}
				for _, by := range later(postgres.IsURL(at)) {
					change(t, at, by)
				}
			}
			change(t, a, `INSERT INTO zulu(id) VALUES ('é')`)
			change(t, a, `INSERT INTO "a ""later"" one"(of, n) VALUES ('é', -1)`)
			r := copied(t, a, b)
			if r.Rows() != 2 || query(t, b, `SELECT n FROM "a ""later"" one" WHERE of = 'é' AND b IS NULL`) != -1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// later are tables that a later schema may have: one comes before the other, and refers to it.
func later(server bool) []string {
	integer, bytes, text, strict := "INTEGER", "BLOB", "TEXT", " STRICT"
	if server {
		integer, bytes, text, strict = "bigint", "bytea", `text COLLATE "C"`, ""
	}
	return []string{
		`CREATE TABLE zulu(id ` + text + ` PRIMARY KEY)` + strict,
		`CREATE TABLE "a ""later"" one"(of ` + text + ` REFERENCES zulu(id), n ` + integer + `, b ` + bytes + `, PRIMARY KEY (n, of))` + strict,
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		if err := open(t, a).Close(); err != nil {
			t.Fatal(err)
		}
		change(t, a, `UPDATE meta SET schema = schema - 1`)
		refused(t, a, b, nil, "Run placet db migrate first")
		change(t, a, `UPDATE meta SET schema = 99`)
		refused(t, a, b, store.ErrNewer, "99")
		unused(t, b)
	})
}

// A store that does not fit together goes nowhere.
func TestUnsoundSource(t *testing.T) {
	t.Parallel()
	for says, by := range map[string]string{
		"counter of waiting approvals": `UPDATE counter SET n = n + 1 WHERE name = 'pending_approvals'`,
		"chain of events is broken":    `UPDATE call SET head_seq = head_seq + 1 WHERE id = (SELECT min(id) FROM call WHERE step_id IS NULL)`,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
				a, b := from(t), to(t)
				storetest.Fill(t, instance(a))
				change(t, a, by)
				refused(t, a, b, dbcopy.ErrUnsound, says)
				unused(t, b)
			})
		})
	}
}

// Who has a store on a server open is named, on either side.
func TestOpenElsewhere(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		source := inUse(t, a)
		me := fmt.Sprintf("process %d on ", os.Getpid())
		if postgres.IsURL(a) {
			refused(t, a, b, whole.ErrOpen, me, "open elsewhere")
		}
		if err := source.Close(); err != nil {
			t.Fatal(err)
		}
		target := inUse(t, b)
		defer target.Close()
		if postgres.IsURL(b) {
			refused(t, a, b, whole.ErrOpen, me, "open elsewhere")
		}
	})
}

// inUse is a store that somebody has open and has used.
func inUse(t testing.TB, at string) *store.Store {
	t.Helper()
	s := open(t, at)
	if _, err := event.Read(t.Context(), s, "", "", 1); err != nil {
		t.Fatal(err)
	}
	return s
}

// Nobody writes to the source while it is copied.
func TestNobodyWritesMeanwhile(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, from, to func(testing.TB) string) {
		a, b := from(t), to(t)
		lived := storetest.Fill(t, instance(a))
		looked := 0
		_, err := dbcopy.Copy(t.Context(), a, b, dbcopy.Options{Progress: func(string, int64) {
			if looked++; !keptOut(t, a) {
				t.Error("others may write to the source")
			}
		}})
		if err != nil || looked == 0 {
			t.Errorf("looked %d times: %v", looked, err)
		}
		lived.GoesBack(t, instance(a))
	})
}

// keptOut tries to take what every writer takes first.
func keptOut(t testing.TB, at string) bool {
	t.Helper()
	if postgres.IsURL(at) {
		c := connect(t, at)
		defer c.Close(t.Context())
		_, err := c.Exec(t.Context(), `LOCK TABLE meta IN ACCESS SHARE MODE NOWAIT`)
		return err != nil
	}
	f, err := os.OpenFile(at+".write", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}
