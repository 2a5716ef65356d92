package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// waiter is call --wait: it stays with the call that it made until a person has
// decided, then runs it.
type waiter struct {
	*app
	store *store.Store
	conf  *config.Config
	ex    *call.Executor
	tool  string
	until time.Time
}

func (w waiter) do(ctx context.Context, parked *call.PendingError) error {
	err := w.untilDecided(ctx, parked)
	if told := exitCode(0); err != nil && ctx.Err() != nil && !errors.As(err, &told) {
		w.tellParked(ctx, w.store, parked) // interrupted: the call is parked all the same, and its id is worth knowing
		return exitCode(exitParked)
	}
	return err
}

func (w waiter) untilDecided(ctx context.Context, parked *call.PendingError) error {
	for {
		_, _, d, err := w.standing(ctx, parked)
		switch {
		case err != nil:
			return err
		case d.Status != decision.Pending:
			return w.goOn(ctx, parked)
		}
		err = w.watch(ctx, parked, d)
		if errors.Is(err, errWaited) {
			w.tellParked(ctx, w.store, parked)
			return exitCode(exitTimeout)
		}
		if err != nil {
			return err
		}
	}
}

var errWaited = errors.New("the wait is over")

// watch returns when something happened to the call, or when the approval's own
// time is over, which it then ends.
func (w waiter) watch(ctx context.Context, p *call.PendingError, d decision.Decision) error {
	left := remaining(w.until)
	if left == 0 {
		return errWaited
	}
	if !d.ExpiresAt.IsZero() {
		left = min(left, max(time.Millisecond, time.Until(d.ExpiresAt)+time.Millisecond))
	}
	cursor, err := w.end(ctx, p)
	if err != nil {
		return err
	}
	// Whatever came between the reading of d and that cursor is looked at again first.
	if now, err := readApproval(ctx, w.store, p.ApprovalID); err != nil || now.Status != decision.Pending {
		return err
	}
	if _, err = event.Wait(ctx, w.store, event.Waiting{Stream: "call:" + p.CallID, After: cursor, Timeout: left}); err != nil {
		return err
	}
	if now, err := readApproval(ctx, w.store, p.ApprovalID); err == nil && now.Overdue && now.Status == decision.Pending {
		_, err = operator(w.store).Expire(ctx, p.ApprovalID)
		if err != nil && !errors.Is(err, decision.ErrNotPending) {
			return err
		}
	}
	return nil
}

// end is the place behind the last event of the call's stream.
func (w waiter) end(ctx context.Context, p *call.PendingError) (at event.Cursor, err error) {
	err = txn.View(ctx, w.store, func(tx call.Tx) error {
		h, err := tx.Head("call:" + p.CallID)
		at = event.CursorAt(h)
		return err
	})
	return at, err
}

// standing is the call with its last attempt, if any, and the approval.
func (w waiter) standing(ctx context.Context, p *call.PendingError) (c call.Call, last *call.Attempt, d decision.Decision, err error) {
	err = txn.View(ctx, w.store, func(tx call.Tx) error {
		last = nil
		if d, err = tx.Decision(p.ApprovalID); err != nil {
			return err
		}
		if c, err = tx.Call(p.CallID); err != nil {
			return err
		}
		as, err := tx.Attempts(p.CallID)
		if len(as) > 0 {
			last = &as[len(as)-1]
		}
		return err
	})
	return c, last, d, err
}

// goOn carries out the call once it is decided. Where another process was first,
// its outcome is the answer; an expired or cancelled call is one too.
func (w waiter) goOn(ctx context.Context, p *call.PendingError) error {
	envelope, err := json.Marshal(map[string]any{"v": 1, "approval_id": p.ApprovalID})
	if err != nil {
		return err
	}
	res, err := w.ex.Handle(ctx, envelope)
	var again *call.PendingError
	switch {
	case errors.As(err, &again):
		if again.ApprovalID != p.ApprovalID && remaining(w.until) > 0 {
			return w.untilDecided(ctx, again)
		}
		w.tellParked(ctx, w.store, again)
		return exitCode(exitTimeout)
	case errors.Is(err, call.ErrRunning):
		return w.elsewhere(ctx, p, err)
	case errors.Is(err, decision.ErrNotPending):
		c, last, _, serr := w.standing(ctx, p)
		if serr != nil || !c.Status.Terminal() {
			return err
		}
		res, err = call.ResultOf(c, last), nil
	}
	err = w.answer(ctx, w.store, w.tool, w.conf, res, err)
	w.finishLate(ctx, w.ex)
	return err
}

// elsewhere waits for the outcome of a call that another process runs.
func (w waiter) elsewhere(ctx context.Context, p *call.PendingError, running error) error {
	cursor, err := w.end(ctx, p)
	if err != nil {
		return err
	}
	c, _, _, err := w.standing(ctx, p)
	switch {
	case err != nil:
		return err
	case c.Status != call.Running:
		return w.goOn(ctx, p)
	}
	left := remaining(w.until)
	if left == 0 {
		return timedOut{running}
	}
	got, err := event.Wait(ctx, w.store, event.Waiting{Stream: "call:" + p.CallID, After: cursor, Timeout: left})
	switch {
	case err != nil:
		return err
	case got.Outcome == event.TimedOut:
		return timedOut{running}
	}
	return w.goOn(ctx, p)
}
