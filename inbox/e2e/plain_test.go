package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

// All of it works where no script runs.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	for i := range 51 {
		w.Call("refund", fmt.Sprintf(`{"order_id":"o-%d","amount":75}`, i))
	}
	note := w.Call("write_note", `{"title":"A day","text":"`+strings.Repeat("It rained. ", 400)+`The end of it."}`)
	p := browsertest.New(t)
	p.ScriptOff()
	enter(p, w.URL+"/", secret(t, w, token.Reviewer, "ana").Secret)
	if got := p.Text("#queue-count"); got != "52 wait" {
		t.Errorf("%q", got)
	}
	p.Screenshot("plain/queue")
	p.Follow("nav.pager a[rel=next]")
	if n := p.Count(".row"); n != 2 {
		t.Errorf("the second page has %d rows", n)
	}
	p.Follow("nav.pager a[rel=prev]")
	p.Choose("#tool", "write_note (1)")
	p.Follow("button >> Show")
	if n := p.Count(".row"); n != 1 {
		t.Errorf("the filter leaves %d rows", n)
	}
	p.Follow("a >> write_note")
	openPlainly(t, w, p, note)
	rejectPlainly(t, w, p)
	editPlainly(t, w, p)
	answerPlainly(t, w, p)
	p.Follow("button >> Sign out")
	p.WaitFor("button >> Sign in")
	p.Open(w.URL + "/decided")
	p.WaitFor("button >> Sign in")
	clean(t, p, w.URL, "without script")
}

func openPlainly(t *testing.T, w *daemontest.World, p *browsertest.Page, note httpapi.Result) {
	t.Helper()
	if p.Seen(approveIt) != 0 {
		t.Error("what was not shown can be approved")
	}
	p.Follow("a >> Open it all to approve")
	p.WaitText("#runs", "What will run")
	p.WaitText("main", "The end of it.")
	let := w.Hold()
	p.Follow(approveIt)
	p.WaitText(decideTitle, "Approved")
	p.WaitText(`[data-region="became"]`, "Look again")
	let()
	w.Ended(note.CallID)
	p.Follow("a >> Look again")
	p.WaitText(`[data-region="became"]`, "succeeded")
	p.Screenshot("plain/approved")
	once(t, w, note)
}

func rejectPlainly(t *testing.T, w *daemontest.World, p *browsertest.Page) {
	t.Helper()
	r := w.Call("refund", large)
	p.Open(pageOf(w, r.ApprovalID))
	p.Fill("#note", "Not today.\nAsk again.")
	p.Follow(rejectIt)
	p.WaitText(decideTitle, "Rejected")
	p.WaitText("blockquote", "Not today.")
	if o := approval(t, w, r.ApprovalID); o.Note != "Not today.\nAsk again." || o.DecidedBy != "ana" {
		t.Errorf("%+v", o)
	}
}

func editPlainly(t *testing.T, w *daemontest.World, p *browsertest.Page) {
	r := w.Call("refund", large)
	p.Open(pageOf(w, r.ApprovalID))
	p.Follow("a >> Approve with other arguments")
	p.Fill(`[name="arg.amount"]`, "60")
	p.Follow("button >> See the difference")
	p.WaitText("table.diff", "75")
	p.WaitText("table.diff ins", "60")
	p.Screenshot("plain/difference")
	p.Fill("#note", "Sixty will do.")
	p.Follow("button >> Approve with these arguments")
	p.WaitText(decideTitle, "Approved")
	if o := w.Ended(r.CallID); o.Status != call.Succeeded || string(o.Attempts[0].EditedArgs) != `{"order_id":"o-7","amount":60}` {
		t.Errorf("%+v", o)
	}
}

func answerPlainly(t *testing.T, w *daemontest.World, p *browsertest.Page) {
	j := w.Job(httpapi.Starting{Name: "train"})
	q, err := w.Agent.Ask(t.Context(), j.JobID, httpapi.Asking{Prompt: "How long?", Options: []string{"go on", "stop"}, Form: []byte(`{"type":"object","required":["epochs"],"properties":{
		"epochs":{"type":"integer","minimum":1},"rate":{"type":"string","enum":["slow","fast"]}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	p.Open(w.URL + "/questions/" + q.DecisionID)
	p.Fill(`[name="arg.epochs"]`, "many")
	p.Follow("button >> go on")
	p.WaitText(".problem", "number")
	if got := p.Value(`[name="arg.epochs"]`); got != "many" {
		t.Errorf("what was written is %q", got)
	}
	p.Screenshot("plain/question-refused")
	p.Forget()
	p.Fill(`[name="arg.epochs"]`, "12")
	p.Choose(`[name="arg.rate"]`, "fast")
	p.Follow("button >> go on")
	p.WaitText(decideTitle, "Answered")
	if now, err := w.Agent.GetQuestion(t.Context(), q.DecisionID); err != nil || now.Choice != "go on" || !strings.Contains(string(now.Input), `"epochs":12`) || !strings.Contains(string(now.Input), `"rate":"fast"`) {
		t.Errorf("%+v, %v", now, err)
	}
}
