package tool

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeValue reads JSON that canon.Valid accepted into the values that the schema
// library takes: numbers keep their spelling (json.Number).
func decodeValue(src []byte) any {
	d := decoder{src: src}
	return d.value()
}

// decoder reads JSON that is known to be valid, so it asks no questions.
type decoder struct {
	src []byte
	at  int
}

func (d *decoder) value() any {
	d.at = skipSpace(d.src, d.at)
	switch c := d.src[d.at]; c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.text()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	default:
		from := d.at
		d.at = skipNumber(d.src, d.at)
		return json.Number(d.src[from:d.at])
	}
}

func (d *decoder) object() any {
	out := map[string]any{}
	for d.more('}') {
		key := d.text()
		d.at = skipSpace(d.src, d.at) + len(":")
		out[key] = d.value()
	}
	return out
}

func (d *decoder) array() any {
	out := []any{}
	for d.more(']') {
		out = append(out, d.value())
	}
	return out
}

// more moves to the next member or element; false behind the closing bracket.
func (d *decoder) more(closing byte) bool {
	d.at = skipSpace(d.src, d.at)
	switch d.src[d.at] {
	case closing:
		d.at++
		return false
	default: // the opening bracket or a comma
		d.at = skipSpace(d.src, d.at+1)
	}
	if d.src[d.at] == closing { // an empty one
		d.at++
		return false
	}
	return true
}

func (d *decoder) text() string {
	from := d.at + 1
	end, escaped := skipString(d.src, d.at)
	d.at = end
	if !escaped {
		return string(d.src[from : end-1])
	}
	return unescape(d.src[from : end-1])
}

// skipSpace is the offset of the first byte from at on that is not white space.
func skipSpace(src []byte, at int) int {
	for at < len(src) {
		switch src[at] {
		case ' ', '\t', '\r', '\n':
			at++
		default:
			return at
		}
	}
	return at
}

func skipNumber(src []byte, at int) int {
	for at < len(src) {
		switch c := src[at]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			at++
		default:
			return at
		}
	}
	return at
}

// skipString is the offset behind the string that starts at at, and whether it has escapes.
func skipString(src []byte, at int) (end int, escaped bool) {
	for at++; ; at++ {
		switch src[at] {
		case '"':
			return at + 1, escaped
		case '\\':
			escaped = true
			at++
		}
	}
}

// unescape is the text of a valid JSON string's inside.
func unescape(in []byte) string {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch in[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(in[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(in[i+3:]))
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default: // " \ /
			out = append(out, in[i])
		}
	}
	return string(out)
}

func hex4(in []byte) rune {
	n, _ := strconv.ParseUint(string(in[:4]), 16, 16)
	return rune(n)
}

// kindAt names the kind of the JSON value that starts with c.
func kindAt(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// composite reports whether v has values inside it.
func composite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
