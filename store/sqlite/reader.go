package sqlite

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/placet-dev/placet/store"
)

// readers are the connections that only read: a few, each opened when all that
// are open are in use, and kept.
type readers struct {
	e     *engine
	slots chan struct{} // one for each read that may run
	quit  chan struct{}

	mu   sync.Mutex
	idle []*reader
}

// reader is a connection and the goroutine that uses it. SQLite needs a deep stack:
// here it is grown once, and whoever waits long after a read of its own holds none.
type reader struct {
	c  *conn // nil once it was given up
	in chan *view
}

// view is one closure that reads.
type view struct {
	ctx  context.Context
	fn   func(*handle) error
	news chan news // holds one
}

func newReaders(e *engine) *readers {
	p := &readers{e: e, slots: make(chan struct{}, e.o.Readers), quit: make(chan struct{})}
	for range e.o.Readers {
		p.slots <- struct{}{}
	}
	return p
}

func (p *readers) take(ctx context.Context) (*reader, error) {
	select {
	case <-p.quit: // first: where both are ready, a select takes either
		return nil, store.ErrClosed
	default:
	}
	select {
	case <-p.slots:
	case <-p.quit:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, store.NotBegun(ctx)
	}
	if r := p.pop(); r != nil {
		return r, nil
	}
	c, err := p.open()
	if err != nil {
		p.slots <- struct{}{}
		return nil, err
	}
	r := &reader{c: c, in: make(chan *view, 1)}
	go p.loop(r)
	return r, nil
}

func (p *readers) pop() *reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	r := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return r
}

// open opens another connection, to the same file as the others.
func (p *readers) open() (*conn, error) {
	if err := p.e.file.replaced(); err != nil {
		return nil, err
	}
	mode := "mode=ro" // closing it folds nothing; see readMode
	if p.e.writer == nil {
		mode = readMode(p.e.path)
	}
	c, err := openConn(dsn(p.e.path, forReading, p.e.o.BusyTimeout, mode))
	if err != nil {
		return nil, openError(p.e.path, err)
	}
	return c, nil
}

// give makes r free for the next one, unless it has no connection any more.
func (p *readers) give(r *reader) {
	if r.c != nil {
		p.mu.Lock()
		p.idle = append(p.idle, r)
		p.mu.Unlock()
	} else {
		close(r.in)
	}
	p.slots <- struct{}{}
}

// close waits for the reads that are under way.
func (p *readers) close() (err error) {
	close(p.quit)
	for range p.e.o.Readers {
		<-p.slots
	}
	for r := p.pop(); r != nil; r = p.pop() {
		close(r.in)
		if e := r.c.close(); err == nil {
			err = e
		}
	}
	return err
}

// read runs fn in one read transaction.
func (p *readers) read(ctx context.Context, fn func(*handle) error) error {
	if err := p.e.gate.enter(ctx); err != nil {
		return err
	}
	defer p.e.gate.leave()
	r, err := p.take(ctx)
	if err != nil {
		return err
	}
	v := &view{ctx: ctx, fn: fn, news: make(chan news, 1)}
	r.in <- v
	return (<-v.news).answer()
}

func (p *readers) loop(r *reader) {
	for v := range r.in {
		p.turn(r, v)
	}
}

// turn runs v's closure. A panic of its, or a Goexit, goes on to its caller; a Goexit
// ends this goroutine too, and another one takes its place.
func (p *readers) turn(r *reader, v *view) {
	n := news{left: true}
	returned := false
	defer func() {
		if !returned {
			if n.panic = recover(); n.panic != nil {
				p.e.o.Logger.Error("a closure panicked", "panic", n.panic, "stack", string(debug.Stack()))
			} else {
				go p.loop(r)
			}
		}
		p.give(r)
		v.news <- n
	}()
	n.err = p.serve(r, v)
	n.left, returned = false, true
}

func (p *readers) serve(r *reader, v *view) error {
	defer p.e.inside()()
	h := &handle{c: r.c, ctx: v.ctx, ends: time.Now().Add(viewLimit)}
	done, err := p.begin(h)
	if err != nil {
		return err
	}
	defer func() {
		if err := done(); err != nil && !r.c.dead {
			p.discard(r, err)
		}
	}()
	if p.e.o.Hooks.Twice {
		_ = p.run(h, v.fn) // what it said the first time does not count
		h.over = false
	}
	return p.run(h, v.fn)
}

func (p *readers) run(h *handle, fn func(*handle) error) error {
	defer func() { h.over = true }()
	h.began = time.Now()
	err := fn(h)
	h.over = true
	p.e.slow(h, time.Now())
	return err
}

// begin takes the snapshot and reads the clock after it. SQLite keeps a snapshot for as
// long as a statement has rows left, so the first one, of the store's row about itself,
// is left unfinished until the end: a BEGIN and a ROLLBACK took half of a short read.
func (p *readers) begin(h *handle) (done func() error, err error) {
	h.c.dead = false
	m, done, err := holdMeta(h.c)
	if err != nil {
		return nil, h.settle(readMetaSQL, err)
	}
	if err := m.mayRead(p.e.schema); err != nil {
		_ = done()
		return nil, err
	}
	p.e.clock.saw(m.lastAt)
	now, _ := p.e.clock.read()
	h.meta, h.now = m, time.UnixMicro(now).UTC()
	return done, nil
}

// discard closes a connection that cannot give its snapshot back: it would keep the
// log from being cut for ever.
func (p *readers) discard(r *reader, why error) {
	p.e.o.Logger.Warn("a read connection is opened again", "path", p.e.path, "why", why)
	_ = r.c.close()
	r.c = nil
}
