package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/placet-dev/placet/delivery"
)

const aName = "http://hooks.example:8080/hook"

// Case 140: one address that is not allowed stops the attempt before any connection.
func TestCase140NamesAreJudged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		addrs   string
		private bool // allowed
		says    string
		dials   string
	}{
		{"public", "93.184.216.34", false, "", "93.184.216.34:8080"},
		{"two public", "93.184.216.34 2606:4700::1111", false, "", "93.184.216.34:8080 [2606:4700::1111]:8080"},
		{"mapped public", "::ffff:93.184.216.34", false, "", "93.184.216.34:8080"},
		{"NAT64 public", "64:ff9b::808:808", false, "", "[64:ff9b::808:808]:8080"},
		{"private, allowed", "10.0.0.7 fd12::7", true, "", "10.0.0.7:8080 [fd12::7]:8080"},
		{"private", "10.0.0.7", false, "a private address", ""},
		{"unique local", "fd12::7", false, "a private address", ""},
		{"carrier", "100.64.1.1", false, "a private address", ""},
		{"loopback", "127.0.0.1", true, "a loopback address", ""},
		{"loopback 6", "::1", true, "a loopback address", ""},
		{"mapped loopback", "::ffff:127.0.0.1", true, "a loopback address", ""},
		{"NAT64 loopback", "64:ff9b::7f00:1", true, "leads to a loopback address", ""},
		{"mapped private", "::ffff:10.0.0.7", false, "a private address", ""},
		{"metadata", "169.254.169.254", true, "metadata", ""},
		{"metadata 6", "fd00:ec2::254", true, "metadata", ""},
		{"link-local", "fe80::1%eth0", true, "one network card", ""},
		{"unspecified", "0.0.0.0", true, "the unspecified address", ""},
		{"unspecified 6", "::", true, "the unspecified address", ""},
		{"blocked first", "169.254.169.254 93.184.216.34", false, "metadata", ""},
		{"blocked last", "93.184.216.34 2606:4700::1111 10.0.0.7", false, "a private address", ""},
		{"blocked behind those that are tried", strings.Repeat("93.184.216.34 ", maxDialled) + "10.0.0.7", false, "a private address", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := &names{}
			n.are(strings.Fields(tt.addrs)...)
			o := named(t, n, "", Options{AllowHTTP: true, AllowPrivate: tt.private}).Send(t.Context(), message(aName))
			if o.Result != delivery.Failed || !strings.Contains(o.Message, tt.says) {
				t.Errorf("%+v; want one that says %q", o, tt.says)
			}
			if strings.Contains(o.Message, "10.0.0.7") {
				t.Errorf("the sentence tells how the name resolves inside: %s", o.Message)
			}
			var dials []string
			for _, d := range n.connections() {
				dials = append(dials, d.String())
			}
			if got := strings.Join(dials, " "); got != tt.dials {
				t.Errorf("connected to %q, want %q", got, tt.dials)
			}
		})
	}
}

// A name that alternates reaches its public address, and never the other.
func TestCase140NameThatChanges(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { requests.Add(1); ok(w, r) })
	n := &names{}
	c := named(t, n, srv.Listener.Addr().String(), Options{AllowHTTP: true})
	for i := range 6 {
		n.are(aPublic.String())
		if o := c.Send(t.Context(), message(aName)); o.Result != delivery.Arrived {
			t.Fatalf("%d: %+v", i, o)
		}
		n.are("169.254.169.254")
		if o := c.Send(t.Context(), message(aName)); o.Result != delivery.Failed || !strings.Contains(o.Message, "metadata") {
			t.Fatalf("%d: %+v", i, o)
		}
	}
	if requests.Load() != 6 || n.asked != 12 {
		t.Errorf("%d requests, %d look-ups", requests.Load(), n.asked)
	}
	for _, d := range n.connections() {
		if d.Addr() != aPublic {
			t.Errorf("connected to %s", d)
		}
	}
}

// A name that moves is followed at the next attempt: no connection to where it was is
// used again.
func TestNameThatMoves(t *testing.T) {
	t.Parallel()
	srv := serve(t, ok)
	n := &names{}
	c := named(t, n, srv.Listener.Addr().String(), Options{AllowHTTP: true})
	var want []string
	for _, to := range []string{"93.184.216.34", "93.184.216.35", "93.184.216.34"} {
		n.are(to)
		if o := c.Send(t.Context(), message(aName)); o.Result != delivery.Arrived {
			t.Fatalf("%s: %+v", to, o)
		}
		want = append(want, to)
	}
	var got []string
	for _, d := range n.connections() {
		got = append(got, d.Addr().String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("connected to %v, want %v", got, want)
	}
}

// The resolver answers once for each attempt: what it would say next is not asked.
func TestWhatWasJudgedIsDialled(t *testing.T) {
	t.Parallel()
	srv := serve(t, ok)
	n := &names{}
	c := named(t, n, srv.Listener.Addr().String(), Options{AllowHTTP: true})
	c.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		n.are(aPublic.String())
		addrs, err := n.lookup(ctx, host)
		n.are("127.0.0.1")
		return addrs, err
	}
	if o := c.Send(t.Context(), message(aName)); o.Result != delivery.Arrived || n.asked != 1 {
		t.Errorf("%+v after %d look-ups", o, n.asked)
	}
}

func TestSecondAddressIsTried(t *testing.T) {
	t.Parallel()
	srv := serve(t, ok)
	n := &names{}
	n.are("93.184.216.34", "93.184.216.35")
	c := named(t, n, "", Options{AllowHTTP: true})
	c.connect = func(ctx context.Context, _ endpoint, to netip.AddrPort) (net.Conn, error) {
		if to.Addr() == aPublic {
			return nil, errors.New("nobody is there")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}
	if o := c.Send(t.Context(), message(aName)); o.Result != delivery.Arrived {
		t.Errorf("%+v", o)
	}
}

func TestLocalhostIsAskedOfNobody(t *testing.T) {
	t.Parallel()
	srv := serve(t, ok)
	n := &names{err: errors.New("it was asked")}
	c := open(t, Options{Lookup: n.lookup})
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	if o := c.Send(t.Context(), message("http://LocalHost:"+port)); o.Result != delivery.Arrived || n.asked != 0 {
		t.Errorf("%+v after %d look-ups", o, n.asked)
	}
}

// What the socket is connected to is judged once more, and has to be what was judged.
func TestControl(t *testing.T) {
	t.Parallel()
	c := open(t, Options{})
	e, err := readURL("https://hooks.example/")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		judged, connected string
		ok                bool
	}{
		{"93.184.216.34:443", "93.184.216.34:443", true},
		{"93.184.216.34:443", "93.184.216.35:443", false},
		{"93.184.216.34:443", "93.184.216.34:22", false},
		{"10.0.0.7:443", "10.0.0.7:443", false},
		{"93.184.216.34:443", "hooks.example:443", false},
	} {
		err := c.control(e, netip.MustParseAddrPort(tt.judged), tt.connected)
		if (err == nil) != tt.ok {
			t.Errorf("%s, connected to %s: %v", tt.judged, tt.connected, err)
		}
	}
	if _, err := c.connectTo(t.Context(), e, netip.MustParseAddrPort("127.0.0.1:1")); !errors.As(err, new(*blocked)) {
		t.Errorf("a real dial to loopback for a name: %v", err)
	}
}

func TestNoProxy(t *testing.T) {
	t.Parallel()
	if open(t, Options{}).transport.Proxy != nil {
		t.Error("a proxy would connect to what was not judged")
	}
}

func TestNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		says string
	}{
		{nil, "The name hooks.example has no address."},
		{&net.DNSError{Err: "no such host", Name: "hooks.example", IsNotFound: true}, "The name hooks.example has no address."},
		{&net.DNSError{Err: "server misbehaving", Server: "10.0.0.53:53"}, "The name hooks.example could not be resolved."},
		{errors.New("dial udp 10.0.0.53:53"), "The name hooks.example could not be resolved."},
	} {
		o := named(t, &names{err: tt.err}, "", Options{AllowHTTP: true}).Send(t.Context(), message(aName))
		if o.Result != delivery.Failed || o.Message != tt.says {
			t.Errorf("%v: %+v", tt.err, o)
		}
	}
}

// FuzzDestination: whatever the URL and whatever the name resolves to, nothing that is
// blocked is connected to; and what is no address for [netip.ParseAddr] is none for a
// reader of the old sort.
func FuzzDestination(f *testing.F) {
	public, inside := netip.MustParseAddr("93.184.216.34").As16(), netip.MustParseAddr("10.0.0.7").As16()
	for _, url := range []string{aName, "https://hooks.example", "https://0x7f.1/", "https://[::ffff:127.0.0.1]", "http://localhost:1", "https://127.1", "https://2130706433", "https://[64:ff9b::7f00:1]:9"} {
		f.Add(url, public[:], false)
		f.Add(url, append(public[:], inside[:]...), true)
	}
	f.Fuzz(func(t *testing.T, url string, raw []byte, private bool) {
		n := &names{}
		for ; len(raw) >= 16; raw = raw[16:] {
			n.addrs = append(n.addrs, netip.AddrFrom16([16]byte(raw[:16])))
		}
		c := named(t, n, "", Options{AllowHTTP: true, AllowPrivate: private})
		refused := c.Check(message(url).Target)
		c.Send(t.Context(), message(url))
		if refused != nil && len(n.dialed) > 0 {
			t.Errorf("%q is refused (%v) and was connected to: %v", url, refused, n.dialed)
		}
		e, err := readURL(url)
		if err == nil && !e.addr.IsValid() && readsAsAddress(e.host) {
			t.Errorf("%q is taken for a name and reads as an address", e.host)
		}
		for _, d := range n.dialed {
			allowed := !oracle(d.Addr()) || e.loopback && d.Addr().IsLoopback() || private && allowedInside(d.Addr())
			if !allowed {
				t.Errorf("%q, resolved to %v, was connected to %s", url, n.addrs, d)
			}
		}
	})
}

// allowedInside are the addresses that AllowPrivate may add.
func allowedInside(a netip.Addr) bool {
	v := judge(a)
	return v.reach == private && a != netip.MustParseAddr("100.100.100.200")
}

// readsAsAddress is inet_aton: one to four numbers, each decimal, octal or hexadecimal.
func readsAsAddress(host string) bool {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return false
	}
	for i, p := range parts {
		n, ok := number(p)
		most := uint64(255)
		if i == len(parts)-1 {
			most = uint64(1<<32-1) >> (8 * i)
		}
		if !ok || n > most {
			return false
		}
	}
	return true
}

func number(s string) (n uint64, ok bool) {
	base, digits := uint64(10), s
	switch {
	case strings.HasPrefix(s, "0x"):
		base, digits = 16, s[2:]
	case strings.HasPrefix(s, "0"):
		base = 8
	}
	for _, c := range digits {
		d := strings.IndexRune("0123456789abcdef"[:base], c)
		if d < 0 || n > 1<<40 {
			return 0, false
		}
		n = n*base + uint64(d)
	}
	return n, s != ""
}
