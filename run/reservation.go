package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Reservation is an attempt whose start is committed, for the caller to carry out.
type Reservation struct {
	RunID   string
	StepID  string
	CallID  string // the key by which the tool recognises a repeat: the same for each attempt
	Attempt int64
	Fence   int64
	Tool    string
	Args    json.RawMessage // exactly what runs
	// Deadline is when the tool's time limit has passed. The lease is not renewed after
	// it: what is not confirmed by its end is an interrupted step.
	Deadline time.Time

	life context.Context
}

// Within ends with ctx, at the deadline, and with the session's lease: what carries
// the call out should stop then, and is to be confirmed even so.
func (r Reservation) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, r.Deadline)
	if r.life == nil {
		return ctx, cancel
	}
	bound, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { end(context.Cause(r.life)) })
	return bound, func() { stop(); end(nil); cancel() }
}

// Reserve is for a caller that runs the tool itself. It judges the step once more
// and commits the start: attempt, fence, lease, the grant spent. If the verdict is
// allowed, exactly the reservation's arguments are to be run now, once, and their
// outcome told by Confirm. With any other verdict there is no reservation, and
// nothing may be run.
func (o *OpenStep) Reserve(ctx context.Context) (Reservation, Verdict, error) {
	var res Reservation
	v, err := o.work(ctx, reserves, o.decided, func(s *session) error {
		if err := o.goOn(ctx, s); err != nil {
			return err
		}
		if a := o.in.s.reserved; a != nil {
			o.reserved.Store(a)
			res = o.in.s.reservation(a)
		}
		return nil
	})
	return res, v, err
}

// reservation is what the caller is told of an attempt that it carries out.
func (s *session) reservation(a *attempt) Reservation {
	c, n := a.st.Call(), a.st.Attempt()
	deadline := time.Now().Add(a.c.Tool().Timeout())
	s.keeper.bind(deadline)
	return Reservation{
		RunID: c.RunID, StepID: c.StepID, CallID: c.ID, Attempt: n.N, Fence: n.Fence,
		Tool: c.Tool, Args: a.c.Runs(), Deadline: deadline, life: s.life,
	}
}

// errUnreported is the outcome of a reserved attempt whose session was closed.
var errUnreported = tool.ErrOutcomeUnknown.Say("The session was closed before it was told how the tool ended.")

// Confirm records how a reserved attempt went, sorted as if the registered tool had
// returned the same: tool.ErrNotStarted, tool.ErrOutcomeUnknown and tool.ErrAbort mean
// what they mean there, and a result has to be one JSON value. It is recorded even
// where ctx has ended.
//
// After the lease was lost ([ErrLeaseLost]), the run cancelled or the session closed
// the outcome is recorded as late, on its attempt, and never settles the step. Where
// storing fails Confirm may be repeated.
func (o *OpenStep) Confirm(ctx context.Context, result json.RawMessage, toolErr error) (Verdict, error) {
	s := o.in
	if o.reserved.Load() == nil {
		return Verdict{}, o.errNotReserved()
	}
	s.op.Lock() // not refused beside a Close: what the caller knows is not to be lost
	defer s.op.Unlock()
	a := o.reserved.Load()
	if a == nil {
		return Verdict{}, o.errNotReserved()
	}
	out := a.c.OutcomeOf(result, toolErr)
	late, err := o.confirm(ctx, a, out)
	if late {
		if stored := s.s.storeLate(a.c, a.st, out); stored != nil {
			return Verdict{}, a.st.Unstored(stored)
		}
		s.stale = true // as is what it was settled as meanwhile
	}
	if late || err == nil {
		o.reserved.Store(nil)
		s.s.reserved = nil
		s.s.keeper.bind(time.Time{})
	}
	v, err := o.leave(ctx, err)
	v.Late = late
	return v, err
}

func (o *OpenStep) errNotReserved() error {
	return ErrRunState.Say("Step %d has no reserved attempt that waits to be confirmed.", o.index)
}

// confirm records an outcome as the step's, unless it is late for that.
func (o *OpenStep) confirm(ctx context.Context, a *attempt, out call.Outcome) (late bool, err error) {
	s := o.in
	if s.closed {
		return true, nil
	}
	if err := s.learn(context.WithoutCancel(ctx)); err != nil {
		return false, err
	}
	switch now := s.s.known(); {
	case now.Status.Terminal():
		return true, nil
	case now.Current.ID != o.id || now.Current.Status != Executing:
		told, err := s.s.told(context.WithoutCancel(ctx), a, out)
		return !told && err == nil, err
	}
	s.s.reach = holds
	err = s.s.finish(ctx, a.c, a.st, out)
	return errors.Is(err, errOver) || errors.Is(err, ErrLeaseLost), err
}

// told reports whether an earlier try has stored an outcome: else others have moved the
// run meanwhile.
func (s *session) told(ctx context.Context, a *attempt, out call.Outcome) (told bool, err error) {
	err = txn.View(ctx, s.e.conf.Store, func(tx Tx) error {
		n, err := tx.Attempt(a.st.Attempt().CallID, a.st.Attempt().N)
		told = n.Outcome == out.Status
		return err
	})
	return told, err
}
