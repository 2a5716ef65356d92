package tui

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
)

// question is the page of one question of a job. It follows what happens to it.
type question struct {
	*app
	id     string
	q      review.Question
	loaded bool
	at     int // the option that keys act on
	note   *notice
	said   string
	form   *form // what was filled in so far; nil: nothing yet
	follow follower
	scroll
}

func newQuestion(a *app, id string) *question {
	return &question{app: a, id: id, follow: follower{app: a}}
}

// questionMsg is a question that was read; why says that an answer to it was not taken.
type questionMsg struct {
	of  *question
	gen int
	q   review.Question
	why *notice
	err error
}

func (p *question) load() tea.Cmd { return p.loadTo(nil) }

// loadTo reads the question again. err is how an answer to what is shown was refused.
func (p *question) loadTo(err error) tea.Cmd {
	ctx, gen := p.follow.anew()
	return func() tea.Msg {
		q, rerr := review.ReadQuestion(ctx, p.Store, p.Space, p.id)
		m := questionMsg{of: p, gen: gen, q: q, err: rerr}
		switch {
		case err != nil && rerr != nil:
			m.why = refusal(err)
		case err != nil:
			m.why = told(q.Refused(err))
		}
		return m
	}
}

func (p *question) hear(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case questionMsg:
		if m.of == p && m.gen == p.follow.gen {
			return p.came(m)
		}
	case followedMsg:
		if m.of == &p.follow && m.gen == p.follow.gen {
			return p.follow.heard(m, p.load)
		}
	case tickMsg:
		if p.loaded && p.q.Decidable() && p.q.Decision.Overdue(p.now()) {
			return p.load()
		}
	}
	return nil
}

func (p *question) came(m questionMsg) tea.Cmd {
	if errors.Is(m.err, decision.ErrNotFound) {
		p.say(refusal(m.err))
		return nil
	}
	if m.err != nil {
		if m.why != nil {
			p.say(m.why) // what was answered here, or not, is told all the same
		}
		return p.follow.lost(m.err, p.load)
	}
	p.read(m.q.At)
	p.follow.there()
	was, first := p.q, !p.loaded
	p.q, p.loaded = m.q, true
	if m.why != nil {
		p.say(m.why)
	}
	var closed tea.Cmd
	if !first && (was.Decidable() && !m.q.Decidable() || was.Digest != m.q.Digest) {
		closed = p.closed()
	}
	return tea.Batch(closed, p.follow.wait(m.q.Owner.Stream(), m.q.Seen))
}

// closed ends an answer that was being given. Whoever was typing types on for a moment.
func (p *question) closed() tea.Cmd {
	if c, ok := p.top().(*confirm); ok && c.sent {
		return nil // the answer itself says what came of it
	}
	if !p.backTo(p) {
		return nil
	}
	p.say(told(p.q.Refused(nil)))
	return p.hush.begin()
}

func (p *question) press(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	switch k.String() {
	case "tab":
		p.at = (p.at + 1) % max(1, len(p.q.Options))
	case "shift+tab":
		p.at = (p.at + max(1, len(p.q.Options)) - 1) % max(1, len(p.q.Options))
	case "esc", "backspace":
		p.back()
	case "q":
		return tea.Quit
	case "?":
		p.showHelp()
	case "r":
		p.note = nil
		return p.load()
	case "a":
		return p.answer()
	default:
		p.scrolled(k)
	}
	return nil
}

// answer leads to where the chosen option is given, past the form where there is one.
func (p *question) answer() tea.Cmd {
	if !p.loaded || !p.q.Decidable() || p.at >= len(p.q.Options) {
		return nil
	}
	p.note = nil
	if p.q.Form == nil {
		return p.confirm(nil)
	}
	if p.form == nil {
		p.form = newForm(p)
	}
	p.push(p.form)
	return nil
}

// confirm asks for the word; input is what the form asks for, nil for nothing.
func (p *question) confirm(input []byte) tea.Cmd {
	q, choice := p.q, p.q.Options[p.at]
	pr := proposed{title: "Answer with this?", word: "answer", record: choice, digest: q.Digest}
	pr.shows = func(s *sheet) {
		s.head("The question", "")
		s.words(q.Mask.Text(q.Prompt))
		if input != nil {
			s.head("What you filled in", "")
			s.tree(q.Mask.Tree(input))
		}
	}
	pr.send = func(note string) error {
		_, err := p.Operator.Resolve(p.ctx, q.Owner.ID, q.ID, decision.Answering{Choice: choice, Input: input, By: p.By, Note: note, Shown: q.Digest})
		return err
	}
	c := newConfirm(p, pr, p.app)
	p.push(c)
	return c.lull.begin()
}

// say puts a notice above the page, where it is seen.
func (p *question) say(n *notice) { p.note, p.from = n, 0 }

func (p *question) draft() *string { return &p.said }

func (p *question) answered(pr proposed, err error) tea.Cmd {
	if err != nil {
		return p.loadTo(err)
	}
	p.form = nil
	p.say(&notice{good, "Recorded", fmt.Sprintf("Answered with %s by %s as %s.", pr.record, p.By, p.Operator.Principal), ""})
	return p.load()
}

func (p *question) due() string {
	switch {
	case !p.q.Decidable():
		return p.q.Standing()
	case p.q.ExpiresAt.IsZero():
		return "does not expire"
	}
	return "expires " + review.Until(p.q.ExpiresAt, p.now())
}

func (p *question) title() (left, right string) {
	if !p.loaded {
		return "A question", ""
	}
	return "A job asks", p.due()
}

func (p *question) keys() []binding {
	var keys []binding
	if p.q.Decidable() {
		keys = append(keys, on("Tab", "next option"), on("a", "answer with it"))
	}
	return append(keys, on("Esc", "back"), on("?", "keys"), on("↑↓ PgUp PgDn", "scroll"), on("r", "read it anew"), on("q", "leave the inbox"))
}

func (p *question) close() { p.follow.end() }

func (p *question) body(w, h int) []string {
	s := &sheet{width: w, open: true}
	p.note.on(s)
	if !p.loaded {
		if p.note == nil {
			s.say(quiet, "Reading…")
		}
		return s.lines
	}
	q := p.q
	p.state(s)
	s.head("The question", "in the job's words")
	s.warn(q.Prompt)
	s.words(q.Mask.Text(q.Prompt))
	p.options(s)
	s.head("Who asks", "")
	s.fact("job", q.Job.Spec.Name)
	s.fact("its id", q.Job.ID)
	s.own("it is", review.StatusWord(string(q.Job.Status)))
	s.fact("asked by", q.RequestedBy)
	s.own("asked", review.UTC(q.CreatedAt))
	s.own("expires", review.UTC(q.ExpiresAt))
	s.fact("question", q.ID)
	s.fact("digest", q.Digest)
	history(s, q.History)
	s.notes()
	return p.window(s.lines, w, h)
}

// state is how it was answered; nothing while it waits.
func (p *question) state(s *sheet) {
	q := p.q
	if q.Altered != nil {
		(&notice{bad, "This record was altered", q.Altered.Error(), "It cannot be answered."}).on(s)
	}
	if q.Decidable() {
		return
	}
	settled(s, q.Decision, q.Standing(), q.Mask)
	if len(q.Input) > 0 {
		s.tree(q.Mask.Tree(q.Input))
	}
}

// options are what it can be answered with; the one that keys act on is marked.
func (p *question) options(s *sheet) {
	s.head("It can be answered with", "")
	for i, o := range p.q.Options {
		mark := "    "
		if i == p.at && p.q.Decidable() {
			mark = "  > "
		}
		s.text([]string{mark, "    "}, o)
	}
}
