package inbox

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/internal/review"
)

func (b *Inbox) question(w http.ResponseWriter, r *http.Request, who reviewer) {
	q, err := review.ReadQuestion(r.Context(), b.c.Store, b.c.Space, r.PathValue("id"))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	b.showQuestion(w, r, who, http.StatusOK, view.Question{Question: q, Fields: questionForm(q)})
}

// questionForm asks for what the question wants besides a choice.
func questionForm(q review.Question) form {
	return formOf(review.FieldsOf(q.Form, nil, q.Mask), false)
}

func (b *Inbox) showQuestion(w http.ResponseWriter, r *http.Request, who reviewer, status int, q view.Question) {
	q.Own = b.own(who, q.Decision)
	s := b.shell(r, who, "", "A question")
	s.Live = liveOf(q.Decision, q.Version(), q.Seen)
	b.show(w, r, status, view.QuestionPage(s, q))
}

// resolving is what the API takes.
type resolving struct {
	Choice string          `json:"choice"`
	Input  json.RawMessage `json:"input,omitempty"`
	Note   string          `json:"note,omitempty"`
	Digest string          `json:"digest"`
}

// resolve takes an answer to exactly the question that a page showed.
func (b *Inbox) resolve(w http.ResponseWriter, r *http.Request, who reviewer) {
	f := r.PostForm
	q, err := review.ReadQuestion(r.Context(), b.c.Store, b.c.Space, r.PathValue("id"))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	form := questionForm(q)
	answer := resolving{Note: unix(f.Get("note")), Digest: f.Get("digest")}
	answer.Choice, err = chosen(q, f)
	if err == nil && answer.Digest == "" {
		err = decision.ErrApprovalChanged.Say("The form does not say which question it answers.")
	}
	if err == nil && q.Form != nil {
		answer.Input, err = form.take(f)
	}
	if err == nil {
		err = do(r.Context(), who.door, http.MethodPost, "/v1/jobs/"+url.PathEscape(q.Owner.ID)+"/decision/"+q.ID+"/resolve", answer, nil)
	}
	if err == nil {
		http.Redirect(w, r, "/questions/"+q.ID+toAnswer, http.StatusSeeOther)
		return
	}
	now, rerr := review.ReadQuestion(r.Context(), b.c.Store, b.c.Space, q.ID)
	if rerr != nil {
		b.fail(w, r, who, err)
		return
	}
	n := told(now.Refused(err))
	form.blame(err)
	form.refill(f)
	b.showQuestion(w, r, who, problem.Status(err), view.Question{Question: now, Fields: form, Said: answer.Note, Notice: &n})
}

// chosen is the option whose button was pressed. Buttons are numbered, since a form does
// not send each text as it is; the digest tells that the options are those that were shown.
func chosen(q review.Question, f url.Values) (string, error) {
	i, err := strconv.Atoi(f.Get("answer"))
	if err != nil || i < 0 || i >= len(q.Options) {
		return "", decision.ErrUsage.Say("The form has no answer.").Hint("Press one of its buttons.")
	}
	return q.Options[i], nil
}
