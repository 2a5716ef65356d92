package tui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
)

// confirm is where an answer is given: it states what will be recorded, and takes a word.
// No other key of it decides anything.
type confirm struct {
	*app
	of     asks
	answer proposed
	note   textarea.Model
	inNote bool
	typed  string
	lull   lull
	sent   bool
	wrong  bool // what was typed last was not the word
	drawn  drawn
	scroll
}

// asks is a screen that an answer is given from.
type asks interface {
	screen
	due() string    // the time that is left
	draft() *string // the note as it was written so far
	answered(proposed, error) tea.Cmd
}

// proposed is an answer that is not given yet.
type proposed struct {
	title  string       // what is asked
	word   string       // that has to be typed
	record string       // what will be recorded: approved, rejected, or the choice
	digest string       // of what was shown
	shows  func(*sheet) // what it is about
	send   func(note string) error
}

func newConfirm(of asks, p proposed, a *app) *confirm {
	c := &confirm{app: a, of: of, answer: p, note: newNote(*of.draft())}
	c.lull.app = a
	return c
}

func newNote(text string) textarea.Model {
	t := textarea.New()
	t.Prompt, t.ShowLineNumbers, t.CharLimit, t.MaxHeight = bar, false, decision.MaxNote, 0
	t.KeyMap.Paste.SetEnabled(false) // it would start a program; a terminal pastes by itself
	t.KeyMap.CopySelection.SetEnabled(false)
	t.SetVirtualCursor(true)
	t.SetStyles(textarea.Styles{})
	t.SetValue(text)
	return t
}

// answeredMsg is what came of an answer.
type answeredMsg struct {
	of  *confirm
	err error
}

func (c *confirm) title() (left, right string) { return c.answer.title, c.of.due() }

func (c *confirm) body(w, h int) []string {
	ask := c.ask(w)
	room := max(1, h-len(ask))
	lines := c.window(c.statement(w), w, room)
	for len(lines) < room {
		lines = append(lines, "")
	}
	return append(lines, ask...)
}

// statement is what will be recorded, and what it is about.
func (c *confirm) statement(w int) []string {
	key := fmt.Sprint(w, " ", c.noteText())
	if c.drawn.key == key {
		return c.drawn.lines
	}
	s := &sheet{width: w, open: true}
	s.head("What will be recorded", "")
	s.fact("answer", c.answer.record)
	s.fact("by", c.By)
	s.fact("proved as", c.Operator.Principal)
	if note := c.noteText(); note == "" {
		s.own("note", "none")
	} else {
		s.fact("note", note)
	}
	s.fact("for digest", c.answer.digest)
	c.answer.shows(s)
	s.notes()
	c.drawn = drawn{key, s.lines}
	return s.lines
}

// ask is the lower part, which is always seen: the note and the word.
func (c *confirm) ask(w int) []string {
	s := &sheet{width: w}
	s.put(ours.of(strings.Repeat("─", w)))
	switch {
	case c.sent:
		s.say(strong, "Recording…")
		return s.lines
	case !c.lull.open:
		c.sayWrong(s)
		s.say(strong, "One moment. What is typed now is dropped.")
		return s.lines
	case c.inNote:
		s.say(quiet, "Note, kept with your answer. Enter is a new line; Tab goes back to the word.")
		c.note.SetWidth(max(8, w-2))
		c.note.SetHeight(3)
		s.put(strings.Split(c.note.View(), "\n")...)
		return s.lines
	}
	c.sayWrong(s)
	s.say(plain, fmt.Sprintf("Type the word %s and press Enter. Esc leaves it undecided.", c.answer.word))
	s.put("  > " + strong.of(c.typed) + unseen.of(" "))
	return s.lines
}

func (c *confirm) sayWrong(s *sheet) {
	if c.wrong {
		s.say(warns, " That was not the word. Nothing was decided. ")
	}
}

func (c *confirm) noteText() string { return c.note.Value() }

func (c *confirm) keys() []binding {
	switch {
	case c.sent:
		return nil
	case c.inNote:
		return []binding{on("Tab", "to the word"), on("Esc", "leave it undecided")}
	}
	return []binding{on("Esc", "leave it undecided"), on("Tab", "write a note"), on("PgUp PgDn", "scroll")}
}

func (c *confirm) press(msg tea.Msg) tea.Cmd {
	k, isKey := msg.(tea.KeyPressMsg)
	switch {
	case c.sent:
		return nil
	case isKey && k.String() == "esc":
		c.leave()
		return nil
	case c.lull.dropped():
		return nil
	case isKey && k.String() == "tab":
		if c.inNote = !c.inNote; c.inNote {
			return c.note.Focus()
		}
		c.note.Blur()
		return nil
	case c.inNote:
		c.note, _ = c.note.Update(visible(msg, true))
		return nil
	case isKey: // pasted text is no word that somebody typed
		return c.spell(k)
	}
	return nil
}

// spell takes a key of the word. Enter behind anything else than the word waits for a lull
// again: whoever types lines of text that were meant for something else answers nothing.
func (c *confirm) spell(k tea.KeyPressMsg) tea.Cmd {
	switch key := k.String(); {
	case key == "enter" && c.typed == c.answer.word:
		return c.give()
	case key == "enter":
		c.wrong, c.typed = true, ""
		cmd := c.lull.begin()
		c.lull.need = restTyping
		return cmd
	case key == "backspace":
		_, n := utf8.DecodeLastRuneInString(c.typed)
		c.typed = c.typed[:len(c.typed)-n]
	case key == "up", key == "down", key == "pgup", key == "pgdown", key == "home", key == "end":
		c.scrolled(k)
	case len(k.Text) == 1 && k.Text[0] > ' ' && k.Text[0] < 0x7f && len(c.typed) < 20:
		c.typed += k.Text
	case k.Text != "" || key == "space":
		c.typed += "?" // it is no letter of any of our words
		c.typed = c.typed[:min(len(c.typed), 20)]
	}
	return nil
}

func (c *confirm) give() tea.Cmd {
	c.sent = true
	f := &flight{what: c.answer, done: make(chan struct{})}
	c.flight = f
	note := c.noteText()
	go func() {
		defer close(f.done)
		f.err = c.answer.send(note)
	}()
	return func() tea.Msg {
		<-f.done
		return answeredMsg{of: c, err: f.err}
	}
}

// flight is an answer on its way.
type flight struct {
	what proposed
	done chan struct{}
	err  error
}

// landed waits for an answer that was on its way when the inbox ended, and says what came
// of it; empty: there was none.
func (f *flight) landed() string {
	if f == nil {
		return ""
	}
	<-f.done
	if f.err != nil {
		return "Your last answer was not recorded: " + fault.From(f.err).Message
	}
	return "Your last answer was recorded: " + f.what.record + ", for digest " + f.what.digest + "."
}

// leave closes the view, and keeps what was written.
func (c *confirm) leave() {
	c.backTo(c.of)
}

func (c *confirm) hear(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(answeredMsg); ok && m.of == c {
		c.flight = nil
		if m.err == nil {
			*c.of.draft() = ""
			c.note.Reset()
		}
		c.backTo(c.of)
		return c.of.answered(c.answer, m.err)
	}
	if _, resumed := msg.(tea.ResumeMsg); resumed {
		return c.lull.begin()
	}
	return c.lull.hear(msg)
}

func (c *confirm) close() { *c.of.draft() = c.noteText() }
