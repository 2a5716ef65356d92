package run

import (
	"context"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// engine is what driver and gate share.
type engine struct {
	conf     Config
	calls    *call.Executor
	misuse   error
	stopping chan struct{}
	stop     func()

	gate  bool  // its sessions end when they are closed, not when a caller's context ends
	reach reach // of its sessions, as they begin
}

func newEngine(c Config) *engine {
	e := &engine{misuse: c.Validate(), calls: call.NewExecutor(c.calls()), stopping: make(chan struct{})}
	e.stop = sync.OnceFunc(func() { close(e.stopping) })
	filled := e.calls.Config()
	c.Policy, c.NewID, c.Space, c.LeaseTTL, c.Log = filled.Policy, filled.NewID, filled.Space, filled.Lease, filled.Log
	if c.LeaseOwner == "" {
		c.LeaseOwner = processName()
	}
	if c.DecideTimeout == 0 {
		c.DecideTimeout = DefaultDecideTimeout
	}
	e.conf = c
	return e
}

func (e *engine) clock(tx txn.Tx) time.Time {
	return txn.Clock(e.conf.Now, tx)
}

func (e *engine) operator() decision.Operator {
	return decision.Operator{Store: e.conf.Store, Observer: e.conf.Observer, Now: e.conf.Now, MayOwn: true}
}

func (e *engine) update(ctx context.Context, fn func(Tx) error) error {
	return event.Update(ctx, e.conf.Store, e.conf.Observer, fn)
}

func (e *engine) take(tx Tx) Take {
	return Take{Owner: e.conf.LeaseOwner, Epoch: tx.Epoch(), At: tx.Now(), Until: tx.Now().Add(e.conf.LeaseTTL)}
}

func (e *engine) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// read is a run as it is stored, of this engine's space.
func (e *engine) read(ctx context.Context, runID string) (Run, error) {
	var r Run
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		r, err = e.find(tx, runID)
		return err
	})
	return r, err
}

func (e *engine) find(tx Tx, runID string) (Run, error) {
	r, err := tx.Run(runID)
	if err == nil && r.Space != e.conf.Space {
		err = ErrNotFound.Say("There is no run %s.", runID)
	}
	return r, err
}
