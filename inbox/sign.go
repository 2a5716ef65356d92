package inbox

import (
	"errors"
	"net/http"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/token"
)

// maxSignIn bounds the form of somebody who is nobody yet, in bytes.
const maxSignIn = 16 << 10

func (b *Inbox) signInPage(w http.ResponseWriter, r *http.Request) {
	if _, err := b.signIns.who(r, b.identity); err == nil {
		http.Redirect(w, r, ours(r.URL.Query().Get("to")), http.StatusSeeOther)
		return
	}
	q := r.URL.Query()
	var n *view.Notice
	switch {
	case q.Has("unsaid"):
		n = &view.Notice{Sort: view.Warning, Title: "Your sign-in has ended", Text: "What you sent was not recorded.", More: "Sign in, and send it again from the page that opens then."}
	case q.Has("out"):
		n = &view.Notice{Sort: view.Good, Title: "You are signed out"}
	}
	b.ask(w, r, http.StatusOK, ours(q.Get("to")), n)
}

func (b *Inbox) ask(w http.ResponseWriter, r *http.Request, status int, to string, n *view.Notice) {
	s := view.Shell{Title: "Sign in", Nonce: nonceOf(r.Context()), Style: b.assets.style, Code: b.assets.code}
	b.show(w, r, status, view.Sign(s, to, n))
}

// signIn takes a token. Why one is no good is not told, unless it is good and an agent's.
func (b *Inbox) signIn(w http.ResponseWriter, r *http.Request) {
	if err := takeForm(w, r, maxSignIn); err != nil {
		n := refusal(err)
		n.Title = "You are not signed in"
		b.ask(w, r, problem.Status(err), "/", &n)
		return
	}
	to := ours(r.PostForm.Get("to"))
	proof, err := b.identity.prove(r.Context(), r.PostForm)
	if err == nil {
		err = b.signIns.begin(w, r, proof)
	}
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	f := fault.From(err)
	if f.Code == fault.Internal {
		b.c.Log.Error("a sign-in failed", "error", err)
	}
	n := view.Notice{Sort: view.Refused, Title: "You are not signed in", Text: f.Message, More: f.Advice}
	if errors.Is(err, token.ErrUnauthenticated) {
		n.Text, n.More = "That is no valid token.", "Copy the whole of it; it begins with placet_."
	}
	b.ask(w, r, problem.Status(f), to, &n)
}

func (b *Inbox) signOut(w http.ResponseWriter, r *http.Request, who reviewer) {
	if err := b.signIns.end(w, r); err != nil {
		b.fail(w, r, who, err)
		return
	}
	http.Redirect(w, r, "/sign-in?out", http.StatusSeeOther)
}
