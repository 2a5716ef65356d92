package inbox

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/internal/review"
)

func (b *Inbox) approval(w http.ResponseWriter, r *http.Request, who reviewer) {
	a, err := review.Read(r.Context(), b.c.Store, b.c.Space, r.PathValue("id"))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	b.showApproval(w, r, who, http.StatusOK, a, nil)
}

func (b *Inbox) showApproval(w http.ResponseWriter, r *http.Request, who reviewer, status int, a review.Approval, n *view.Notice) {
	s := b.shell(r, who, "", "Approval of "+a.Tool+a.Node)
	s.Live = liveOf(a.Decision, a.Version(), a.Seen)
	page := view.Approval{Approval: a, Whole: r.URL.Query().Get("open") == "1", Own: b.own(who, a.Decision), Notice: n}
	if a.Status == decision.Approved && a.Open {
		page.Unserved = b.c.Unserved(a.Owner.ID)
	}
	b.show(w, r, status, view.ApprovalPage(s, page))
}

// own reports whether whoever is signed in asked for this, and may not decide it for that.
func (b *Inbox) own(who reviewer, d decision.Decision) bool {
	return d.RequestedBy != "" && d.RequestedBy == who.Principal && !b.c.MayOwn(who.Token)
}

// decide takes a yes or a no to exactly what a page showed. It is the API that decides,
// with the rights of who is signed in.
func (b *Inbox) decide(w http.ResponseWriter, r *http.Request, who reviewer) {
	f := r.PostForm
	a, err := review.Read(r.Context(), b.c.Store, b.c.Space, r.PathValue("id"))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	yes, err := answerOf(f)
	if err == nil && yes && f.Get("opened") != "1" && (view.Approval{Approval: a}).MustOpen() {
		err = decision.ErrUsage.Say("Something that would run was shown in part only.").Hint("Open it all, and approve then.")
	}
	if err == nil {
		err = b.send(r, who, a.ID, deciding{Approved: yes, Digest: f.Get("digest"), Note: f.Get("note")}, nil)
	}
	b.answered(w, r, who, a.ID, err)
}

// answerOf is a yes or a no; anything else is neither (case 037).
func answerOf(f url.Values) (yes bool, err error) {
	switch f.Get("answer") {
	case "approve":
		return true, nil
	case "reject":
		return false, nil
	}
	return false, decision.ErrUsage.Say("The form says neither yes nor no.").Hint("Press one of its buttons.")
}

// deciding is what the API takes, besides edited arguments.
type deciding struct {
	Approved bool   `json:"approved"`
	Digest   string `json:"digest"`
	Note     string `json:"note,omitempty"`
}

// send gives an answer. Edited arguments go with it byte for byte: an encoder would write
// them in its own way.
func (b *Inbox) send(r *http.Request, who reviewer, id string, d deciding, edited []byte) error {
	d.Note = unix(d.Note)
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if edited != nil {
		body = slices.Concat(body[:len(body)-1], []byte(`,"edited_args":`), edited, []byte("}"))
	}
	return do(r.Context(), who.door, http.MethodPost, "/v1/approvals/"+id+"/decide", json.RawMessage(body), nil)
}

// unix is what somebody wrote, with the ends of lines as they were typed: a form sends
// them otherwise.
func unix(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// toAnswer is where in a page the answer stands, and what became of it below: on a phone
// one would have to look for it.
const toAnswer = "#decide"

// answered shows what came of an answer. A yes or no that was taken leads to the page
// anew, so that to load it again sends nothing again.
func (b *Inbox) answered(w http.ResponseWriter, r *http.Request, who reviewer, id string, err error) {
	if err == nil {
		http.Redirect(w, r, "/approvals/"+id+toAnswer, http.StatusSeeOther)
		return
	}
	now, rerr := review.Read(r.Context(), b.c.Store, b.c.Space, id)
	if rerr != nil {
		b.fail(w, r, who, err)
		return
	}
	n := told(now.Refused(review.Shown{Digest: r.PostForm.Get("digest"), Parts: r.PostForm.Get("seen")}, err))
	b.showApproval(w, r, who, problem.Status(err), now, &n)
}
