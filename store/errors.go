package store

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// What every backend says alike.
var (
	// ErrNewer: a newer Placet has changed this store so that this one may no longer
	// write it, or no longer read it. Matches [txn.ErrNotCommitted].
	ErrNewer = fault.Sentinel(fault.Conflict, "schema_newer", "The database is newer than this program.", txn.ErrNotCommitted)
	// ErrUnreadable: a read failed for a reason of the store's; it may work later.
	ErrUnreadable = fault.Sentinel(fault.Unavailable, "store_unreadable", "The store could not be read.")
	// ErrLong: a View took longer than a second.
	ErrLong = fault.Sentinel(fault.Unavailable, "view_too_long", "This read took longer than a second and was ended.").
		Hint("Read less at a time.")

	// ErrClosed, ErrReadOnly and ErrNested are of Update and View on a store that is
	// closed, that was opened for reading only, and inside a closure.
	ErrClosed   = txn.ErrClosed
	ErrReadOnly = txn.ErrNotCommitted.Say("The store was opened for reading only; nothing was changed.")
	ErrNested   = txn.ErrNotCommitted.Say("Update or View was called inside a closure, which would wait for itself.").
			Hint("Use the closure's own Tx.")
	// ErrOver: a Tx was kept beyond its closure.
	ErrOver = errors.New("this Tx belongs to a closure that has returned")
)

// NotBegun is for a caller that left before its closure began. It matches ctx.Err(),
// and the context's own cause where it has one.
func NotBegun(ctx context.Context) error {
	why := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, why) {
		why = errors.Join(why, cause)
	}
	return txn.ErrNotCommitted.Say("The wait for the store ended before it began; nothing was changed.").Because(why)
}
