package sqlite

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// call is one closure that waits to be run.
type call struct {
	ctx   context.Context
	fn    func(*handle) error
	write func(all bool) error // what fn held back, see store.Backend; nil: fn holds nothing back
	since time.Time
	state atomic.Int32
	news  chan news // holds one: whoever sends never waits for the caller

	// Of the batch it is in.
	h     *handle
	err   error // the closure's own
	wrote bool
	left  bool // the caller has been answered already
}

// news tells a caller how its closure ended.
type news struct {
	err   error
	left  bool // the closure did not return
	panic any  // but panicked with this; nil: it ended its goroutine
}

// A call is waiting until exactly one of two things happens: a batch begins it,
// or it is given up, by its caller or by the writer on its behalf.
const (
	waiting int32 = iota
	begun
	gone
)

func (k *call) begin() bool  { return k.state.CompareAndSwap(waiting, begun) }
func (k *call) giveUp() bool { return k.state.CompareAndSwap(waiting, gone) }

// outcome waits until k is over. Its caller may leave before it has begun.
func (k *call) outcome() error {
	var n news
	select {
	case n = <-k.news:
	case <-k.ctx.Done():
		if k.giveUp() {
			return store.NotBegun(k.ctx)
		}
		n = <-k.news
	}
	return n.answer()
}

// answer is what a closure's caller is told. A closure that did not return ends its
// caller in the same way.
func (n news) answer() error {
	if !n.left {
		return n.err
	}
	if n.panic != nil {
		panic(n.panic)
	}
	runtime.Goexit()
	return nil
}

// refuse answers a call that has not begun.
func (k *call) refuse(err error) {
	if k.giveUp() {
		k.news <- news{err: err}
	}
}

// queue holds the calls that wait, in the order in which they came.
type queue struct {
	mu     sync.Mutex
	in     []*call
	closed bool
	woken  chan struct{}

	out []*call // taken from in; belongs to whoever has the batch
}

// push reports false once the queue is closed.
func (q *queue) push(k *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.in = append(q.in, k)
	q.wake()
	return true
}

func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// await returns once somebody waits; false once the queue is closed.
func (q *queue) await() bool {
	for {
		if q.isClosed() {
			return false
		}
		if q.alive() {
			return true
		}
		<-q.woken
	}
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// close refuses what comes from now on, and wakes the writer.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}

// fill moves what has come in behind what is out.
func (q *queue) fill() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.out) == 0 {
		q.in, q.out = q.out[:0:0], q.in
		return
	}
	q.out = append(q.out, q.in...)
	clear(q.in)
	q.in = q.in[:0]
}

// next begins the first call that is still waiting; nil if none is.
func (q *queue) next() *call {
	for {
		if len(q.out) == 0 {
			q.fill()
		}
		if len(q.out) == 0 {
			return nil
		}
		k := q.pop()
		if k.begin() {
			return k
		}
	}
}

func (q *queue) pop() *call {
	k := q.out[0]
	q.out[0] = nil
	q.out = q.out[1:]
	return k
}

// alive drops the calls given up at the head, and reports whether one waits.
func (q *queue) alive() bool {
	for {
		if len(q.out) == 0 {
			q.fill()
		}
		if len(q.out) == 0 {
			return false
		}
		if q.out[0].state.Load() == waiting {
			return true
		}
		q.pop()
	}
}

// oldest is when the first of those waiting began to wait.
func (q *queue) oldest() time.Time {
	if !q.alive() {
		return time.Now()
	}
	return q.out[0].since
}

// expire tells those who have waited for the lock since before t that the store is busy.
func (q *queue) expire(t time.Time, cause error) {
	for q.alive() && q.out[0].since.Before(t) {
		q.pop().refuse(txn.ErrBusy.Because(cause))
	}
}

// refuse answers all who wait now. Who comes meanwhile, perhaps to try again, is
// not told of a failure from before.
func (q *queue) refuse(err error) {
	q.fill()
	for n := len(q.out); n > 0; n-- {
		q.pop().refuse(err)
	}
}
