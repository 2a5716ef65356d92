package postgres

import (
	"encoding/binary"
	"fmt"
	"time"
)

// row is one row of a result, as it came: every column is sent in its binary form.
type row struct {
	vals [][]byte
	err  error
}

func (r *row) mistaken(i int, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d holds %d bytes, which are not %s", i, len(r.vals[i]), want)
	}
}

func (r *row) Null(i int) bool { return r.vals[i] == nil }

func (r *row) Str(i int) string { return string(r.vals[i]) }

func (r *row) Int(i int) int64 {
	switch v := r.vals[i]; len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	case 0:
		if v == nil {
			return 0
		}
	}
	r.mistaken(i, "an integer")
	return 0
}

func (r *row) Bool(i int) bool { return r.Int(i) != 0 }

// Bytes copies: the row's memory is used again for the next one.
func (r *row) Bytes(i int) []byte {
	if r.vals[i] == nil {
		return nil
	}
	return append([]byte{}, r.vals[i]...)
}

func (r *row) Time(i int) time.Time {
	if r.Null(i) {
		return time.Time{}
	}
	return time.UnixMicro(r.Int(i)).UTC()
}

// sinceEpoch is 2000-01-01, from which the server counts, in microseconds of ours.
const sinceEpoch = 946_684_800_000_000

// clock reads a timestamptz.
func (r *row) clock(i int) int64 { return r.Int(i) + sinceEpoch }
