package tui

import (
	"bytes"
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// Other arguments are written in an editor, which decides nothing. What was written is
// shown with what it changes, and is approved like everything else: by a word.

// editedMsg is what was written in the editor.
type editedMsg struct {
	of   screen
	text []byte
	err  error
}

// edit opens the arguments in an editor.
func (p *approval) edit() tea.Cmd {
	a := p.a
	switch {
	case !p.loaded || !a.Decidable():
		return nil
	case !a.Editable():
		p.say(&notice{bad, "Its arguments cannot be edited", a.WhyFixed(), a.InsteadOfEdit()})
		return nil
	case a.HasSecrets():
		p.say(&notice{
			bad, "Its arguments cannot be edited here", "One of them is a secret, and would stand in a file in plain text.",
			"Edit them in a browser, where a secret is kept as it is: placet serve. Or write them to a file of your own: placet approve --edit FILE.",
		})
		return nil
	}
	text := p.edited
	if text == "" {
		text = review.Pretty(a.Request.Args) + "\n"
	}
	p.note = nil
	return p.write(p, text)
}

// wrote takes what was written.
func (p *approval) wrote(m editedMsg) tea.Cmd {
	if m.err != nil {
		p.say(editorFailed(m.err))
		return nil
	}
	p.edited = string(m.text)
	args := bytes.TrimSpace(m.text)
	err := p.a.CheckEdit(args)
	switch {
	case errors.Is(err, review.ErrSame):
		p.say(&notice{plain, "Nothing was changed", "The arguments are as they were.", ""})
		return nil
	case err != nil:
		f := fault.From(err)
		p.say(&notice{bad, "These arguments cannot run", f.Message, "Press e to go on with what you wrote. " + f.Advice})
		return nil
	case !p.a.Editable():
		p.say(told(p.a.Refused(p.a.Shown(), nil)))
		return nil
	}
	return p.answer(true, args)
}

func editorFailed(err error) *notice {
	f := fault.From(err)
	n := &notice{bad, "The editor did not end well", f.Message, "Nothing was changed. " + f.Advice}
	if errors.Is(err, context.Canceled) {
		n.text = "It was ended."
	}
	return n
}

// showEdit is what an edit would change, and everything that would run.
func showEdit(s *sheet, a review.Approval, args []byte) {
	s.head("What you changed", "")
	s.diff(a.Mask.Diff(a.Request.Args, args), "asked for", "would run")
	s.head("What would run", display.Bytes(len(args)))
	s.fact("what", a.Subject())
	s.warn(string(a.Mask.JSON(args)))
	s.tree(a.Mask.Tree(args))
}
