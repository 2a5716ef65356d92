package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bank is a site that signs everybody in, and that does whatever it is sent.
type bank struct {
	mu   sync.Mutex
	done string
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.URL.Path == "/login":
		http.SetCookie(w, &http.Cookie{Name: "strict", Value: "1", SameSite: http.SameSiteStrictMode})
		http.SetCookie(w, &http.Cookie{Name: "lax", Value: "1", SameSite: http.SameSiteLaxMode})
		write(w, "<h1>Signed in</h1>")
	case r.URL.Path == "/deny":
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
		write(w, "<h1>Not in frames</h1>")
	case r.URL.Path == "/nothing":
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/open":
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
		fmt.Fprint(w, "a secret")
	case r.Method == http.MethodPost:
		b.done += fmt.Sprintf("%s %s", strings.Split(r.Header.Get("Content-Type"), ";")[0], body)
		write(w, "<h1>Paid</h1>")
	default:
		write(w, "<h1>Account</h1>")
	}
}

// take is what was done since the last time.
func (b *bank) take() (done string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	done, b.done = b.done, ""
	return done
}

// What another site can do to one that trusts everybody, and what the browser keeps from it.
func TestAttacker(t *testing.T) {
	t.Parallel()
	const urlencoded = "application/x-www-form-urlencoded amount=9&to=me"
	for i := range 3 {
		b := &bank{}
		target, a := serve(t, b), NewAttacker(t)
		origin, sameSite := a.Origins()[i], i == 2
		t.Run([]string{"evil.test", "localhost", "same site"}[i], func(t *testing.T) {
			t.Parallel()
			p := New(t)
			p.Open(target + "/login")
			for _, tt := range []struct {
				way         Way
				path        string
				done        string   // what the bank did, in the beginning
				cookies     []string // that come from another site, and from the same
				same        []string
				said, shows string
			}{
				{Form, "/pay", urlencoded, nil, all, "sent", "Paid"},
				{FormMultipart, "/pay", "multipart/form-data ------", nil, all, "sent", "Paid"},
				{FormText, "/pay", "text/plain amount=9\r\nto=me", nil, all, "sent", "Paid"},
				{Link, "/pay", "", []string{"lax"}, all, "left", "Account"},
				{Link, "/nothing", "", []string{"lax"}, all, "left", "Another site"},
				{Fetch, "/pay", urlencoded, nil, all, "opaque", "Another site"},
				{FetchJSON, "/pay", "", nil, nil, "TypeError: Failed to fetch", "Another site"}, // the browser asks before, without cookies
				{FetchJSON, "/open", "", nil, all, "200 a secret", "Another site"},
				{Beacon, "/pay", urlencoded, nil, all, "sent", "Another site"},
				{Image, "/pay", "", nil, all, "error", "Another site"},
				{Script, "/pay", "", nil, all, "", "Another site"},
			} {
				o := a.Run(p, origin, Attack{Way: tt.way, Target: target + tt.path, Fields: url.Values{"to": {"me"}, "amount": {"9"}}})
				cookies, site := tt.cookies, "cross-site"
				if sameSite {
					cookies, site = tt.same, "same-site"
				}
				if got := o.Cookies(); !slices.Equal(got, cookies) {
					t.Errorf("%s of %s: cookies %q, not %q: %+v", tt.way, tt.path, got, cookies, fmt.Sprintf("%#v", o.Requests))
				}
				if done := b.take(); !strings.HasPrefix(done, tt.done) || tt.done == "" && done != "" {
					t.Errorf("%s of %s: the bank did %q", tt.way, tt.path, done)
				}
				if tt.said != "" && o.Said != tt.said || !strings.Contains(o.Text, tt.shows) || o.Framed {
					t.Errorf("%s of %s: %+v", tt.way, tt.path, o)
				}
				for _, r := range o.Requests {
					if got := r.Sent.Get("Sec-Fetch-Site"); r.Sent != nil && got != site {
						t.Errorf("%s of %s: Sec-Fetch-Site is %q in %v", tt.way, tt.path, got, r)
					}
				}
			}
		})
	}
}

var all = []string{"lax", "strict"}

func TestFraming(t *testing.T) {
	t.Parallel()
	target := serve(t, &bank{})
	a := NewAttacker(t)
	p := New(t)
	for _, origin := range a.Origins() {
		for path, framed := range map[string]bool{"/account": true, "/deny": false} {
			if o := a.Run(p, origin, Attack{Way: Frame, Target: target + path}); o.Framed != framed || o.Said != "loaded" {
				t.Errorf("%s in a frame of %s: %+v", path, origin, o)
			}
		}
	}
	mustSay(t, mustFail(t, p, func(p *Page) { a.Run(p, a.Origins()[0], Attack{Way: "telepathy", Target: target}) }), "there is no way telepathy")
}
