package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/placet-dev/placet/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	secret   = bytes.Repeat([]byte("n"), 32)
	previous = bytes.Repeat([]byte("o"), 24)
	body     = []byte(`{"specversion":"1.0","id":"evt_1","data":{"delivery_id":"dlv_1"}}`)
	at       = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	quiet    = slog.New(slog.DiscardHandler)
)

// aPublic is an address that anybody may connect to; the tests' connections to it are
// led elsewhere.
var aPublic = netip.MustParseAddr("93.184.216.34")

func message(url string) delivery.Message {
	return delivery.Message{
		DeliveryID: "dlv_1", Attempt: 1, At: at, Type: "approval.requested", Body: body,
		Target: delivery.Target{ID: "tgt_1", Kind: delivery.KindWebhook, URL: url, Secret: secret},
	}
}

// open is a channel of one test.
func open(t testing.TB, o Options) *Channel {
	t.Helper()
	o.Log = quiet
	c := New(o)
	return c
}

// serve is a receiver on loopback.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// serveRaw is a receiver that answers each request with these bytes and hangs up.
func serveRaw(t testing.TB, answer func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				takeRequest(conn)
				answer(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String()
}

// takeRequest reads to the end of the body, so that hanging up is not a reset.
func takeRequest(conn net.Conn) {
	var got []byte
	chunk := make([]byte, 4096)
	for !bytes.Contains(got, body) {
		n, err := conn.Read(chunk)
		if err != nil {
			return
		}
		got = append(got, chunk[:n]...)
	}
}

// names is a resolver whose answers a test may change, and the connections that were
// asked for.
type names struct {
	mu     sync.Mutex
	addrs  []netip.Addr
	err    error
	asked  int
	dialed []netip.AddrPort
}

func (n *names) are(addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs = nil
	for _, a := range addrs {
		n.addrs = append(n.addrs, netip.MustParseAddr(a))
	}
}

func (n *names) lookup(context.Context, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.addrs, n.err
}

func (n *names) connections() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]netip.AddrPort(nil), n.dialed...)
}

// named is a channel that resolves with n and whose connections all lead to the
// listener, or nowhere if that is empty.
func named(t testing.TB, n *names, listener string, o Options) *Channel {
	t.Helper()
	o.Lookup = n.lookup
	c := open(t, o)
	c.connect = func(ctx context.Context, _ endpoint, to netip.AddrPort) (net.Conn, error) {
		n.mu.Lock()
		n.dialed = append(n.dialed, to)
		n.mu.Unlock()
		if listener == "" {
			return nil, errors.New("nobody is there")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", listener)
	}
	return c
}

// late is a context whose deadline passes when the test says so.
type late struct {
	context.Context
	done chan struct{}
	once sync.Once
}

func newLate(t testing.TB) *late { return &late{Context: t.Context(), done: make(chan struct{})} }

func (l *late) end() { l.once.Do(func() { close(l.done) }) }

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func ok(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
}
