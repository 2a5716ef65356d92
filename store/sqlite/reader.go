package sqlite

import (
	"context"
	"sync"
	"time"
)

const (
	beginReadSQL = `BEGIN`
	endReadSQL   = `ROLLBACK`
)

// readers are the connections that only read: a few, each opened when all that
// are open are in use, and kept.
type readers struct {
	e     *engine
	slots chan struct{} // one for each read that may run
	quit  chan struct{}

	mu   sync.Mutex
	idle []*conn
}

func newReaders(e *engine) *readers {
	p := &readers{e: e, slots: make(chan struct{}, e.o.Readers), quit: make(chan struct{})}
	for range e.o.Readers {
		p.slots <- struct{}{}
	}
	return p
}

func (p *readers) take(ctx context.Context) (*conn, error) {
	select {
	case <-p.quit: // first: where both are ready, a select takes either
		return nil, errClosed
	default:
	}
	select {
	case <-p.slots:
	case <-p.quit:
		return nil, errClosed
	case <-ctx.Done():
		return nil, notBegun(ctx)
	}
	c := p.pop()
	if c != nil {
		return c, nil
	}
	c, err := p.open()
	if err != nil {
		p.slots <- struct{}{}
	}
	return c, err
}

func (p *readers) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c
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

func (p *readers) give(c *conn) {
	if c != nil {
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
	p.slots <- struct{}{}
}

// close waits for the reads that are under way.
func (p *readers) close() (err error) {
	close(p.quit)
	for range p.e.o.Readers {
		<-p.slots
	}
	for c := p.pop(); c != nil; c = p.pop() {
		if e := c.close(); err == nil {
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
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() { p.give(p.end(c)) }()
	h, err := p.begin(ctx, c)
	if err != nil {
		return err
	}
	if p.e.o.Hooks.Twice {
		_ = p.run(h, fn) // what it said the first time does not count
		h.over = false
	}
	return p.run(h, fn)
}

func (p *readers) run(h *handle, fn func(*handle) error) error {
	defer func() { h.over = true }()
	h.began = time.Now()
	err := fn(h)
	h.over = true
	p.e.slow(h, time.Now())
	return err
}

// begin takes the snapshot with its first statement and reads the clock after it.
func (p *readers) begin(ctx context.Context, c *conn) (*handle, error) {
	h := &handle{c: c, ctx: ctx, ends: time.Now().Add(viewLimit)}
	if _, err := c.exec(context.Background(), beginReadSQL); err != nil {
		return nil, h.settle(beginReadSQL, err)
	}
	m, err := readMeta(context.Background(), c)
	if err != nil {
		return nil, h.settle(readMetaSQL, err)
	}
	if err := m.mayRead(p.e.schema); err != nil {
		return nil, err
	}
	p.e.clock.saw(m.lastAt)
	now, _ := p.e.clock.read()
	h.meta, h.now = m, time.UnixMicro(now).UTC()
	return h, nil
}

// end gives the snapshot back. A connection that cannot is closed: its snapshot
// would keep the log from being cut for ever.
func (p *readers) end(c *conn) *conn {
	c.dead = false
	_, err := c.exec(context.Background(), endReadSQL)
	if err == nil || c.dead {
		return c
	}
	p.e.o.Logger.Warn("a read connection is opened again", "path", p.e.path, "why", err)
	_ = c.close()
	return nil
}
