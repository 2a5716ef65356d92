package call

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// run calls the tool while the lease is kept, and records how it went. The
// outcome is written also when the caller's context has ended.
func (e *Executor) run(ctx context.Context, s subject, st started, args []byte, leased time.Time) (Result, error) {
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keeper := e.keepLease(st, cancel, leased)
	e.working.add()
	out := tool.Invoke(tool.WithStartCheck(runCtx, keeper.holds), s.tool, toolCall(st.call, st.attempt, args), func(o tool.Outcome) {
		defer e.working.done()
		e.recordLate(s, st, outcomeOf(o))
	})
	keeper.stop()
	if !out.Running {
		e.working.done()
	}
	return e.finish(ctx, s, st, outcomeOf(out))
}

func toolCall(c Call, a Attempt, args []byte) tool.Call {
	return tool.Call{CallID: c.ID, RunID: c.RunID, Tool: c.Tool, Attempt: int(a.N), Args: args}
}

func outcomeOf(o tool.Outcome) Outcome {
	return Outcome{Status: Status(o.Status), Kind: Kind(o.Kind), Message: o.Message, Result: o.Result, Abort: o.Abort}
}

// leaseKeeper renews an attempt's lease every third of it, and ends the tool's
// context when the lease ends unrenewed.
type leaseKeeper struct {
	mu      sync.Mutex
	stopped bool
	until   time.Time // when the lease ends unrenewed
	renewal *time.Timer
	end     *time.Timer
}

func (e *Executor) keepLease(st started, cancel context.CancelCauseFunc, leased time.Time) *leaseKeeper {
	k := &leaseKeeper{until: leased.Add(e.conf.Lease)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end = time.AfterFunc(time.Until(k.until), func() { cancel(ErrLeaseLost) })
	k.renewal = time.AfterFunc(e.conf.Lease/3, func() { e.renew(k, st, cancel) })
	return k
}

// holds is [ErrLeaseLost] once the lease ended. It compares the time itself, for a
// process that was stopped: its timers fire only after it went on. The wall
// clock counts as well as the monotonic one, which stands still while a machine
// is suspended.
func (k *leaseKeeper) holds() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.until) && now.Round(0).Before(k.until.Round(0)) {
		return nil
	}
	return ErrLeaseLost.Say("The attempt's lease ended before the tool was started.")
}

func (k *leaseKeeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.renewal.Stop()
	k.end.Stop()
}

// extend moves the end of the lease and plans the next renewal.
func (k *leaseKeeper) extend(from time.Time, lease, next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	if !from.IsZero() {
		k.until = from.Add(lease)
		k.end.Reset(time.Until(k.until))
	}
	k.renewal.Reset(next)
}

func (e *Executor) renew(k *leaseKeeper, st started, cancel context.CancelCauseFunc) {
	asked := time.Now()
	err := txn.Update(context.Background(), e.conf.Store, func(tx Tx) error {
		return Renew(tx, st.call.ID, st.attempt.Fence, st.attempt.Epoch, e.conf.Lease)
	})
	switch {
	case err == nil:
		k.extend(asked, e.conf.Lease, e.conf.Lease/3)
	case errors.Is(err, txn.ErrNotCommitted), errors.Is(err, txn.ErrUnknown):
		k.extend(time.Time{}, e.conf.Lease, e.conf.Lease/12) // the end stands; try again soon
	default:
		cancel(ErrLeaseLost)
	}
}

// Renew extends the lease of a running attempt: [ErrLeaseLost] once it ended,
// was taken over, or belongs to an earlier life of the store. A lease that ended
// never comes back.
func Renew(tx Tx, callID string, fence, epoch int64, lease time.Duration) error {
	c, err := tx.Call(callID)
	if err != nil {
		return err
	}
	if c.Status != Running || c.Fence != fence || c.Epoch != epoch || tx.Now().After(c.LeaseUntil) {
		return ErrLeaseLost.Say("The lease of attempt with fence %d at call %s ended.", fence, callID)
	}
	next := c
	next.LeaseUntil = tx.Now().Add(lease)
	return tx.PutCall(c, next)
}
