package tui

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
)

// approval is the page of one approval: what exactly would run, and where it stands. It
// follows what happens to it, through to the result.
type approval struct {
	*app
	id     string
	a      review.Approval
	loaded bool

	readings int // how often it was read

	open   bool // long values are shown whole
	exact  bool // the arguments are shown as the text that they are
	note   *notice
	said   string // a note that was written and not given yet
	absent string // nobody goes on with it
	edited string // what was written in the editor last
	follow follower
	drawn  drawn
	scroll
}

// drawn keeps the lines of a page: they change only with what it shows.
type drawn struct {
	key   string
	lines []string
}

func newApproval(a *app, id string) *approval {
	return &approval{app: a, id: id, follow: follower{app: a}}
}

// approvalMsg is an approval that was read.
type approvalMsg struct {
	of  *approval
	gen int
	a   review.Approval
	err error
}

func (p *approval) load() tea.Cmd {
	ctx, gen := p.follow.anew()
	return func() tea.Msg {
		a, err := review.Read(ctx, p.Store, p.Space, p.id)
		return approvalMsg{p, gen, a, err}
	}
}

func (p *approval) hear(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case approvalMsg:
		if m.of == p && m.gen == p.follow.gen {
			return p.came(m)
		}
	case refusedMsg:
		if m.of == p && m.gen == p.follow.gen {
			cmd := p.came(m.approvalMsg)
			p.say(m.why)
			return cmd
		}
	case followedMsg:
		if m.of == &p.follow && m.gen == p.follow.gen {
			return p.follow.heard(m, p.load)
		}
	case editedMsg:
		if m.of == p {
			return p.wrote(m)
		}
	case absentMsg:
		if m.of == p {
			p.absent = m.text
		}
	case tickMsg:
		if p.loaded && p.a.Decidable() && p.a.Decision.Overdue(p.now()) {
			return p.load() // its time is over, whether or not somebody wrote that down
		}
	}
	return nil
}

func (p *approval) came(m approvalMsg) tea.Cmd {
	if errors.Is(m.err, decision.ErrNotFound) {
		p.say(refusal(m.err))
		return nil
	}
	if m.err != nil {
		return p.follow.lost(m.err, p.load)
	}
	p.read(m.a.At)
	p.follow.there()
	was, first := p.a, !p.loaded
	p.a, p.loaded = m.a, true
	p.readings++
	var cmds []tea.Cmd
	if !first && (was.Decidable() && !m.a.Decidable() || was.Digest != m.a.Digest) {
		cmds = append(cmds, p.closed(was))
	}
	cmds = append(cmds, p.follow.wait(m.a.Owner.Stream(), m.a.Seen))
	if m.a.Status == decision.Approved && m.a.Open && m.a.Way == review.ByDaemon && p.Absent != nil {
		cmds = append(cmds, func() tea.Msg { return absentMsg{p, p.Absent()} })
	}
	return tea.Batch(cmds...)
}

type absentMsg struct {
	of   *approval
	text string
}

// closed ends an answer that was being given to what cannot be answered any more, or is
// another one now. Whoever was typing the word types on for a moment.
func (p *approval) closed(was review.Approval) tea.Cmd {
	if c, ok := p.top().(*confirm); ok && c.of == p && c.sent {
		return nil // the answer itself says what came of it
	}
	if !p.backTo(p) {
		return nil
	}
	p.say(told(p.a.Refused(was.Shown(), nil)))
	return p.hush.begin()
}

func (p *approval) press(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok || p.scrolled(k) {
		return nil
	}
	switch k.String() {
	case "esc", "backspace":
		p.back()
	case "q":
		return tea.Quit
	case "?":
		p.showHelp()
	case "o":
		p.open = !p.open
	case "t":
		p.exact = !p.exact
	case "r":
		p.note = nil
		return p.load()
	case "l":
		return p.look(p.newest())
	case "a", "x":
		return p.answer(k.String() == "a", nil)
	case "e":
		return p.edit()
	}
	return nil
}

// newest is the approval that is asked now in place of this one; empty: it is this one.
func (p *approval) newest() string {
	switch {
	case p.a.ReplacedBy != "":
		return p.a.ReplacedBy
	case p.a.Call != nil && p.a.Call.ApprovalID != p.id:
		return p.a.Call.ApprovalID
	}
	return ""
}

// look shows another approval in place of this one.
func (p *approval) look(id string) tea.Cmd {
	if id == "" {
		return nil
	}
	p.back()
	s := newApproval(p.app, id)
	p.push(s)
	return s.load()
}

// mustOpen reports whether a value that would run is not shown whole yet.
func (p *approval) mustOpen() bool { return !p.open && review.IsLong(p.a.Args()) }

// answer leads to where a yes or a no is given; args are to run instead, nil for none.
func (p *approval) answer(yes bool, args []byte) tea.Cmd {
	switch {
	case !p.loaded || !p.a.Decidable():
		return nil
	case yes && p.a.Altered != nil:
		p.say(&notice{bad, "This record was altered", "It cannot be approved. A no is still possible.", ""})
		return nil
	case yes && args == nil && p.mustOpen():
		p.say(&notice{warns, "Open it all first", "Something that would run is shown in part only.", "Press o to open everything, and approve then."})
		return nil
	}
	p.note = nil
	c := newConfirm(p, p.propose(yes, args), p.app)
	p.push(c)
	return c.lull.begin()
}

// propose is an answer to exactly what is shown now.
func (p *approval) propose(yes bool, args []byte) proposed {
	a := p.a
	pr := proposed{title: "Reject this?", word: "reject", record: "rejected", digest: a.Digest}
	if yes {
		pr.title, pr.word, pr.record = "Approve exactly this?", "approve", "approved"
	}
	pr.shows = func(s *sheet) {
		s.head("What it is about", "")
		s.fact("what", a.Subject())
		s.tree(a.Args())
	}
	if args != nil {
		pr.title, pr.record = "Approve this instead?", "approved, with other arguments"
		pr.shows = func(s *sheet) { showEdit(s, a, args) }
		if _, record, err := a.EditDigests(args); err == nil {
			pr.digest = record
		}
	}
	answer := decision.Answer{Approved: yes, By: p.By, EditedArgs: args, Shown: a.Digest}
	pr.send = func(note string) error {
		answer.Note = note
		_, err := p.Operator.Decide(p.ctx, a.ID, answer)
		return err
	}
	return pr
}

// say puts a notice above the page, where it is seen.
func (p *approval) say(n *notice) { p.note, p.from = n, 0 }

func (p *approval) draft() *string { return &p.said }

// answered shows what came of an answer.
func (p *approval) answered(pr proposed, err error) tea.Cmd {
	if err == nil {
		p.edited = ""
		p.say(&notice{good, "Recorded", fmt.Sprintf("%s by %s as %s.", pr.record, p.By, p.Operator.Principal), ""})
		return p.load()
	}
	was := p.a
	ctx, gen := p.follow.anew()
	return func() tea.Msg {
		now, rerr := review.Read(ctx, p.Store, p.Space, p.id)
		if rerr != nil { // what was decided here, or not, is told all the same
			return refusedMsg{approvalMsg{p, gen, now, rerr}, refusal(err)}
		}
		return refusedMsg{approvalMsg{p, gen, now, nil}, told(now.Refused(was.Shown(), err))}
	}
}

// refusedMsg is an approval whose answer was not taken.
type refusedMsg struct {
	approvalMsg
	why *notice
}

func (p *approval) due() string {
	if !p.a.Decidable() {
		return p.a.Standing()
	}
	if p.a.ExpiresAt.IsZero() {
		return "does not expire"
	}
	return "expires " + review.Until(p.a.ExpiresAt, p.now())
}

func (p *approval) title() (left, right string) {
	if !p.loaded {
		return "An approval", ""
	}
	return p.a.Title(), p.due()
}

func (p *approval) keys() []binding {
	var keys []binding
	if p.a.Decidable() {
		keys = append(keys, binding{"a", "approve", "say yes to exactly what is shown; it asks for a word first"}, binding{"x", "reject", "say no; it asks for a word first"})
		if p.a.Editable() {
			keys = append(keys, binding{"e", "edit", "write other arguments in your editor, and approve those; it asks for a word first"})
		}
	}
	if p.newest() != "" {
		keys = append(keys, binding{"l", "the newest", "show the approval that is asked now in place of this one"})
	}
	if p.open || p.loaded && review.IsLong(p.a.Args()) {
		keys = append(keys, on("o", map[bool]string{false: "open all", true: "fold"}[p.open]))
	}
	keys = append(keys, on("t", map[bool]string{false: "exact text", true: "as a tree"}[p.exact]))
	return append(keys, on("Esc", "back"), binding{"?", "keys", "this list"}, on("↑↓ PgUp PgDn", "scroll"), on("r", "read it anew"), on("q", "leave the inbox"))
}

func (p *approval) close() { p.follow.end() }
