package tui

import (
	"fmt"
	"strings"

	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// tree is a document as a person reads it.
func (s *sheet) tree(n display.Node) { s.node(n, 1) }

// node shows what is inside of a value, or the value itself, at a depth.
func (s *sheet) node(n display.Node, depth int) {
	if len(n.Nodes) == 0 {
		lead := s.lead(depth)
		s.value([]string{lead, lead}, n)
		return
	}
	width := s.nameWidth(n)
	for i, one := range n.Nodes {
		if i == review.ManyNodes && !s.open {
			s.missing(s.lead(depth), fmt.Sprintf("%s more, %s in all", display.Count(len(n.Nodes)-i), display.Count(len(n.Nodes))))
			return
		}
		name := s.name(one.Name)
		if n.Kind == display.Array {
			name = oneLook(fmt.Sprintf("%d.", i), quiet)
		}
		if len(one.Nodes) > 0 {
			s.named(s.lead(depth), name)
			s.node(one, depth+1)
			continue
		}
		s.beside(s.lead(depth), name, width, func(lead []string) { s.value(lead, one) })
	}
}

// nameWidth is how wide the column of a value's names is.
func (s *sheet) nameWidth(n display.Node) (width int) {
	if n.Kind == display.Array {
		return len(fmt.Sprint(len(n.Nodes))) + 1
	}
	for _, one := range n.Nodes {
		if len(one.Nodes) == 0 && plainName.MatchString(one.Name) {
			width = max(width, min(len(one.Name), 24))
		}
	}
	return max(width, 4)
}

// lead is the space before a line at a depth. Where it would leave too little room, the
// depth is written as a number instead.
func (s *sheet) lead(depth int) string {
	if most := max(1, (s.width-18)/2); depth > most {
		return strings.Repeat("  ", most-1) + fmt.Sprintf("%d> ", depth)
	}
	return strings.Repeat("  ", depth)
}

// value is a value that has none inside.
func (s *sheet) value(lead []string, n display.Node) {
	word := func(l look, text string) { s.behind(lead, ours.of(bar), oneLook(text, l)) }
	switch {
	case n.Hidden:
		word(quiet, "hidden: a secret")
	case n.Kind == display.Object:
		word(quiet, "empty")
	case n.Kind == display.Array:
		word(quiet, "an empty list")
	case n.Kind == display.String && n.Text == "":
		word(quiet, "empty text")
	case n.Kind == display.String:
		s.long(lead, n.Text, `"`)
	case n.Kind == display.Null:
		word(quiet, "null: nothing")
	default:
		s.text(lead, n.Text)
	}
}

// diff is how one document differs from another.
func (s *sheet) diff(changes []display.Change, was, is string) {
	if len(changes) == 0 {
		s.say(quiet, "No difference.")
		return
	}
	for _, c := range changes {
		spans := []span{{map[display.ChangeSort]string{display.Added: "+ ", display.Removed: "- ", display.Changed: "~ "}[c.Sort], strong}}
		spans = append(spans, s.place(c.Path)...)
		s.named("  ", append(spans, span{"  " + c.Sort.String(), quiet}))
		if c.Sort != display.Added {
			s.side(was, bad, c.Before)
		}
		if c.Sort != display.Removed {
			s.side(is, good, c.After)
		}
	}
}

func (s *sheet) place(p display.Path) (spans []span) {
	if len(p) == 0 {
		return oneLook("all of it", strong)
	}
	for _, piece := range p.Pieces() {
		l := strong
		switch piece.Sort {
		case display.Escape:
			l = unseen
			s.odd.add(piece.Text + "  " + piece.Title)
		case display.Alike:
			l, piece.Text = alike, "‹"+piece.Text+"›"
			s.odd.add(piece.Text + "  " + piece.Title)
		}
		spans = append(spans, span{piece.Text, l})
	}
	return spans
}

func (s *sheet) side(name string, l look, n display.Node) {
	if len(n.Nodes) > 0 {
		s.indented("    ", oneLook(name, l))
		s.node(n, 3)
		return
	}
	s.beside("    ", oneLook(name, l), 9, func(lead []string) { s.value(lead, n) })
}
