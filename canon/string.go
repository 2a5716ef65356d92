package canon

import (
	"encoding/binary"
	"unicode/utf8"
)

// AppendString appends s as a JSON string with its quotes, escaped as the
// canonical form has it. It errs with a [*SyntaxError] if s is not valid UTF-8;
// the offset is then one in s, and dst is returned as it was.
func AppendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, refuse(invalidUTF8([]byte(s)), "invalid UTF-8")
	}
	dst = append(dst, '"')
	run := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[run:i]...)
			dst = appendChar(dst, rune(c))
			run = i + 1
		}
	}
	dst = append(dst, s[run:]...)
	return append(dst, '"'), nil
}

// appendChar appends one character of a string, escaped if it must be.
func appendChar(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= ' ':
		return utf8.AppendRune(dst, r)
	}
	if short := shortEscape[r]; short != 0 {
		return append(dst, '\\', short)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
}

// shortEscape has the letter of each control character that has one.
var shortEscape = [' ']byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

// unescaped is the byte that a backslash and c stand for, or 0 if nothing.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// string reads the string that opens at e.pos and writes it with its quotes. It
// reports whether what was written between them is ASCII without escapes.
func (e *encoder) string() (ascii bool, err error) {
	e.put('"')
	ascii = true
	for {
		run := e.pos
		end, high := plainRun(e.src, run)
		if high {
			ascii = false
			if !utf8.Valid(e.src[run:end]) {
				return false, refuse(run+invalidUTF8(e.src[run:end]), "invalid UTF-8")
			}
		}
		e.text = append(e.text, e.src[run:end]...)
		e.pos = end
		switch {
		case end == len(e.src):
			return false, unexpected(e.src, end, "in a string")
		case e.src[end] == '"':
			e.put('"')
			return ascii, nil
		case e.src[end] != '\\':
			return false, refuse(end, "control character 0x%02x in a string", e.src[end])
		}
		ascii = false // unless the escape was needless, which is not worth asking
		if err := e.escape(); err != nil {
			return false, err
		}
	}
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// plainRun returns where the bytes from i on stop standing for themselves: at a
// quote, a backslash, a control character or the end of src. It reports whether
// a byte beyond ASCII was among them.
func plainRun(src []byte, i int) (end int, high bool) {
	// Eight bytes at a time while none of them is special or beyond ASCII: each
	// term has the high bit of a byte set that is (in order) beyond ASCII, below
	// 0x20, a quote, a backslash. A borrow may set the bit of a later byte as
	// well, which only ends this loop early.
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		quote, slash := w^(eachByte*'"'), w^(eachByte*'\\')
		if (w|(w-eachByte*' ')|(quote-eachByte)|(slash-eachByte))&highBits != 0 {
			break
		}
	}
	for ; i < len(src); i++ {
		c := src[i]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		high = high || c >= utf8.RuneSelf
	}
	return i, high
}

// invalidUTF8 returns where b stops being UTF-8.
func invalidUTF8(b []byte) int {
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// escape reads the escape sequence at e.pos and writes the character it stands for.
func (e *encoder) escape() error {
	if e.pos+1 >= len(e.src) {
		return unexpected(e.src, e.pos+1, "in a string")
	}
	c := e.src[e.pos+1]
	if c == 'u' {
		return e.unicodeEscape()
	}
	r := unescaped(c)
	if r == 0 {
		return unexpected(e.src, e.pos+1, "after a backslash")
	}
	e.text = appendChar(e.text, rune(r))
	e.pos += 2
	return nil
}

// unicodeEscape reads \uXXXX, or two of them where the first is a high surrogate.
func (e *encoder) unicodeEscape() error {
	r, ok := hex4(e.src[e.pos:])
	if !ok {
		return refuse(e.pos, "\\u without four hexadecimal digits")
	}
	n := 6
	if r >= 0xd800 && r < 0xe000 {
		low, ok := hex4(e.src[e.pos+6:])
		if r >= 0xdc00 || !ok || low < 0xdc00 || low >= 0xe000 {
			return refuse(e.pos, "surrogate without its other half")
		}
		r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
		n = 12
	}
	e.text = appendChar(e.text, r)
	e.pos += n
	return nil
}

// hex4 is the code unit of the \uXXXX that b begins with.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		d := unhex(c)
		if d > 15 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unhex is the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
