package run

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
)

// writing is one transaction that changes a run.
type writing struct {
	tx   Tx
	run  Run
	hold Hold
	now  time.Time // the engine's clock
	ch   Change
}

// step applies a command to what the transaction makes of the run.
func (w *writing) step(cmd Command) (err error) {
	w.ch, err = w.ch.Then(cmd, w.now)
	return err
}

// tell appends the events so far, where the stream has to have them before what a
// call writes.
func (w *writing) tell() error {
	es := w.ch.Events
	w.ch.Events = nil
	return w.tx.Append(w.run.Stream(), es...)
}

// change writes what fn makes of r, which has to stand in the store as it was read:
// decision.ErrMoved where it does not. The answers are the run as it is stored then,
// and the step that ended where the next one was claimed.
func (e *engine) change(tx Tx, r Run, fn func(w *writing) error) (next Run, ended *Step, err error) {
	if err := tx.LockRun(r); err != nil {
		return Run{}, nil, err
	}
	w := &writing{tx: tx, run: r, now: e.clock(tx), ch: Change{Next: r}}
	if err := fn(w); err != nil {
		return Run{}, nil, err
	}
	if err := tx.PutRun(r, w.ch); err != nil {
		return Run{}, nil, err
	}
	next, err = stored(tx, r.Version, w.ch)
	return next, w.ch.Ended, err
}

// writeTries is how often a write is tried again because the run's row moved
// under it without the run being lost: an event was appended, or a lease renewed.
const writeTries = 5

// write changes the run in one transaction, guarded by the fence. Where it was lost
// or ended by others the answer is [ErrLeaseLost] or errOver, and nothing is
// written; errAgain where only what fn compares has moved.
func (s *session) write(ctx context.Context, fn func(w *writing) error) error {
	for range writeTries {
		r := s.known()
		asked := time.Now()
		var next Run
		var ended *Step
		err := s.e.update(ctx, func(tx Tx) (err error) {
			next, ended, err = s.e.change(tx, r, func(w *writing) error {
				w.hold = s.e.take(tx).hold(r.Fence)
				return fn(w)
			})
			return err
		})
		if err == nil {
			s.adopt(next, ended, asked)
			return nil
		}
		if !errors.Is(err, decision.ErrMoved) {
			return err
		}
		moved, err := s.refresh(ctx)
		if err != nil {
			return err
		}
		if !moved {
			return errAgain
		}
	}
	return ErrRunState.Say("Run %s changed %d times in a row while it was written.", s.known().ID, writeTries).Hint("Try again.")
}

// resumeInto takes the lease and writes what then in one transaction.
func (e *engine) resumeInto(ctx context.Context, p paused, then func(s *session, w *writing) error) (*session, Run, error) {
	return e.takeInto(ctx, p.run, func(t Take) Command { return Resume{t} }, then)
}

// takeInto commits a taking of the lease together with what then writes.
func (e *engine) takeInto(ctx context.Context, r Run, take func(Take) Command, then func(s *session, w *writing) error) (*session, Run, error) {
	asked := time.Now()
	s := newSession(ctx, e, r)
	var next Run
	err := e.update(ctx, func(tx Tx) (err error) {
		next, _, err = e.change(tx, r, func(w *writing) error {
			t := e.take(tx)
			if err := w.step(take(t)); err != nil {
				return err
			}
			w.run = w.ch.Next // as it is held now
			w.hold = t.hold(w.run.Fence)
			if err := w.tell(); err != nil {
				return err
			}
			return then(s, w)
		})
		return err
	})
	if err != nil {
		s.cancel(nil)
		return nil, r, err
	}
	s.run = next
	s.keep(asked)
	tellBegun(ctx)
	if next.Status != Running {
		s.close()
		return nil, next, nil
	}
	return s, next, nil
}

// stillWaiting changes a waiting run without taking its lease.
func (e *engine) stillWaiting(ctx context.Context, p paused, fn func(w *writing) error) (*session, Run, error) {
	var next Run
	err := e.update(ctx, func(tx Tx) (err error) {
		next, _, err = e.change(tx, p.run, fn)
		return err
	})
	if err != nil {
		return nil, p.run, err
	}
	return nil, next, nil
}

// stored is a change as it stands in the store: with its version and head.
func stored(tx Tx, version int64, ch Change) (Run, error) {
	r := ch.Next
	h, err := tx.Head(r.Stream())
	r.Head, r.Version = h, version+1
	return r, err
}
