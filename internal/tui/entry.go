package tui

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/internal/display"
)

// entry is a line that somebody types.
type entry struct{ of textinput.Model }

// typed is what a key did to an entry.
type typed int

const (
	more    typed = iota // it is still typed
	entered              // Enter
	left                 // Esc
)

func newEntry(text string, secret bool) *entry {
	m := textinput.New()
	m.Prompt = ""
	m.CharLimit = 10_000
	m.KeyMap.Paste.SetEnabled(false) // it would start a program; a terminal pastes by itself
	m.SetVirtualCursor(true)
	if secret {
		m.EchoMode = textinput.EchoPassword
	}
	m.Focus()
	m.SetValue(text)
	m.CursorEnd()
	return &entry{m}
}

func (e *entry) press(msg tea.Msg) typed {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter":
			return entered
		case "esc":
			return left
		}
	}
	e.of, _ = e.of.Update(visible(msg, false))
	return more
}

func (e *entry) text() string { return e.of.Value() }

func (e *entry) view(width int) string {
	e.of.SetWidth(max(4, width-1))
	return e.of.View()
}

// visible is a key or a pasted text without characters that cannot be seen: nobody means
// to write them, and a terminal would obey some. Line feeds stay where there can be lines.
func visible(msg tea.Msg, lines bool) tea.Msg {
	keep := func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r == '\n' || r == '\t':
			return ' '
		case display.Hidden(r):
			return -1
		}
		return r
	}
	switch m := msg.(type) {
	case tea.PasteMsg:
		text := strings.ReplaceAll(strings.ReplaceAll(m.Content, "\r\n", "\n"), "\r", "\n")
		return tea.PasteMsg{Content: strings.Map(keep, text)}
	case tea.KeyPressMsg:
		if m.Text != "" {
			m.Text = strings.Map(keep, m.Text)
		}
		return m
	}
	return msg
}
