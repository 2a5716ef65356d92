package display

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Long is how many characters of one text are shown to people, unless asked otherwise.
const Long = 2000

// Excerpt is [Line] of a text that may be long: above limit characters only its
// head and its tail are shown, with its full size between them. 0 means [Long].
func Excerpt(s string, limit int) string {
	if limit <= 0 {
		limit = Long
	}
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return Line(s)
	}
	head, tail := limit*3/4, limit/4
	from, to := forward(s, head), backward(s, tail)
	return fmt.Sprintf("%s [… %s not shown; %s in all …] %s", Line(s[:from]), Bytes(to-from), Bytes(len(s)), Line(s[to:]))
}

// forward is the offset behind the first n characters.
func forward(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return i
}

// backward is the offset of the last n characters.
func backward(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
	}
	return i
}

// Bytes is a size in words: 1 byte, 12,345 bytes.
func Bytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return Count(n) + " bytes"
}

// Count is a number with commas.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Short is [Line] of the first n characters, with … where there are more.
func Short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return Line(s)
	}
	return Line(s[:forward(s, n-1)]) + "…"
}
