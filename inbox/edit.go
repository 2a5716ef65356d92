package inbox

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/internal/review"
)

// Other arguments are approved in two steps, each of which shows what it is about: a form
// that decides nothing, and a page with the difference and everything that would run. The
// second sends the form's fields again and the digest of what it showed: the arguments are
// made anew from the stored record, and have to have that digest.

// edit shows the form.
func (b *Inbox) edit(w http.ResponseWriter, r *http.Request, who reviewer) {
	a, err := b.readEditable(r)
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	b.showEdit(w, r, who, a, r.URL.Query().Get("as") == "text", nil, nil)
}

// readEditable reads an approval whose arguments can be others.
func (b *Inbox) readEditable(r *http.Request) (review.Approval, error) {
	a, err := review.Read(r.Context(), b.c.Store, b.c.Space, r.PathValue("id"))
	if err == nil {
		err = editable(a)
	}
	return a, err
}

func editable(a review.Approval) error {
	if a.Status != decision.Pending {
		return a.ErrDecided()
	}
	why := a.WhyFixed()
	if why == "" {
		return nil
	}
	return decision.ErrUsage.Say("The arguments of approval %s cannot be edited. %s", a.ID, why).Hint("%s", a.InsteadOfEdit())
}

// showEdit shows the form, with what was sent of it, and why that was refused.
func (b *Inbox) showEdit(w http.ResponseWriter, r *http.Request, who reviewer, a review.Approval, asText bool, sent url.Values, refused error) {
	page := view.Edit{Approval: a, AsText: asText, MayText: !a.HasSecrets()}
	f, status := editForm(a, asText), http.StatusOK
	if refused != nil {
		n := refusal(refused)
		if n.Title = "These arguments cannot run"; errors.Is(refused, review.ErrSame) {
			n.Title = "There is nothing to approve"
		}
		page.Notice, status = &n, problem.Status(refused)
		_, _ = f.take(sent) // marks what is wrong
		f.blame(refused)
	}
	if sent != nil {
		f.refill(sent)
	}
	page.Fields = f
	b.show(w, r, status, view.EditPage(b.shell(r, who, "", "Other arguments"), page))
}

// wholeName is the field of all arguments in one text.
const wholeName = "whole"

// editForm asks for each argument by itself, or for all in one text. That is not offered
// where one is secret: it would stand in the page.
func editForm(a review.Approval, asText bool) form {
	if !asText || a.HasSecrets() {
		return formOf(review.FieldsOf(a.Request.Tool.InputSchema, a.Request.Args, a.Mask), true)
	}
	all := view.Field{Field: review.Field{Name: "All arguments, as JSON", Sort: review.JSONField, Now: a.Request.Args, Needed: true}, ID: wholeName}
	all.Value = all.Start()
	return form{all}
}

// edited takes what was written: it shows the difference, or approves what it showed.
func (b *Inbox) edited(w http.ResponseWriter, r *http.Request, who reviewer) {
	sent, answer := r.PostForm, r.PostForm.Get("answer")
	a, err := b.readEditable(r)
	if err != nil && answer == "approve" && a.Choice == decision.ChoiceApprove {
		err = nil // the same form may have been sent twice: the API says whether it was that
	}
	if err != nil {
		b.answered(w, r, who, r.PathValue("id"), err)
		return
	}
	asText := sent.Get("as") == "text"
	args, err := editForm(a, asText).take(sent)
	if err == nil {
		err = a.CheckEdit(args)
	}
	switch {
	case err != nil:
		b.showEdit(w, r, who, a, asText, sent, err)
	case sent.Get("digest") != a.Digest:
		b.answered(w, r, who, a.ID, decision.ErrApprovalChanged)
	case answer == "back":
		b.showEdit(w, r, who, a, asText, sent, nil)
	default:
		b.lookOrApprove(w, r, who, a, args)
	}
}

// lookOrApprove shows what an edit would change, or takes the yes to what was shown.
func (b *Inbox) lookOrApprove(w http.ResponseWriter, r *http.Request, who reviewer, a review.Approval, args []byte) {
	sent := r.PostForm
	digest, record, err := a.EditDigests(args)
	switch {
	case err != nil:
		b.fail(w, r, who, err)
		return
	case sent.Get("answer") != "approve":
		e := view.Edit{Approval: a, Edited: args, Digest: digest, Record: record, Said: unix(sent.Get("note")), Carried: carried(sent)}
		b.show(w, r, http.StatusOK, view.EditedPage(b.shell(r, who, "", "Other arguments"), e))
		return
	case sent.Get("edited_digest") != digest:
		err = decision.ErrApprovalChanged.Say("The edited arguments are not those that were shown.")
	default:
		err = b.send(r, who, a.ID, deciding{Approved: true, Digest: sent.Get("digest"), Note: sent.Get("note")}, args)
	}
	b.answered(w, r, who, a.ID, err)
}

// carried is what the second page sends again.
func carried(sent url.Values) (cs []view.Carried) {
	for name, values := range sent {
		switch name {
		case "form_token", "digest", "edited_digest", "note", "answer":
		default:
			cs = append(cs, view.Carried{Name: name, Value: unix(values[0])})
		}
	}
	return cs
}
