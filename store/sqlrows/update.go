package sqlrows

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// update is an UPDATE of the columns whose values differ: for the others nothing
// is bound, no CHECK is run and no index looked at. The texts are constants, and
// there are as many statements as there are transitions.
type update struct {
	sql  []byte
	args []any
}

// spareUpdates are those that have been run; each fits every statement.
var spareUpdates = sync.Pool{New: func() any {
	return &update{sql: make([]byte, 0, 1024), args: make([]any, 0, 40)}
}}

// newUpdate also raises the row's version.
func newUpdate(table string) *update {
	u := spareUpdates.Get().(*update)
	u.sql = append(append(append(u.sql[:0], `UPDATE `...), table...), ` SET version = version + 1`...)
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

// run writes, or lost is the error: exactly one row has to be as expected. u is spent
// then.
func (u *update) run(x Rows, lost func() error) error {
	err := x.Write(Write{SQL: updates.text(u.sql), Args: u.args, Lost: lost})
	u.free()
	return err
}

// won is run for a caller that goes on where the row was not as expected.
func (u *update) won(x Rows) (bool, error) {
	won, err := x.one(updates.text(u.sql), u.args...)
	u.free()
	return won, err
}

// free gives u back; nil is fine, and what it returns.
func (u *update) free() *update {
	if u != nil {
		clear(u.args)
		u.args = u.args[:0]
		spareUpdates.Put(u)
	}
	return nil
}

// like reports whether both set the same columns to the same values. Bytes are never the
// same.
func (u *update) like(v *update) bool {
	return u != nil && bytes.Equal(u.sql, v.sql) && slices.EqualFunc(u.args, v.args, func(a, b any) bool {
		if _, ok := a.([]byte); ok {
			return false
		}
		return a == b
	})
}

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
