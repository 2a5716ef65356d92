package pgtest

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is a network between clients and a PostgreSQL server that fails on demand.
// It carries every message on as it came until it is told otherwise. It does not
// speak TLS. Methods are safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	links    map[*link]struct{}
	accepted int
	up, down time.Duration
	hole     bool
	refuse   bool
	closed   bool
	armed    []*armed
}

// NewProxy starts a proxy in front of target, the URL of a server or its host and
// port. It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	if strings.Contains(target, "://") {
		u, err := url.Parse(target)
		if err != nil {
			tb.Fatal(err)
		}
		target = u.Host
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{target: target, listener: listener, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// URL is from, the URL of a database of the server, through the proxy.
func (p *Proxy) URL(from string) string { return via(from, p.listener.Addr().String()) }

// Via is the URL of the database of from at the host and port of through.
func Via(from, through string) string {
	u, err := url.Parse(through)
	if err != nil {
		panic(err) // both are made by this package
	}
	return via(from, u.Host)
}

func via(from, host string) string {
	u, err := url.Parse(from)
	if err != nil {
		panic(err) // a URL that this package made
	}
	u.Host = host
	return u.String()
}

// Delay makes everything take longer by up on its way to the server, and by down on
// its way back. What follows closely is delayed as much, not more.
func (p *Proxy) Delay(up, down time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
}

// Cut resets all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.abort()
	}
}

// Blackhole lets all bytes vanish, in both directions, while connections stay open
// and new ones are taken; neither side learns that the other hung up. When it is
// off again, connections that lost something are cut and the others go on.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = on
	for l := range p.links {
		if !on && l.lost && !l.hole {
			l.abort()
		}
	}
}

// Refuse resets new connections as soon as they come. Open ones stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Connections is how many connections are open now.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Accepted is how many connections there have been, without those refused.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.Cut()
	p.work.Wait()
	p.Disarm()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if l := p.admit(client); l != nil {
			p.work.Go(l.run)
		}
	}
}

// admit takes a connection in, or resets it.
func (p *Proxy) admit(client net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		reset(client)
		return nil
	}
	l := &link{proxy: p, client: client, talk: newTalk(), dead: make(chan struct{})}
	p.links[l] = struct{}{}
	p.accepted++
	return l
}

// reset closes so that the other side sees a reset, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	c.Close()
}
