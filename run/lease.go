package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/txn"
)

// processName names this process to people.
var processName = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
})

// keeper renews a run's lease every third of it, and ends the session's context
// when the lease ends unrenewed. Whatever the loop writes extends the lease as well,
// so it mostly has nothing to do.
type keeper struct {
	ttl time.Duration

	mu      sync.Mutex
	until   time.Time // when the lease ends unrenewed, by this process's monotonic clock
	bound   time.Time // not renewed after it; zero: no such bound
	stopped bool
	timer   *time.Timer
}

func (s *session) keep(asked time.Time) {
	k := &s.keeper
	k.ttl, k.until = s.e.conf.LeaseTTL, asked.Add(s.e.conf.LeaseTTL)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(k.ttl/3, s.tick)
}

// extend notes that the lease was extended by a write that was asked for then.
func (k *keeper) extend(asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if until := asked.Add(k.ttl); until.After(k.until) {
		k.until = until
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	if k.timer != nil { // nil: nothing was kept
		k.timer.Stop()
	}
}

// bind lets the lease end, unrenewed, after the deadline of what somebody else
// carries out; the zero time takes that back.
func (k *keeper) bind(deadline time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bound = deadline
}

func (k *keeper) overdue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.bound.IsZero() && time.Now().After(k.bound)
}

// left is how much of the lease is left, and whether anybody still keeps it.
func (k *keeper) left() (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Until(k.until), !k.stopped
}

func (k *keeper) next(after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.timer.Reset(after)
	}
}

// holds is [ErrLeaseLost] once the lease ended, for a tool that is about to begin.
// The wall clock counts as well as the monotonic one, which stands still while a
// machine is suspended.
func (k *keeper) holds() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.until) && now.Round(0).Before(k.until.Round(0)) {
		return nil
	}
	return ErrLeaseLost.Say("The run's lease ended before the tool was started.")
}

// tick renews a lease of which a third has passed.
func (s *session) tick() {
	k := &s.keeper
	left, kept := k.left()
	switch {
	case !kept:
		return
	case left <= 0:
		s.cancel(ErrLeaseLost)
		return
	case left > k.ttl*2/3: // a write of the loop has extended it
		k.next(left - k.ttl*2/3)
		return
	case k.overdue():
		k.next(left) // nobody reported in time: the lease ends, and the step is interrupted
		return
	}
	asked := time.Now()
	err := s.renew()
	switch {
	case err == nil:
		k.extend(asked)
		k.next(k.ttl / 3)
	case errors.Is(err, txn.ErrNotCommitted), errors.Is(err, txn.ErrUnknown):
		k.next(min(k.ttl/12, left)) // the end stands; try again soon
	case errors.Is(err, errOver): // the loop finds out at its next write
		k.stop()
	default:
		s.cancel(ErrLeaseLost)
	}
}

func (s *session) renew() error {
	r := s.known()
	var until time.Time
	err := txn.Update(context.Background(), s.e.conf.Store, func(tx Tx) error {
		if err := tx.LockRun(r); err != nil { // before the clock is read
			return err
		}
		until = tx.Now().Add(s.e.conf.LeaseTTL)
		held, err := tx.RenewRun(r.ID, r.Fence, until)
		switch {
		case err != nil:
			return err
		case !held:
			return r.gone(tx)
		case r.Current.Status == Executing && r.Current.CallID != "":
			return call.RenewHosted(tx, r.Current.CallID, until)
		}
		return nil
	})
	if err == nil {
		s.renewed(r.Fence, until)
	}
	return err
}

// gone says why a lease cannot be renewed: another process took the run over, or it
// has ended. Of an ended one nobody else starts anything, and a tool that runs for it
// is not interrupted (spec 1.4).
func (r Run) gone(tx Tx) error {
	now, err := tx.Run(r.ID)
	switch {
	case err != nil:
		return err
	case now.Status.Terminal() && now.Fence == r.Fence:
		return errOver
	}
	return r.errLost()
}

// renewed notes the lease's new end, which what the loop writes is judged by.
func (s *session) renewed(fence int64, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := &s.run; r.Status == Running && r.Fence == fence && !r.LeaseUntil.IsZero() && until.After(r.LeaseUntil) {
		r.LeaseUntil = until
	}
}
