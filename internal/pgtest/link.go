package pgtest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

const (
	gathered = 64 << 10 // bytes after which messages are passed on though more have come
	queued   = 1024     // chunks under way in one direction
)

// link is one connection of a client with its own to the server. For each direction
// one goroutine reads whole messages and decides about them, and one writes them
// when their delay is over.
type link struct {
	proxy  *Proxy
	client net.Conn
	dead   chan struct{} // closed when both connections are

	// The lock of proxy guards what follows.
	server  net.Conn // nil until the client has said what it wants
	over    bool
	talk    *talk
	hole    bool   // nothing comes through any more
	lost    bool   // something did not come through
	struck  *armed // this connection's fault: it has one at most
	awaited *awaited
}

// chunk is what is written in one go, and what happens then.
type chunk struct {
	bytes []byte
	due   time.Time
	then  func()
}

func (l *link) run() {
	defer l.end()
	raw, code, ok := l.greet()
	if !ok {
		return
	}
	server, err := net.Dial("tcp", l.proxy.target)
	if err != nil || !l.attach(server) {
		return
	}
	if code == cancelRequest {
		// The server answers nothing, but hangs up when it has acted.
		if _, err := server.Write(raw); err == nil {
			_, _ = io.Copy(io.Discard, server)
		}
		return
	}
	l.carry(server, raw)
	l.struck.giveUp()
}

// carry takes messages to and fro until both connections are closed.
func (l *link) carry(server net.Conn, startup []byte) {
	up := make(chan chunk, queued)
	up <- chunk{bytes: startup, due: l.due(true)}
	var work sync.WaitGroup
	down := make(chan chunk, queued)
	work.Go(func() { l.read(l.client, up, true, l.fromClient) })
	work.Go(func() { l.write(server, up) })
	work.Go(func() { l.read(server, down, false, l.fromServer) })
	work.Go(func() { l.write(l.client, down) })
	work.Wait()
}

// greet answers what clients ask before they begin (encryption: no), and returns the
// message that they begin with.
func (l *link) greet() (raw []byte, code uint32, ok bool) {
	for {
		raw, code, err := readStartup(l.client)
		if err != nil {
			return nil, 0, false
		}
		if l.vanishes() {
			<-l.dead
			return nil, 0, false
		}
		if code != sslRequest && code != gssRequest {
			return raw, code, true
		}
		if _, err := l.client.Write([]byte("N")); err != nil {
			return nil, 0, false
		}
	}
}

// read passes messages on to out until the source ends or decide says that nothing
// more is to be read.
func (l *link) read(source net.Conn, out chan<- chunk, up bool, decide func(message) verdict) {
	defer close(out)
	r := bufio.NewReaderSize(source, gathered)
	var together []byte
	for {
		m, err := readMessage(r)
		v := verdict{end: err != nil}
		if err == nil {
			v = decide(m)
		} else if !up {
			v = l.serverGone()
		}
		together = append(together, v.pass...)
		if v.then != nil || v.end || r.Buffered() == 0 || len(together) >= gathered {
			select {
			case out <- chunk{bytes: together, due: l.due(up), then: v.then}:
			case <-l.dead:
				return
			}
			together = nil
		}
		if v.end {
			return
		}
	}
}

// write writes what comes when it is due, and hangs up when nothing more comes.
func (l *link) write(to net.Conn, in <-chan chunk) {
	broken := false
	for c := range in {
		if !l.wait(c.due) {
			return
		}
		if len(c.bytes) > 0 && !broken && !l.vanishes() {
			_, err := to.Write(c.bytes)
			broken = err != nil
		}
		if broken && !l.awaits() {
			break
		}
		if c.then != nil {
			c.then()
		}
	}
	// That the other side hung up vanishes like everything else. And what becomes of
	// a COMMIT is to be known though its client does not wait for it.
	if l.vanishes() || l.awaits() {
		<-l.dead
	}
	l.end()
}

func (l *link) awaits() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.awaited != nil
}

func (l *link) due(up bool) time.Time {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if up {
		return time.Now().Add(l.proxy.up)
	}
	return time.Now().Add(l.proxy.down)
}

func (l *link) wait(due time.Time) (alive bool) {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.dead:
		return false
	}
}

// vanishes says whether what would be written now is lost.
func (l *link) vanishes() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	lost := l.hole || l.proxy.hole
	l.lost = l.lost || lost
	return lost
}

func (l *link) attach(server net.Conn) bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.over {
		server.Close()
		return false
	}
	l.server = server
	return true
}

// end hangs up in good order.
func (l *link) end() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.hangUp(func(c net.Conn) { c.Close() })
}

// abort resets the client's connection. Call it under the lock.
func (l *link) abort() { l.hangUp(reset) }

// hangUp lets the server go in good order in any case: what it was sent it is to read.
func (l *link) hangUp(client func(net.Conn)) {
	if l.over {
		return
	}
	l.over = true
	client(l.client)
	if l.server != nil {
		l.server.Close()
	}
	delete(l.proxy.links, l)
	close(l.dead)
}

// verdict is what becomes of a message.
type verdict struct {
	pass []byte
	then func() // after all that was passed so far is written
	end  bool   // nothing more is read
}

func (l *link) fromClient(m message) verdict {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	a := l.talk.fromClient(m)
	if l.awaited != nil {
		l.awaited.flushed = l.awaited.flushed || m.kind() == 'H'
		return verdict{pass: m}
	}
	if !a.commits || l.over || l.hole {
		return verdict{pass: m}
	}
	f := l.proxy.disarm(a.texts)
	if f == nil {
		return verdict{pass: m}
	}
	l.struck = f
	switch f.kind {
	case cutBefore:
		return verdict{then: l.cut(f), end: true}
	case dropCommit:
		return verdict{then: l.drop(f)}
	default:
		l.awaited = &awaited{fault: f, asked: a}
		return verdict{pass: m}
	}
}

func (l *link) fromServer(m message) verdict {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	a := l.talk.fromServer(m)
	w := l.awaited
	if w == nil {
		return verdict{pass: m}
	}
	if !w.take(m, a) {
		return verdict{}
	}
	v := verdict{then: l.cut(w.fault), end: true}
	if w.fault.kind == cutInAnswer {
		v.pass = w.part()
	}
	return v
}

// serverGone reports a fault whose answer will not come.
func (l *link) serverGone() verdict {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.awaited == nil || l.over {
		return verdict{end: true}
	}
	return verdict{then: l.cut(l.awaited.fault), end: true}
}

func (l *link) cut(f *armed) func() {
	return func() {
		l.proxy.mu.Lock()
		l.abort()
		l.proxy.mu.Unlock()
		f.report()
	}
}

func (l *link) drop(f *armed) func() {
	return func() {
		l.proxy.mu.Lock()
		l.hole, l.lost = true, true
		l.proxy.mu.Unlock()
		f.report()
	}
}
