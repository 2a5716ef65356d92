package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may stand on one character. Scripts need
// three at most; piles of them cover the lines around.
const maxMarks = 4

// Line is s on one line, with a visible escape for whatever cannot be seen. It
// is what a terminal may be sent.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	escapeTo(&b, s, people)
	return b.String()
}

// plain reports whether s is made of nothing but printable ASCII, with no
// backslash that could be read as an escape.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '\\' {
			return false
		}
	}
	return true
}

// style is how escapes are written.
type style int

const (
	people   style = iota // text: \u{202e}, \n
	quoted                // inside the quotes of a JSON value shown to people: \u{202e}, and \" and \\
	machines              // JSON: \u202e
	foreign               // JSON of bytes that were none: no three of them are half of a surrogate pair
	written               // JSON as it is written: its own escapes stay, and what else cannot be seen is written as one
)

func (st style) forMachines() bool { return st == machines || st == foreign || st == written }

// How a character is shown.
type shownAs int

const (
	asItself shownAs = iota
	asSign           // a control, a quote or a backslash: see writeASCII
	asRune           // the escape of a character
	asMark           // the same, of a mark that stands on nothing or on a pile of them
	asHalf           // the same, of half a surrogate pair
	asByte           // the escape of a byte that belongs to no character
)

// keeper walks through a text and says how each of its characters is shown.
type keeper struct {
	st    style
	marks int // that stand on the character shown last
}

// A mark at the very start, or behind an escape, would sit on what we wrote ourselves.
func newKeeper(st style) keeper { return keeper{st: st, marks: maxMarks} }

// next is the character at the start of s, its bytes and how it is shown.
func (k *keeper) next(s string) (r rune, n int, how shownAs) {
	r, n = utf8.DecodeRuneInString(s)
	marks := k.marks
	k.marks = maxMarks
	half, isHalf := halfPair(s)
	switch {
	case isHalf && k.st != foreign:
		return half, halfLen, asHalf
	case r == utf8.RuneError && n == 1:
		return rune(s[0]), 1, asByte
	case unicode.Is(unicode.M, r) && !Hidden(r):
		if k.marks = marks + 1; k.marks > maxMarks && !k.st.forMachines() {
			return r, n, asMark
		}
		return r, n, asItself
	case k.st == written && (r == '\\' || r == '"'):
		k.marks = 0
		return r, n, asItself
	case r == '\\' || r == '"' || r < 0x20:
		if r >= 0x20 && !k.spelled(s) {
			k.marks = 0
		}
		return r, n, asSign
	case Hidden(r):
		return r, n, asRune
	}
	k.marks = 0
	return r, n, asItself
}

// spelled reports whether the sign at the start of s is shown as its number.
func (k *keeper) spelled(s string) bool {
	return k.st == people && s[0] == '\\' && len(s) > 1 && readsAsEscape(s[1:])
}

// write shows the character at the start of s as next said.
func (k *keeper) write(b *strings.Builder, s string, r rune, n int, how shownAs) {
	switch how {
	case asItself:
		b.WriteString(s[:n])
	case asSign:
		k.writeASCII(b, s)
	case asByte:
		writeByte(b, s[0], k.st)
	default:
		writeRune(b, r, k.st)
	}
}

func escapeTo(b *strings.Builder, s string, st style) {
	k := newKeeper(st)
	for i := 0; i < len(s); {
		r, n, how := k.next(s[i:])
		k.write(b, s[i:], r, n, how)
		i += n
	}
}

// writeASCII writes the character at the start of s that means something in an escape.
func (k *keeper) writeASCII(b *strings.Builder, s string) {
	c := s[0]
	switch {
	case c == '\n':
		b.WriteString(`\n`)
	case c == '\r':
		b.WriteString(`\r`)
	case c == '\t':
		b.WriteString(`\t`)
	case c < 0x20:
		writeRune(b, rune(c), k.st)
	case k.st != people:
		b.WriteByte('\\')
		b.WriteByte(c)
	case k.spelled(s):
		b.WriteString(`\u{5c}`)
	default:
		b.WriteByte(c)
	}
}

func readsAsEscape(s string) bool {
	switch s[0] {
	case 'n', 'r', 't':
		return true
	case 'u', 'x':
		return len(s) > 1 && s[1] == '{'
	}
	return false
}

func writeRune(b *strings.Builder, r rune, st style) {
	if !st.forMachines() {
		fmt.Fprintf(b, `\u{%x}`, r)
		return
	}
	if r > 0xffff {
		r -= 0x10000
		fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// writeByte shows a byte that belongs to no character. JSON has no escape for
// one, so a program is shown what people are.
func writeByte(b *strings.Builder, c byte, st style) {
	if st.forMachines() {
		b.WriteByte('\\')
	}
	fmt.Fprintf(b, `\x{%02x}`, c)
}

// unseen are characters that Unicode counts as letters, marks or symbols and
// that are drawn as nothing.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x034f, 0x034f, 1}, // combining grapheme joiner
		{0x115f, 0x1160, 1}, // Hangul fillers
		{0x17b4, 0x17b5, 1}, // Khmer inherent vowels
		{0x180b, 0x180f, 1}, // Mongolian variation selectors and separator
		{0x2800, 0x2800, 1}, // blank Braille pattern
		{0x3164, 0x3164, 1}, // Hangul filler
		{0xfe00, 0xfe0f, 1}, // variation selectors
		{0xffa0, 0xffa0, 1}, // half-width Hangul filler
		{0xfffc, 0xfffc, 1}, // object replacement
	},
	R32: []unicode.Range32{
		{0x1d159, 0x1d159, 1}, // null note head
		{0xe0100, 0xe01ef, 1}, // more variation selectors
	},
}

// Hidden reports whether a character is shown as an escape: controls, format
// characters (bidirectional ones, zero-width ones, tags, soft hyphen, byte order
// mark), variation selectors, fillers, spaces other than the ordinary one,
// private and unassigned ones.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	return !unicode.IsPrint(r) || unicode.Is(unseen, r)
}

// Machine is JSON that we encoded, with escapes in place of what may not be sent
// to a terminal. It is the same value: in JSON such characters stand only inside
// strings.
func Machine(b []byte) []byte {
	if plainJSON(b) {
		return b
	}
	var out strings.Builder
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			writeByte(&out, b[i], machines)
		case r != '\n' && Hidden(r):
			writeRune(&out, r, machines)
		default:
			out.Write(b[i : i+n])
		}
		i += n
	}
	return []byte(out.String())
}

func plainJSON(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' || c > 0x7e {
			return false
		}
	}
	return true
}
