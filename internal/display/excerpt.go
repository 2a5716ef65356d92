package display

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Long is how many characters of one text are shown to people, unless asked otherwise.
const Long = 2000

// Excerpt is [Line] of a text that may be long: above limit characters only its
// head and its tail are shown, with its full size between them. 0 means [Long].
func Excerpt(s string, limit int) string {
	head, tail, cut := HeadTail(s, limit)
	if cut == 0 {
		return Line(s)
	}
	return fmt.Sprintf("%s [… %s not shown; %s in all …] %s", Line(head), Bytes(cut), Bytes(len(s)), Line(tail))
}

// HeadTail is the beginning and the end of a text of more than limit characters, three
// quarters and one quarter of it, as they stand in s, and how many bytes are between them.
// 0 means [Long]. A text that is short enough is all head, and cut is 0.
//
// Half of a surrogate pair counts as the character that it is shown as. A character is
// not torn from the marks on it that [Line] leaves there, so a few more may be shown.
func HeadTail(s string, limit int) (head, tail string, cut int) {
	if limit <= 0 {
		limit = Long
	}
	if len(s) <= limit || forward(s, limit) == len(s) {
		return s, "", 0
	}
	from, to := behindMarks(s, forward(s, limit*3/4)), beforeMarks(s, backward(s, limit/4))
	if from >= to {
		return s, "", 0
	}
	return s[:from], s[to:], to - from
}

// behindMarks moves a cut behind the marks that it stands before.
func behindMarks(s string, at int) int {
	for range maxMarks {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !unicode.Is(unicode.M, r) || at == 0 {
			break
		}
		at += n
	}
	return at
}

// beforeMarks moves a cut before the character whose marks it stands among.
func beforeMarks(s string, at int) int {
	back := at
	for range maxMarks {
		if r, _ := utf8.DecodeRuneInString(s[back:]); !unicode.Is(unicode.M, r) {
			return back
		}
		_, n := utf8.DecodeLastRuneInString(s[:back])
		back -= n
	}
	if r, _ := utf8.DecodeRuneInString(s[back:]); unicode.Is(unicode.M, r) {
		return at // in a pile, which is shown as escapes
	}
	return back
}

// forward is the offset behind the first n characters.
func forward(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[i:])
		if _, ok := halfPair(s[i:]); ok {
			w = halfLen
		}
		i += w
	}
	return i
}

// backward is the offset of the last n characters.
func backward(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		if _, ok := halfPair(s[max(0, i-halfLen):i]); ok {
			w = halfLen
		}
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
	if forward(s, n) == len(s) {
		return Line(s)
	}
	return Line(s[:behindMarks(s, forward(s, n-1))]) + "…"
}
