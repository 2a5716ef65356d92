package event

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Cursor is a place in a stream, or in all streams: opaque to its keeper, the
// same in every door. The empty cursor is the beginning.
type Cursor string

// A cursor holds a number and the first bytes of that event's hash, so that one
// of another stream, or of a store that went back in time, is noticed.
const cursorHash = 6

// CursorOf is the place after e in its own stream.
func CursorOf(e Event) Cursor { return makeCursor('s', e.StreamSeq, e.Hash) }

// PosCursorOf is the place after e among all streams.
func PosCursorOf(e Event) Cursor { return makeCursor('p', e.Pos, e.Hash) }

// CursorAt is the place at the end of a stream.
func CursorAt(h Head) Cursor {
	if h.Seq == 0 {
		return ""
	}
	return makeCursor('s', h.Seq, h.Hash)
}

func makeCursor(kind byte, n int64, hash []byte) Cursor {
	return Cursor(string(kind) + strconv.FormatInt(n, 36) + "-" + short(hash))
}

// short is what a cursor keeps of a hash; of one that was cut by hand, all there is.
func short(hash []byte) string { return hex.EncodeToString(hash[:min(cursorHash, len(hash))]) }

func (c Cursor) parse(kind byte) (n int64, hash string, err error) {
	if c == "" {
		return 0, "", nil
	}
	num, hash, ok := strings.Cut(string(c), "-")
	if !ok || num == "" || num[0] != kind || len(hash) != 2*cursorHash {
		return 0, "", ErrCursor.Say("%q is not a cursor of this kind.", string(c)).Hint("Use one that an event or a wait returned.")
	}
	n, err = strconv.ParseInt(num[1:], 36, 64)
	if err != nil || n <= 0 {
		return 0, "", ErrCursor.Say("%q is not a cursor.", string(c)).Hint("Use one that an event or a wait returned.")
	}
	return n, hash, nil
}

// resolve finds the number a cursor stands for, and refuses one whose event is
// not there or is another one.
func resolve(tx Tx, stream string, c Cursor) (int64, error) {
	kind := byte('s')
	if stream == "" {
		kind = 'p'
	}
	n, hash, err := c.parse(kind)
	if err != nil || n == 0 {
		return 0, err
	}
	es, err := tx.Events(Query{Stream: stream, After: n - 1, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(es) == 0 || short(es[0].Hash) != hash || cursorIn(stream, &es[0]) != c {
		return 0, ErrCursor.Say("The cursor %q names no event here.", string(c)).Hint("Start from the beginning, or use a cursor that this stream returned.")
	}
	return n, nil
}

// Place is the number of the stream's event that the cursor stands behind; 0 at the
// beginning. [ErrCursor]: the cursor names no event of this stream.
func Place(tx Tx, stream string, c Cursor) (int64, error) { return resolve(tx, stream, c) }

// number is the number in a cursor that was resolved before.
func (c Cursor) number() int64 {
	if c == "" {
		return 0
	}
	n, _, err := c.parse(c[0])
	if err != nil {
		return 0
	}
	return n
}
