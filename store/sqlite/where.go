package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// selected is a list of columns for a SELECT. For every query the driver fetches
// the name and the declared type of each column, which takes longer than the
// values; an expression named "" has neither.
func selected(columns string) string {
	names := strings.Split(columns, ",")
	for i, n := range names {
		names[i] = "+" + strings.TrimSpace(n) + ` AS ""`
	}
	return strings.Join(names, ", ")
}

// where collects the conditions of a list. The texts are constants; what comes
// from outside is only ever an argument.
type where struct {
	sql  string
	args []any
}

// and adds a condition with its argument. A trailing false leaves it out.
func (w *where) and(cond string, arg ...any) {
	if n := len(arg); n > 1 {
		if on, ok := arg[n-1].(bool); ok {
			if !on {
				return
			}
			arg = arg[:n-1]
		}
	}
	if w.sql == "" {
		w.sql = ` WHERE ` + cond
	} else {
		w.sql += ` AND ` + cond
	}
	for _, a := range arg {
		if a != nil {
			w.args = append(w.args, a)
		}
	}
}

// prefix keeps ids that begin so; the range uses the index, and compares bytes.
func (w *where) prefix(column, p string) {
	if p != "" {
		w.and(column+` >= ? AND `+column+` < ?`, p, p+"\U0010FFFF")
	}
}

// metadataJSON is NULL for none. The encoder would replace what is not UTF-8
// without a word, so that is refused (case 106).
func metadataJSON(m map[string]string) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	for k, v := range m {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("the metadata %q is not valid UTF-8", k)
		}
	}
	return json.Marshal(m)
}

func scanMetadata(b []byte) (map[string]string, error) {
	if b == nil {
		return nil, nil
	}
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("stored metadata: %w", err)
	}
	return m, nil
}

// update is an UPDATE of the columns whose values differ: for the others nothing
// is bound, no CHECK is run and no index looked at. The texts are constants, and
// there are as many statements as there are transitions.
type update struct {
	sql  []byte
	args []any
}

// newUpdate also raises the row's version.
func newUpdate(table string) *update {
	u := &update{sql: make([]byte, 0, 384), args: make([]any, 0, 24)}
	u.sql = append(append(append(u.sql, `UPDATE `...), table...), ` SET version = version + 1`...)
	return u
}

func (u *update) set(column string, v any) {
	u.sql = append(append(append(u.sql, `, `...), column...), ` = ?`...)
	u.args = append(u.args, v)
}

func (u *update) str(column, prev, next string) {
	if next != prev {
		u.set(column, next)
	}
}

// text is for columns in which nothing is not a value.
func (u *update) text(column, prev, next string) {
	if next != prev {
		u.set(column, text(next))
	}
}

func (u *update) int(column string, prev, next int64) {
	if next != prev {
		u.set(column, next)
	}
}

func (u *update) bool(column string, prev, next bool) {
	if next != prev {
		u.set(column, next)
	}
}

func (u *update) bytes(column string, prev, next []byte) {
	if (next == nil) != (prev == nil) || !bytes.Equal(next, prev) {
		u.set(column, next)
	}
}

func (u *update) time(column string, prev, next time.Time) {
	if !next.Equal(prev) {
		u.set(column, next)
	}
}

// where ends the statement; cond holds the row to what it is expected to be.
func (u *update) where(cond string, args ...any) {
	u.sql = append(append(u.sql, ` WHERE `...), cond...)
	u.args = append(u.args, args...)
}

// and adds a condition of one column.
func (u *update) and(column string, v any) {
	u.sql = append(append(append(u.sql, ` AND `...), column...), ` IS ?`...)
	u.args = append(u.args, v)
}

// run reports whether exactly one row was as expected, and is changed now.
func (u *update) run(x rows) (bool, error) { return x.one(updates.text(u.sql), u.args...) }

// texts keeps one string of each text, so that building it again costs no memory.
type texts struct {
	mu   sync.RWMutex
	kept map[string]string
}

var updates = texts{kept: map[string]string{}}

func (t *texts) text(b []byte) string {
	t.mu.RLock()
	s, ok := t.kept[string(b)]
	t.mu.RUnlock()
	if ok {
		return s
	}
	s = string(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept[s] = s
	return s
}
