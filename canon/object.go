package canon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// object is a place in text: from its opening brace to its closing one.
type object struct {
	start, end int
	first, n   int // its members in encoder.members; none if it was in order
	next       int // the first object of encoder.objects behind it
}

// member is a place in text: from the quote that opens the key to the end of the value.
type member struct {
	start, end int
	key        int    // end of the key, its closing quote included
	next       int    // the first object of encoder.objects inside it or behind it
	src        int    // where the key stands in encoder.src
	ascii      bool   // the key has neither escapes nor characters beyond ASCII
	prefix     uint64 // then: its first eight bytes, which settle most comparisons
}

func (e *encoder) object(depth int) error {
	slot, base := len(e.objects), len(e.open)
	e.objects = append(e.objects, object{start: len(e.text)})
	if err := e.enter('{', depth); err != nil {
		return err
	}
	ordered, err := e.readMembers(depth)
	if err != nil {
		return err
	}
	e.objects[slot].end = len(e.text)
	e.put('}')
	if !ordered {
		if err := e.sortMembers(slot, e.open[base:]); err != nil {
			return err
		}
	}
	e.open = e.open[:base]
	if ordered && slot == len(e.objects)-1 {
		e.objects = e.objects[:slot]
		return nil
	}
	e.objects[slot].next = len(e.objects)
	return nil
}

// readMembers reads up to the closing brace and leaves the members on e.open. It
// reports whether they came in canonical order, which rules out a duplicate too.
func (e *encoder) readMembers(depth int) (ordered bool, err error) {
	if e.next() == '}' {
		return true, nil
	}
	ordered = true
	for prev := -1; ; {
		if ordered, err = e.key(prev, ordered); err != nil {
			return false, err
		}
		prev = len(e.open) - 1
		if err := e.value(depth); err != nil {
			return false, err
		}
		e.open[prev].end = len(e.text)
		switch e.next() {
		case ',':
			e.put(',')
		case '}':
			return ordered, nil
		default:
			return false, unexpected(e.src, e.pos, "in an object")
		}
	}
}

// key reads a key and its colon and pushes the member. While ordered holds, the
// key is compared with that of the member prev, if there is one.
func (e *encoder) key(prev int, ordered bool) (bool, error) {
	if e.next() != '"' {
		return false, unexpected(e.src, e.pos, "where a key should be")
	}
	m := member{start: len(e.text), src: e.pos, next: len(e.objects)}
	var err error
	if m.ascii, err = e.string(); err != nil {
		return false, err
	}
	m.key = len(e.text)
	m.prefix = prefix(e.keyText(&m))
	if ordered && prev >= 0 {
		c := e.compare(&e.open[prev], &m)
		if c == 0 {
			return false, e.duplicate(&m)
		}
		ordered = c < 0
	}
	if e.next() != ':' {
		return false, unexpected(e.src, e.pos, "after a key")
	}
	e.put(':')
	e.open = append(e.open, m)
	return ordered, nil
}

// sortMembers puts the members of the object in slot in order and keeps them.
// Equal keys stay in the order of src, so that the error names the later one.
func (e *encoder) sortMembers(slot int, members []member) error {
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(e.compare(&a, &b), a.src-b.src)
	})
	if again := e.repeated(members); again != nil {
		return e.duplicate(again)
	}
	o := &e.objects[slot]
	o.first, o.n = len(e.members), len(members)
	e.members = append(e.members, members...)
	return nil
}

// repeated returns, of the members whose key stood in the object before, the one
// that comes first in src.
func (e *encoder) repeated(members []member) (first *member) {
	for i := 1; i < len(members); i++ {
		m := &members[i]
		if e.compare(&members[i-1], m) == 0 && (first == nil || m.src < first.src) {
			first = m
		}
	}
	return first
}

func (e *encoder) duplicate(m *member) error {
	return refuse(m.src, "duplicate key \"%s\"", printable(e.keyText(m)))
}

// keyText is the key as it stands in text, without its quotes.
func (e *encoder) keyText(m *member) []byte {
	return e.text[m.start+1 : m.key-1]
}

// prefix is the first eight bytes of a key such that integers compare as the
// bytes do. The zeros behind a shorter key sort before any character of another.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var p uint64
	for i, c := range key {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

func (e *encoder) compare(a, b *member) int {
	if !a.ascii || !b.ascii {
		return compareKeys(e.keyText(a), e.keyText(b))
	}
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	return bytes.Compare(e.keyText(a), e.keyText(b))
}

// compareKeys compares two canonical strings, without their quotes, as UTF-16.
//
// The order of UTF-8 bytes is that of code points, and it differs from UTF-16 in
// one place: U+E000 to U+FFFF stand behind all of the surrogates. In the first
// byte that differs this is 0xEE and 0xEF going behind 0xF0 to 0xF4.
func compareKeys(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		x, n := keyByte(a)
		y, m := keyByte(b)
		if x != y {
			return int(utf16Rank(x)) - int(utf16Rank(y))
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}

// keyByte returns the first byte of a canonical string, and how many bytes spell
// it. What a canonical string escapes is a single byte.
func keyByte(s []byte) (c byte, n int) {
	if s[0] != '\\' {
		return s[0], 1
	}
	switch s[1] {
	case 'u':
		return unhex(s[4])<<4 | unhex(s[5]), 6
	default:
		return unescaped(s[1]), 2
	}
}

func utf16Rank(c byte) byte {
	if c == 0xee || c == 0xef {
		return c + 0x10
	}
	return c
}

// appendTo appends the canonical form to dst.
func (e *encoder) appendTo(dst []byte) []byte {
	return e.appendSpan(dst, 0, len(e.text), 0)
}

// sorted returns the canonical form. It is scratch memory: gone after free.
func (e *encoder) sorted() []byte {
	if len(e.objects) == 0 {
		return e.text
	}
	e.result = e.appendTo(e.result)
	return e.result
}

// appendSpan appends text[from:to] with the members of its objects in order. next
// is the first object that does not start before from.
func (e *encoder) appendSpan(dst []byte, from, to, next int) []byte {
	for next < len(e.objects) && e.objects[next].start < to {
		o := e.objects[next]
		if o.n == 0 {
			next++
			continue
		}
		dst = append(dst, e.text[from:o.start]...)
		sep := byte('{')
		for _, m := range e.members[o.first : o.first+o.n] {
			dst = append(dst, sep)
			dst = e.appendSpan(dst, m.start, m.end, m.next)
			sep = ','
		}
		from, next = o.end, o.next
	}
	return append(dst, e.text[from:to]...)
}
