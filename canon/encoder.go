package canon

import (
	"bytes"
	"slices"
	"sync"
)

// encoder turns one text into its canonical form in two steps. The first reads
// src once and writes text: canonical in everything but the order of members,
// which stays that of src. Where an object was out of order it is noted, and the
// second step copies text with those objects put right. A text whose keys were
// in order needs no second step, and no byte is moved once per level of nesting.
type encoder struct {
	src []byte
	pos int

	text    []byte
	objects []object // those that contain or are an object out of order, by start
	members []member // of the objects out of order, each object's in canonical order
	open    []member // of the objects being read, outermost first

	digits []byte // of the number being read
	result []byte // the canonical form, where it is not text itself
}

// What is kept of the scratch memory for the next call is bounded: enough for the
// largest body that is read, 1 MiB, with the smallest members.
const (
	maxPooledBytes   = 2 << 20
	maxPooledMembers = 1 << 17
)

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func newEncoder(src []byte) *encoder {
	e := encoders.Get().(*encoder)
	e.src, e.pos = src, 0
	e.text, e.result = slices.Grow(e.text[:0], len(src)), e.result[:0]
	e.objects, e.members, e.open = e.objects[:0], e.members[:0], e.open[:0]
	return e
}

func (e *encoder) free() {
	e.src = nil
	if max(cap(e.text), cap(e.result)) > maxPooledBytes ||
		max(cap(e.objects), cap(e.members), cap(e.open)) > maxPooledMembers {
		return
	}
	encoders.Put(e)
}

// document reads src, which must hold one value and nothing else.
func (e *encoder) document() error {
	if bytes.HasPrefix(e.src, []byte("\xef\xbb\xbf")) {
		return refuse(0, "byte order mark")
	}
	if err := e.value(0); err != nil {
		return err
	}
	if e.next(); e.pos < len(e.src) {
		return unexpected(e.src, e.pos, "after the value")
	}
	return nil
}

// value reads the value that comes next; depth counts the arrays and objects around it.
func (e *encoder) value(depth int) error {
	switch c := e.next(); c {
	case '{':
		return e.object(depth + 1)
	case '[':
		return e.array(depth + 1)
	case '"':
		_, err := e.string()
		return err
	case 't':
		return e.literal("true")
	case 'f':
		return e.literal("false")
	case 'n':
		return e.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return e.number()
		}
		return unexpected(e.src, e.pos, "where a value should be")
	}
}

// next skips white space and returns the byte behind it, or 0 at the end. A byte
// 0 in src needs no telling apart: it is refused in the same places.
func (e *encoder) next() byte {
	for ; e.pos < len(e.src); e.pos++ {
		switch c := e.src[e.pos]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

func (e *encoder) literal(word string) error {
	rest := e.src[e.pos:]
	for i := range len(word) {
		if i >= len(rest) || rest[i] != word[i] {
			return unexpected(e.src, e.pos+i, "in "+word)
		}
	}
	e.pos += len(word)
	e.text = append(e.text, word...)
	return nil
}

func (e *encoder) array(depth int) error {
	if err := e.enter('[', depth); err != nil {
		return err
	}
	if e.next() == ']' {
		e.put(']')
		return nil
	}
	for {
		if err := e.value(depth); err != nil {
			return err
		}
		switch e.next() {
		case ',':
			e.put(',')
		case ']':
			e.put(']')
			return nil
		default:
			return unexpected(e.src, e.pos, "in an array")
		}
	}
}

// enter reads the bracket that opens an array or object.
func (e *encoder) enter(bracket byte, depth int) error {
	if depth > MaxDepth {
		return refuse(e.pos, "nested more than %d deep", MaxDepth)
	}
	e.put(bracket)
	return nil
}

// put reads c, which is next in src, and writes it.
func (e *encoder) put(c byte) {
	e.pos++
	e.text = append(e.text, c)
}
