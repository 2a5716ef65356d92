package display

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds what is taken apart. Arguments are held to less before they are stored.
const maxDepth = 512

// value is one JSON value with its members in their order and its numbers as
// they were written.
type value struct {
	kind    byte   // { [ " or 0 for a literal
	text    string // of a string, with halves of surrogate pairs as [halfPair] knows them; a literal as written
	members []member
	foreign bool // text is a document that is no JSON
	hidden  bool // it stands for a secret, and text is Masked
}

// aSecret stands for a secret.
var aSecret = value{kind: '"', text: Masked, hidden: true}

type member struct {
	key string // of an object
	val value
}

var errDepth = errors.New("nested too deeply")

// parse reads one JSON value. What is not exactly one, or not UTF-8, is an error.
func parse(b []byte) (value, error) {
	if !utf8.Valid(b) {
		return value{}, errors.New("not UTF-8")
	}
	return parseText(b)
}

// parseText is parse for a text that was in a string: halves of surrogate pairs may
// stand in it.
func parseText(b []byte) (value, error) {
	p := parser{doc: b, dec: json.NewDecoder(bytes.NewReader(b))}
	p.dec.UseNumber()
	v, err := p.next(0)
	if err != nil {
		return v, err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return v, errors.New("more than one value")
	}
	return v, nil
}

type parser struct {
	doc []byte
	dec *json.Decoder
}

func (p parser) next(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errDepth
	}
	from := p.dec.InputOffset()
	t, err := p.dec.Token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		return p.inside(byte(t), depth)
	case string:
		return value{kind: '"', text: p.stringFrom(from)}, nil
	case json.Number:
		return value{text: t.String()}, nil
	case bool:
		if t {
			return value{text: "true"}, nil
		}
		return value{text: "false"}, nil
	}
	return value{text: "null"}, nil
}

func (p parser) inside(open byte, depth int) (value, error) {
	v := value{kind: open}
	for p.dec.More() {
		var m member
		if open == '{' {
			from := p.dec.InputOffset()
			if _, err := p.dec.Token(); err != nil {
				return v, err
			}
			m.key = p.stringFrom(from)
		}
		var err error
		if m.val, err = p.next(depth + 1); err != nil {
			return v, err
		}
		v.members = append(v.members, m)
	}
	_, err := p.dec.Token() // the closing one
	return v, err
}

// stringFrom is the string that was read last, from the bytes themselves: the decoder
// puts U+FFFD in the place of half a surrogate pair.
func (p parser) stringFrom(from int64) string {
	quoted := bytes.TrimLeft(p.doc[from:p.dec.InputOffset()], " \t\r\n,:")
	return unquote(quoted[1 : len(quoted)-1])
}

// writeTo writes v on one line.
func (v value) writeTo(b *strings.Builder, st style) {
	switch v.kind {
	case '"':
		if v.foreign && st == machines {
			st = foreign
		}
		writeString(b, v.text, st)
	case '{', '[':
		b.WriteByte(v.kind)
		for i, m := range v.members {
			if i > 0 {
				b.WriteString(separator(",", st))
			}
			if v.kind == '{' {
				writeString(b, m.key, st)
				b.WriteString(separator(":", st))
			}
			m.val.writeTo(b, st)
		}
		b.WriteByte(v.kind + 2) // } is two behind {, ] two behind [
	default:
		b.WriteString(v.text)
	}
}

// separator leaves people some air.
func separator(s string, st style) string {
	if st == machines {
		return s
	}
	return s + " "
}

func writeString(b *strings.Builder, s string, st style) {
	b.WriteByte('"')
	escapeTo(b, s, st)
	b.WriteByte('"')
}

func (v value) string(st style) string {
	var b strings.Builder
	v.writeTo(&b, st)
	return b.String()
}

// Field is one line of a document: a member of an object, or the whole of
// anything else.
type Field struct {
	Name string // fit to be shown; empty: the document is not an object
	Text string // fit to be shown, cut to an excerpt
	Size int    // bytes of the value: of a string its text, of anything else its JSON
}
