package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// chooser is where the queue is narrowed to a sort, a kind, a tool or an age.
type chooser struct {
	*app
	of      *queue
	options []option
	at      int
	scroll
}

// option is a line that can be chosen.
type option struct {
	review.Choice
	head string // of the group that begins here; empty: none does
}

func newChooser(q *queue) *chooser {
	c := &chooser{app: q.app, of: q}
	f, counts := q.filter, q.q.Counts
	c.group("What", f.Whats(counts))
	c.group("Kind", f.Kinds(counts))
	c.group("Tool", f.Tools(counts))
	c.group("Asked before", f.Ages())
	return c
}

func (c *chooser) group(head string, all []review.Choice) {
	for _, one := range all {
		c.options = append(c.options, option{one, head})
		head = ""
	}
}

func (c *chooser) title() (left, right string) { return "What to show", "" }

func (c *chooser) body(w, h int) []string {
	s := &sheet{width: w}
	line := 0
	for i, o := range c.options {
		if o.head != "" {
			s.head(o.head, "")
		}
		mark := "  "
		if i == c.at {
			mark, line = "> ", len(s.lines)
		}
		chosenMark := "  "
		if o.Chosen {
			chosenMark = "* "
		}
		spans := append(oneLook(mark+chosenMark, strong), s.line(o.Text, 60)...)
		if o.N >= 0 {
			spans = append(spans, span{fmt.Sprintf("  (%s)", display.Count(int(o.N))), quiet})
		}
		s.put(short(spans, w))
	}
	s.notes()
	c.from = max(min(c.from, line), line-max(1, h-2)+1)
	return c.window(s.lines, w, h)
}

func (c *chooser) keys() []binding {
	return []binding{on("Enter", "show these"), on("Esc", "back"), on("↑↓", "move"), on("?", "keys")}
}

func (c *chooser) press(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	switch k.String() {
	case "up", "k":
		c.at = max(0, c.at-1)
	case "down", "j":
		c.at = min(len(c.options)-1, c.at+1)
	case "enter":
		to := c.options[c.at].Filter
		c.back()
		return c.of.narrow(func(f *review.Filter) { *f = to })
	case "esc", "q":
		c.back()
	case "?":
		c.showHelp()
	}
	return nil
}

func (c *chooser) hear(tea.Msg) tea.Cmd { return nil }
func (c *chooser) close()               {}
