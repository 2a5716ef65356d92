package browsertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Everything that is named anywhere is asked for, in all three ways, with the cookies.
func TestCrawl(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]string{} // methods by path
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.RequestURI()] += r.Method[:1]
		mu.Unlock()
		if c, err := r.Cookie("s"); err != nil || c.Value != "1" {
			t.Errorf("%s without a cookie", r.URL)
		}
		http.SetCookie(w, &http.Cookie{Name: "s", Value: "2"})
		switch r.URL.Path {
		case "/":
			w.Header().Set("Link", "</preload.css>; rel=preload")
			write(w, `<a href="a#part">A</a><a href="a#other">A</a><a href="mailto:x@y">mail</a><a href="http://example.com/x">away</a>
				<form action="/send" method=post><button formaction="/delete">x</button></form><img srcset="/1x.png 1x, /2x.png 2x" src="/0.png">
				<script src=/app.js></script><script>fetch("/inline")</script><style>@import "/more.css"; p { background: url(/bg.png) }</style>
				<div data-url="/data" onclick="go('/handler')" style="background: url('/attr.png')"></div><meta http-equiv=refresh content="9; url=/later">`)
		case "/a":
			http.Redirect(w, r, "/b?page=2", http.StatusFound)
		case "/b":
			write(w, `<base href="/deep/er/"><a href="c">C</a>`)
		case "/app.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, "new EventSource('/events'); x = `/template`; y = '/${not}'; z = ' / 2'")
		case "/more.css":
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprint(w, "@font-face { src: url( \"/font.woff2\" ) }")
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			if r.Method == http.MethodGet {
				<-r.Context().Done()
			}
		case "/deep/er/c":
			http.Error(w, "not for you", http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "image/png")
		}
	}))
	got := Crawl(t, url+"/", &http.Cookie{Name: "s", Value: "1"})
	want := strings.Fields("/ /0.png /1x.png /2x.png /a /app.js /attr.png /b?page=2 /bg.png /data /deep/er/c /delete /events /font.woff2 /handler /inline /later /more.css /preload.css /send /template")
	var paths []string
	mu.Lock()
	defer mu.Unlock()
	for path, methods := range asked {
		paths = append(paths, path)
		if methods != "OHG" {
			t.Errorf("%s was asked for with %s", path, methods)
		}
	}
	slices.Sort(paths)
	if !slices.Equal(paths, want) {
		t.Errorf("asked for\n%q, not\n%q", paths, want)
	}
	if !slices.Equal(got.Foreign, []string{"http://example.com/x"}) || len(got.Seen) != 3*len(want) {
		t.Errorf("%d answers, foreign %q", len(got.Seen), got.Foreign)
	}
	for _, s := range got.Seen {
		if s.Failed != "" || s.URL != url+"/" && s.From == "" || s.URL == url+"/deep/er/c" && (s.Status != http.StatusForbidden || s.From != url+"/b?page=2") {
			t.Errorf("%+v", s)
		}
	}
}

// A crawl that would never end says so.
func TestCrawlEnds(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write(w, `<a href="`+r.URL.Path+`x">more</a>`+strings.Repeat(" ", 10))
	}))
	r := &recorded{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Crawl(r, url+"/")
	}()
	<-done
	mustSay(t, r.said, "more than 2000 addresses", "the crawl does not end")
}

// What does not answer is told of, and the crawl goes on.
func TestCrawlFails(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		write(w, `<a href=/cut>cut</a><a href=/on>on</a>`)
	}))
	got := Crawl(t, url+"/")
	failed := 0
	for _, s := range got.Seen {
		if s.Failed != "" {
			failed++
			if s.URL != url+"/cut" || s.Status != 0 {
				t.Errorf("%+v", s)
			}
		}
	}
	if failed != 3 || len(got.Seen) != 9 {
		t.Errorf("%d of %d failed", failed, len(got.Seen))
	}
}
