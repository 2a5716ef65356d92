package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
)

// withPages is a server with pages that say what reached them.
func withPages(t *testing.T) (w *world, reached chan string) {
	t.Helper()
	w = setup(t)
	reached = make(chan string, 100)
	w.api.Pages(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, fault.From(err).Message, http.StatusRequestEntityTooLarge)
			return
		}
		reached <- r.Method + " " + r.URL.Path + " " + string(b)
	}))
	return w, reached
}

// Pages answer whatever is not the API's, for the server's own name, and for nothing that
// another site sends but a link that somebody follows.
func TestPages(t *testing.T) {
	t.Parallel()
	w, reached := withPages(t)
	for _, at := range []string{"/v1", "/v1/", "/v1/nothing", "/healthz", "/readyz"} {
		w.do("", "GET", at, "")
	}
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for name, c := range map[string]struct {
		method  string
		headers []string
	}{
		"another host":           {"GET", []string{"Host", "evil.example"}},
		"a form of another site": {"POST", append([]string{"Origin", "http://evil.example"}, link...)},
		"a form without origin":  {"POST", append([]string{"Origin", "null"}, link...)},
		"another port":           {"POST", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		"a frame":                {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		"a fetch":                {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
		"an image":               {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}},
	} {
		if r := w.do("", c.method, "/approvals/apr_1", "", c.headers...); r.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, r.status)
		}
	}
	if len(reached) > 0 {
		t.Fatalf("the pages saw %s", <-reached)
	}
	w.want(w.do("", "GET", "/approvals/apr_1", "", link...), 200)
	w.want(w.do("", "HEAD", "/", ""), 200)
	w.want(w.do("", "POST", "/sign-in", "token=x", "Content-Type", "application/x-www-form-urlencoded"), 200)
	for _, want := range []string{"GET /approvals/apr_1 ", "HEAD / ", "POST /sign-in token=x"} {
		if got := <-reached; got != want {
			t.Errorf("the pages saw %q, want %q", got, want)
		}
	}
	if text := w.do("admin", "GET", "/metrics", "").text; !strings.Contains(text, `placet_http_requests_total{operation="pages",status="200"} 3`) {
		t.Error("pages are not counted")
	}
}

// An answer of the API is no page, and is shown in nobody's frame.
func TestAnswersAreNoPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, at := range []string{"/healthz", "/v1/whoami", "/v1/nothing"} {
		h := w.do("", "GET", at, "").header
		if !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is answered with %v", at, h)
		}
	}
}

// What is read of a form is bounded in size and time, whoever sends it (case 161).
func TestLargeForms(t *testing.T) {
	t.Parallel()
	w, reached := withPages(t)
	w.api.SetPatience(soon, 0, soon)
	r, err := w.send("", "POST", "/", strings.NewReader(strings.Repeat("x", httpapi.MaxForm+1)))
	if err != nil || r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large form: %d, %v", r.status, err)
	}
	l := w.line()
	l.say("POST / HTTP/1.1\r\nHost: " + w.http.Listener.Addr().String() + "\r\nContent-Length: 1000\r\n\r\nslow")
	if got := l.answer(); got.status != http.StatusRequestEntityTooLarge || !strings.Contains(got.text, "within") {
		t.Errorf("a slow form: %d %s", got.status, got.text)
	}
	if len(reached) > 0 {
		t.Errorf("the pages took %.40s", <-reached)
	}
}

// A client in the name of a token has its rights, no longer than the token is good.
func TestAs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx := t.Context()
	parked := w.park("agent")
	made, _, err := token.Create(ctx, w.st, token.New{Space: event.MainSpace, Scope: token.Reviewer, Name: "vera"})
	if err != nil {
		t.Fatal(err)
	}
	c := w.api.As(made)
	who, err := c.Whoami(ctx)
	if err != nil || who.Principal != "vera" {
		t.Fatalf("it is %+v, %v", who, err)
	}
	agent, _, err := token.Create(ctx, w.st, token.New{Space: event.MainSpace, Scope: token.Agent, Name: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	id, digest := parked.get("approval_id"), parked.get("digest")
	if err := w.api.As(agent).ApproveShown(ctx, "", id, digest, "bot", ""); fault.From(err) == nil || fault.From(err).Code != fault.Forbidden {
		t.Errorf("an agent decides: %v", err)
	}
	if err := c.ApproveShown(ctx, "", id, digest, "vera", "fine"); err != nil {
		t.Fatal(err)
	}
	if d, err := (decision.Operator{Store: w.st}).Show(ctx, id); err != nil || d.DecidedPrincipal != "vera" || !d.Verified {
		t.Errorf("it was decided as %q, verified %t: %v", d.DecidedPrincipal, d.Verified, err)
	}
	if _, err := token.Revoke(ctx, w.st, event.MainSpace, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Whoami(ctx); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("a revoked token: %v", err)
	}
	if _, err := w.api.As(token.Token{ID: "tok_nobody"}).Whoami(ctx); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("no token at all: %v", err)
	}
}
