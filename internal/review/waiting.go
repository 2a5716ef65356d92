package review

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Filter leaves out a part of what waits. The zero Filter shows all of it.
type Filter struct {
	What   What
	Kind   string
	Tool   string
	Age    time.Duration // only what was asked so long ago; 0: all
	Search string        // a text that has to stand in what is shown
}

// What is a sort of thing that waits.
type What string

// The sorts. Empty is all of them.
const (
	Runs      What = "run"
	Calls     What = "call"
	Questions What = "question"
)

// None reports whether everything is shown.
func (f Filter) None() bool { return f == Filter{} }

// Queued is what the filter selects of a space.
func (f Filter) Queued(space string, now time.Time) decision.Queued {
	q := decision.Queued{Space: space, Kind: f.Kind, Tool: f.Tool, Search: f.Search}
	if f.Age > 0 {
		q.Before = now.Add(-f.Age)
	}
	switch f.What {
	case Runs:
		q.Owner = decision.OwnerRun
	case Calls:
		q.Owner = decision.OwnerCall
	case Questions:
		q.Type = decision.Question
	}
	return q
}

// Shows reports whether a decision that waits is one that the filter leaves in. A search
// is held against what is shown of it, so that nobody finds out a secret by searching.
func (f Filter) Shows(d decision.Decision, now time.Time) bool {
	switch {
	case f.Age > 0 && !d.CreatedAt.Before(now.Add(-f.Age)):
		return false
	case f.Kind != "" && d.Kind != f.Kind, f.Tool != "" && d.Tool != f.Tool:
		return false
	case f.Search != "" && !holds(d, f.Search):
		return false
	}
	return f.Counts(decision.QueueCount{Type: d.Type, Owner: d.Owner.Kind, Kind: d.Kind, Tool: d.Tool})
}

// Counts reports whether a count is one of what the filter leaves in, its age and search
// aside.
func (f Filter) Counts(c decision.QueueCount) bool {
	if f.Kind != "" && c.Kind != f.Kind || f.Tool != "" && c.Tool != f.Tool {
		return false
	}
	switch f.What {
	case Runs:
		return c.Owner == decision.OwnerRun
	case Calls:
		return c.Owner == decision.OwnerCall
	case Questions:
		return c.Type == decision.Question
	}
	return true
}

// holds reports whether a text stands in what a list shows of a decision, in large letters or
// small ones. What only its own page shows is not searched: a reason or note may repeat a
// secret that only that page knows.
func holds(d decision.Decision, text string) bool {
	text = strings.ToLower(text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	names := []string{d.ID, d.RunID, d.CallID, d.Tool, d.Node, d.Kind, d.RequestedBy, d.DecidedBy, d.WithdrawnBy}
	switch {
	case slices.ContainsFunc(names, has):
		return true
	case d.Type == decision.Question:
		m := Mask(d)
		return has(string(d.Choice)) || slices.ContainsFunc(append([]string{d.Prompt}, d.Options...), func(s string) bool { return has(m.Text(s)) })
	case len(d.Request)+len(d.EditedArgs) > rowBytes:
		return false
	}
	req, err := request.Decode(d.Request)
	if err != nil {
		return false // what is secret in it is not known
	}
	m := Mask(d)
	return has(string(m.Scrub(req.Args))) || has(string(m.Scrub(d.EditedArgs)))
}

// Row is a line of a list of decisions. It is about its arguments, or its options.
type Row struct {
	decision.Decision
	What       string // the sort of thing that waits, in our words
	Title      string // foreign: the tool, the plan's node, the prompt
	SideEffect string
	Args       display.Node // of an approval, those that run, with its secrets masked
	Unshown    string       // why its arguments are not shown, in our words; empty: they are
	Odd        bool         // there is something in it that a reader would not notice
}

// RowOf is how a decision stands in a list.
func RowOf(d decision.Decision) Row {
	if d.Type == decision.Question {
		r := Row{Decision: d, What: "question", Title: Mask(d).Text(d.Prompt)}
		r.Odd = slices.ContainsFunc(append([]string{d.Prompt}, d.Options...), display.Suspicious)
		return r
	}
	r := Row{Decision: d, What: sortOf(d), Title: cmp.Or(d.Node, d.Tool)}
	r.Odd = display.Suspicious(r.Title)
	if len(d.Request)+len(d.EditedArgs) > rowBytes {
		r.Unshown = "a request of " + display.Bytes(len(d.Request)) + ", shown on its own page"
		return r
	}
	req, err := request.Decode(d.Request)
	if err != nil {
		r.Unshown, r.Odd = "its record cannot be read", true
		return r
	}
	args := req.Args
	if d.EditedArgs != nil {
		args = d.EditedArgs
	}
	r.SideEffect, r.Args = string(req.Tool.SideEffect), Mask(d).Tree(args)
	r.Odd = r.Odd || r.Args.Warning() != ""
	return r
}

// rowBytes is up to how large a request is taken apart for a line of a list: a page has many
// lines, and each megabyte takes a second.
const rowBytes = 64 << 10

// sortOf is the sort of thing that waits for an approval, in our words.
func sortOf(d decision.Decision) string {
	switch {
	case d.Kind == decision.KindInterrupted:
		return "run again?"
	case d.Node != "":
		return "step of a plan"
	case d.Owner.Kind == decision.OwnerRun:
		return "agent's step"
	}
	return "call"
}

// Queue is a page of what waits, as it stood at one moment.
type Queue struct {
	At     time.Time
	Seen   event.Cursor // the end of the log over all streams: whoever waits from there misses nothing
	Rows   []Row
	Begin  decision.QueuePlace // as in [decision.QueuePage]
	End    decision.QueuePlace
	Cut    bool
	Counts []decision.QueueCount
}

// Total is how much waits in all.
func Total(counts []decision.QueueCount) int64 { return Matches(counts, Filter{}) }

// Matches is how much of it the filter leaves in, its age and search aside.
func Matches(counts []decision.QueueCount, f Filter) (n int64) {
	for _, c := range counts {
		if f.Counts(c) {
			n += c.N
		}
	}
	return n
}

// ReadQueue reads a page of what waits, together with where the log stood then: what
// happens from there on can be followed, and nothing is missed in between.
func ReadQueue(ctx context.Context, s txn.Store, f Filter, sel decision.Queued) (q Queue, err error) {
	if err := sel.Check(); err != nil {
		return q, err
	}
	var page decision.QueuePage
	err = txn.View(ctx, s, func(tx Tx) (err error) {
		q = Queue{At: tx.Now()}
		if q.Seen, err = endOf(tx); err != nil {
			return err
		}
		if page, err = tx.Queue(sel); err != nil {
			return err
		}
		q.Counts, err = tx.QueueCounts(sel.Space)
		return err
	})
	if err == nil && f.Search != "" {
		page, err = filled(ctx, s, f, sel, page)
	}
	for _, d := range page.Decisions {
		q.Rows = append(q.Rows, RowOf(d))
	}
	q.Begin, q.End, q.Cut = page.Begin, page.End, page.Cut
	return q, err
}

// endOf is the end of the log over all streams.
func endOf(tx event.Tx) (event.Cursor, error) {
	pos, err := tx.LastPos()
	if err != nil || pos == 0 {
		return "", err
	}
	es, err := tx.Events(event.Query{After: pos - 1, Limit: 1})
	if err != nil || len(es) == 0 {
		return "", err
	}
	return event.PosCursorOf(es[0]), nil
}
