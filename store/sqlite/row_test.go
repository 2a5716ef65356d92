package sqlite

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestValues(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	at := time.Date(2026, 3, 4, 5, 6, 7, 891234567, time.FixedZone("x", 3600))
	args := []any{nil, 7, int64(1) << 62, "zwölf\x00", "", []byte{0, 1}, []byte{}, []byte(nil), true, false, at, time.Time{}, -5}
	err := b.update(context.Background(), func(h *handle) error {
		found, err := h.queryRow(`SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`, args, func(r row) error {
			if !r.null(0) || r.int(1) != 7 || r.int(2) != 1<<62 || r.str(3) != "zwölf\x00" || r.null(4) || r.str(4) != "" || r.int(12) != -5 {
				t.Errorf("numbers and texts: %v", r.vals)
			}
			if !bytes.Equal(r.bytes(5), []byte{0, 1}) || r.bytes(6) == nil || len(r.bytes(6)) != 0 || r.bytes(7) != nil || !r.null(7) {
				t.Errorf("bytes: %v", r.vals)
			}
			if !r.bool(8) || r.bool(9) || !r.time(10).Equal(at.Truncate(time.Microsecond)) || r.time(10).Location() != time.UTC || !r.time(11).IsZero() {
				t.Errorf("truth and times: %v", r.vals)
			}
			if r.str(0) != "" || r.int(0) != 0 || r.bytes(0) != nil || r.bool(0) {
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
	view := func(sql string, args []any, each func(row) error) error {
		return b.view(context.Background(), func(h *handle) error { return h.query(sql, args, each) })
	}
	tests := []struct {
		name string
		args []any
		each func(row) error
		want string
	}{
		{"TextAsInt", []any{"x"}, func(r row) error { r.int(0); return nil }, "column 0 holds a string, not an integer"},
		{"IntAsText", []any{1}, func(r row) error { r.str(0); return nil }, "not text"},
		{"IntAsBytes", []any{1}, func(r row) error { r.bytes(0); return nil }, "not bytes"},
		{"Float", []any{1.5}, func(r row) error { return nil }, "float64 cannot be stored"},
		{"TooFew", nil, func(r row) error { return nil }, "missing argument"},
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
		return h.query(sql, nil, func(outer row) error {
			id := outer.str(0)
			return h.query(sql, nil, func(inner row) error {
				pairs++
				if outer.str(0) != id {
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
