package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/fault"
)

const secretToken = "Bearer s3cr3t-t0ken-value"

// serve is a tool that calls a server of ours.
func serve(t testing.TB, h http.HandlerFunc) *HTTP {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	tl, err := NewHTTP("POST", srv.URL+"/v1/refund?x=1", map[string]string{"Authorization": secretToken})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	const args = "{\"n\":9007199254740993, \"s\":\"\\u00e9<\"}\n"
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, c := range []struct{ what, got, want string }{
			{"method", r.Method, "POST"},
			{"URL", r.URL.String(), "/v1/refund?x=1"},
			{"body", string(body), args},
			{"Content-Type", r.Header.Get("Content-Type"), "application/json"},
			{"Idempotency-Key", r.Header.Get("Idempotency-Key"), "call_7"},
			{"Authorization", r.Header.Get("Authorization"), secretToken},
			{"Accept-Encoding", r.Header.Get("Accept-Encoding"), ""},
			{"length", fmt.Sprint(r.ContentLength), fmt.Sprint(len(args))},
		} {
			if c.got != c.want {
				t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
			}
		}
		fmt.Fprint(w, " {\"id\" : 1.0}\n")
	})
	out, err := h.Run(t.Context(), aCall(args))
	if err != nil || string(out) != `{"id" : 1.0}` {
		t.Errorf("Run = %s, %v", out, err)
	}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	const (
		ok      = "ok"
		failed  = "failed"
		unknown = "unknown"
	)
	large := strings.Repeat("x", MaxResult-2)
	tests := []struct {
		status int
		body   string
		want   string
		says   string // in the result or the error
	}{
		{200, `{"a":1}`, ok, `{"a":1}`},
		{201, `null`, ok, `null`},
		{204, ``, ok, `null`},
		{205, ``, ok, `null`},
		{200, `"` + large + `"`, ok, large},
		{200, `"` + large + "\"\n", ok, large},
		{200, ``, unknown, "HTTP 200, but it gave no result"},
		{200, `ok`, unknown, "not exactly one JSON value"},
		{200, `{}{}`, unknown, "not exactly one JSON value"},
		{202, `<html>`, unknown, "HTTP 202"},
		{200, "\"\xff\"", unknown, "not exactly one JSON value"},
		{200, `"` + large + `x"`, unknown, "more than 1048576 bytes"},
		{400, `{"error":"no such order"}`, failed, `HTTP 400 Bad Request: {"error":"no such order"}`},
		{401, ``, failed, `HTTP 401 Unauthorized`},
		{404, "a\x1b[2J\n\u202eb\xff", failed, `HTTP 404 Not Found: a\x1b[2J\n\u202eb\xff`},
		{409, "You sent " + secretToken + " and s3cr3t-t0ken-value", failed, "HTTP 409 Conflict: You sent [header value] and [header value]"},
		{422, strings.Repeat("é", 100_000), failed, "é…"},
		{499, `x`, failed, `HTTP 499: x`},
		{300, ``, unknown, "redirect"},
		{301, ``, unknown, "redirect"},
		{304, ``, unknown, "redirect"},
		{307, ``, unknown, "redirect"},
		{500, `{"id":1}`, unknown, "HTTP 500"},
		{503, ``, unknown, "HTTP 503"},
		{600, ``, unknown, "HTTP 600"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d/%.10q", tt.status, tt.body), func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			h := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/v1/elsewhere")
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			out, err := h.Run(t.Context(), aCall(`{}`))
			got := ok
			switch {
			case errors.Is(err, ErrOutcomeUnknown):
				got = unknown
			case err != nil:
				got = failed
			}
			text := string(out)
			if err != nil {
				text = err.Error()
				if strings.Contains(text, "s3cr3t") {
					t.Errorf("the error shows a header value: %s", text)
				}
				if len(text) > maxMessage {
					t.Errorf("the error has %d bytes", len(text))
				}
			}
			if got != tt.want || !strings.Contains(text, tt.says) {
				t.Errorf("Run = %.200s, %.300v; want %s that says %.100s", out, err, tt.want, tt.says)
			}
			if calls.Load() != 1 {
				t.Errorf("%d requests", calls.Load())
			}
		})
	}
}

// Case 165: a body without end, fast or slow.
func TestCase165HTTPBodyWithoutEnd(t *testing.T) {
	t.Parallel()
	flood := func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := serve(t, flood).Run(t.Context(), aCall(`{}`))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("fast: %v", err)
	}
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 100 { // other tests run too
		t.Errorf("%d MiB were allocated", grown)
	}

	drip := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := serve(t, drip(200)).Run(ctx, aCall(`{}`)); !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "the time was up") {
		t.Errorf("slow: %v", err)
	}
	// The status says all, so that a slow refusal stays a refusal.
	start := time.Now()
	_, err = serve(t, drip(403)).Run(t.Context(), aCall(`{}`))
	if errors.Is(err, ErrOutcomeUnknown) || !strings.HasPrefix(err.Error(), "HTTP 403 Forbidden: xx") {
		t.Errorf("slow refusal: %v", err)
	}
	if took := time.Since(start); took > 4*refusalTimeout {
		t.Logf("took %s", took)
	}
}

// rawServer answers each connection with f.
func rawServer(t *testing.T, f func(net.Conn)) (*HTTP, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	h, err := NewHTTP("POST", "http://"+l.Addr().String(), map[string]string{"Authorization": secretToken})
	if err != nil {
		t.Fatal(err)
	}
	return h, &conns
}

func TestHTTPLostConnection(t *testing.T) {
	t.Parallel()
	read := func(c net.Conn) { c.Read(make([]byte, 4096)) }
	for name, f := range map[string]func(net.Conn){
		"closed at once": func(net.Conn) {},
		"closed after":   read,
		"half an answer": func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") },
		"half a body":    func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}") },
		"no HTTP":        func(c net.Conn) { read(c); io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") },
		"endless header": func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)) },
		"switches protocols": func(c net.Conn) {
			read(c)
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, conns := rawServer(t, f)
			out, err := h.Run(t.Context(), aCall(`{}`))
			if !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("Run = %s, %v", out, err)
			}
			if conns.Load() != 1 {
				t.Errorf("sent %d times", conns.Load())
			}
			if strings.Contains(err.Error(), "s3cr3t") || len(err.Error()) > 1000 {
				t.Errorf("the error is %s", err)
			}
		})
	}
}

func TestHTTPNotSent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for name, url := range map[string]string{
		"refused":             "http://" + closed,
		"no such host":        "http://no-such-host.invalid/",
		"no TLS there":        strings.Replace(plain.URL, "http:", "https:", 1),
		"unknown certificate": secure.URL,
	} {
		h, err := NewHTTP("POST", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, _ := NewHTTP("POST", plain.URL, nil)
	if _, err := h.Run(ctx, aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("context ended before: %v", err)
	}
}

func TestHTTPCancelled(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	h := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // until then the server does not notice a lost connection
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := h.Run(ctx, aCall(`{}`)); !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "it was cancelled") {
		t.Errorf("Run: %v", err)
	}
}

// A proxy of the environment would see what is sent.
func TestHTTPUsesNoProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	h, err := NewHTTP("POST", "http://no-such-host.invalid/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(t.Context(), aCall(`{}`)); !errors.Is(err, ErrNotStarted) {
		t.Error(err)
	}
}

func TestNewHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, url, want string }{
		{"", "https://deploy.internal/v1/deploy", "http POST https://deploy.internal/v1/deploy"},
		{"PUT", "http://[::1]:80/a%20b?c=d", "http PUT http://[::1]:80/a%20b?c=d"},
	} {
		h, err := NewHTTP(tt.method, tt.url, map[string]string{"Authorization": secretToken, "content-type": "application/merge-patch+json"})
		if err != nil || h.Implementation() != tt.want {
			t.Errorf("%s: %v, %v", tt.want, h, err)
			continue
		}
		if h.headers.Get("Content-Type") != "application/merge-patch+json" {
			t.Errorf("headers %v", h.headers)
		}
	}
	tests := []struct {
		method, url string
		headers     map[string]string
		want        string
	}{
		{"post", "http://a/", nil, "method \"post\""},
		{"P OST", "http://a/", nil, "method"},
		{"CONNECT", "http://a/", nil, "method"},
		{"POST", "", nil, "must start with http"},
		{"POST", "a/b", nil, "must start with http"},
		{"POST", "ftp://a/", nil, "must start with http"},
		{"POST", "file:///etc/passwd", nil, "must start with http"},
		{"POST", "http:///x", nil, "names no host"},
		{"POST", "http://:80/x", nil, "names no host"},
		{"POST", "http://user:s3cr3t@a/", nil, "no user and password"},
		{"POST", "http://user:s3cr3t@a b/", nil, "cannot be read"},
		{"POST", "http://a/ b", nil, "has a space"},
		{"POST", "http://a/é", nil, "outside ASCII"},
		{"POST", "http://a/#b", nil, "behind #"},
		{"POST", "http://a/#", nil, "behind #"},
		{"POST", "http://a/\n", nil, "cannot be read"},
		{"POST", "http://a/%zz", nil, "cannot be read"},
		{"POST", "http://a/", map[string]string{"Idempotency-Key": "x"}, "set by Placet"},
		{"POST", "http://a/", map[string]string{"content-length": "x"}, "set by Placet"},
		{"POST", "http://a/", map[string]string{"hOST": "x"}, "set by Placet"},
		{"POST", "http://a/", map[string]string{"A B": "x"}, "header name"},
		{"POST", "http://a/", map[string]string{"": "x"}, "header name"},
		{"POST", "http://a/", map[string]string{"X-A": "s3cr3t\r\nX-B: 1"}, "control character"},
		{"POST", "http://a/", map[string]string{"X-A": "s3cr3t\xff"}, "control character"},
		{"POST", "http://a/", map[string]string{"X-A": "1", "x-a": "2"}, "twice"},
	}
	for _, tt := range tests {
		h, err := NewHTTP(tt.method, tt.url, tt.headers)
		if !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %q %v: %v, %v; want %q", tt.method, tt.url, tt.headers, h, err, tt.want)
			continue
		}
		if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(fmt.Sprint(fault.From(err)), "s3cr3t") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}
