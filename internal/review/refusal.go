package review

import (
	"errors"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Refusal is why an answer was not taken, as whoever gave it is told.
type Refusal struct {
	Title   string
	Text    string // may be foreign
	More    string // what to do; may be foreign
	Instead string // the approval that is asked now; empty: none
}

const notRecorded = "Your answer was not recorded. "

// RefusalOf is what an error alone tells.
func RefusalOf(err error) Refusal {
	f := fault.From(err)
	r := Refusal{Title: "Nothing was decided", Text: f.Message, More: f.Advice}
	switch {
	case errors.Is(f, txn.ErrUnknown):
		r.Title, r.More = "It is not known whether that was done", "Look at it again before you try once more."
	case f.Code == fault.NotFound:
		r.Title = "There is nothing of that name"
	case f.Code == fault.Internal:
		r.Title = "Something failed inside Placet"
	}
	return r
}

// Shown is what an answer was given to: the digest, and [Parts] as a text.
type Shown struct{ Digest, Parts string }

// Shown is what whoever looks at the approval answers to.
func (a Approval) Shown() Shown { return Shown{a.Digest, a.Parts().String()} }

// Refused says why an answer to what was shown is none to what is there now: what changed,
// and who did it. err is how it was refused; nil: none was given yet.
func (a Approval) Refused(was Shown, err error) Refusal {
	r := Refusal{Title: "Nothing was decided here"}
	if err != nil {
		r = RefusalOf(err)
	}
	parts := a.Parts().Changed(was.Parts)
	switch {
	case errors.Is(err, txn.ErrUnknown):
	case errors.Is(err, decision.ErrApprovalChanged) && was.Digest == a.Digest && len(parts) == 0:
		r.Title, r.More = "It is not what was shown", "Look at it again, and answer what you see then."
	case errors.Is(err, decision.ErrApprovalChanged), errors.Is(err, decision.ErrApprovalHash) && len(parts) > 0, err == nil && was.Digest != a.Digest:
		r.Title, r.Text = "It changed since it was shown", notRecorded+"What you saw is not what is stored now"
		if len(parts) > 0 {
			r.Text += ": what changed is the " + strings.Join(parts, ", the ")
		}
		r.Text += ". Nobody is on record for changing it, so it was altered outside of Placet."
		r.More = "Look at what is shown now, and find out who can write to the store."
	case errors.Is(err, decision.ErrApprovalExpired), err == nil && a.Standing() == "expired":
		r.Title, r.Text = "It expired before your answer", notRecorded+"Its time was over at "+UTC(a.ExpiresAt)+"."
	case a.Status == decision.Superseded:
		r.Title, r.Instead = "Another approval took its place", a.ReplacedBy
		r.Text, r.More = notRecorded+"Since it was shown, the policy, the tool or the edits of this call changed, and a person is asked anew.", ""
	default:
		r.settled(a.Decision, "decided", err)
	}
	return r
}

// Refused says why an answer to a question was not taken; err is nil where none was given yet.
func (q Question) Refused(err error) Refusal {
	r := Refusal{Title: "It was not answered"}
	if err != nil {
		r = RefusalOf(err)
		r.Title = "It was not answered"
	}
	switch {
	case errors.Is(err, decision.ErrApprovalChanged), errors.Is(err, decision.ErrApprovalHash):
		r.Title = "It is not the question that was shown"
	case errors.Is(err, decision.ErrExpired), err == nil && q.Standing() == "expired":
		r.Title, r.Text = "It expired before your answer", notRecorded+"Its time was over at "+UTC(q.ExpiresAt)+"."
	default:
		r.settled(q.Decision, "answered", err)
	}
	return r
}

// settled says who was first, where somebody was.
func (r *Refusal) settled(d decision.Decision, how string, err error) {
	switch {
	case d.Choice != "":
		r.Title, r.Text = "It was "+how+" before your answer", notRecorded+DecidedText(d)
	case d.WithdrawnBy != "":
		r.Title, r.Text = "It was taken back before your answer", notRecorded+"It was taken back by "+d.WithdrawnBy+"."
	case err == nil:
		r.Title, r.Text = "It is not needed any more", notRecorded+"What waited for it has ended."
	}
}
