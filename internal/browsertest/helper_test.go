package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// site serves pages by their path. What has no doctype gets one, and a title.
func site(t *testing.T, pages map[string]string) (url string) {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		write(w, body)
	}))
}

func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><link rel=icon href='data:,'><title>A page</title>%s", body)
}

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// open opens a page of its own on a site of one page.
func open(t *testing.T, body string) *Page {
	t.Helper()
	p := New(t)
	p.Open(site(t, map[string]string{"/": body}) + "/")
	return p
}

// recorded is a test that notes how it failed.
type recorded struct {
	testing.TB
	said string
}

func (r *recorded) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorded) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}

// brief is the patience of a page that is to fail because it waits in vain.
const brief = time.Second

// mustFail has a page do what it cannot, and returns what it says.
func mustFail(t *testing.T, p *Page, f func(p *Page)) string {
	t.Helper()
	return mustFailWithin(t, p.Patience, p, f)
}

func mustFailWithin(t *testing.T, patience time.Duration, p *Page, f func(p *Page)) string {
	t.Helper()
	r := &recorded{TB: t}
	failing := *p
	failing.tb, failing.Patience, failing.failures = r, patience, t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&failing)
	}()
	<-done
	if r.said == "" {
		t.Error("it did not fail")
	}
	return r.said
}

func mustSay(t *testing.T, said string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in:\n%s", want, said)
		}
	}
}
