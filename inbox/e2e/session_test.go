package e2e

import (
	"net/http"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

// However often somebody presses, goes back, presses again or loads the page again, they
// have decided once.
func TestOnce(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	t.Run("a double click", func(t *testing.T) {
		p := visitor(t, w, "ana")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		p.Forget()
		if held := browsertest.Eval[string](p, `(() => {
			const held = [], b = document.querySelector(".approve");
			addEventListener("submit", e => held.push(e.defaultPrevented));
			b.click();
			b.click();
			return held.join();
		})()`); held != "false,true" {
			t.Errorf("whether each press is held back: %s", held)
		}
		p.WaitText(decideTitle, "Approved")
		if sent := posts(p); len(sent) != 1 {
			t.Errorf("sent: %v", sent)
		}
		once(t, w, r)
	})
	t.Run("in two windows", func(t *testing.T) {
		p := visitor(t, w, "ana")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		q := p.Tab()
		q.ScriptOff() // so that its form stays
		q.Open(pageOf(w, r.ApprovalID))
		p.Follow(approveIt)
		q.Follow(approveIt)
		q.WaitText(decideTitle, "Approved")
		once(t, w, r)
	})
	t.Run("back, and press again", func(t *testing.T) {
		p := visitor(t, w, "ana")
		r := w.Call("refund", large)
		p.Open(w.URL + "/")
		p.Open(pageOf(w, r.ApprovalID))
		form := browsertest.Eval[string](p, `JSON.stringify(document.querySelector("form.answers").outerHTML)`)
		p.Follow(approveIt)
		p.WaitText(decideTitle, "Approved")
		p.Back()
		p.WaitText(decideTitle, "Approved") // what the browser kept is not shown
		for _, button := range []string{approveIt, rejectIt} {
			browsertest.Eval[bool](p, `(document.querySelector("main").insertAdjacentHTML("beforeend", `+form+`), true)`)
			p.Follow("form.answers " + button)
		}
		says(t, p.Text(".notice.refused"), "It was approved by ana on")
		once(t, w, r)
	})
	t.Run("load again", func(t *testing.T) {
		p := visitor(t, w, "ana")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		p.Follow(approveIt)
		p.Reload()
		p.WaitText(decideTitle, "Approved")
		once(t, w, r)
	})
	t.Run("send a refused answer again", func(t *testing.T) {
		p := visitor(t, w, "ana")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		keep(p)
		decideAs(t, w.Reviewer, r, true, "")
		p.WaitText(decideTitle, "Approved")
		late(t, p, rejectIt, http.StatusConflict)
		p.Reload()
		p.WaitText(decideTitle, "Approved")
		once(t, w, r)
	})
}

// Inboxes of two daemons on one machine have a cookie each: who signs in to the one stays
// signed in to the other.
func TestTwoInboxes(t *testing.T) {
	t.Parallel()
	one, two := daemontest.Start(t, daemontest.Options{}), daemontest.Start(t, daemontest.Options{})
	p := browsertest.New(t)
	signIn(t, one, p, token.Reviewer, "ana")
	signIn(t, two, p, token.Operator, "ben")
	p.Open(one.URL + "/decided")
	p.WaitText(".who", "ana reviewer")
	p.Open(two.URL + "/decided")
	p.WaitText(".who", "ben operator")
	p.Follow("button >> Sign out")
	p.Open(one.URL + "/decided")
	p.WaitText(".who", "ana reviewer")
}

// A sign-in is in the store: it survives the daemon. It ends with the token that it rests
// on, on pages that are open, too.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := browsertest.New(t)
	k := signIn(t, w, p, token.Reviewer, "cleo")
	r := w.Call("refund", large)
	w.Kill9()
	w.Restart()
	p.Open(pageOf(w, r.ApprovalID))
	p.WaitText(".who", "cleo reviewer")
	q := p.Tab()
	q.Open(w.URL + "/")
	q.WaitFor("#row-" + r.ApprovalID)
	if _, err := w.Admin.RevokeToken(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	q.Follow("a >> Decided")
	if q.Status() != http.StatusOK || q.Seen("button >> Sign in") != 1 {
		t.Errorf("somebody whose token was revoked sees %d %s", q.Status(), q.Text("main"))
	}
	p.Follow(approveIt)
	p.WaitFor("button >> Sign in")
	untouched(t, w, r)
	if o, err := w.Agent.GetCall(t.Context(), r.CallID, 0); err != nil || o.Status != call.Pending {
		t.Errorf("%+v %v", o, err)
	}
}

// A page that is open when its sign-in ends leads to the door once something happens.
func TestSignInEndsOnAnOpenPage(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := browsertest.New(t)
	k := signIn(t, w, p, token.Reviewer, "cleo")
	r := w.Call("refund", large)
	p.Open(pageOf(w, r.ApprovalID))
	if _, err := w.Admin.RevokeToken(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	decideAs(t, w.Reviewer, r, false, "")
	p.WaitFor("button >> Sign in")
	p.Screenshot("sign-in/ended")
}
