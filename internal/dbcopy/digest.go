package dbcopy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/placet-dev/placet/internal/whole"
)

// digest is a SHA-256 over rows, in a form in which no two tables look alike: each value
// as its kind, its length and its bytes, columns in the order of their names.
type digest struct {
	of    whole.Table
	order []int // of columns
	rows  int64
	h     hash.Hash
	b     []byte
}

func newDigest(t whole.Table) *digest {
	d := &digest{of: t, h: sha256.New()}
	for i := range t.Columns {
		d.order = append(d.order, i)
	}
	slices.SortFunc(d.order, func(a, b int) int { return strings.Compare(t.Columns[a].Name, t.Columns[b].Name) })
	for _, i := range d.order {
		d.value(t.Columns[i].Name)
	}
	return d
}

func (d *digest) add(row []any) {
	d.rows++
	for _, i := range d.order {
		d.value(row[i])
	}
}

func (d *digest) value(v any) {
	d.b = d.b[:0]
	switch v := v.(type) {
	case nil:
		d.b = append(d.b, 'n')
	case int64:
		d.b = binary.BigEndian.AppendUint64(append(d.b, 'i'), uint64(v))
	case string:
		d.b = append(binary.BigEndian.AppendUint64(append(d.b, 't'), uint64(len(v))), v...)
	case []byte:
		d.b = append(binary.BigEndian.AppendUint64(append(d.b, 'b'), uint64(len(v))), v...)
	}
	d.h.Write(d.b)
}

func (d *digest) table() Table {
	return Table{Name: d.of.Name, Rows: d.rows, Digest: hex.EncodeToString(d.h.Sum(nil))}
}

// unstorable says what a text has that PostgreSQL refuses; "" if nothing.
func unstorable(s string) string {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "has a NUL in it"
	case !utf8.ValidString(s):
		return "is not UTF-8"
	}
	return ""
}

// counts are what the copy's rows come to, against its counters.
type counts struct {
	pending map[string]int64 // approvals that wait, by space
	counter map[string]int64 // what the counter of them says
	jobs    int64            // that have not ended
}

func (c *counts) see(t whole.Table, row []any) {
	is := func(column string, v any) bool { i := t.At(column); return i >= 0 && row[i] == v }
	if c.pending == nil {
		c.pending, c.counter = map[string]int64{}, map[string]int64{}
	}
	switch t.Name {
	case "decision":
		if is("type", "approval") && is("status", "pending") && is("open", int64(1)) {
			c.pending[row[t.At("space")].(string)]++
		}
	case "counter":
		if is("name", "pending_approvals") {
			c.counter[row[t.At("space")].(string)] = row[t.At("n")].(int64)
		}
	case "job":
		if is("ended_at", nil) {
			c.jobs++
		}
	}
}

// agree refuses a counter that is not what it counts.
func (c *counts) agree() error {
	spaces := map[string]bool{}
	for _, m := range []map[string]int64{c.pending, c.counter} {
		for s := range m {
			spaces[s] = true
		}
	}
	for _, s := range slices.Sorted(maps.Keys(spaces)) {
		if c.pending[s] != c.counter[s] {
			return ErrUnsound.Say("The counter of waiting approvals in the space %q says %d, and there are %d. Nothing was copied.", s, c.counter[s], c.pending[s])
		}
	}
	return nil
}
