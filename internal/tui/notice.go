package tui

import (
	"github.com/placet-dev/placet/internal/review"
)

// notice is something that a page says above its content.
type notice struct {
	look  look
	title string
	text  string // may be foreign
	more  string // what to do; may be foreign
}

func (n *notice) on(s *sheet) {
	if n == nil {
		return
	}
	s.put(n.look.of(" " + n.title + " "))
	for _, text := range []string{n.text, n.more} {
		if text != "" {
			s.text([]string{"  ", "  "}, text)
		}
	}
	s.put("")
}

// refusal is why something was refused.
func refusal(err error) *notice { return told(review.RefusalOf(err)) }

// told is a refusal as a page says it.
func told(r review.Refusal) *notice {
	n := &notice{bad, r.Title, r.Text, r.More}
	if r.Instead != "" {
		n.more = "Press l to see what is asked now."
	}
	return n
}
