package tui

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// sheet collects the lines of a screen.
type sheet struct {
	width int
	open  bool // long values are shown whole
	lines []string
	odd   footnotes
}

// The bars that foreign lines begin with, and what stands in place of a part that is not shown.
const (
	bar      = "│ "
	cutBar   = "┄ "
	nameBar  = "┊ "
	barWidth = 2
)

// footnotes say what the marks in a section stand for.
type footnotes struct {
	order []string
	count map[string]int
}

func (f *footnotes) add(text string) {
	if f.count == nil {
		f.count = map[string]int{}
	}
	if f.count[text]++; f.count[text] == 1 {
		f.order = append(f.order, text)
	}
}

func (s *sheet) put(lines ...string) { s.lines = append(s.lines, lines...) }

// head begins a section.
func (s *sheet) head(title, more string) {
	s.notes()
	if len(s.lines) > 0 {
		s.put("")
	}
	spans := []span{{title, strong}}
	if more != "" {
		spans = append(spans, span{"  " + more, quiet})
	}
	s.put(wrap(spans, s.width)...)
}

// under begins a part of a section.
func (s *sheet) under(title, more string) {
	s.put("")
	spans := []span{{title, strong}}
	if more != "" {
		spans = append(spans, span{"  " + more, quiet})
	}
	s.indented("  ", spans)
}

// say is a sentence of ours.
func (s *sheet) say(l look, text string) {
	if text != "" {
		s.indented("  ", oneLook(text, l))
	}
}

func (s *sheet) indented(by string, spans []span) {
	for _, l := range wrap(spans, s.width-len(by)) {
		s.put(by + l)
	}
}

// command is a command line to copy: it is broken only where it has to be.
func (s *sheet) command(text string) { s.indented("    ", oneLook(display.Line(text), strong)) }

// fact is a line of the record: a name of ours and foreign text. An empty text is left out.
func (s *sheet) fact(name, text string) {
	if text == "" {
		return
	}
	s.beside("  ", []span{{name, quiet}}, 18, func(lead []string) { s.long(lead, text, "") })
}

// own is a line of the record whose text is ours, such as a time.
func (s *sheet) own(name, text string) {
	if text == "" {
		return
	}
	s.beside("  ", []span{{name, quiet}}, 18, func(lead []string) {
		for i, l := range wrap(oneLook(text, plain), s.width-widthOf(lead[0])) {
			s.put(lead[min(i, 1)] + l)
		}
	})
}

// beside puts a name and what belongs to it on one line where there is room, else one
// below the other. value is given what its first line and the others begin with.
func (s *sheet) beside(indent string, name []span, width int, value func(lead []string)) {
	used := 0
	for _, c := range cells(name) {
		used += c.width
	}
	if s.width < 60 || used > width {
		s.named(indent, name)
		value([]string{indent + "  ", indent + "  "})
		return
	}
	value([]string{indent + column(name, width) + " ", indent + strings.Repeat(" ", width+1)})
}

// named is a name, perhaps a foreign one: where it takes several lines, each stands behind
// a bar of its own sort.
func (s *sheet) named(indent string, name []span) {
	if lines := wrap(name, s.width-widthOf(indent)); len(lines) == 1 {
		s.put(indent + lines[0])
		return
	}
	s.behind([]string{indent}, ours.of(nameBar), name)
}

// by is a line of ours that ends with a foreign name, which stands behind a bar.
func (s *sheet) by(indent string, line []span, name string) {
	lead := indent + short(append(line, span{" by ", quiet}), s.width-len(indent))
	if name == "" {
		s.indented(indent, line)
		return
	}
	rest := indent + "  "
	if s.width-widthOf(ansi.Strip(lead)) < 16 {
		s.indented(indent, append(line, span{" by", quiet}))
		lead = rest
	}
	s.long([]string{lead, rest}, name, "")
}

// pieces is foreign text as lines of spans, one for each line feed in it.
func (s *sheet) pieces(text string) (lines [][]span) {
	var line []span
	for _, p := range display.Pieces(text) {
		switch p.Sort {
		case display.Break:
			lines = append(lines, append(line, span{"⏎", quiet}))
			line = nil
			continue
		case display.Escape:
			s.odd.add(p.Text + "  " + p.Title)
			line = append(line, span{p.Text, unseen})
		case display.Alike:
			s.odd.add("‹" + p.Text + "›  " + p.Title)
			line = append(line, span{"‹" + p.Text + "›", alike})
		default:
			line = append(line, span{p.Text, plain})
		}
	}
	return append(lines, line)
}

// text is foreign text in full, each line behind a bar.
func (s *sheet) text(lead []string, text string) {
	for i, line := range s.pieces(text) {
		s.behind(lead[min(i, 1):], ours.of(bar), line)
	}
}

// behind puts spans behind a bar. lead is what the first line and the others begin with.
func (s *sheet) behind(lead []string, bar string, spans []span) {
	for i, l := range wrap(spans, s.width-widthOf(ansi.Strip(lead[0]))-barWidth) {
		s.put(lead[min(i, len(lead)-1)] + bar + l)
	}
}

// long is foreign text that may be long: its head and tail with its size, or all of it
// once everything is open. quote stands around it.
func (s *sheet) long(lead []string, text, quote string) {
	head, tail, cut := display.HeadTail(text, review.LongText)
	if cut == 0 || s.open {
		s.text(lead, quote+text+quote)
		return
	}
	s.text(lead, quote+head)
	s.missing(lead[1], fmt.Sprintf("%s not shown, %s in all", display.Bytes(cut), display.Bytes(len(text))))
	s.text([]string{lead[1], lead[1]}, tail+quote)
}

// missing says what is not shown, in place of it.
func (s *sheet) missing(lead, text string) {
	s.behind([]string{lead}, warns.of(cutBar), oneLook(text, warns))
}

// words is foreign prose in a section of its own.
func (s *sheet) words(text string) { s.long([]string{"  ", "  "}, text, "") }

// line is the beginning of a foreign text, up to most characters, on one line.
func (s *sheet) line(text string, most int) (spans []span) {
	end := 0
	for ; most > 0 && end < len(text); most-- {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	for _, line := range s.pieces(text[:end]) {
		spans = append(spans, line...)
	}
	if end < len(text) {
		spans = append(spans, span{"…", quiet})
	}
	return spans
}

// warn says what in a text a reader would not notice.
func (s *sheet) warn(text string) {
	if w := display.Warning(text); w != "" {
		s.say(warns, " Look twice: "+w+". ")
	}
}

// mostNotes bounds what a section explains.
const mostNotes = 24

// notes explains the marks since the section began.
func (s *sheet) notes() {
	if len(s.odd.order) == 0 {
		return
	}
	s.put("")
	s.say(quiet, "Marked above:")
	for i, n := range s.odd.order {
		if i == mostNotes {
			s.say(quiet, fmt.Sprintf("and %s other sorts", display.Count(len(s.odd.order)-mostNotes)))
			break
		}
		times := ""
		if k := s.odd.count[n]; k > 1 {
			times = ", " + display.Count(k) + " times"
		}
		s.indented("    ", oneLook(n+times, plain))
	}
	s.odd = footnotes{}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// name is a member's name: in quotes unless it is a plain word, so that no name looks like
// a name with a value.
func (s *sheet) name(text string) (spans []span) {
	if plainName.MatchString(text) && len(text) <= review.LongText {
		return []span{{text, strong}}
	}
	if head, tail, cut := display.HeadTail(text, review.LongText); cut > 0 && !s.open {
		text = fmt.Sprintf("%s … %s not shown … %s", head, display.Bytes(cut), tail)
	}
	spans = append(spans, span{`"`, quiet})
	for _, line := range s.pieces(text) {
		spans = append(spans, line...)
	}
	return append(spans, span{`"`, quiet})
}
