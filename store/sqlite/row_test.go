package sqlite

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/store/sqlrows"
)

func TestValues(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	at := time.Date(2026, 3, 4, 5, 6, 7, 891234567, time.FixedZone("x", 3600))
	args := []any{nil, 7, int64(1) << 62, "zwölf\x00", "", []byte{0, 1}, []byte{}, []byte(nil), true, false, at, time.Time{}, -5}
	err := b.update(context.Background(), func(h *handle) error {
		found, err := h.queryRow(`SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`, args, func(r sqlrows.Row) error {
			if !r.Null(0) || r.Int(1) != 7 || r.Int(2) != 1<<62 || r.Str(3) != "zwölf\x00" || r.Null(4) || r.Str(4) != "" || r.Int(12) != -5 {
				t.Errorf("numbers and texts: %v", r.(row).vals)
			}
			if !bytes.Equal(r.Bytes(5), []byte{0, 1}) || r.Bytes(6) == nil || len(r.Bytes(6)) != 0 || r.Bytes(7) != nil || !r.Null(7) {
				t.Errorf("bytes: %v", r.(row).vals)
			}
			if !r.Bool(8) || r.Bool(9) || !r.Time(10).Equal(at.Truncate(time.Microsecond)) || r.Time(10).Location() != time.UTC || !r.Time(11).IsZero() {
				t.Errorf("truth and times: %v", r.(row).vals)
			}
			if r.Str(0) != "" || r.Int(0) != 0 || r.Bytes(0) != nil || r.Bool(0) {
				t.Error("NULL is not the zero value")
			}
			return nil
		})
		if !found {
			t.Error("no row")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMistakenValues(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	view := func(sql string, args []any, each func(sqlrows.Row) error) error {
		return b.view(context.Background(), func(h *handle) error { return h.Query(sql, args, each) })
	}
	tests := []struct {
		name string
		args []any
		each func(sqlrows.Row) error
		want string
	}{
		{"TextAsInt", []any{"x"}, func(r sqlrows.Row) error { r.Int(0); return nil }, "column 0 holds a string, not an integer"},
		{"IntAsText", []any{1}, func(r sqlrows.Row) error { r.Str(0); return nil }, "not text"},
		{"IntAsBytes", []any{1}, func(r sqlrows.Row) error { r.Bytes(0); return nil }, "not bytes"},
		{"Float", []any{1.5}, func(r sqlrows.Row) error { return nil }, "float64 cannot be stored"},
		{"TooFew", nil, func(r sqlrows.Row) error { return nil }, "missing argument"},
	}
	for _, tt := range tests {
		if err := view(`SELECT ?`, tt.args, tt.each); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// One statement is read by an outer loop and run again inside it.
func TestNestedQueries(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a", "b", "c")
	pairs := 0
	err := b.update(context.Background(), func(h *handle) error {
		pairs = 0
		const sql = `SELECT id FROM note ORDER BY id`
		return h.Query(sql, nil, func(outer sqlrows.Row) error {
			id := outer.Str(0)
			return h.Query(sql, nil, func(inner sqlrows.Row) error {
				pairs++
				if outer.Str(0) != id {
					t.Error("the inner query moved the outer row")
				}
				return nil
			})
		})
	})
	if err != nil || pairs != 9 {
		t.Errorf("%d pairs and %v", pairs, err)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"SELECT 1": true, "\n select 1": true, "PRAGMA x": true, "": false,
		"INSERT INTO t VALUES (1) RETURNING id": false, "WITH a AS (SELECT 1) DELETE FROM t": false,
	} {
		if reads(sql) != want {
			t.Errorf("reads(%q) is %v", sql, !want)
		}
	}
}
