package inbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

func decisionOf(w *world, id string) (d decision.Decision, err error) {
	err = txn.View(w.t.Context(), w.st, func(tx decision.Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	return d, err
}

// Whoever is not signed in is led to one plain form, and from there to where they wanted.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":5}`)
	b := w.browser()
	p := b.get("/").want(200)
	if p.path != "/sign-in" || len(p.elements("form")) != 1 {
		t.Errorf("/ leads to %s with %d forms", p.path, len(p.elements("form")))
	}
	for _, at := range []string{"/approvals/" + d.ID, "/decided", "/live?on=queue", "/nothing", "/approvals/" + d.ID + "/edit"} {
		if p := b.get(at); !strings.HasPrefix(p.path, "/sign-in") || strings.Contains(p.text, "refund") {
			t.Errorf("%s leads nobody to %s", at, p.path)
		}
	}
	p = b.get("/approvals/" + d.ID + "?open=1")
	f := p.form("/sign-in")
	b.post("/sign-in", with(f, "token", "placet_nonsense")).want(401).has("That is no valid token.")
	b.post("/sign-in", with(f, "token", "")).want(401)
	b.post("/sign-in", with(f, "token", w.agent)).want(403).has("agents never decide", "--scope reviewer")
	p = b.post("/sign-in", with(f, "token", w.token(token.Reviewer, "ana"))).want(200)
	if p.path != "/approvals/"+d.ID+"?open=1" {
		t.Errorf("it leads to %s", p.path)
	}
	p.has("Approve this call?", "ana", "reviewer")
	p = b.post("/sign-out", trim(p.form("/sign-out"))).want(200).has("You are signed out")
	b.post("/sign-in", with(p.form("/sign-in"), "token", " "+w.token(token.Reviewer, "cara")+"\n")).want(200).has("cara") // as it is pasted
	if p := b.get("/sign-in"); p.path != "/" {
		t.Errorf("who is signed in is asked again at %s", p.path)
	}
}

// What somebody sends whose sign-in has ended is not recorded, and they are told so and led
// back to where they were.
func TestAnAnswerAfterTheSignInEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	f := b.get(at).form(at)
	out := b.get("/").form("/sign-out")
	b.post("/sign-out", out).want(200)
	p := b.post(at, with(f, "answer", "reject", "note", "no")).want(200).has("Your sign-in has ended", "What you sent was not recorded.")
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Fatalf("it is %s", got.Status)
	}
	if p = b.post("/sign-in", with(p.form("/sign-in"), "token", w.token(token.Reviewer, "ana"))).want(200); p.path != at {
		t.Errorf("it leads to %s", p.path)
	}
	if p := w.browser().post("/deliveries/dlv_1/retry", out); p.form("/sign-in").Get("to") != "/deliveries/dlv_1" {
		t.Errorf("a delivery's button leads to %q", p.form("/sign-in").Get("to"))
	}
	if p := w.browser().post("/sign-out", out); p.form("/sign-in").Get("to") != "/" {
		t.Errorf("a sign-out leads to %q", p.form("/sign-in").Get("to"))
	}
}

// A sign-in leads to our own pages only.
func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	secret := w.token(token.Reviewer, "ana")
	for _, to := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "evil", "/\t/evil.example", ""} {
		if p := w.browser().post("/sign-in", url.Values{"token": {secret}, "to": {to}}); p.path != "/" || p.status != 200 {
			t.Errorf("%q leads to %s", to, p.path)
		}
	}
}

// signedIn is the cookie that a sign-in sets.
func signedIn(w *world, secret string, headers ...string) *http.Cookie {
	w.t.Helper()
	b := w.browser()
	b.c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := b.do(http.MethodPost, "/sign-in", url.Values{"token": {secret}}, headers...)
	res := http.Response{Header: p.header}
	if cs := res.Cookies(); len(cs) == 1 {
		return cs[0]
	}
	w.t.Fatalf("%d: it sets %q", p.status, p.header.Values("Set-Cookie"))
	return nil
}

func TestCookie(t *testing.T) {
	t.Parallel()
	w := setup(t)
	secret := w.token(token.Reviewer, "ana")
	c := signedIn(w, secret)
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure || c.Name != "placet" || c.MaxAge <= 0 {
		t.Errorf("the cookie is %+v", c)
	}
	if strings.Contains(c.Value, secret) {
		t.Error("it holds the token")
	}
	overTLS := signedIn(w, secret, "X-Forwarded-Proto", "https")
	if overTLS.Name != "__Host-placet" || !overTLS.Secure || !overTLS.HttpOnly {
		t.Errorf("over TLS it is %+v", overTLS)
	}
	if overTLS.Value == c.Value {
		t.Error("two sign-ins have one key")
	}
	var in token.SignIn
	err := txn.View(t.Context(), w.st, func(tx token.Tx) (err error) {
		in, err = tx.SignIn(c.Value)
		return err
	})
	if err == nil {
		t.Errorf("the store holds the key itself: %+v", in)
	}
}

// Signing in gives a key that nobody has seen before, whatever cookie was there.
func TestNoFixation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.browser()
	u, _ := url.Parse(w.http.URL)
	b.c.Jar.SetCookies(u, []*http.Cookie{{Name: "placet", Value: "planted"}})
	b.post("/sign-in", url.Values{"token": {w.token(token.Reviewer, "ana")}}).want(200)
	first := b.c.Jar.Cookies(u)[0].Value
	b.post("/sign-in", url.Values{"token": {w.token(token.Reviewer, "ben")}}).want(200)
	second := b.c.Jar.Cookies(u)[0].Value
	if first == "planted" || second == first {
		t.Errorf("the keys are %q and %q", first, second)
	}
	b.c.Jar.SetCookies(u, []*http.Cookie{{Name: "placet", Value: first}})
	if p := b.get("/"); p.path != "/sign-in" {
		t.Errorf("the first key is good at %s", p.path)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	u, _ := url.Parse(w.http.URL)
	key := b.c.Jar.Cookies(u)
	if p := b.post("/sign-out", url.Values{}); p.status != 403 {
		t.Errorf("without a form of ours it answers %d", p.status)
	}
	b.post("/sign-out", b.get("/").form("/sign-out"))
	if p := b.get("/"); p.path != "/sign-in" {
		t.Errorf("still at %s", p.path)
	}
	b.c.Jar.SetCookies(u, key)
	if p := b.get("/"); p.path != "/sign-in" {
		t.Errorf("the old key is good at %s", p.path)
	}
}

// A sign-in ends when its token is revoked, by whatever process.
func TestRevokedWhileSignedIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":5}`)
	b := w.as(token.Reviewer, "ana")
	f := b.get("/approvals/" + d.ID).form("/approvals/" + d.ID)
	ts, err := token.List(t.Context(), w.st, token.Query{Space: event.MainSpace, Principal: "ana"})
	if err != nil || len(ts) != 1 {
		t.Fatal(ts, err)
	}
	if _, err := token.Revoke(t.Context(), w.st, event.MainSpace, ts[0].ID); err != nil {
		t.Fatal(err)
	}
	if p := b.post("/approvals/"+d.ID, with(f, "answer", "approve")); !strings.HasPrefix(p.path, "/sign-in") {
		t.Errorf("it leads to %s", p.path)
	}
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
}

// A sign-in ends when it is not used for so long, and when it is too old however often
// it is used.
func TestSignInsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps []time.Duration
		in    bool
	}{
		"used in time": {[]time.Duration{50 * time.Minute}, true},
		"not used":     {[]time.Duration{61 * time.Minute}, false},
		"too old":      {[]time.Duration{12*time.Hour + time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &placettest.Clock{}
			clock.Set(time.Now())
			w := setupAt(t, &sqlite.Options{Now: clock.Now})
			b := w.as(token.Reviewer, "ana")
			for _, d := range c.steps {
				clock.Advance(d)
			}
			if p := b.get("/"); (p.path == "/") != c.in {
				t.Errorf("it leads to %s", p.path)
			}
		})
	}
	t.Run("an absolute limit", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *inbox.Config) { c.Longest, c.Idle = time.Nanosecond, time.Hour })
		b := w.browser()
		if p := b.post("/sign-in", url.Values{"token": {w.token(token.Reviewer, "ana")}}); !strings.HasPrefix(p.path, "/sign-in") {
			t.Errorf("it leads to %s", p.path)
		}
	})
}

// Each scope is let in, or not, and may do what it may.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", `{"order":"o-7","amount":5}`)
	for scope, decides := range map[token.Scope]bool{token.Reviewer: true, token.Admin: true, token.Operator: false} {
		b := w.as(scope, "the "+string(scope))
		p := b.get("/approvals/" + d.ID).want(200)
		if got := len(p.buttons("/approvals/"+d.ID)) > 0; got != decides {
			t.Errorf("%s is offered buttons: %t", scope, got)
		}
		if !decides {
			f := p.form("/sign-out")
			b.post("/approvals/"+d.ID, with(f, "answer", "approve", "digest", d.Digest)).want(403)
		}
	}
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
}
