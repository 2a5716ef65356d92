package job

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"
)

// masked stands where a secret was.
const masked = "[masked]"

// mask replaces secrets in a stream that comes in pieces. A secret is found also
// where it is split between two pieces, written with the other line ends, or escaped
// as in a JSON string. What could be the beginning of one is held back until more
// comes or the stream ends.
type mask struct {
	spellings [][]byte // longest first
	first     [256]bool
	held      []byte
}

func newMask(secrets []string) *mask {
	m := &mask{spellings: spellings(secrets)}
	for _, s := range m.spellings {
		m.first[s[0]] = true
	}
	return m
}

func (m *mask) empty() bool { return len(m.spellings) == 0 }

// spellings are the ways in which secrets may be printed.
func spellings(secrets []string) [][]byte {
	seen := map[string]bool{}
	var all [][]byte
	for _, s := range secrets {
		lf := strings.ReplaceAll(s, "\r\n", "\n")
		for _, form := range []string{s, lf, strings.ReplaceAll(lf, "\n", "\r\n")} {
			for _, p := range append(escaped(form), form) {
				if p != "" && !seen[p] {
					seen[p] = true
					all = append(all, []byte(p))
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b []byte) int { return len(b) - len(a) })
	return all
}

// escaped are the usual spellings of s in a JSON string.
func escaped(s string) []string {
	var list []string
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(s) == nil {
			inner := strings.TrimSuffix(b.String(), "\n")
			inner = inner[1 : len(inner)-1]
			for _, spelt := range []string{inner, strings.ReplaceAll(inner, "/", `\/`)} {
				list = append(list, spelt, ascii(spelt, lower), ascii(spelt, upper))
			}
		}
	}
	return list
}

const (
	lower = "0123456789abcdef"
	upper = "0123456789ABCDEF"
)

// ascii writes what is not ASCII as JSON escapes.
func ascii(s, digits string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[u>>shift&15])
			}
		}
	}
	return b.String()
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

func (m *mask) pass(last bool) []byte {
	in := m.held
	out := make([]byte, 0, len(in))
	i := 0
	for i < len(in) {
		if !m.first[in[i]] {
			out = append(out, in[i])
			i++
			continue
		}
		n, more := m.at(in[i:])
		switch {
		case more && !last:
			m.held = append([]byte(nil), in[i:]...)
			return out
		case n > 0:
			out = append(out, masked...)
			i += n
		default:
			out = append(out, in[i])
			i++
		}
	}
	m.held = nil
	return out
}

// at is how long a secret at the beginning of b is; 0: there is none. more says that
// a longer one may be there once more has come.
func (m *mask) at(b []byte) (n int, more bool) {
	for _, s := range m.spellings {
		switch {
		case bytes.HasPrefix(b, s):
			return len(s), more
		case len(b) < len(s) && bytes.HasPrefix(s, b):
			more = true
		}
	}
	return 0, more
}

// text masks one whole text.
func (m *mask) text(s string) string {
	if m.empty() {
		return s
	}
	whole := mask{spellings: m.spellings, first: m.first}
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
