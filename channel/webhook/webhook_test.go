package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		for _, c := range []struct{ what, got, want string }{
			{"method", r.Method, "POST"},
			{"protocol", r.Proto, "HTTP/1.1"},
			{"URL", r.URL.String(), "/hook?x=%20y"},
			{"body", string(got), string(body)},
			{"length", fmt.Sprint(r.ContentLength), fmt.Sprint(len(body))},
			{"Content-Type", r.Header.Get("Content-Type"), delivery.ContentType},
			{"webhook-id", r.Header.Get("webhook-id"), "dlv_1"},
			{"webhook-timestamp", r.Header.Get("webhook-timestamp"), "1796029200"},
			{"webhook-signature", r.Header.Get("webhook-signature"), Sign([][]byte{secret}, "dlv_1", at, body)},
			{"Authorization", r.Header.Get("Authorization"), "Bearer token-of-ours"},
			{"Accept-Encoding", r.Header.Get("Accept-Encoding"), ""},
			{"User-Agent", r.Header.Get("User-Agent"), "placet"},
			{"Cookie", r.Header.Get("Cookie"), ""},
		} {
			if c.got != c.want {
				t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
			}
		}
	})
	m := message(srv.URL + "/hook?x=%20y")
	m.Target.Headers = map[string]string{"authorization": "Bearer token-of-ours"}
	if o := open(t, Options{}).Send(t.Context(), m); o != (delivery.Outcome{Result: delivery.Arrived, Status: 200}) {
		t.Errorf("%+v", o)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	for _, tt := range []struct {
		status int
		header string
		body   string
		want   delivery.Outcome
	}{
		{200, "", "ok", delivery.Outcome{Result: delivery.Arrived}},
		{202, "", long, delivery.Outcome{Result: delivery.Arrived}},
		{204, "", "", delivery.Outcome{Result: delivery.Arrived}},
		{299, "", "", delivery.Outcome{Result: delivery.Arrived}},
		{300, "", "", delivery.Outcome{Result: delivery.Failed, Message: "redirects are not followed"}},
		{302, "", "", delivery.Outcome{Result: delivery.Failed, Message: "HTTP 302 Found, a redirect; redirects are not followed"}},
		{304, "", "", delivery.Outcome{Result: delivery.Failed, Message: "redirects are not followed"}},
		{308, "", "", delivery.Outcome{Result: delivery.Failed, Message: "redirects are not followed"}},
		{400, "", `{"error":"no"}`, delivery.Outcome{Result: delivery.Failed, Message: `HTTP 400 Bad Request: {"error":"no"}`}},
		{404, "", "a\x1b[2J\n\u202eb\xff", delivery.Outcome{Result: delivery.Failed, Message: "HTTP 404 Not Found: a"}},
		{410, "", "gone", delivery.Outcome{Result: delivery.Gone, Message: "HTTP 410 Gone: gone"}},
		{413, "", long, delivery.Outcome{Result: delivery.Failed, Message: "é…"}},
		{429, "120", "", delivery.Outcome{Result: delivery.Failed, RetryAfter: 2 * time.Minute, Message: "HTTP 429 Too Many Requests."}},
		{429, "Mon, 30 Nov 2026 09:05:00 GMT", "", delivery.Outcome{Result: delivery.Failed, RetryAfter: 5 * time.Minute}},
		{429, "", "", delivery.Outcome{Result: delivery.Failed}},
		{503, "7", "", delivery.Outcome{Result: delivery.Failed, RetryAfter: 7 * time.Second}},
		{500, "7", "", delivery.Outcome{Result: delivery.Failed, Message: "HTTP 500 Internal Server Error."}},
		{599, "", "", delivery.Outcome{Result: delivery.Failed, Message: "HTTP 599."}},
		{999, "", "", delivery.Outcome{Result: delivery.Failed, Message: "HTTP 999."}},
	} {
		t.Run(fmt.Sprintf("%d %s", tt.status, tt.header), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
				if tt.header != "" {
					w.Header().Set("Retry-After", tt.header)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			o := open(t, Options{}).Send(t.Context(), message(srv.URL))
			if o.Result != tt.want.Result || o.Status != tt.status || o.RetryAfter != tt.want.RetryAfter || !strings.Contains(o.Message, tt.want.Message) {
				t.Errorf("%+v, want %+v", o, tt.want)
			}
			if len(o.Message) > 300 || strings.ContainsAny(o.Message, "\x1b\n\u202e") || strings.Contains(o.Message, "169.254") {
				t.Errorf("the message is %q", o.Message)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests", requests.Load())
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                                0,
		"0":                               0,
		" 5 ":                             5 * time.Second,
		"-5":                              0,
		"1.5":                             0,
		"soon":                            0,
		"18446744073709551615":            delivery.MaxMaxAge,
		"99999999999999999999999":         0,
		"Mon, 30 Nov 2026 09:00:30 GMT":   30 * time.Second,
		"Monday, 30-Nov-26 09:00:30 GMT":  30 * time.Second,
		"Mon Nov 30 09:00:30 2026":        30 * time.Second,
		"Mon, 30 Nov 2026 08:59:30 GMT":   0,
		"Mon, 30 Nov 9999 08:59:30 GMT":   delivery.MaxMaxAge,
		"Mon, 30 Nov 2026 09:00:30 +0000": 0,
	} {
		if got := retryAfter(text, at); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// Case 120: a receiver that repeats all it was sent puts nothing secret into a message.
func TestNoHeaderValueIsTold(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "%q hun", r.Header)
	})
	m := message(srv.URL)
	m.Target.Headers = map[string]string{"Authorization": "hunter2"}
	o := open(t, Options{}).Send(t.Context(), m)
	if o.Result != delivery.Failed || o.Message != "The answer was HTTP 400 Bad Request." {
		t.Errorf("%+v", o)
	}
}

func TestSendRefusesWhatCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(*delivery.Target)
		want  delivery.Result
	}{
		{"bad URL", func(t *delivery.Target) { t.URL = "https://127.1/" }, delivery.Refused},
		{"bad header", func(t *delivery.Target) { t.Headers = map[string]string{"Host": "x"} }, delivery.Refused},
		{"bad secret", func(t *delivery.Target) { t.Secret = []byte("short") }, delivery.Refused},
		{"no secret", func(t *delivery.Target) { t.Secret = nil }, delivery.Refused},
		// These may be allowed again when the process is set up otherwise.
		{"http", func(t *delivery.Target) { t.URL = "http://hooks.example/" }, delivery.Failed},
		{"private", func(t *delivery.Target) { t.URL = "https://10.0.0.7/" }, delivery.Failed},
	} {
		n := &names{}
		n.are(aPublic.String())
		c := named(t, n, "", Options{})
		m := message("https://hooks.example/")
		tt.spoil(&m.Target)
		if o := c.Send(t.Context(), m); o.Result != tt.want || o.Message == "" || len(n.connections()) > 0 {
			t.Errorf("%s: %+v, connected to %v", tt.name, o, n.connections())
		}
	}
}

func TestNotSentOnlyBeforeAnythingBegan(t *testing.T) {
	t.Parallel()
	n := &names{}
	c := named(t, n, "", Options{AllowHTTP: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := c.Send(ctx, message(aName)); o.Result != delivery.NotSent || n.asked != 0 {
		t.Errorf("%+v after %d look-ups", o, n.asked)
	}
	l := newLate(t)
	c.lookup = func(context.Context, string) ([]netip.Addr, error) { l.end(); <-l.Done(); return nil, l.Err() }
	if o := c.Send(l, message(aName)); o.Result != delivery.Failed || o.Message != "The time was up before the name hooks.example was resolved." {
		t.Errorf("%+v", o)
	}
}

// A receiver that hangs is given up at the end of the context, and holds up no other.
func TestCase145OneThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
	})
	c := open(t, Options{})
	l := newLate(t)
	given := make(chan delivery.Outcome, 1)
	go func() { given <- c.Send(l, message(hangs.URL)) }()
	<-began
	var all sync.WaitGroup
	for range 20 {
		srv := serve(t, ok)
		all.Go(func() {
			for range 5 {
				if o := c.Send(t.Context(), message(srv.URL)); o.Result != delivery.Arrived {
					t.Errorf("%+v", o)
				}
			}
		})
	}
	all.Wait()
	l.end()
	if o := <-given; o.Result != delivery.Failed || o.Message != "The time was up before 127.0.0.1 answered." {
		t.Errorf("%+v", o)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	if o := open(t, Options{}).Send(ctx, message(srv.URL)); o.Result != delivery.Failed || o.Message != "It was stopped before 127.0.0.1 answered." {
		t.Errorf("%+v", o)
	}
}

// Case 165: a body changes nothing about an answer, however long or slow it is.
func TestCase165Bodies(t *testing.T) {
	t.Parallel()
	chunk := []byte(strings.Repeat("x", 1<<16))
	var written atomic.Int64
	flood := func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"endless": flood,
		"5 GB": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(5)<<30))
			flood(w, r)
		},
		"dripping": func(w http.ResponseWriter, r *http.Request) {
			drip := time.NewTicker(10 * time.Millisecond)
			defer drip.Stop()
			for {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-drip.C:
				case <-r.Context().Done():
					return
				}
			}
		},
		"never": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "x")
		},
	} {
		for _, status := range []int{200, 500} {
			t.Run(fmt.Sprintf("%s %d", name, status), func(t *testing.T) {
				t.Parallel()
				srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
					ok(w, r)
					w.WriteHeader(status)
					h(w, r)
				})
				o := open(t, Options{}).Send(t.Context(), message(srv.URL))
				want := map[int]delivery.Result{200: delivery.Arrived, 500: delivery.Failed}[status]
				if o.Result != want || o.Status != status || len(o.Message) > 300 {
					t.Errorf("%+v", o)
				}
			})
		}
	}
	t.Cleanup(func() {
		if n := written.Load(); n > 256<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, answer, says string }{
		{"nothing", "", "127.0.0.1 closed the connection before it answered."},
		{"half a status line", "HTTP/1.1 20", "no whole HTTP/1.1 answer"},
		{"a status line without its end", "HTTP/1.1 200", "127.0.0.1 cut its answer short."},
		{"a status line", "HTTP/1.1 200 OK\r\n", "127.0.0.1 cut its answer short."},
		{"half a header", "HTTP/1.1 200 OK\r\nContent-Le", "no whole HTTP/1.1 answer"},
		{"a header", "HTTP/1.1 200 OK\r\nContent-Length: 0", "127.0.0.1 cut its answer short."},
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", "no whole HTTP/1.1 answer"},
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "no whole HTTP/1.1 answer"},
		{"no number", "HTTP/1.1 abc OK\r\n\r\n", "no whole HTTP/1.1 answer"},
		{"huge headers", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "more than 64 KiB"},
		{"many headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<18) + "\r\n", "more than 64 KiB"},
		{"one interim answer after another", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1<<16), ""},
		{"switching protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello", "HTTP 101"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := serveRaw(t, func(c net.Conn) { io.WriteString(c, tt.answer) })
			o := open(t, Options{}).Send(t.Context(), message(url))
			if o.Result != delivery.Failed || !strings.Contains(o.Message, tt.says) {
				t.Errorf("%+v; want one that says %q", o, tt.says)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	o := open(t, Options{}).Send(t.Context(), message("http://"+l.Addr().String()))
	if o.Result != delivery.Failed || o.Message != "127.0.0.1 refused the connection." {
		t.Errorf("%+v", o)
	}
}

func serveTLS(t *testing.T, old bool) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.EnableHTTP2 = true
	if old {
		srv.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return srv, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv, roots := serveTLS(t, false)
	old, oldRoots := serveTLS(t, true)
	plain := serve(t, ok)
	plain.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, tt := range []struct {
		name  string
		host  string
		at    *httptest.Server
		roots *x509.CertPool
		says  string
	}{
		{"known", "example.com", srv, roots, ""}, // the name in the test server's certificate
		{"unknown authority", "example.com", srv, x509.NewCertPool(), "from an authority that is not known here"},
		{"another name", "hooks.example", srv, roots, "The certificate of hooks.example is for another name."},
		{"TLS 1.1", "example.com", old, oldRoots, "No secure connection (TLS 1.2 or newer)"},
		{"no TLS", "example.com", plain, roots, "example.com does not speak TLS on this port."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &names{}
			n.are(aPublic.String())
			c := named(t, n, tt.at.Listener.Addr().String(), Options{})
			c.roots = tt.roots
			o := c.Send(t.Context(), message("https://"+tt.host))
			if (o.Result == delivery.Arrived) != (tt.says == "") || !strings.Contains(o.Message, tt.says) {
				t.Errorf("%+v; want one that says %q", o, tt.says)
			}
		})
	}
}

// A handshake that never comes about ends with the attempt.
func TestHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := newLate(t)
	gone := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			gone <- err
			return
		}
		defer conn.Close()
		conn.Read(make([]byte, 1))
		ctx.end()
		_, err = io.Copy(io.Discard, conn) // to the end: nothing of the attempt is left
		gone <- err
	}()
	o := open(t, Options{}).Send(ctx, message("https://"+l.Addr().String()))
	if o.Result != delivery.Failed || o.Message != "The time was up before a connection to 127.0.0.1 came about." && o.Message != "The time was up before 127.0.0.1 answered." {
		t.Errorf("%+v", o)
	}
	<-gone
	l.Close()
}
