package tui

import (
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/review"
)

// onPage is how many rows are read at a time.
const onPage = 50

// queue is the first screen: what waits, what expires soonest first. Its rows stay where
// they are until somebody asks for them anew; what happens to them is written beside them.
type queue struct {
	*app
	room   *review.Newsroom
	filter review.Filter
	q      review.Queue
	loaded bool
	at     int // the row that keys act on
	top    int // the first row that is seen
	shown  int // rows that are seen

	settled map[string]string // why rows do not wait any more
	fresh   map[string]bool   // what waits and is not on the page
	follow  follower
	search  *entry // nil: nothing is typed
	refused string // why the last search was none
}

func newQueue(a *app) *queue {
	return &queue{app: a, room: &review.Newsroom{Store: a.Store, Space: a.Space}, settled: map[string]string{}, fresh: map[string]bool{}, follow: follower{app: a}}
}

// queueMsg is a page that was read, newsMsg what happened to one.
type queueMsg struct {
	gen   int
	again func() tea.Cmd // reads the same page
	q     review.Queue
	keep  string // the row to stand on
	last  bool   // stand on the last row
	err   error
}

type newsMsg struct {
	gen  int
	news review.News
	err  error
}

// load reads the first page.
func (q *queue) load() tea.Cmd { return q.page(decision.QueuePlace{}, false, q.currentID()) }

func (q *queue) page(after decision.QueuePlace, back bool, keep string) tea.Cmd {
	ctx, gen := q.follow.anew()
	sel := q.filter.Queued(q.Space, q.now())
	sel.After, sel.Back, sel.Limit = after, back, onPage
	msg := queueMsg{gen: gen, keep: keep, last: back, again: func() tea.Cmd { return q.page(after, back, keep) }}
	f := q.filter
	return func() tea.Msg {
		msg.q, msg.err = review.ReadQueue(ctx, q.Store, f, sel)
		return msg
	}
}

// await waits for what happens to the page.
func (q *queue) await() tea.Cmd { return q.news(true) }

// catchUp reads what has happened to the page so far, also where that is nothing.
func (q *queue) catchUp() tea.Cmd { return q.news(false) }

func (q *queue) news(wait bool) tea.Cmd {
	ctx, gen := q.follow.anew()
	msg := newsMsg{gen: gen}
	f, after := q.filter, q.q.Seen
	return func() tea.Msg {
		if wait {
			msg.err = untilNews(ctx, q.Store, q.Space, "", after)
		}
		if msg.err == nil {
			msg.news, msg.err = q.room.Read(ctx, f, after)
		}
		return msg
	}
}

func (q *queue) hear(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case queueMsg:
		if m.gen == q.follow.gen {
			return q.came(m)
		}
	case newsMsg:
		if m.gen == q.follow.gen {
			return q.heard(m)
		}
	}
	return nil
}

func (q *queue) came(m queueMsg) tea.Cmd {
	if m.err != nil {
		return q.follow.lost(m.err, m.again)
	}
	first := m.q.Begin.IsZero() && !m.last
	q.q, q.loaded = m.q, true
	q.read(m.q.At)
	q.follow.there()
	if first {
		q.fresh = map[string]bool{}
	}
	q.settled = map[string]string{}
	q.at, q.top = min(q.at, max(0, len(m.q.Rows)-1)), 0
	if m.last {
		q.at = max(0, len(m.q.Rows)-1)
	}
	for i, r := range m.q.Rows {
		delete(q.fresh, r.ID)
		if r.ID == m.keep {
			q.at = i
		}
	}
	return q.await()
}

// heard writes what happened beside the rows. None of them moves.
func (q *queue) heard(m newsMsg) tea.Cmd {
	if errors.Is(m.err, event.ErrCursor) || errors.Is(m.err, event.ErrNoStream) {
		return q.load() // its place is gone, as after a restore: the page is to be read anew
	}
	if m.err != nil {
		return q.follow.lost(m.err, q.catchUp)
	}
	q.follow.there()
	for _, d := range m.news.Settled {
		delete(q.fresh, d.ID)
		q.settled[d.ID] = review.SettledText(d)
	}
	for _, d := range m.news.Waiting {
		if !slices.ContainsFunc(q.q.Rows, func(r review.Row) bool { return r.ID == d.ID }) {
			q.fresh[d.ID] = true
		}
	}
	q.q.Seen, q.q.Counts = m.news.Seen, m.news.Counts
	return q.await()
}

func (q *queue) current() (r review.Row, ok bool) {
	if q.at < len(q.q.Rows) {
		return q.q.Rows[q.at], true
	}
	return r, false
}

func (q *queue) currentID() string {
	r, _ := q.current()
	return r.ID
}

func (q *queue) press(msg tea.Msg) tea.Cmd {
	if q.search != nil {
		return q.searching(msg)
	}
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	switch k.String() {
	case "up", "k":
		q.move(-1)
	case "down", "j":
		q.move(1)
	case "home", "g":
		q.move(-len(q.q.Rows))
	case "end", "G":
		q.move(len(q.q.Rows))
	case "pgdown", "space":
		if q.at+1 >= len(q.q.Rows) {
			return q.next()
		}
		q.move(max(1, q.shown))
	case "pgup", "b":
		if q.at == 0 {
			return q.previous()
		}
		q.move(-max(1, q.shown))
	case "n", "right":
		return q.next()
	case "p", "left":
		return q.previous()
	default:
		return q.act(k.String())
	}
	return nil
}

func (q *queue) act(key string) tea.Cmd {
	switch key {
	case "enter":
		if r, ok := q.current(); ok {
			return q.show(r.ID)
		}
	case "r":
		return q.load()
	case "/":
		q.search = newEntry(q.filter.Search, false)
	case "f":
		all := append([]review.What{""}, review.Sorts...)
		for i, w := range all {
			if w == q.filter.What {
				return q.narrow(func(f *review.Filter) { f.What = all[(i+1)%len(all)] })
			}
		}
	case "F":
		q.push(newChooser(q))
	case "c":
		return q.narrow(func(f *review.Filter) { *f = review.Filter{} })
	case "?":
		q.showHelp()
	case "q":
		return tea.Quit
	}
	return nil
}

// narrow shows something else, from its beginning.
func (q *queue) narrow(change func(*review.Filter)) tea.Cmd {
	change(&q.filter)
	q.at, q.fresh, q.refused = 0, map[string]bool{}, ""
	q.loaded = false // rows that another filter showed do not stand under this one
	return q.load()
}

func (q *queue) move(by int) { q.at = max(0, min(q.at+by, len(q.q.Rows)-1)) }

func (q *queue) next() tea.Cmd {
	if q.q.End.IsZero() {
		return nil
	}
	q.at = 0
	return q.page(q.q.End, false, "")
}

func (q *queue) previous() tea.Cmd {
	if q.q.Begin.IsZero() {
		return nil
	}
	return q.page(q.q.Begin, true, "")
}

// searching takes what is typed after /.
func (q *queue) searching(msg tea.Msg) tea.Cmd {
	switch q.search.press(msg) {
	case left:
		q.search = nil
	case entered:
		text := strings.TrimSpace(q.search.text())
		q.search = nil
		if id.Has(id.Approval, text) || id.Has(id.Question, text) {
			return q.show(text)
		}
		if err := (decision.Queued{Search: text}).Check(); err != nil {
			q.refused = fault.From(err).Message
			return nil
		}
		return q.narrow(func(f *review.Filter) { f.Search = text })
	}
	return nil
}

// show opens the page of what waits.
func (q *queue) show(of string) tea.Cmd {
	if id.Has(id.Question, of) {
		s := newQuestion(q.app, of)
		q.push(s)
		return s.load()
	}
	s := newApproval(q.app, of)
	q.push(s)
	return s.load()
}

func (q *queue) close() { q.follow.end() }

func (q *queue) keys() []binding {
	if q.search != nil {
		return []binding{on("Enter", "search"), on("Esc", "leave it")}
	}
	var keys []binding
	if len(q.q.Rows) > 0 {
		keys = append(keys, on("Enter", "look"))
	}
	if len(q.fresh) > 0 || len(q.settled) > 0 {
		keys = append(keys, binding{"r", "read anew", "read the queue anew: new rows come in, settled ones go"})
	}
	if !q.q.End.IsZero() {
		keys = append(keys, binding{"n", "later", "the page of what expires later"})
	}
	if !q.q.Begin.IsZero() {
		keys = append(keys, binding{"p", "sooner", "the page of what expires sooner"})
	}
	if !q.filter.None() {
		keys = append(keys, on("c", "show all"))
	}
	return append(keys, binding{"/", "search", "show only what holds a text: a name, a tool, an id, a word in the arguments"}, binding{"f", "sort", "show one sort after the other: steps of runs, calls, questions, everything"}, binding{"F", "filter", "choose a sort, a kind, a tool or an age to show"}, binding{"q", "leave", "leave the inbox"}, binding{"?", "keys", "this list"},
		on("↑↓", "move"), on("PgUp PgDn", "move by a screen, and on to the page beside"), on("Home End", "to the first and the last row"))
}

func (q *queue) title() (left, right string) {
	left = "Waiting for a person"
	if !q.loaded {
		return left, ""
	}
	total := review.Total(q.q.Counts)
	switch {
	case !q.filter.None() && (q.filter.Search != "" || q.filter.Age > 0): // how many those leave is not counted
		right = display.Count(int(total)) + " in all"
	case !q.filter.None():
		right = display.Count(int(review.Matches(q.q.Counts, q.filter))) + " of " + display.Count(int(total))
	case total == 1:
		right = "1 waits"
	default:
		right = display.Count(int(total)) + " wait"
	}
	if n := len(q.fresh); n > 0 {
		right = display.Count(n) + " new, press r · " + right
	}
	return left, right
}
