package display

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON may have \ud800 in a string: one half of a surrogate pair, which is no character
// and which Go's decoder replaces. What is stored is shown, so it is kept: as the three
// bytes that UTF-8 would have for it if it had any.

// halfLen is how many bytes half a pair has.
const halfLen = len("\xed\xa0\x80")

// halfPair is the half of a pair that s begins with.
func halfPair(s string) (half rune, ok bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2] < 0x80 || s[2] > 0xbf {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

func appendHalf(b *strings.Builder, half rune) {
	b.Write([]byte{0xed, 0x80 | byte(half>>6&0x3f), 0x80 | byte(half&0x3f)})
}

var simpleEscapes = strings.NewReplacer("b", "\b", "f", "\f", "n", "\n", "r", "\r", "t", "\t")

// unquote is the text between the quotes of a JSON string that is well formed.
func unquote(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		if s[i+1] != 'u' {
			b.WriteString(simpleEscapes.Replace(string(s[i+1])))
			i += 2
			continue
		}
		r := unit(s[i:])
		i += len(`\u0000`)
		if pair := utf16.DecodeRune(r, unit(s[i:])); pair != utf8.RuneError {
			r = pair
			i += len(`\u0000`)
		}
		if utf16.IsSurrogate(r) {
			appendHalf(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unit is the number in the \u0000 that s begins with; 0 where it begins otherwise.
func unit(s []byte) rune {
	if len(s) < len(`\u0000`) || s[0] != '\\' || s[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}
