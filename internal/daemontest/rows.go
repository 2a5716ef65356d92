package daemontest

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // reads the file from outside

	"github.com/placet-dev/placet/internal/whole"
)

// Rows is a digest of each table of a store, by its name.
type Rows map[string]string

// untouched are what a daemon renews by itself, by table.
var untouched = map[string][]string{
	"meta": {"last_at"},
	"home": {"lease_until"},
}

// Rows reads the whole store, but for the leases and clocks that a daemon renews while
// nothing happens.
func (w *World) Rows() Rows {
	w.tb.Helper()
	if w.o.DB != "" {
		w.tb.Fatal("Rows reads SQLite files only")
	}
	rows, err := w.read()
	if err != nil {
		w.tb.Fatal(err)
	}
	return rows
}

// Changed lists the tables that are not in both as they were, in the order of their names.
func (r Rows) Changed(since Rows) (tables []string) {
	all := maps.Clone(r)
	maps.Copy(all, since)
	for name := range all {
		if r[name] != since[name] {
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	return tables
}

func (w *World) read() (Rows, error) {
	all := Rows{}
	return all, w.view(func(tx *sql.Tx) error {
		tables, err := texts(tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if all[t], err = digest(tx, t); err != nil {
				return fmt.Errorf("read the table %s: %w", t, err)
			}
		}
		return nil
	})
}

// view reads the file as another process than the daemon's.
func (w *World) view(fn func(*sql.Tx) error) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: w.DB()}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(w.tb.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(tx)
}

// digest has the table's rows in the order of what they hold: a table need have no other.
func digest(tx *sql.Tx, table string) (string, error) {
	columns, err := texts(tx, `SELECT name FROM pragma_table_info('`+strings.ReplaceAll(table, "'", "''")+`')`)
	if err != nil {
		return "", err
	}
	var quoted []string
	for _, c := range columns {
		if !slices.Contains(untouched[table], c) {
			quoted = append(quoted, "quote("+whole.Quoted(c)+")")
		}
	}
	rows, err := texts(tx, "SELECT "+strings.Join(quoted, " || ',' || ")+" AS row FROM "+whole.Quoted(table)+" ORDER BY row")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(rows, "\n")))
	return fmt.Sprintf("%d rows %s", len(rows), hex.EncodeToString(sum[:])), nil
}

func texts(tx *sql.Tx, query string) (list []string, err error) {
	rows, err := tx.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}
