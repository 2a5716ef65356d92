package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

// tabTo presses Tab until the focus is where it is wanted, and looks whether it is seen
// all the way.
func tabTo(t *testing.T, p *browsertest.Page, want string) {
	t.Helper()
	for range 60 {
		p.Press("Tab")
		at := p.Focus()
		marked(t, p, at)
		if strings.HasPrefix(at, want) {
			return
		}
	}
	t.Fatalf("Tab does not lead to %s, but to %s", want, p.Focus())
}

// marked looks whether what has the focus can be seen to have it.
func marked(t *testing.T, p *browsertest.Page, at string) {
	t.Helper()
	if at == "" {
		return // the browser's own bar
	}
	if !browsertest.Eval[bool](p, `(() => {
		const s = getComputedStyle(document.activeElement), r = document.activeElement.getBoundingClientRect();
		return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 && r.width > 0 && r.height > 0 && r.bottom > 0 && r.top < innerHeight;
	})()`) {
		t.Errorf("it cannot be seen that %s has the focus", at)
	}
}

// Somebody without a mouse signs in, finds what waits, reads it, writes a note and decides.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	r, gone := w.Call("refund", large), w.Call("refund", `{"order_id":"o-8","amount":80}`)
	k := secret(t, w, token.Reviewer, "ana")
	p := browsertest.New(t)
	p.Open(w.URL + "/approvals/" + r.ApprovalID)
	tabTo(t, p, "input#token")
	p.Paste(k.Secret)
	p.PressTo("Enter")
	if p.URL() != pageOf(w, r.ApprovalID) {
		t.Errorf("signing in led to %s", p.URL())
	}
	p.Open(w.URL + "/")
	p.Press("Tab")
	if got := p.Focus(); !strings.Contains(got, "Skip to the content") {
		t.Errorf("the first is %s", got)
	}
	marked(t, p, "the skip link")
	p.Press("Enter")
	if got := p.Focus(); !strings.HasPrefix(got, "main#main") {
		t.Errorf("the skip link leads to %s", got)
	}
	tabTo(t, p, "input#search")
	tabTo(t, p, `a.row-title "refund"`)
	p.PressTo("Enter")
	tabTo(t, p, "textarea#note")
	p.Press("a", "Enter", "b")
	if got := p.Value("#note"); got != "a\nb" {
		t.Errorf("the note is %q", got)
	}
	tabTo(t, p, `button[name=answer] "Approve"`)
	p.Screenshot("keyboard/approve")
	p.PressTo("Space")
	p.WaitText(decideTitle, "Approved")
	p.WaitText("blockquote", "b")
	once(t, w, r)

	p.Open(pageOf(w, gone.ApprovalID))
	tabTo(t, p, `button[name=answer] "Reject"`)
	decideAs(t, w.Reviewer, gone, false, "")
	p.WaitText(decideTitle, "Rejected")
	marked(t, p, p.Focus())
	if !browsertest.Eval[bool](p, `document.activeElement.dataset.region === "decide"`) {
		t.Errorf("the focus went to %q", p.Focus())
	}
}

// stray are keys that a cat, or somebody who thinks to type elsewhere, presses.
var stray = []string{"a", "y", "n", "j", "k", "r", "x", "1", "?", "/", "Enter", "Space", "Escape", "Delete", "Backspace", "ArrowDown", "Home", "End", "Control+Enter", "Alt+a", "Shift+Enter"}

// Nobody decides by typing into a page, whatever appears in it meanwhile.
func TestStrayKeys(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "ana")
	parked := []httpapi.Result{w.Call("refund", large)}
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for i := range rounds {
		if i%5 == 0 {
			p.Open(pageOf(w, parked[random.IntN(len(parked))].ApprovalID))
		}
		if i%10 == 5 {
			p.Open(w.URL + "/")
		}
		if i%10 == 7 {
			parked = append(parked, w.Call("refund", fmt.Sprintf(`{"order_id":"o-%d","amount":75}`, i)))
		}
		keys := make([]string, 20)
		for k := range keys {
			keys[k] = stray[random.IntN(len(stray))]
		}
		p.Press(keys...)
	}
	if sent := posts(p); len(sent) != 1 {
		t.Errorf("forms were sent, besides the sign-in: %v", sent)
	}
	untouched(t, w, parked...)
	if got := w.Effects(); got != nil {
		t.Errorf("tools ran: %q", got)
	}
}

// Enter, Escape and whatever else is pressed or pasted while somebody writes sends no
// form (case 139).
func TestWritingSendsNothing(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "ana")
	r := w.Call("refund", `{"order_id":"o-7","amount":75,"message":"one\ntwo"}`)
	j := w.Job(httpapi.Starting{Name: "train"})
	q, err := w.Agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "How long?", Options: []string{"go", "stop"}, Form: []byte(`{"type":"object","properties":{
		"epochs":{"type":"integer","title":"Epochs"},"rate":{"type":"string","enum":["slow","fast"]},"why":{"type":"string"},"key":{"type":"string","format":"password"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/approvals/" + r.ApprovalID, "/approvals/" + r.ApprovalID + "/edit", "/approvals/" + r.ApprovalID + "/edit?as=text", "/questions/" + q.DecisionID} {
		p.Open(w.URL + path)
		p.Forget()
		fields := browsertest.Eval[[]string](p, `[...document.querySelectorAll("main form[method=post] :is(input, textarea, select):not([type=hidden])")].map(f => f.localName + "[name=\"" + f.name + "\"]")`)
		if len(fields) == 0 {
			t.Fatalf("%s has no field", path)
		}
		for _, f := range fields {
			browsertest.Eval[bool](p, fmt.Sprintf("(document.querySelector(%q).focus(), true)", f))
			p.Press("Enter", "x", "Control+Enter", "Shift+Enter", "Escape", "Delete", "Backspace", "Enter", "Tab", "Shift+Tab", "Enter")
			p.Paste("pasted\nin two lines\n")
			p.Press("Enter", "Escape")
			if p.URL() != w.URL+path || len(posts(p)) > 0 {
				t.Fatalf("a key in %s of %s has led to %s, with %v", f, path, p.URL(), posts(p))
			}
		}
	}
	untouched(t, w, r)
	if now, err := w.Agent.GetQuestion(t.Context(), q.DecisionID); err != nil || now.Status != decision.Pending {
		t.Errorf("%+v, %v", now, err)
	}
}
