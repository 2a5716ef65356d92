package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
	"github.com/placet-dev/placet/token"
)

// hostile is what somebody would write who wants to be taken for a part of the page.
const hostile = `"'></p></textarea></title><script>window.pwned=1</script><img src=x onerror=window.pwned=1><a href="javascript:window.pwned=1">x</a>` +
	`<svg onload=window.pwned=1><style>*{display:none}</style><form action=//evil.test><button>Approve</button></form>{{pwned}}${pwned}` +
	"\u202egnp\u202c\u2066\u2069\u200b\u200d\ufeff\u00ad\u061c\U000e0041"

// name is what of it fits where names are short.
const hostileName = "\"><img src=x onerror=window.pwned=1>\u202eb\u200b"

// unseen are the code points that may stand nowhere in a page but where somebody edits.
const unseen = `/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u061c]|[\u{e0000}-\u{e007f}]/u`

// strange is a world in which each word that somebody else may choose is hostile.
func strange(t *testing.T) *daemontest.World {
	t.Helper()
	quoted := func(s string) string {
		b, err := json.Marshal(s) // which is YAML, too
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	in := func(s string) string { // in an expression of a rule
		return quoted(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`)
	}
	config := `tools:
  - name: refund
    description: ` + quoted(hostile) + `
    input_schema: {type: object, properties: {a: {type: string, title: ` + quoted(hostile) + `, description: ` + quoted(hostile) + `}}}
    side_effect: remote_mutation
    exec: [./hostile.sh]
agents:
  clerk: {exec: [./clerk.sh]}
rules:
  - name: all
    when: "true"
    outcome: require_approval
    kind: ` + quoted(hostileName) + `
    reason: ` + quoted(hostile) + `
    presentation: {` + quoted("title") + `: ` + in(hostile) + `}
    capability: {what: ` + in(hostile) + `}
`
	script := "#!/bin/sh\ncat >>effects\ncat <<'END'\n" + quoted(hostile) + "\nEND\ncat >&2 <<'END'\n" + hostile + "\nEND\n"
	printing := "#!/bin/sh\ncat <<'END'\n" + hostile + "\nAGENT_EVENT " + `{"type":"progress","message":` + quoted(hostile) + `,"data":{` + quoted(hostileName) + `:1,"done":1,"of":9}}` +
		"\nAGENT_EVENT " + `{"type":"progress","message":` + quoted(hostile) + `,"data":{` + quoted(hostileName) + `:2,"done":2,"of":9}}` + "\nAGENT_EVENT " + `{"type":` + quoted(hostileName) + `}` + "\nAGENT_EVENT " + `{"type":"end"}` +
		"\nEND\ncat >&2 <<'END'\n" + hostile + "\nEND\nexec sleep 100000\n"
	return daemontest.Start(t, daemontest.Options{Files: map[string]string{"placet.yaml": config, "hostile.sh": script, "printing.sh": printing}})
}

// Whatever others write is text: it runs nothing, leads nowhere, and shows what in it cannot
// be seen.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w := strange(t)
	ctx := t.Context()
	arg, err := json.Marshal(map[string]any{"order_id": hostile, "a": hostile, hostile: map[string]any{hostile: []string{hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	agent := httpapi.NewClient(w.URL, secret(t, w, token.Agent, "\"><img src=x onerror=pwned=1>").Secret)
	pending, err := agent.Call(ctx, "refund", arg, "")
	if err != nil {
		t.Fatal(err)
	}
	yes, no := w.Call("refund", string(arg)), w.Call("refund", `{"order_id":"o-7"}`)
	decideAs(t, w.Reviewer, no, false, hostile)
	decideAs(t, httpapi.NewClient(w.URL, secret(t, w, token.Reviewer, "</span><img src=x onerror=pwned=1>").Secret), yes, true, hostile)
	w.Ended(yes.CallID)
	j := printing(t, w)
	form, err := json.Marshal(map[string]any{"type": "object", "title": hostile, "properties": map[string]any{
		hostileName: map[string]any{"type": "string", "title": hostile, "description": hostile, "default": hostile},
		"b":         map[string]any{"type": "string", "enum": []string{hostile, "b"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := w.Agent.Ask(ctx, j.JobID, httpapi.Asking{Prompt: hostile, Options: []string{hostileName, "<b>stop</b>"}, Form: form})
	if err != nil {
		t.Fatal(err)
	}
	answered := w.Ask(j.JobID, hostile, hostileName, "b")
	if _, err := w.Reviewer.Resolve(ctx, j.JobID, answered.DecisionID, httpapi.Resolving{Choice: hostileName, Digest: answered.Digest, Note: hostile}); err != nil {
		t.Fatal(err)
	}
	r := w.StartRun(hostile)
	if _, err := w.Operator.RegisterRelay(ctx, httpapi.Registering{Name: hostileName, Events: []string{"approval.requested"}}); err != nil {
		t.Fatal(err)
	}
	last := w.Call("refund", string(arg))
	ds, err := w.Admin.Deliveries(ctx, httpapi.DeliveryQuery{Limit: 1})
	if err != nil || len(ds.Deliveries) != 1 {
		t.Fatalf("%v %v", ds, err)
	}
	p := browsertest.New(t)
	signIn(t, w, p, token.Reviewer, "ana")
	for _, path := range hostilePages(pending, yes, no, last, j, q, answered, r.RunID, r.PendingApproval, ds.Deliveries[0]) {
		harmless(t, p, w, path)
	}
	refusedWith(t, p, w, last)
}

// printing is a job that has told all that it tells.
func printing(t *testing.T, w *daemontest.World) httpapi.Job {
	t.Helper()
	command, err := json.Marshal([]string{filepath.Join(w.Dir, "printing.sh"), "<img src=x onerror=pwned=1>"})
	if err != nil {
		t.Fatal(err)
	}
	j := w.Job(httpapi.Starting{Name: hostileName, Tags: []string{hostileName}, Command: command, Env: map[string]string{"A": hostile}})
	got, err := w.Agent.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"output:end"}})
	if err != nil || got.Event == nil {
		t.Fatalf("%+v %v", got, err)
	}
	return j
}

func hostilePages(pending, yes, no, last httpapi.Result, j httpapi.Job, q, answered httpapi.Question, runID, stepApproval string, d delivery.DeliveryObject) (paths []string) {
	for _, r := range []httpapi.Result{pending, yes, no, last} {
		paths = append(paths, "/approvals/"+r.ApprovalID, "/approvals/"+r.ApprovalID+"?open=1", "/calls/"+r.CallID, "/events?stream=call:"+r.CallID)
	}
	return append(paths,
		"/", "/?q="+url.QueryEscape(hostileName), "/?tool="+url.QueryEscape(hostile), "/decided", "/approvals/"+pending.ApprovalID+"/edit", "/approvals/"+pending.ApprovalID+"/edit?as=text",
		"/approvals/"+stepApproval, "/questions/"+q.DecisionID, "/questions/"+answered.DecisionID, "/jobs", "/jobs/"+j.JobID, "/jobs/"+j.JobID+"/output?stream=stdout", "/jobs/"+j.JobID+"/output?stream=stderr",
		"/jobs?name="+url.QueryEscape(hostile), "/runs", "/runs/"+runID, "/events", "/events?stream="+url.QueryEscape(hostile), "/events?stream=job:"+j.JobID, "/events?stream=run:"+runID,
		"/deliveries", "/deliveries/"+d.DeliveryID, "/nothing/"+url.PathEscape(hostile), "/approvals/"+url.PathEscape(hostileName),
	)
}

// harmless opens a page and looks whether anything of it is more than text.
func harmless(t *testing.T, p *browsertest.Page, w *daemontest.World, path string) {
	t.Helper()
	p.Forget()
	p.Open(w.URL + path)
	shown := fmt.Sprintf("%.90q", path)
	bad := browsertest.Eval[[]string](p, `(() => {
		const bad = [];
		if (window.pwned !== undefined) bad.push("a script of theirs ran");
		for (const el of document.querySelectorAll("script, img, iframe, object, embed, style, link, base, meta[http-equiv], svg, form, a[href]")) {
			const to = el.getAttribute("href") ?? el.getAttribute("src") ?? el.getAttribute("action") ?? "";
			const ours = el.localName === "script" || el.localName === "link" ? to.startsWith("/assets/") || to === "data:,"
				: el.localName === "svg" ? el.classList.contains("chart") : el.localName === "form" || el.localName === "a" ? to.startsWith("/") && !to.startsWith("//") || to === "#main" : false;
			if (!ours) bad.push(el.outerHTML.slice(0, 200));
		}
		for (const el of document.querySelectorAll("*")) for (const a of el.attributes) if (a.name.startsWith("on") || a.name === "style") bad.push(el.outerHTML.slice(0, 200));
		const copy = document.documentElement.cloneNode(true);
		for (const el of copy.querySelectorAll("textarea")) el.textContent = "";
		for (const el of copy.querySelectorAll("input[value], option[value]")) el.removeAttribute("value");
		const at = copy.outerHTML.search(`+unseen+`);
		if (at >= 0) bad.push("an unseen character: …" + copy.outerHTML.slice(Math.max(0, at - 80), at + 20));
		return bad;
	})()`)
	for _, b := range bad {
		t.Errorf("%s: %s", shown, b)
	}
	if n := p.Count("h1"); n != 1 {
		t.Errorf("%s has %d headings", shown, n)
	}
	if said := p.Dialogs(); len(said) > 0 || len(p.Violations()) > 0 || len(p.Foreign(w.URL)) > 0 {
		t.Errorf("%s: dialogs %q, violations %+v, requests elsewhere %v", shown, said, p.Violations(), p.Foreign(w.URL))
	}
	for _, wide := range p.Overflow() {
		t.Errorf("%s is wider than the window: %s", shown, wide)
	}
}

// refusedWith looks at what a reviewer of such a name is shown, and others of them.
func refusedWith(t *testing.T, p *browsertest.Page, w *daemontest.World, r httpapi.Result) {
	t.Helper()
	p.Open(pageOf(w, r.ApprovalID) + "?open=1")
	keep(p)
	decideAs(t, httpapi.NewClient(w.URL, secret(t, w, token.Reviewer, "<img src=x onerror=pwned=1>").Secret), r, false, hostile)
	p.WaitText(decideTitle, "Rejected")
	browsertest.Eval[bool](p, `(document.querySelector("main").append(window.kept), true)`)
	p.Follow("form.answers " + approveIt)
	says(t, p.Text(".notice.refused"), "It was rejected by <img src=x onerror=pwned=1> on")
	if browsertest.Eval[bool](p, "window.pwned !== undefined || document.images.length > 0") {
		t.Error("a name became a part of the page")
	}
	if o := approval(t, w, r.ApprovalID); o.Status != decision.Rejected {
		t.Errorf("it is %s", o.Status)
	}
}
