package e2e

import (
	"testing"

	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
)

// A note that was begun is there again behind a form for other arguments and behind a
// sign-in, for its writer alone, and gone once it was given.
func TestANoteIsKept(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "ana")
	r := w.Call("refund", large)
	other := w.Call("refund", large)
	at := pageOf(w, r.ApprovalID)
	const text = "asked the customer"
	p.Open(at)
	p.Type("#note", text)
	p.Open(at + "/edit")
	p.Open(at)
	if got := p.Value("#note"); got != text {
		t.Errorf("the note is %q", got)
	}
	p.Open(pageOf(w, other.ApprovalID))
	if got := p.Value("#note"); got != "" {
		t.Errorf("another approval has the note %q", got)
	}
	p.Open(at)
	p.Follow(rejectIt)
	p.WaitText("blockquote", text)
	p.Open(pageOf(w, other.ApprovalID))
	p.Type("#note", text)
	p.Follow(".who button")
	if got := browsertest.Eval[int](p, "sessionStorage.length"); got != 0 {
		t.Errorf("%d notes are left behind a sign-out", got)
	}
}

// A page whose daemon is gone says that it may be old, until it is there again.
func TestADaemonThatIsGone(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "ana")
	r := w.Call("refund", large)
	p.Open(pageOf(w, r.ApprovalID))
	if p.Seen("main > .notice.warning") != 0 {
		t.Error("it is said before it happens")
	}
	w.Kill9()
	p.WaitText("main > .notice.warning", "Placet does not answer.")
	w.Restart()
	p.WaitUntil(`document.querySelector("main > .notice.warning").hidden`)
}
