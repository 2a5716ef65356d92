package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// Way is how a page of another site makes the browser send something.
type Way string

// The ways. Forms and links take the whole window; the others stay where they are.
const (
	Form          Way = "form"           // application/x-www-form-urlencoded
	FormMultipart Way = "form multipart" // multipart/form-data
	FormText      Way = "form text"      // text/plain, as what looks like JSON is sent
	Link          Way = "link"           // a GET of the whole window
	Fetch         Way = "fetch"          // with cookies; the answer cannot be read (no-cors)
	FetchJSON     Way = "fetch json"     // with cookies, application/json; the browser asks before (cors)
	Beacon        Way = "beacon"
	Image         Way = "image"
	Script        Way = "script"
	Frame         Way = "frame" // the target is shown inside of the page
)

// Ways are all of them.
var Ways = []Way{Form, FormMultipart, FormText, Link, Fetch, FetchJSON, Beacon, Image, Script, Frame}

// moves reports whether the whole window goes to the target.
func (w Way) moves() bool { return slices.Contains([]Way{Form, FormMultipart, FormText, Link}, w) }

// Attack is something that a page of another site tries.
type Attack struct {
	Way    Way
	Target string
	Method string     // of forms and fetches; default: POST
	Fields url.Values // what forms and fetches send
}

// Outcome is what came of an attack.
type Outcome struct {
	Requests []Request // that were made to the target's origin, those included by which the browser asks before
	Said     string    // what the attacking page could tell of it: loaded, opaque, the text of an answer, or an error
	Text     string    // what the window shows in the end
	Framed   bool      // the target is shown inside of the attacking page
}

// Cookies are the names of all cookies that went to the target.
func (o Outcome) Cookies() (names []string) {
	for _, r := range o.Requests {
		names = append(names, r.Cookies()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Attacker is a server on this machine that another site's owner would have.
type Attacker struct{ port string }

// NewAttacker serves it until the test ends.
func NewAttacker(tb testing.TB) *Attacker {
	tb.Helper()
	page, err := scripts.ReadFile("js/attack.html")
	if err != nil {
		tb.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // the browser may have left
	}))
	tb.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		tb.Fatal(err)
	}
	return &Attacker{port: u.Port()}
}

// Origins are the addresses at which it can be opened. To what is served at 127.0.0.1, the
// first two are other sites, and the last is of the same site, from another port.
func (a *Attacker) Origins() []string {
	return []string{"http://evil.test:" + a.port, "http://localhost:" + a.port, "http://127.0.0.1:" + a.port}
}

// Run opens the attacker's page at one of its origins, in the session of p, and has it
// try. It returns once it is clear what came of it.
func (a *Attacker) Run(p *Page, origin string, at Attack) (o Outcome) {
	p.tb.Helper()
	if at.Method == "" {
		at.Method = http.MethodPost
	}
	order, err := json.Marshal(map[string]any{"way": at.Way, "target": at.Target, "method": at.Method, "fields": at.Fields})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.Open(origin + "/")
	p.Forget()
	p.must(fmt.Sprintf("attack %s by %s from %s", at.Target, at.Way, origin), func(ctx context.Context) (err error) {
		before := p.rec.navigations()
		if o.Said, err = chromedp.Run(ctx, chromedp.Evaluate[string]("attack("+string(order)+")", chromedp.EvalAwaitPromise)); err != nil {
			return err
		}
		return until(ctx, func(context.Context) (string, error) { return p.settled(at, before), nil })
	})
	o.Requests = to(at.Target, p.Requests())
	for _, r := range o.Requests {
		o.Framed = o.Framed || at.Way == Frame && r.Type == "Document" && r.Failed == "" && r.Status > 0
	}
	o.Text = Eval[string](p, "document.body?.innerText ?? ''")
	return o
}

// settled says what is still to come; empty: nothing.
func (p *Page) settled(at Attack, before int) string {
	sent := to(at.Target, p.rec.requests())
	if len(sent) == 0 {
		return "nothing was sent"
	}
	for _, r := range sent {
		if r.Failed == "" && r.Status == 0 {
			return "there is no answer to " + r.String()
		}
	}
	last := sent[len(sent)-1]
	stays := last.Failed != "" || last.Status == http.StatusNoContent || last.Status == http.StatusResetContent
	if there, _ := p.rec.look(before); at.Way.moves() && !stays && !there {
		return "the window has not loaded"
	}
	return ""
}

// to are the requests to the origin of an address.
func to(address string, all []Request) []Request {
	target, err := url.Parse(address)
	return slices.DeleteFunc(all, func(r Request) bool {
		u, rerr := url.Parse(r.URL)
		return err != nil || rerr != nil || u.Host != target.Host || u.Scheme != target.Scheme
	})
}
