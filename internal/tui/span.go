package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// span is a stretch of text in one look. It holds no control characters.
type span struct {
	text string
	look look
}

// cell is one character with the marks on it, as wide as a terminal may draw it.
type cell struct {
	text  string
	width int
	look  look
}

// cells takes spans apart.
func cells(spans []span) (cs []cell) {
	for _, s := range spans {
		for rest := s.text; rest != ""; {
			if c := rest[0]; c >= 0x20 && c < 0x7f && (len(rest) == 1 || rest[1] < 0x80) {
				cs = append(cs, cell{rest[:1], 1, s.look})
				rest = rest[1:]
				continue
			}
			one, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			cs = append(cs, cell{one, widthOf(one), s.look})
			rest = rest[len(one):]
		}
	}
	return cs
}

// widthOf is how many columns a text may take: terminals disagree about what is joined.
func widthOf(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }

// wrap breaks spans into lines of at most width columns: behind a space where there is
// one in the last part of the line, else anywhere. No character is left out.
func wrap(spans []span, width int) (lines []string) {
	width = max(width, 2)
	cs := cells(spans)
	for len(cs) > 0 {
		n := fits(cs, width)
		lines = append(lines, join(cs[:n]))
		cs = cs[n:]
	}
	if lines == nil {
		return []string{""}
	}
	return lines
}

// fits is how many cells stand on a line, at least one.
func fits(cs []cell, width int) int {
	used, space := 0, 0
	for i, c := range cs {
		if used += c.width; used > width && i > 0 {
			if space > i/2 {
				return space
			}
			return i
		}
		if c.text == " " {
			space = i + 1
		}
	}
	return len(cs)
}

func join(cs []cell) string {
	var all, run strings.Builder
	for i, c := range cs {
		run.WriteString(c.text)
		if i+1 == len(cs) || cs[i+1].look != c.look {
			all.WriteString(c.look.of(run.String()))
			run.Reset()
		}
	}
	return all.String()
}

// short is spans on one line of at most width columns, with … where there is more.
func short(spans []span, width int) string {
	cs := cells(spans)
	used := 0
	for i, c := range cs {
		used += c.width
		if used > width {
			return shorten(cs[:i], width)
		}
	}
	return join(cs)
}

func shorten(cs []cell, width int) string {
	used := 0
	for i, c := range cs {
		if used += c.width; used > width-1 {
			cs = cs[:i]
			break
		}
	}
	return join(append(cs[:len(cs):len(cs)], cell{"…", 1, quiet}))
}

// column is spans in exactly width columns.
func column(spans []span, width int) string {
	s := short(spans, width)
	return s + strings.Repeat(" ", max(0, width-widthOf(ansi.Strip(s))))
}

// oneLook is a text of ours.
func oneLook(s string, l look) []span { return []span{{s, l}} }
