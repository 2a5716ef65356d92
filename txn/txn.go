// Package txn is the one shape of a transaction: what every engine is given and
// every store provides. It knows no noun.
//
// A closure given to [Update] may run twice. Results leave it only through
// variables that its first statement resets. Update, View and waits are never
// called inside a closure.
package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/placet-dev/placet/fault"
)

// Tx is what every noun's own Tx embeds.
type Tx interface {
	// Now is the store's clock: read after the root's lock is held, then frozen
	// for this closure. UTC, whole microseconds, never earlier than the last
	// commit this process saw.
	Now() time.Time
}

// Store is what every engine is given; the same value serves all of them.
type Store interface {
	// Update runs fn in one write transaction and returns once it is durable.
	// It has three outcomes: nil, durable; an error matching [ErrNotCommitted],
	// nothing was written; [ErrUnknown], the commit was sent and not answered.
	// fn's own error is returned as it is, and nothing was written; so is that of
	// a write of its, which may be held back until fn has returned.
	// ctx is honoured until fn begins; then Update waits for the outcome.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs fn in one read transaction of at most a second.
	View(ctx context.Context, fn func(Tx) error) error
	// Watch registers for news of the named streams, all streams if none is
	// named. A wake is a hint, never the event: register, then read, then sleep.
	// stop releases the registration and may be called twice.
	Watch(streams ...string) (woken <-chan struct{}, stop func())
}

// How a transaction can end badly (spec 4.6).
var (
	// ErrNotCommitted: nothing was written; trying again is safe.
	ErrNotCommitted = fault.Sentinel(fault.Unavailable, "not_committed", "The store did not commit; nothing was changed.")
	// ErrBusy: the store was locked for longer than its busy time-out. Matches ErrNotCommitted.
	ErrBusy = fault.Sentinel(fault.Unavailable, "store_busy", "The store stayed locked for too long; nothing was changed.", ErrNotCommitted)
	// ErrClosed: this process has closed the store. Matches ErrNotCommitted.
	ErrClosed = fault.Sentinel(fault.Unavailable, "store_closed", "The store is closed; nothing was changed.", ErrNotCommitted)
	// ErrUnknown: COMMIT was sent and its answer is not known. Nothing may be started on it.
	ErrUnknown = fault.Sentinel(fault.Unknown, "commit_unknown", "It is not known whether the store committed.")
	// ErrRestored: the store went back in time without placet db restore.
	ErrRestored = fault.Sentinel(fault.Conflict, "restored", "This store went back in time: it holds less than was acknowledged before.")
)

// Update runs fn in one write transaction of s, seen through the noun's own port T.
func Update[T Tx](ctx context.Context, s Store, fn func(T) error) error {
	return s.Update(ctx, through(s, fn))
}

// View runs fn in one read transaction of s, seen through the noun's own port T.
func View[T Tx](ctx context.Context, s Store, fn func(T) error) error {
	return s.View(ctx, through(s, fn))
}

func through[T Tx](s Store, fn func(T) error) func(Tx) error {
	return func(tx Tx) error {
		t, ok := tx.(T)
		if !ok {
			return fmt.Errorf("store %T does not provide the port %T", s, *new(T))
		}
		return fn(t)
	}
}
