package browsertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func find(t *testing.T, list []Request, suffix string) Request {
	t.Helper()
	i := slices.IndexFunc(list, func(r Request) bool { return strings.HasSuffix(r.URL, suffix) })
	if i < 0 {
		t.Fatalf("no request for %s in %v", suffix, list)
	}
	return list[i]
}

// Every request shows, with what was sent and came back, wherever it went.
func TestRequests(t *testing.T) {
	t.Parallel()
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
	}))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "s", Value: "1", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/home", http.StatusSeeOther)
		case "/home":
			write(w, `<link rel=stylesheet href=/a.css><img src=/missing.png alt=""><img src="`+other+`/pixel" alt=""><img src="http://example.com/track.gif" alt="">
				<script>new EventSource('/stream'); fetch('/data', {method: 'POST', body: '{}'}).then(r => r.text()).then(s => { document.title = s })</script>`)
		case "/a.css":
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprint(w, strings.Repeat("p { color: red } ", 100))
		case "/data":
			fmt.Fprint(w, "got")
		case "/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	p := New(t)
	p.Open(url + "/")
	p.WaitUntil("document.title === 'got'")
	all := p.Requests()
	if r := find(t, all, url+"/"); r.Status != http.StatusSeeOther || r.Type != "Document" || r.Sent == nil || len(r.Cookies()) > 0 || !strings.Contains(r.Received.Get("Set-Cookie"), "s=1") || !r.Ended {
		t.Errorf("the redirect: %+v", r)
	}
	if r := find(t, all, "/home"); r.Status != 200 || !slices.Equal(r.Cookies(), []string{"s"}) || r.Bytes == 0 || r.Wire <= r.Bytes {
		t.Errorf("the page: %+v", r)
	}
	if r := find(t, all, "/a.css"); r.Type != "Stylesheet" || r.Bytes != 1700 || r.Failed != "" {
		t.Errorf("the sheet: %+v", r)
	}
	if r := find(t, all, "/data"); r.Type != "Fetch" || r.Method != http.MethodPost || r.Sent.Get("Sec-Fetch-Site") != "same-origin" {
		t.Errorf("the fetch: %+v", r)
	}
	if r := find(t, all, "/stream"); r.Type != "EventSource" || r.Ended {
		t.Errorf("the stream: %+v", r)
	}
	if got := urls(p.Foreign(url)); !slices.Equal(got, []string{other + "/pixel", "http://example.com/track.gif"}) {
		t.Errorf("foreign: %q", got)
	}
	if got := urls(p.Failed()); !slices.Equal(got, []string{url + "/missing.png", "http://example.com/track.gif"}) {
		t.Errorf("failed: %q", got)
	}
	mustSay(t, find(t, all, "track.gif").String(), "Image GET http://example.com/track.gif: net::ERR_NAME_NOT_RESOLVED")
	p.Forget()
	if got := p.Requests(); len(got) > 0 {
		t.Errorf("forgotten, and there: %v", got)
	}
	if got := p.Cookies(url + "/"); len(got) != 1 || got[0].Name != "s" || !got[0].HttpOnly || got[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", got)
	}
}

func urls(list []Request) (us []string) {
	for _, r := range list {
		us = append(us, r.URL)
	}
	slices.Sort(us)
	return us
}

// A page that only has its own assets has no foreign ones and no failures.
func TestQuietPage(t *testing.T) {
	t.Parallel()
	p := open(t, `<h1>Quiet</h1><img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=" alt=dot>`)
	if f, bad, errs, vs := p.Foreign(strings.TrimSuffix(p.URL(), "/")), p.Failed(), p.Errors(), p.Violations(); len(f)+len(bad)+len(errs)+len(vs) > 0 {
		t.Errorf("%v %v %v %v", f, bad, errs, vs)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	p := open(t, `<script>console.log("fine", {a: 1}, 2n); console.warn("hm"); console.error("bad"); console.assert(1 > 2, "sum"); setTimeout(() => { no.such() }); Promise.reject(new Error("left")); document.title = "done"</script>`)
	p.WaitUntil("document.title === 'done'")
	var levels []string
	for _, m := range p.Console() {
		levels = append(levels, m.Level)
	}
	for _, want := range []string{"log", "warning", "error", "assert", "exception"} {
		if !slices.Contains(levels, want) {
			t.Errorf("no %s in %v", want, p.Console())
		}
	}
	errs := fmt.Sprint(p.Errors())
	mustSay(t, errs, "error: bad", "assert: sum", "exception: Uncaught ReferenceError: no is not defined", "Error: left")
	if n := len(p.Errors()); n != 4 {
		t.Errorf("%d errors: %s", n, errs)
	}
}

// What a policy forbids shows, with the page's scripts on and off.
func TestViolations(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-n'; img-src data:")
		w.Header().Set("Content-Security-Policy-Report-Only", "form-action 'none'; font-src 'none'")
		write(w, `<script nonce=n>document.title = "ran"</script><script>document.title = "must not"</script><p style="color: red">x</p><img src=/x.png alt="">`)
	}))
	for name, prepare := range map[string]func(*Page){"on": func(*Page) {}, "off": (*Page).ScriptOff} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(t)
			prepare(p)
			p.Open(url)
			var got []string
			for _, v := range p.Violations() {
				got = append(got, v.Directive+" "+v.Blocked)
			}
			slices.Sort(got)
			want := []string{"img-src " + url + "/x.png", "script-src-elem ", "style-src-attr "}
			if name == "off" {
				want = slices.Delete(want, 1, 2)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, not %q", got, want)
			}
			if r := find(t, p.Failed(), "/x.png"); r.Failed == "" || r.Sent != nil || r.Status != 0 {
				t.Errorf("what was forbidden: %+v", r)
			}
			if want := map[string]string{"on": "ran", "off": "A page"}[name]; p.Title() != want {
				t.Errorf("%q", p.Title())
			}
		})
	}
}

// Sessions have cookies of their own; tabs of one share them.
func TestSessions(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write(w, "<h1>"+r.Header.Get("Cookie")+"</h1>")
	}))
	ana, ben := New(t), New(t)
	ana.SetCookie(url, "who", "ana")
	ben.SetCookie(url, "who", "ben")
	tab := ana.Tab()
	for want, p := range map[string]*Page{"who=ana": ana, "who=ben": ben} {
		p.Open(url)
		if got := p.Text("h1"); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	tab.Open(url)
	if got := tab.Text("h1"); got != "who=ana" {
		t.Errorf("the tab has %q", got)
	}
}

// No name but those of this machine is found.
func TestStaysHere(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": "<h1>here</h1>"})
	port := url[strings.LastIndexByte(url, ':'):]
	p := New(t)
	for _, host := range []string{"localhost", "127.0.0.1", "evil.test", "a.b.test"} {
		p.Open("http://" + host + port + "/")
		if got := p.Text("h1"); got != "here" {
			t.Errorf("%s: %q", host, got)
		}
	}
	for _, host := range []string{"example.com", "192.0.2.1"} {
		mustSay(t, mustFail(t, p, func(p *Page) { p.Open("http://" + host + port + "/") }), "net::ERR_NAME_NOT_RESOLVED")
	}
}
