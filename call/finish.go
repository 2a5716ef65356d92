package call

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// writeOutcome bounds how long an outcome is tried to be written after the
// tool returned; then the lease ends and the call is unknown.
const writeOutcome = 30 * time.Second

// finish records how an attempt went and answers the caller. It goes on when the
// caller's context has ended, and retries what is known not to be committed.
func (e *Executor) finish(ctx context.Context, s subject, st started, out Outcome) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeOutcome)
	defer cancel()
	var next Call
	var asked *decision.Decision
	write := func(asStarted bool) error {
		return event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) error {
			next, asked = Call{}, nil
			c, err := st.read(tx, asStarted)
			if err == nil {
				next, asked, err = e.end(tx, s, c, st.attempt, End{Outcome: out})
			}
			return err
		})
	}
	err := txn.Retry(ctx, func() error {
		// Nearly always the call still stands as its start wrote it.
		err := write(true)
		if errors.Is(err, decision.ErrMoved) {
			err = write(false)
		}
		return err
	})
	if err != nil {
		return Result{}, errUnstored(st, err)
	}
	res := resultOf(next)
	res.edited(st.attempt)
	if asked != nil {
		res.ApprovalID = asked.ID
	}
	return res, nil
}

// errUnstored says that an attempt was begun and that its outcome is in no store:
// never that nothing happened, whatever the store says of the last write.
func errUnstored(st started, err error) error {
	e := txn.ErrUnknown.Say("Call %s was started (attempt %d), but how it ended could not be stored: %s", st.call.ID, st.attempt.N, err).
		Hint("Look at it: placet show %s.", st.call.ID)
	if errors.Is(err, txn.ErrNotCommitted) {
		return e
	}
	return e.Because(err)
}

// recordLate writes an outcome that came after its attempt was given up. Nobody
// waits for it any more, so a failure is logged.
func (e *Executor) recordLate(s subject, st started, out Outcome) {
	if _, err := e.finish(context.Background(), s, st, out); err != nil {
		e.conf.Log.Error("a late outcome could not be stored", "call", st.call.ID, "attempt", st.attempt.N, "status", out.Status, "error", err)
	}
}

// read locks the call and gives it as its start wrote it, or as it is stored.
func (st started) read(tx Tx, asStarted bool) (Call, error) {
	if asStarted {
		return st.call, tx.LockCall(st.call.ID)
	}
	return tx.Call(st.call.ID)
}

// end writes an outcome: to the attempt always, to the call while it is the
// last attempt's to say (spec 2.3).
func (e *Executor) end(tx Tx, s subject, c Call, a Attempt, cmd End) (_ Call, _ *decision.Decision, err error) {
	out := cmd.Outcome
	stored := a // the row of an attempt that still runs is as its start wrote it
	if c.Status != Running || c.Fence != a.Fence || c.Epoch != a.Epoch {
		if stored, err = tx.Attempt(a.CallID, a.N); err != nil {
			return c, nil, err
		}
		if stored.Fence != a.Fence || stored.Epoch != a.Epoch {
			return c, nil, ErrLeaseLost.Say("Attempt %d at call %s is not this one any more.", a.N, c.ID)
		}
		if stored.Outcome == out.Status || stored.Outcome != "" && out.Status == Unknown {
			return c, nil, nil // written by an earlier try whose answer was lost, or known better by now
		}
	}
	now := tx.Now()
	cmd.Fence, cmd.Epoch = a.Fence, a.Epoch
	ch, err := c.Step(cmd, now)
	if err != nil {
		return c, nil, err
	}
	if err := endAttempt(tx, stored, out, ch.Late, now); err != nil {
		return c, nil, err
	}
	if ch.Late && !ch.Ignored && c.Status == Unknown {
		if err := e.answerLate(tx, c); err != nil {
			return c, nil, err
		}
	}
	if err := e.freeGuards(tx, s, ch.Next); err != nil {
		return c, nil, err
	}
	if ch.Next.Status == Unknown && c.Status == Running && recoveryOf(s.tool) == RecoverByPerson && !cmd.Late {
		s.attempt = &a // the one in doubt; s was read before it began
		return e.putDoubt(tx, s, c, ch)
	}
	return ch.Next, nil, tx.PutCall(c, ch.Next, ch.Events...)
}

func endAttempt(tx Tx, a Attempt, out Outcome, late bool, now time.Time) error {
	next := a
	next.Outcome, next.Kind, next.Message, next.Late = out.Status, out.Kind, out.Message, late
	if next.EndedAt.IsZero() || late {
		next.EndedAt = now
	}
	return tx.PutAttempt(a, next)
}

// answerLate closes the question that an outcome learnt late has answered: a
// pending one is withdrawn, a yes that was not spent is superseded. One whose run
// has ended stays as it is.
func (e *Executor) answerLate(tx Tx, c Call) error {
	if c.ApprovalID == "" {
		return nil
	}
	d, err := tx.Decision(c.ApprovalID)
	if err != nil {
		return err
	}
	now := e.clock(tx)
	var ch decision.Change
	switch {
	case !d.Open:
		return nil
	case d.Status == decision.Pending:
		ch, err = d.Step(decision.Withdraw{By: event.System, Note: "The outcome became known.", ByRuntime: true}, now)
	default:
		ch, err = d.Step(decision.Supersede{}, now)
	}
	if err != nil {
		return err
	}
	return tx.PutDecision(d, ch)
}
