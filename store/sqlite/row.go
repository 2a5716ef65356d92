package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// row is one row of a result. Columns are counted from 0. It is valid until the
// function it was given to returns; what the accessors return stays valid.
// Reading a column as what it is not makes the query fail.
type row struct{ *fields }

type fields struct {
	vals []driver.Value
	err  error
}

func (f *fields) mistaken(i int, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("column %d holds a %T, not %s", i, f.vals[i], want)
	}
}

// null reports whether column i is NULL.
func (f *fields) Null(i int) bool { return f.vals[i] == nil }

// str returns column i as text; "" for NULL.
func (f *fields) Str(i int) string {
	switch v := f.vals[i].(type) {
	case nil:
		return ""
	case string:
		return v
	}
	f.mistaken(i, "text")
	return ""
}

// int returns column i as an integer; 0 for NULL.
func (f *fields) Int(i int) int64 {
	switch v := f.vals[i].(type) {
	case nil:
		return 0
	case int64:
		return v
	}
	f.mistaken(i, "an integer")
	return 0
}

// bool returns column i as a truth value; false for NULL.
func (f *fields) Bool(i int) bool { return f.Int(i) != 0 }

// bytes returns column i as bytes; nil for NULL, and only for NULL.
func (f *fields) Bytes(i int) []byte {
	switch v := f.vals[i].(type) {
	case nil:
		return nil
	case []byte:
		if v == nil { // how the driver gives an empty one
			return []byte{}
		}
		return v
	}
	f.mistaken(i, "bytes")
	return nil
}

// time returns column i, microseconds, as a time in UTC; the zero time for NULL.
func (f *fields) Time(i int) time.Time {
	if f.Null(i) {
		return time.Time{}
	}
	return time.UnixMicro(f.Int(i)).UTC()
}
