package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// masked stands where a secret was.
const masked = "[masked]"

// mask replaces secrets in a stream that comes in pieces. A secret is found also
// where it is split between two pieces, written with the other line ends, or with any
// of its characters spelt as JSON may, or without the blanks around it; where several
// overlap, all that they cover is replaced. What could be the beginning of one is held
// back until more comes or the stream ends.
type mask struct {
	secrets [][]unit
	first   [256]bool
	held    []byte
	covered int // bytes of held that a secret reaches over whose place is taken already
}

// unit is a character of a secret, or the end of a line: the ways to write it.
type unit []string

func newMask(secrets []string) *mask {
	m := &mask{}
	for _, s := range secrets {
		m.add(s)
		if bare := strings.TrimSpace(s); bare != s {
			m.add(bare) // read from a file, it is used without its last line end
		}
	}
	return m
}

func (m *mask) add(secret string) {
	if secret == "" {
		return
	}
	us := units(secret)
	m.secrets = append(m.secrets, us)
	for _, spelt := range us[0] {
		m.first[spelt[0]] = true
	}
}

func (m *mask) empty() bool { return len(m.secrets) == 0 }

// units takes a secret apart. What is no UTF-8 stands for itself alone.
func units(s string) []unit {
	var us []unit
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case strings.HasPrefix(s, "\r\n"):
			us, n = append(us, lineEnd), 2
		case r == '\n':
			us = append(us, lineEnd)
		case r == utf8.RuneError && n == 1:
			us = append(us, unit{s[:1]})
		default:
			us = append(us, spellings(r))
		}
		s = s[n:]
	}
	return us
}

// lineEnd is written with or without a carriage return.
var lineEnd = func() unit {
	u := spellings('\n')
	for _, cr := range spellings('\r') {
		for _, lf := range spellings('\n') {
			u = append(u, cr+lf)
		}
	}
	return u
}()

// short are the characters that JSON has a short escape for.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// spellings are the ways to write a character, itself and in a JSON string. The digits of
// an escape are in lower case, and stand for either.
func spellings(r rune) unit {
	u := unit{string(r)}
	if s, ok := short[r]; ok {
		u = append(u, s)
	}
	var b strings.Builder
	for _, half := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&b, `\u%04x`, half)
	}
	return append(u, b.String())
}

// begins is how much of spelt b begins with: all of it, or as much as there is of b, or
// nothing.
func begins(b []byte, spelt string) (n int, whole bool) {
	escape := len(spelt) > 2 && strings.Contains(spelt, `\u`)
	for i := range len(spelt) {
		if i == len(b) {
			return i, false
		}
		c := b[i]
		if escape && 'A' <= c && c <= 'F' {
			c += 'a' - 'A'
		}
		if c != spelt[i] {
			return 0, false
		}
	}
	return len(spelt), true
}

// at is how long a secret at the beginning of b is; 0: there is none. more says that
// a longer one may be there once more has come.
func (m *mask) at(b []byte) (n int, more bool) {
	if !m.first[b[0]] {
		return 0, false
	}
	for _, secret := range m.secrets {
		k, cut := match(secret, b)
		n, more = max(n, k), more || cut
	}
	return n, more
}

// match is the longest way in which b begins with the secret. A character may be
// written in several ways, of which one begins as another does: all are followed.
func match(secret []unit, b []byte) (n int, cut bool) {
	var room [2][8]int
	ends, next := append(room[0][:0], 0), room[1][:0]
	for _, u := range secret {
		next = next[:0]
		for _, at := range ends {
			for _, spelt := range u {
				k, whole := begins(b[at:], spelt)
				switch {
				case whole && !slices.Contains(next, at+k):
					next = append(next, at+k)
				case !whole && at+k == len(b):
					cut = true
				}
			}
		}
		if ends, next = next, ends; len(ends) == 0 {
			return 0, cut
		}
	}
	return slices.Max(ends), cut
}

// write returns what of the stream can be passed on.
func (m *mask) write(p []byte) []byte {
	if m.empty() {
		return p
	}
	m.held = append(m.held, p...)
	return m.pass(false)
}

// end returns the rest.
func (m *mask) end() []byte { return m.pass(true) }

// pass looks for secrets at every place, also inside one that was found: another may
// begin there and reach further. Those that overlap become one.
func (m *mask) pass(last bool) []byte {
	in := m.held
	out := make([]byte, 0, len(in))
	i, end := 0, m.covered
	for ; i < len(in); i++ {
		n, more := m.at(in[i:])
		if more && !last {
			break
		}
		switch {
		case i < end:
		case n > 0:
			out = append(out, masked...)
		default:
			out = append(out, in[i])
		}
		if n > 0 {
			end = max(end, i+n)
		}
	}
	m.held, m.covered = append([]byte(nil), in[i:]...), max(end-i, 0)
	return out
}

// text masks one whole text.
func (m *mask) text(s string) string {
	if m.empty() {
		return s
	}
	whole := mask{secrets: m.secrets, first: m.first}
	out := whole.write([]byte(s))
	return string(append(out, whole.end()...))
}

// value masks the texts in a JSON value, whichever way they are written.
func (m *mask) value(raw json.RawMessage) json.RawMessage {
	if m.empty() || len(raw) == 0 {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = m.within(v, &changed)
	if !changed {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func (m *mask) within(v any, changed *bool) any {
	text := func(s string) string {
		t := m.text(s)
		*changed = *changed || t != s
		return t
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = m.within(v[i], changed)
		}
	case map[string]any:
		masked := make(map[string]any, len(v))
		for k, e := range v {
			masked[text(k)] = m.within(e, changed)
		}
		return masked
	case json.Number:
		if t := text(v.String()); t != v.String() {
			return t
		}
	}
	return v
}
