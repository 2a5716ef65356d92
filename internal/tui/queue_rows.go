package tui

import (
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
)

// wide is from how many columns on a row is a line of a table.
const wide = 76

func (q *queue) body(w, h int) []string {
	s := &sheet{width: w}
	q.filterLine(s)
	switch {
	case !q.loaded:
		s.say(quiet, "Reading…")
		return s.lines
	case len(q.q.Rows) == 0:
		q.nothing(s)
		return s.lines
	}
	if w >= wide {
		s.put(quiet.of(q.columns(w, "", oneLook("expires", quiet), "what", oneLook("tool or question", quiet), oneLook("asked by", quiet), "asked")))
	}
	under := q.about(w, h)
	q.rows(s, w, h-len(s.lines)-len(under))
	for len(s.lines) < h-len(under) {
		s.put("")
	}
	s.put(under...)
	return s.lines
}

// filterLine says what is left out, and is where a search is typed.
func (q *queue) filterLine(s *sheet) {
	if q.search != nil {
		s.put("Search: " + q.search.view(s.width-8))
		return
	}
	if q.refused != "" {
		s.say(warns, q.refused)
	}
	if q.filter.None() {
		return
	}
	spans := oneLook("Only ", quiet)
	add := func(name, value string) {
		if value != "" {
			spans = append(spans, span{name, quiet})
			spans = append(append(spans, s.line(value, 40)...), span{"  ", plain})
		}
	}
	add("", review.WhatWords(q.filter.What))
	add("kind ", q.filter.Kind)
	add("tool ", q.filter.Tool)
	if q.filter.Age > 0 {
		add("asked before ", review.AgeWords(q.filter.Age))
	}
	add("with ", q.filter.Search)
	s.put(short(spans, s.width))
	if q.q.Cut {
		s.say(quiet, "The search has looked through a part of them; n searches on.")
	}
}

func (q *queue) nothing(s *sheet) {
	s.put("")
	if q.filter.None() {
		s.say(strong, "Nothing waits")
		s.put("")
		s.say(plain, "When an agent wants to do something that needs a person, or a job asks a question, it appears here, what expires soonest first.")
		s.put("")
		s.say(quiet, "To see how that looks:")
		s.command(q.Command("demo"))
		return
	}
	s.say(strong, "Nothing of that sort waits")
	s.put("")
	s.say(quiet, "c shows all that waits.")
}

// rows draws those that are seen around the one that keys act on.
func (q *queue) rows(s *sheet, w, h int) {
	each := 1
	if w < wide {
		each = 2
	}
	q.shown = max(1, h/each)
	q.top = max(0, min(q.top, q.at, len(q.q.Rows)-q.shown))
	q.top = max(q.top, q.at-q.shown+1)
	for i := q.top; i < min(q.top+q.shown, len(q.q.Rows)); i++ {
		mark := "  "
		if i == q.at {
			mark = "> "
		}
		if r := q.q.Rows[i]; w < wide {
			s.put(q.narrowRow(s, r, mark)...)
		} else {
			s.put(q.wideRow(s, r, mark))
		}
	}
	s.odd = footnotes{} // a row has no room for them; its own page says more
}

func (q *queue) wideRow(s *sheet, r review.Row, mark string) string {
	by, when := s.line(r.RequestedBy, 40), asked(r.CreatedAt, q.now())
	if why, gone := q.settled[r.ID]; gone {
		by, when = oneLook(why, plain), ""
	}
	return q.columns(s.width, mark, oneLook(q.due(r), q.lookOfDue(r)), r.What, q.rowTitle(s, r), by, when)
}

// asked is how long ago something was, in its largest unit.
func asked(at, now time.Time) string {
	words := strings.Fields(review.Ago(at, now))
	if len(words) < 3 {
		return strings.Join(words, " ")
	}
	return words[0] + " " + words[1] + " ago"
}

// columns is a line of the table. One of a row's texts is a title, which gets the room
// that is left.
func (q *queue) columns(w int, mark string, due []span, what string, title, by []span, asked string) string {
	const dueW, whatW, byW, askedW = 14, 14, 12, 10
	titleW := w - 2 - dueW - whatW - byW - askedW - 4
	start := column(oneLook(mark, strong), 2) + column(due, dueW) + " " + column(oneLook(what, plain), whatW) + " " + column(title, titleW) + " "
	if asked == "" {
		return start + short(by, byW+1+askedW)
	}
	return start + column(by, byW) + " " + short(oneLook(asked, plain), askedW)
}

func (q *queue) narrowRow(s *sheet, r review.Row, mark string) []string {
	second := append(oneLook("  "+r.What+", expires ", quiet), span{q.due(r), q.lookOfDue(r)})
	if why, gone := q.settled[r.ID]; gone {
		second = append(oneLook("  "+r.What+", ", quiet), span{why, plain})
		return []string{column(oneLook(mark, strong), 2) + short(q.rowTitle(s, r), s.width-2), short(second, s.width)}
	}
	if r.RequestedBy != "" {
		second = append(append(second, span{", by ", quiet}), s.line(r.RequestedBy, 40)...)
	}
	return []string{column(oneLook(mark, strong), 2) + short(q.rowTitle(s, r), s.width-2), short(second, s.width)}
}

// due is the time that is left, or why the row does not wait any more.
func (q *queue) due(r review.Row) string {
	switch _, gone := q.settled[r.ID]; {
	case gone:
		return "settled"
	case r.ExpiresAt.IsZero():
		return "never"
	case r.Overdue(q.now()):
		return "over"
	}
	return review.Until(r.ExpiresAt, q.now())
}

func (q *queue) lookOfDue(r review.Row) look {
	if q.over(r) {
		return quiet
	}
	return plain
}

func (q *queue) over(r review.Row) bool {
	_, gone := q.settled[r.ID]
	return gone || r.Overdue(q.now())
}

func (q *queue) rowTitle(s *sheet, r review.Row) (spans []span) {
	if r.Odd {
		spans = append(spans, span{"!", warns}, span{" ", plain})
	}
	return append(spans, s.line(r.Title, 200)...)
}

// about is what the row that keys act on would do, where there is room for it.
func (q *queue) about(w, h int) []string {
	r, ok := q.current()
	if !ok || h < 12 {
		return nil
	}
	s := &sheet{width: w}
	s.put(ours.of(strings.Repeat("─", w)))
	if r.Odd {
		s.say(warns, " It holds characters that cannot be seen or look like others. ")
	}
	var text []span
	if r.SideEffect != "" {
		text = append(text, span{review.EffectWords(r.SideEffect) + "  ", strong})
	}
	for _, line := range s.pieces(aboutOf(r)) {
		text = append(text, line...)
	}
	lines := wrap(text, w-barWidth)
	if len(lines) > 2 {
		lines = []string{lines[0], short(cut(text, w-barWidth), w-barWidth)}
	}
	for _, l := range lines {
		s.put(ours.of(bar) + l)
	}
	return s.lines
}

// onRow is how many characters of arguments are looked at.
const onRow = 400

// aboutOf is what a row is about, on one line: the options, or the arguments.
func aboutOf(r review.Row) string {
	switch {
	case r.Type == decision.Question:
		return strings.Join(r.Options, " · ")
	case r.Unshown != "":
		return r.Unshown
	}
	args := []rune(r.Args.JSON())
	if len(args) > onRow {
		return string(args[:onRow]) + "…"
	}
	return string(args)
}

// cut is what stands behind the first line of spans.
func cut(spans []span, width int) (rest []span) {
	cs := cells(spans)
	for _, c := range cs[fits(cs, width):] {
		rest = append(rest, span{c.text, c.look})
	}
	return rest
}
