package view

import (
	"fmt"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// Queue is a page of what waits.
type Queue struct {
	At      time.Time
	Rows    []review.Row
	Filter  review.Filter
	Counts  []decision.QueueCount
	First   string // the page with the same filter from its beginning
	Next    string // empty: there is none
	Back    string
	Cut     bool  // a search stopped before it came to the end
	Matches int64 // how many the filter leaves; below 0: not known
	Total   int64 // how many wait in all
	Notice  *Notice
}

// Past is a page of what was decided.
type Past struct {
	review.Past
	At    time.Time
	Rows  []review.Row
	Calls map[string]call.Call // that decisions are about, by those
	Next  string               // empty: there is none
	Back  string
	Cut   bool // a search stopped before it came to the end
}

// standings are how what was decided can stand.
func (p Past) standings() []Option {
	all := []Option{{Text: "everything", Chosen: p.Standing == ""}}
	for _, s := range review.Standings {
		all = append(all, Option{s, s, p.Standing == s})
	}
	return all
}

// Option is one that a filter can be set to.
type Option struct {
	Value, Text string
	Chosen      bool
}

// options are what a part of the filter can be set to, with how much there is of each.
func options(cs []review.Choice) (all []Option) {
	for i, c := range cs {
		text := display.Short(c.Text, 60)
		if c.N >= 0 && c.Value != "" {
			text += " (" + display.Count(int(c.N)) + ")"
		}
		if i <= mostOptions || c.Chosen {
			all = append(all, Option{c.Value, text, c.Chosen})
		}
	}
	return all
}

// mostOptions is how many words one part of the filter offers.
const mostOptions = 200

// pageOf is the page of what waits, or waited.
func pageOf(d decision.Decision) string {
	if d.Type == decision.Question {
		return "/questions/" + d.ID
	}
	return "/approvals/" + d.ID
}

// pair is a name and the beginning of what stands under it; both are foreign.
type pair struct {
	name, text string
	hidden     bool
}

// shownOf is how many arguments or options a line of a list has.
const shownOf = 6

// aboutOf is what a row is about: the first arguments, or options, and how many there are besides.
func aboutOf(r review.Row) (ps []pair, more int) {
	if r.Unshown != "" {
		return []pair{{text: r.Unshown}}, 0
	}
	for _, o := range r.Options {
		ps = append(ps, pair{text: o})
	}
	for _, n := range r.Args.Nodes {
		ps = append(ps, pair{n.Name, brief(n), n.Hidden})
	}
	n := min(len(ps), shownOf)
	return ps[:n], len(ps) - n
}

// brief is a value in a word or two.
func brief(n display.Node) string {
	switch {
	case n.Kind == display.Object:
		return fmt.Sprintf("(%d values)", len(n.Nodes))
	case n.Kind == display.Array:
		return fmt.Sprintf("(a list of %d)", len(n.Nodes))
	case n.Text == "":
		return "(empty)"
	}
	return n.Text
}

func (q Queue) heading() string {
	switch {
	case q.Matches >= 0 && !q.Filter.None():
		return fmt.Sprintf("%s of %s", display.Count(int(q.Matches)), display.Count(int(q.Total)))
	case q.Total == 0:
		return ""
	case q.Filter.Search != "" && q.Back == "" && q.Next == "" && !q.Cut:
		return fmt.Sprintf("%s found, of %s", display.Count(len(q.Rows)), display.Count(int(q.Total)))
	case !q.Filter.None(): // how many a search or an age leaves is not counted
		return display.Count(int(q.Total)) + " in all"
	case q.Total == 1:
		return "1 waits"
	}
	return display.Count(int(q.Total)) + " wait"
}
