package inbox_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

const schema = `{"type":"object","additionalProperties":false,"required":["order","amount"],"properties":{
	"order":{"type":"string","description":"its number"},"amount":{"type":"integer","minimum":0},"currency":{"enum":["EUR","USD",3,null]},
	"notify":{"type":"boolean"},"note":{"type":"string"},"lines":{"type":"array","items":{"properties":{"n":{"type":"number"}}}},"password":{"type":"string"},
	"send_to":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":20}}}}`

// world is one test's own store with its API and inbox, on loopback.
type world struct {
	t     testing.TB
	st    *store.Store
	path  string // of its file
	api   *httpapi.Server
	pages *inbox.Inbox
	calls *call.Executor
	jobs  *job.Supervisor
	http  *httptest.Server
	agent string // a token's secret
	ran   *ran
}

// ran notes what a tool ran with.
type ran struct {
	mu   sync.Mutex
	args []string
}

func (r *ran) Run(_ context.Context, c tool.Call) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.args = append(r.args, string(c.Args))
	return json.RawMessage(`{"done":true}`), nil
}

func (r *ran) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.args...)
}

func setup(t testing.TB, change ...func(*inbox.Config)) *world { return setupAt(t, nil, change...) }

func setupAt(t testing.TB, o *sqlite.Options, change ...func(*inbox.Config)) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "placet.db")
	st, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	w := &world{t: t, st: st, path: path, ran: &ran{}}
	tools, err := tool.NewRegistry(
		tool.Tool{Spec: tool.Spec{Name: "refund", Description: "Refund an order.", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}, Run: w.ran},
		tool.Tool{Spec: tool.Spec{Name: "wipe", Description: "Wipe a disk.", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation}, Run: w.ran},
	)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	w.calls = call.NewExecutor(call.Config{Store: st, Tools: tools, Log: quiet})
	w.jobs = job.NewSupervisor(job.Config{Store: st, Dir: t.TempDir(), Program: []string{os.Args[0]}, Log: quiet})
	w.http = httptest.NewUnstartedServer(nil)
	w.api, err = httpapi.New(httpapi.Config{Store: st, Calls: w.calls, Tools: tools, Jobs: w.jobs, Log: quiet, Hosts: []string{w.http.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	c := inbox.Config{Store: st, Door: func(k token.Token) inbox.Door { return w.api.As(k) }}
	for _, f := range change {
		f(&c)
	}
	if w.pages, err = inbox.New(c); err != nil {
		t.Fatal(err)
	}
	w.api.Pages(w.pages)
	w.http.Config.Handler = w.api
	w.http.Start()
	t.Cleanup(w.http.Close)
	t.Cleanup(func() { _ = w.pages.Shutdown(context.Background()) })
	w.agent = w.token(token.Agent, "bot")
	return w
}

func (w *world) token(s token.Scope, name string) string {
	w.t.Helper()
	_, secret, err := token.Create(context.Background(), w.st, token.New{Space: event.MainSpace, Scope: s, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// park makes a call that waits for a person, and returns its approval.
func (w *world) park(name, args string) decision.Decision {
	w.t.Helper()
	var pending struct {
		ApprovalID string `json:"approval_id"`
	}
	c := httpapi.NewClient(w.http.URL, w.agent)
	if err := c.Do(w.t.Context(), http.MethodPost, "/v1/tools/"+name+"/call", json.RawMessage(args), &pending); err != nil {
		w.t.Fatal(err)
	}
	return w.read(pending.ApprovalID)
}

// ask makes a job that asks.
func (w *world) ask(q decision.Asking) decision.Decision {
	w.t.Helper()
	var j struct {
		ID string `json:"job_id"`
	}
	c := httpapi.NewClient(w.http.URL, w.agent)
	if err := c.Do(w.t.Context(), http.MethodPost, "/v1/jobs", json.RawMessage(`{"command":["cat"],"name":"train"}`), &j); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _, _ = w.jobs.Stop(context.Background(), j.ID, "test", time.Second) })
	asked, err := decision.Operator{Store: w.st, Principal: "bot"}.Ask(w.t.Context(), event.MainSpace, j.ID, q)
	if err != nil {
		w.t.Fatal(err)
	}
	return asked.Decision
}

func (w *world) read(id string) decision.Decision {
	w.t.Helper()
	d, err := decisionOf(w, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// browser is somebody's, with a cookie jar of its own.
type browser struct {
	w *world
	c *http.Client
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{w, &http.Client{Jar: jar}}
}

// as is a browser in which somebody has signed in.
func (w *world) as(s token.Scope, name string) *browser {
	w.t.Helper()
	b := w.browser()
	p := b.post("/sign-in", url.Values{"token": {w.token(s, name)}})
	if p.status != http.StatusOK || p.path != "/" {
		w.t.Fatalf("%s is not signed in: %d at %s: %s", name, p.status, p.path, p.text)
	}
	return b
}

func (b *browser) get(path string) *page {
	b.w.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

func (b *browser) post(path string, f url.Values) *page {
	b.w.t.Helper()
	return b.do(http.MethodPost, path, f)
}

func (b *browser) do(method, path string, f url.Values, headers ...string) *page {
	b.w.t.Helper()
	var body io.Reader
	if f != nil {
		body = strings.NewReader(f.Encode())
	}
	req, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.http.URL+path, body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	if f != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.c.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return read(b.w.t, res, raw)
}

// page is what a browser made of an answer.
type page struct {
	t      testing.TB
	status int
	path   string // where it led
	header http.Header
	raw    string
	text   string // what is shown, with single spaces
	doc    *html.Node
}

func read(t testing.TB, res *http.Response, raw []byte) *page {
	doc, err := html.Parse(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, status: res.StatusCode, path: res.Request.URL.RequestURI(), header: res.Header, raw: string(raw), doc: doc}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
			b.WriteString(n.Data + " ")
		}
	}
	p.text = strings.Join(strings.Fields(b.String()), " ")
	return p
}

// has fails where the page does not show a text.
func (p *page) has(texts ...string) *page {
	p.t.Helper()
	for _, s := range texts {
		if !strings.Contains(p.text, s) {
			p.t.Errorf("%s (%d) does not show %q: %s", p.path, p.status, s, p.text)
		}
	}
	return p
}

func (p *page) hasNot(texts ...string) *page {
	p.t.Helper()
	for _, s := range texts {
		if strings.Contains(p.text, s) {
			p.t.Errorf("%s (%d) shows %q: %s", p.path, p.status, s, p.text)
		}
	}
	return p
}

func (p *page) want(status int) *page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s answered %d, want %d: %s", p.path, p.status, status, p.text)
	}
	return p
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// elements are those with that name.
func (p *page) elements(name string) (all []*html.Node) {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			all = append(all, n)
		}
	}
	return all
}

// byID is the element of that id; nil: there is none.
func (p *page) byID(id string) *html.Node {
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == id {
			return n
		}
	}
	return nil
}

// links are where the page leads to.
func (p *page) links() (all []string) {
	for _, n := range p.elements("a") {
		all = append(all, attr(n, "href"))
	}
	return all
}

// form is what the form that goes to that path would send, as it was loaded.
func (p *page) form(action string) url.Values {
	p.t.Helper()
	for _, f := range p.elements("form") {
		if attr(f, "action") != action || attr(f, "method") != "post" {
			continue
		}
		v := url.Values{}
		for n := range f.Descendants() {
			if name := attr(n, "name"); name != "" && n.Data != "button" {
				fill(v, name, n)
			}
		}
		return v
	}
	p.t.Fatalf("%s has no form for %s: %s", p.path, action, p.text)
	return nil
}

func fill(v url.Values, name string, n *html.Node) {
	switch {
	case n.Data == "textarea":
		text := ""
		for c := range n.ChildNodes() {
			text += c.Data
		}
		v.Set(name, strings.ReplaceAll(text, "\n", "\r\n")) // as browsers send it
	case n.Data == "select":
		for o := range n.Descendants() {
			if o.Data == "option" && (hasAttr(o, "selected") || !v.Has(name)) {
				v.Set(name, attr(o, "value"))
			}
		}
	case attr(n, "type") == "checkbox" && !hasAttr(n, "checked"):
	default:
		v.Set(name, attr(n, "value"))
	}
}

// buttons are the values of what can be pressed in the form that goes to that path.
func (p *page) buttons(action string) (all []string) {
	for _, f := range p.elements("form") {
		if attr(f, "action") != action {
			continue
		}
		for n := range f.Descendants() {
			if n.Type == html.ElementNode && n.Data == "button" && !hasAttr(n, "hidden") {
				all = append(all, attr(n, "value"))
			}
		}
	}
	return all
}

func with(f url.Values, pairs ...string) url.Values {
	g := url.Values{}
	for k, v := range f {
		g[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		g.Set(pairs[i], pairs[i+1])
	}
	return g
}
