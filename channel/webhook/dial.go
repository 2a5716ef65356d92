package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	maxDialled       = 8        // addresses of one name that are tried
	maxAnswerHeaders = 64 << 10 // bytes
)

// newTransport makes a connection for each attempt: one that was kept would lead to
// where the name was, and not to an address that was judged for this attempt. It speaks
// HTTP/1.1 only, so an answer that is given up takes nothing else with it.
func (c *Channel) newTransport() *http.Transport {
	t := &http.Transport{
		Proxy:                  nil, // a proxy would connect to what we have not judged
		DialContext:            c.dial,
		DialTLSContext:         c.dialTLS,
		Protocols:              new(http.Protocols),
		DisableCompression:     true, // a small answer stays small
		MaxResponseHeaderBytes: maxAnswerHeaders,
		DisableKeepAlives:      true,
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// route is where an attempt may connect to, and until when. The transport dials apart
// from its request's context, which it only keeps the values of.
type route struct {
	ctx context.Context
	endpoint
	to []netip.AddrPort
}

type routeKey struct{}

func withRoute(ctx context.Context, r route) context.Context {
	return context.WithValue(ctx, routeKey{}, r)
}

var errNoAddress = errors.New("the name has no address")

// resolve is the addresses of an endpoint, each of them judged: one that is not
// allowed stops all, since who answers for the name is not to be trusted then.
func (c *Channel) resolve(ctx context.Context, e endpoint) ([]netip.AddrPort, error) {
	addrs, err := c.addresses(ctx, e)
	switch {
	case err != nil:
		return nil, &stage{resolving, err}
	case len(addrs) == 0:
		return nil, &stage{resolving, errNoAddress}
	}
	to := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		if err := c.judgeFor(e, a); err != nil {
			return nil, err
		}
		to[i] = netip.AddrPortFrom(a.Unmap(), e.port)
	}
	return to[:min(len(to), maxDialled)], nil
}

func (c *Channel) addresses(ctx context.Context, e endpoint) ([]netip.Addr, error) {
	switch {
	case e.addr.IsValid():
		return []netip.Addr{e.addr}, nil
	case e.loopback: // localhost is this host, whatever a resolver says (RFC 6761)
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return c.lookup(ctx, e.host)
}

// dial connects to one of the addresses that this attempt has judged; the name is not
// looked at again.
func (c *Channel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	r, ok := ctx.Value(routeKey{}).(route)
	if !ok {
		return nil, &stage{connecting, errNoAddress}
	}
	var first error
	for i, to := range r.to {
		conn, err := c.connectInTime(r, to, len(r.to)-i)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, &stage{connecting, first}
}

// connectInTime gives an address its share of the time: one that does not answer
// leaves some for the others.
func (c *Channel) connectInTime(r route, to netip.AddrPort, left int) (net.Conn, error) {
	ctx := r.ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return c.connect(ctx, r.endpoint, to)
}

// connectTo connects. What the socket is really connected to is judged once more.
func (c *Channel) connectTo(ctx context.Context, e endpoint, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return c.control(e, to, address) }}
	return d.DialContext(ctx, "tcp", to.String())
}

func (c *Channel) control(e endpoint, to netip.AddrPort, address string) error {
	real, err := netip.ParseAddrPort(address)
	if err != nil || real != to {
		return &blocked{host: e.host, addr: real.Addr(), what: "an address that was not judged"}
	}
	return c.judgeFor(e, real.Addr())
}

func (c *Channel) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r := ctx.Value(routeKey{}).(route)
	secured := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: r.host,
		RootCAs:    c.roots,
		NextProtos: []string{"http/1.1"},
	})
	if err := secured.HandshakeContext(r.ctx); err != nil {
		conn.Close()
		return nil, &stage{securing, err}
	}
	return secured, nil
}
