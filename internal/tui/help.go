package tui

import tea "charm.land/bubbletea/v2"

// help lists the keys of the screen below it.
type help struct {
	*app
	of string
	scroll
	list []binding
}

func (a *app) showHelp() {
	left, _ := a.top().title()
	a.push(&help{app: a, of: left, list: a.top().keys()})
}

func (h *help) title() (left, right string) { return "Keys: " + h.of, "" }

func (h *help) body(w, height int) []string {
	s := &sheet{width: w}
	for _, k := range h.list {
		s.beside("  ", oneLook(k.key, strong), 18, func(lead []string) {
			text := k.more
			if text == "" {
				text = k.does
			}
			for i, l := range wrap(oneLook(text, plain), w-widthOf(lead[0])) {
				s.put(lead[min(i, 1)] + l)
			}
		})
	}
	s.put("")
	s.say(quiet, "Nothing is decided by a single key. An answer is a word that is typed where it is asked for.")
	s.say(quiet, "Ctrl-C leaves the inbox from everywhere, and decides nothing.")
	return h.window(s.lines, w, height)
}

func (h *help) keys() []binding { return []binding{on("Esc", "back"), on("↑↓", "scroll")} }

func (h *help) press(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && !h.scrolled(k) {
		h.back()
	}
	return nil
}

func (h *help) hear(tea.Msg) tea.Cmd { return nil }
func (h *help) close()               {}
