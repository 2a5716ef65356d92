package display

import (
	"strconv"
	"strings"
	"unicode"
)

// Path leads from a document to a value in it. An empty one is the whole document.
type Path []Key

// Key leads from a value to one inside it.
type Key struct {
	Name  string // of a member of an object, not yet fit to be shown
	Index int    // of an element of an array, from 0
	Array bool   // it is an element
}

// String is the path as it is shown, such as order.items[2].amount or ["a name"].x. It is
// fit to be shown.
func (p Path) String() string {
	var b strings.Builder
	for _, piece := range p.Pieces() {
		b.WriteString(piece.Text)
	}
	return b.String()
}

// Pieces is the same in pieces.
func (p Path) Pieces() []Piece {
	if len(p) == 0 {
		return []Piece{{Text: "the whole value"}}
	}
	var out []Piece
	add := func(more ...Piece) {
		for _, next := range more {
			if last := len(out) - 1; last >= 0 && out[last].Sort == Plain && next.Sort == Plain {
				out[last].Text += next.Text
			} else {
				out = append(out, next)
			}
		}
	}
	for i, s := range p {
		switch {
		case s.Array:
			add(Piece{Text: "[" + strconv.Itoa(s.Index) + "]"})
		case isName(s.Name):
			if i > 0 {
				add(Piece{Text: "."})
			}
			add(pieces(s.Name, quoted)...)
		default:
			add(Piece{Text: `["`})
			add(pieces(s.Name, quoted)...)
			add(Piece{Text: `"]`})
		}
	}
	return out
}

// isName reports whether a member's name needs no quotes in a path.
func isName(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || r != '-' && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r)) {
			return false
		}
	}
	return s != ""
}
