package canon

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError says why a text has no canonical form, and where.
type SyntaxError struct {
	Offset  int64  // in bytes from 0; the length of the text if it ended too early
	Message string // free of control and invisible characters, whatever the text had
}

// Error is the offset and the message: `byte 17: duplicate key "a"`.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Message)
}

func refuse(offset int, format string, args ...any) error {
	return &SyntaxError{Offset: int64(offset), Message: fmt.Sprintf(format, args...)}
}

// unexpected refuses the byte at offset, or the end of the text there.
func unexpected(src []byte, offset int, where string) error {
	if offset >= len(src) {
		return refuse(len(src), "unexpected end %s", where)
	}
	if c := src[offset]; c > ' ' && c < 0x7f {
		return refuse(offset, "unexpected %q %s", c, where)
	}
	return refuse(offset, "unexpected byte 0x%02x %s", src[offset], where)
}

// shownKey bounds what an error repeats of a key.
const shownKey = 64

// printable is text as an error may show it: on one line, nothing invisible,
// nothing that reorders what stands around it.
func printable(text []byte) string {
	var b strings.Builder
	for i, r := range string(text) {
		if i >= shownKey {
			b.WriteString("…")
			break
		}
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
