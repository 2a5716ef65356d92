package inbox_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// hostile is text that would do something if anything of it reached a page as it is:
// markup, what browsers and templates read as more, and what cannot be seen (cases 113,
// 115, 117).
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)> [approve](javascript:alert(3)) <https://evil.example|approve> {{7*7}} ${x} ` +
	"`x` '\"&lt; https://evil.example \u202egnp.exe \u200b\u00ad\ufeff\u2060 \U000e0041 \ufe0f \u3164 \u061c \r \x1b[2K\x1b]8;;https://evil.example\x07 \x7f \u0085"

// plain is hostile where controls are not taken at the door.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == 0x85 {
			return -1
		}
		return r
	}, s)
}

// unseen are the characters that must never reach a page as they are.
var unseen = regexp.MustCompile("[\u202e\u200b\u00ad\ufeff\u2060\U000e0041\ufe0f\u3164\u061c\x1b\x07\x7f\u0085]")

// ourLinks is where the pages of an inbox may lead to.
var ourLinks = regexp.MustCompile(`^(/[A-Za-z0-9_?=&%.:,+#-]*)+$|^#main$`)

// checkHostile fails where a page has markup, a link or a script that came from data.
func checkHostile(t *testing.T, p *page) {
	t.Helper()
	for n := range p.doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "textarea" { // there stands what somebody typed
			if got := unseen.FindString(n.Data); got != "" {
				t.Errorf("%s shows %+q as it is", p.path, got)
			}
		}
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "img", "iframe", "object", "embed", "base", "style", "math", "audio", "video", "source":
			t.Errorf("%s has an element %s", p.path, n.Data)
		case "svg":
			if attr(n, "class") != "chart" {
				t.Errorf("%s has a drawing that is not ours", p.path)
			}
		case "script":
			if n.FirstChild != nil || !strings.HasPrefix(attr(n, "src"), "/assets/") {
				t.Errorf("%s has a script of its own", p.path)
			}
		}
		for _, a := range n.Attr {
			switch {
			case a.Key != "value" && unseen.MatchString(a.Val): // values are sent as they are, and not shown
				t.Errorf("%s has the attribute %s=%+q", p.path, a.Key, a.Val)
			case strings.HasPrefix(a.Key, "on") || a.Key == "style":
				t.Errorf("%s has the attribute %s=%q", p.path, a.Key, a.Val)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action") && !ourLinks.MatchString(a.Val) && a.Val != "data:,":
				t.Errorf("%s leads to %q", p.path, a.Val)
			}
		}
	}
}

// Text in every field that can carry some is shown, and is nothing but text.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	args, err := json.Marshal(map[string]any{"order": hostile, "amount": 5, "note": strings.Repeat(hostile, 20), "lines": []any{hostile, map[string]string{hostile: hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	w.agent = w.token(token.Agent, plain(hostile)[:60])
	approval := w.park("refund", string(args))
	before := w.park("refund", small)
	people := decision.Operator{Store: w.st, Principal: "ben"}
	if err := people.ApproveShown(t.Context(), "", before.ID, before.Digest, hostileLabel, hostile); err != nil {
		t.Fatal(err)
	}
	after := w.park("refund", string(args))
	rejected := w.park("wipe", `{"`+`a`+`":`+string(mustJSON(hostile))+`}`)
	if err := people.RejectShown(t.Context(), "", rejected.ID, rejected.Digest, hostileLabel, hostile); err != nil {
		t.Fatal(err)
	}
	form := `{"type":"object","properties":{"x":{"type":"string","title":` + string(mustJSON(hostile)) + `,"description":` + string(mustJSON(hostile)) + `},` + string(mustJSON(hostile)) + `:{"type":"string","enum":[` + string(mustJSON(hostile)) + `]}}}`
	q := w.ask(decision.Asking{Prompt: hostile, Options: []string{plain(hostile)[:150], "yes"}, Form: []byte(form), By: "bot"})
	answered := w.ask(decision.Asking{Prompt: hostile, Options: []string{plain(hostile)[:150], "yes"}, By: "bot"})
	if _, err := people.Resolve(t.Context(), "", answered.ID, decision.Answering{Choice: answered.Options[0], By: hostileLabel, Note: hostile}); err != nil {
		t.Fatal(err)
	}
	b := w.as(token.Reviewer, hostileLabel)
	for _, at := range []string{
		"/", "/?q=" + url.QueryEscape(plain(hostile)[:100]), "/?kind=" + url.QueryEscape(plain(hostile)), "/?tool=" + url.QueryEscape(plain(hostile)), "/decided", "/decided?q=" + url.QueryEscape(plain(hostile)[:100]), "/decided?how=" + url.QueryEscape(plain(hostile)),
		"/approvals/" + approval.ID, "/approvals/" + approval.ID + "?open=1", "/approvals/" + approval.ID + "/edit", "/approvals/" + approval.ID + "/edit?as=text",
		"/approvals/" + before.ID, "/approvals/" + after.ID + "?open=1", "/approvals/" + rejected.ID, "/questions/" + q.ID, "/questions/" + answered.ID,
		"/approvals/" + url.PathEscape(plain(hostile)[:80]), "/questions/" + url.PathEscape(plain(hostile)[:80]), "/" + url.PathEscape(plain(hostile)[:80]), "/sign-in?to=" + url.QueryEscape(hostile),
	} {
		checkHostile(t, b.get(at))
	}
	at := "/approvals/" + approval.ID
	for _, way := range []string{"", "?as=text"} { // what is there to be edited is seen, too
		if got := unseen.FindString(b.get(at + "/edit" + way).raw); got != "" {
			t.Errorf("the form has %+q as it is", got)
		}
	}
	f := trim(b.get(at + "/edit").form(at + "/edit"))
	checkHostile(t, b.post(at+"/edit", with(f, "arg.order", plain(hostile), "answer", "look")))
	checkHostile(t, b.post(at+"/edit", with(f, "arg.lines", plain(hostile), "answer", "look")))
	checkHostile(t, b.post(at, with(b.get(at).form(at), "answer", plain(hostile))))
	checkHostile(t, b.post("/questions/"+q.ID, with(b.get("/questions/"+q.ID).form("/questions/"+q.ID), "answer", "0", "arg.x", plain(hostile), "note", plain(hostile))))
	checkHostile(t, w.browser().post("/sign-in", url.Values{"token": {hostile}, "to": {hostile}}))
	// What is shown of it is all of it, and marked.
	b.get(at+"?open=1").has("<script>alert(1)</script>", "[approve](javascript:alert(3))", "{{7*7}}", `\u{202e}`, `\u{200b}`, `\u{1b}`, "characters that cannot be seen", "U+202E RIGHT-TO-LEFT OVERRIDE")
}

const hostileLabel = `<b onclick="x">ana</b> [x](javascript:y)`

func mustJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// Every answer tells a browser to run and load nothing but what is ours, and each has a
// nonce of its own.
func TestGuards(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	b := w.as(token.Reviewer, "ana")
	nonces := map[string]bool{}
	for _, at := range []string{"/", "/sign-in", "/decided", "/approvals/" + d.ID, "/approvals/apr_nothing", "/nothing", "/live?on=x&what=nonsense"} {
		p := b.get(at)
		csp := p.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "script-src 'nonce-"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q has no %s", at, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", at, csp)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
			if got := p.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", at, name, got)
			}
		}
		for _, n := range append(p.elements("script"), p.elements("link")...) {
			if nonce := attr(n, "nonce"); nonce != "" {
				nonces[nonce] = true
			} else if attr(n, "rel") != "icon" {
				t.Errorf("%s loads something without a nonce", at)
			}
		}
	}
	if len(nonces) < 5 {
		t.Errorf("%d nonces", len(nonces))
	}
	for _, m := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		if p := b.do(m, "/approvals/"+d.ID, nil); p.status < 400 {
			t.Errorf("%s answers %d", m, p.status)
		}
	}
	b.get("/approvals/apr_nothing").want(404)
	b.get("/questions/" + d.ID).want(404)
	b.get("/nothing").want(404).has("There is no page /nothing.")
}

// Whatever fetches a link changes nothing, however often (case 130).
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.park("refund", small)
	long := w.park("refund", `{"order":"`+strings.Repeat("x", 2000)+`","amount":5}`)
	w.ask(decision.Asking{Prompt: "Go on?", Timeout: time.Hour, By: "bot"})
	if err := (decision.Operator{Store: w.st, Principal: "ben"}).ApproveShown(t.Context(), "", long.ID, long.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	b := w.as(token.Reviewer, "ana")
	b.c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	nobody := w.browser()
	nobody.c.CheckRedirect = b.c.CheckRedirect
	before := w.state()
	todo, seen := []string{"/"}, map[string]bool{}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if at, _, _ = strings.Cut(at, "#"); at == "" || seen[at] || strings.HasPrefix(at, "/live") || len(seen) > 300 {
			continue
		}
		seen[at] = true
		p := b.get(at)
		todo = append(todo, p.links()...)
		for _, f := range p.elements("form") { // a form's address is a link to a scanner
			todo = append(todo, attr(f, "action"), attr(f, "action")+"?answer=approve&digest="+long.Digest)
		}
		for _, m := range []string{http.MethodHead, http.MethodOptions, http.MethodGet} {
			b.do(m, at, nil, "Purpose", "prefetch", "Sec-Purpose", "prefetch")
			nobody.do(m, at, nil)
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %d pages were found", len(seen))
	}
	if after := w.state(); after != before {
		t.Errorf("what is stored was %s and is %s", before, after)
	}
}

// state is how many events there are, and where each decision stands.
func (w *world) state() string {
	w.t.Helper()
	var s string
	err := txn.View(w.t.Context(), w.st, func(tx decision.Tx) error {
		heads, err := tx.Heads("", 500)
		s = ""
		for _, h := range heads {
			if !strings.HasPrefix(h.Stream, "job:") { // those go on by themselves
				s += h.String() + "\n"
			}
		}
		if err != nil {
			return err
		}
		ds, err := tx.Decisions(decision.Query{Space: event.MainSpace, Limit: 500})
		for _, d := range ds {
			s += d.ID + " " + string(d.Status) + "\n"
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}
