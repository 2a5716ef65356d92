package tui

import "charm.land/lipgloss/v2"

// look is how a stretch of text looks.
type look int

// The looks. Colours are those of the terminal's own palette, so that they suit a light
// and a dark background; each of them says what the words beside it say, too.
const (
	plain  look = iota
	quiet       // what is seldom read
	strong      // headings and names
	good        // went well
	bad         // went wrong, or is a no
	warns       // deserves a second look
	unseen      // stands for what cannot be seen
	alike       // looks like something else
	chosen      // the row that keys act on
	ours        // bars and rules
)

var looks = map[look]lipgloss.Style{
	plain:  lipgloss.NewStyle(),
	quiet:  lipgloss.NewStyle().Faint(true),
	strong: lipgloss.NewStyle().Bold(true),
	good:   lipgloss.NewStyle().Foreground(lipgloss.Green),
	bad:    lipgloss.NewStyle().Foreground(lipgloss.Red),
	warns:  lipgloss.NewStyle().Bold(true).Reverse(true),
	unseen: lipgloss.NewStyle().Reverse(true),
	alike:  lipgloss.NewStyle().Bold(true).Underline(true).Foreground(lipgloss.Magenta),
	chosen: lipgloss.NewStyle().Bold(true),
	ours:   lipgloss.NewStyle().Foreground(lipgloss.Cyan),
}

func (l look) of(s string) string {
	if l == plain || s == "" {
		return s
	}
	return looks[l].Render(s)
}

// lookOf is how a status looks.
func lookOf(word string) look {
	switch word {
	case "pending", "unknown", "awaiting_approval", "interrupted":
		return strong
	case "approved", "consumed", "resolved", "succeeded", "completed", "answered":
		return good
	case "rejected", "denied", "failed", "dead", "orphaned", "timeout":
		return bad
	}
	return plain
}
