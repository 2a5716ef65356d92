package call

import (
	"context"

	"github.com/placet-dev/placet/txn"
)

// mayJoin refuses a call from outside whose run id is somebody else's: its start would
// count on their guards, and it would hang among their calls. A run id belongs to whoever
// used it first; an agent's run takes no calls but those of its steps. A library's own
// calls are trusted.
func mayJoin(tx Tx, c Call) error {
	if c.OwnRun || c.Hosted() || c.Metadata["origin"] == "" {
		return nil
	}
	use, err := tx.RunUse(c.Space, c.RunID)
	if err != nil {
		return err
	}
	if use.Run || use.Calls && (c.Principal == "" || use.Principal != c.Principal) {
		return ErrCallConflict.Say("The run id %q is in use for other work.", c.RunID).Hint("Leave run_id out, or choose one that nobody else uses.")
	}
	return nil
}

// mayJoin looks at that before anything is judged. The transaction that stores the call
// looks again.
func (e *Executor) mayJoin(ctx context.Context, c Call) error {
	if c.OwnRun {
		return nil
	}
	return txn.View(ctx, e.conf.Store, func(tx Tx) error { return mayJoin(tx, c) })
}
