package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
)

// keep keeps the form of a page, as a page does that was opened long ago.
func keep(p *browsertest.Page) {
	browsertest.Eval[bool](p, `(window.kept = document.querySelector("form.answers").cloneNode(true), true)`)
}

// late presses a button of the form that was kept, and returns why that did nothing.
func late(t *testing.T, p *browsertest.Page, button string, status int) string {
	t.Helper()
	browsertest.Eval[bool](p, `(document.querySelector("main").append(window.kept), true)`)
	p.Follow("form.answers " + button)
	if p.Status() != status {
		t.Errorf("the late press was answered with %d, and not with %d", p.Status(), status)
	}
	return p.Text(".notice.refused")
}

// says looks whether a text has all of these.
func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

// A page left open shows by itself what became of what it shows; its form goes, and one
// that was kept all the same decides nothing and says who was first.
func TestLeftOpen(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	t.Run("decided elsewhere", func(t *testing.T) {
		p := visitor(t, w, "cleo")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		p.Type("#note", "half a thou")
		keep(p)
		decideAs(t, w.Reviewer, r, true, "I was first.")
		p.WaitText(decideTitle, "Approved")
		p.WaitText(`[data-region="became"]`, "succeeded")
		p.WaitGone("form.answers")
		p.WaitText(".title .pill", "approved")
		p.Screenshot("open/decided-elsewhere")
		says(t, late(t, p, rejectIt, http.StatusConflict), "It was decided before your answer", "Your answer was not recorded.", "It was approved by ana on")
		once(t, w, r)
	})
	t.Run("expired", func(t *testing.T) {
		p := visitor(t, w, "cleo")
		j := w.Job(httpapi.Starting{Name: "train"})
		q, err := w.Agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "Soon?", Options: []string{"yes", "no"}, TimeoutSeconds: 4})
		if err != nil {
			t.Fatal(err)
		}
		p.Open(w.URL + "/questions/" + q.DecisionID)
		keep(p)
		p.WaitText(decideTitle, "Expired")
		p.WaitGone("form.answers")
		p.WaitText(".title .pill", "expired")
		p.Screenshot("open/expired")
		says(t, late(t, p, "button >> yes", http.StatusGone), "It expired before your answer")
		if q, err := w.Agent.GetQuestion(t.Context(), q.DecisionID); err != nil || q.Choice != "" {
			t.Errorf("the question is answered: %+v, %v", q, err)
		}
	})
	t.Run("taken back", func(t *testing.T) {
		p := visitor(t, w, "cleo")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		keep(p)
		if _, err := w.Agent.WithdrawCall(t.Context(), r.CallID); err != nil {
			t.Fatal(err)
		}
		p.WaitText(decideTitle, "Taken back")
		p.WaitGone("form.answers")
		p.Screenshot("open/taken-back")
		says(t, late(t, p, approveIt, http.StatusConflict), "It was taken back before your answer", "It was taken back by bot")
	})
	t.Run("altered", func(t *testing.T) {
		p := visitor(t, w, "cleo")
		r := w.Call("refund", large)
		p.ScriptOff() // or it would notice by itself
		p.Open(pageOf(w, r.ApprovalID))
		alter(t, w, "UPDATE decision SET presentation = ? WHERE id = ?", []byte(`{"title":"Refund 5 on o-7"}`), r.ApprovalID)
		p.Follow(approveIt)
		says(t, p.Text(".notice.refused"), "It changed since it was shown", "presentation", "altered outside of Placet")
		p.WaitText("main", "This record was altered")
		p.WaitGone(approveIt)
		p.Screenshot("open/altered")
		untouched(t, w, r)
	})
	t.Run("altered, and noticed", func(t *testing.T) {
		p := visitor(t, w, "dora")
		r := w.Call("refund", large)
		p.Open(pageOf(w, r.ApprovalID))
		alter(t, w, "UPDATE decision SET presentation = ? WHERE id = ?", []byte(`{"title":"Refund 5 on o-7"}`), r.ApprovalID)
		p.WaitText("main", "This record was altered")
		p.WaitGone(approveIt)
		untouched(t, w, r)
	})
	if got := w.Effects(); len(got) != 1 {
		t.Errorf("these tools ran: %q", got)
	}
}

// The daemon starts again with another rule for that tool, and what was approved is asked
// anew: the old page leads to the new question, and decides neither.
func TestLeftOpenAndSuperseded(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "cleo")
	r := w.Call("refund", large)
	p.Open(pageOf(w, r.ApprovalID))
	keep(p)
	w.Stop()
	path := filepath.Join(w.Dir, "placet.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `'"Refund " + string(args.amount)`, `'"Pay back " + string(args.amount)`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil || changed == string(text) {
		t.Fatalf("the rule is as it was: %v", err)
	}
	w.Restart()
	decideAs(t, w.Reviewer, r, true, "")
	p.WaitText(`[data-region="became"]`, "Its newest approval")
	p.WaitGone("form.answers")
	p.Screenshot("open/superseded")
	says(t, late(t, p, rejectIt, http.StatusConflict), "Another approval took its place", "Your answer was not recorded.", "the policy")
	p.Follow("a >> See what is asked now")
	p.WaitFor(approveIt)
	p.WaitText("main", "Pay back 75 on o-7")
	if got := approval(t, w, r.ApprovalID); got.Status != decision.Superseded {
		t.Errorf("the first approval is %s", got.Status)
	}
	if o, err := w.Agent.GetCall(t.Context(), r.CallID, 0); err != nil || p.URL() != pageOf(w, o.ApprovalID) || o.ApprovalID == r.ApprovalID {
		t.Errorf("%s asks %s: %v", p.URL(), o.ApprovalID, err)
	}
	p.Follow(approveIt)
	p.WaitText(`[data-region="became"]`, "succeeded")
	if got := w.Effects(); len(got) != 1 {
		t.Errorf("these tools ran: %q", got)
	}
}

// What somebody is writing stays, with the cursor in it, while the page is read anew.
func TestWritingIsKept(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	p := visitor(t, w, "ana")
	j := w.Job(httpapi.Starting{Name: "train", Command: json.RawMessage(`["sh", "-c", "while read line; do echo \"AGENT_EVENT {\\\"type\\\":\\\"said\\\",\\\"message\\\":\\\"$line\\\"}\"; done"]`)})
	q := w.Ask(j.JobID, "Go on?", "yes", "no")
	p.Open(w.URL + "/questions/" + q.DecisionID)
	p.Type("#note", "half a thou")
	p.Press("ArrowLeft", "ArrowLeft")
	p.Forget()
	if err := w.Agent.SendToJob(t.Context(), j.JobID, httpapi.Sending{Text: "something happened\n"}); err != nil {
		t.Fatal(err)
	}
	p.WaitUntil(`performance.getEntriesByType("resource").some(e => e.initiatorType === "fetch" && e.responseEnd > 0)`)
	p.Press("r")
	if got := p.Value("#note"); got != "half a throu" {
		t.Errorf("the note is %q", got)
	}
	again := w.Ask(j.JobID, "And now?", "yes", "no")
	p.Open(w.URL + "/jobs/" + j.JobID)
	p.WaitFor("a >> And now?")
	if _, err := w.Reviewer.Resolve(t.Context(), j.JobID, again.DecisionID, httpapi.Resolving{Choice: "yes", Digest: again.Digest}); err != nil {
		t.Fatal(err)
	}
	p.WaitText(`[data-region="asked"]`, "yes by ana")
	p.WaitText(`[data-region="recent"]`, "something happened")
	p.Screenshot("open/job-that-was-answered")
	clean(t, p, w.URL, "job")
}
