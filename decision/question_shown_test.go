package decision_test

import (
	"errors"
	"testing"

	"github.com/placet-dev/placet/decision"
)

// An answer that is bound to a showing answers that question and no other, and only as
// it was asked.
func TestAnswersToWhatWasShown(t *testing.T) {
	t.Parallel()
	asked := question(t)
	altered := asked.Clone()
	altered.Prompt = "Delete everything?"
	replaced := altered.Clone()
	replaced.Digest = "sha256-placet1:0000"
	for name, c := range map[string]struct {
		d     decision.Decision
		shown string
		want  error
	}{
		"what was shown":           {asked, asked.Digest, nil},
		"not bound":                {asked, "", nil},
		"another digest":           {asked, "sha256-placet1:1111", decision.ErrApprovalChanged},
		"altered under its digest": {altered, asked.Digest, decision.ErrApprovalHash},
		"altered with its digest":  {replaced, asked.Digest, decision.ErrApprovalChanged},
		"an unsound digest shown":  {replaced, replaced.Digest, decision.ErrApprovalHash},
	} {
		cmd := yes(c.d)
		cmd.Shown = c.shown
		ch, err := c.d.Step(cmd, noon)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil && (ch.Vote == nil || ch.Vote.Shown != c.shown) {
			t.Errorf("%s: the vote does not tell what was shown: %+v", name, ch.Vote)
		}
	}
}
