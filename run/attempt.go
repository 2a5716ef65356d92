package run

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// carryOut starts the tool, calls it and records how it went.
func (s *session) carryOut(ctx context.Context, c *call.Case) error {
	st, asked, err := s.start(ctx, c)
	if errors.Is(err, call.ErrGuardRefused) {
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, call.KindGuardRefused, messageOf(err)) })
	}
	if err != nil {
		return err
	}
	return s.carry(ctx, c, st, asked)
}

// carry calls the tool of an attempt whose start is committed and records how it
// went, unless its caller is to do that.
func (s *session) carry(ctx context.Context, c *call.Case, st call.Started, asked time.Time) error {
	if out := s.tardy(asked); out != nil {
		return s.finish(ctx, c, st, *out)
	}
	if s.reach == reserves {
		s.reserved = &attempt{c, st}
		return nil
	}
	told := make(chan struct{})
	out := s.invoke(ctx, c, st, told)
	unknown, err := s.conclude(ctx, c, st, out)
	close(told)
	return s.concluded(ctx, st, unknown, err)
}

// attempt is one that somebody else carries out.
type attempt struct {
	c  *call.Case
	st call.Started
}

func messageOf(err error) string { return fault.From(err).Message }

// start commits the start of an attempt, the policy's word before it.
func (s *session) start(ctx context.Context, c *call.Case) (st call.Started, asked time.Time, err error) {
	asked = time.Now() // monotonic: taken before the commit is asked for
	err = s.write(ctx, func(w *writing) (err error) {
		st, err = s.e.start(w, c)
		return err
	})
	return st, asked, err
}

// tardy is the outcome of an attempt whose tool is not called because storing its
// start took most of the lease (design §4, rule 4).
func (s *session) tardy(asked time.Time) *call.Outcome {
	if time.Since(asked) < s.e.conf.LeaseTTL*2/3 {
		return nil
	}
	return &call.Outcome{
		Status: call.Failed, Kind: call.KindNotStarted,
		Message: "Storing the start took longer than two thirds of the lease; the tool was not called.",
	}
}

// invoke calls the tool. What one that was given up answers later is recorded only
// once what the run made of it is told: a late word never comes first.
func (s *session) invoke(ctx context.Context, c *call.Case, st call.Started, told <-chan struct{}) call.Outcome {
	ctx, stop := s.within(ctx)
	defer stop()
	return s.e.calls.Invoke(ctx, c, st, s.keeper.holds, func(late call.Outcome) {
		<-told
		s.recordLate(c, st, late)
	})
}

// writeOutcome bounds how long an outcome is tried to be written after the tool
// returned; then the lease ends and the outcome is unknown.
const writeOutcome = 30 * time.Second

// finish records an outcome, and settles one that is not known.
func (s *session) finish(ctx context.Context, c *call.Case, st call.Started, out call.Outcome) error {
	unknown, err := s.conclude(ctx, c, st, out)
	return s.concluded(ctx, st, unknown, err)
}

// conclude records an outcome, also where ctx has ended, and claims the next step.
// unknown: what became of the tool is still to be found out.
func (s *session) conclude(ctx context.Context, c *call.Case, st call.Started, out call.Outcome) (unknown bool, err error) {
	end := func(outer context.Context, unmoved bool) error {
		return s.write(outer, func(w *writing) error {
			unknown = false
			c.Moved(w.run.ApprovalN)
			ended, err := s.e.calls.End(w.tx, c, st, out, false, unmoved)
			if err != nil {
				return err
			}
			if ended.Call.Status == call.Unknown {
				unknown = ended.Asked == nil
				return s.doubt(w, c, ended.Asked, out.Message)
			}
			known := outcomeOf(ended.Call) // what the call holds, whoever told it first
			known.Abort = out.Abort
			return s.outcome(ctx, w, known)
		})
	}
	err = s.persist(ctx, func(outer context.Context) error {
		err := end(outer, true)
		if errors.Is(err, errAgain) { // its lease was renewed since
			err = end(outer, false)
		}
		return err
	})
	if errors.Is(err, errOver) || errors.Is(err, ErrLeaseLost) {
		s.recordLate(c, st, out)
	}
	return unknown, err
}

func (s *session) concluded(ctx context.Context, st call.Started, unknown bool, err error) error {
	switch {
	case errors.Is(err, errOver), errors.Is(err, ErrLeaseLost):
		return err
	case err != nil:
		return st.Unstored(err)
	case unknown && !s.closing:
		return s.settle(ctx)
	}
	return nil
}

// outcome is what the step learns of a tool that ended.
func (s *session) outcome(ctx context.Context, w *writing, out call.Outcome) error {
	o := Observe{Hold: w.hold, Kind: ToolResult, Result: string(out.Result)}
	if out.Status != call.Succeeded {
		o.Kind, o.Message = ToolError, out.Message
	}
	if err := w.step(o); err != nil {
		return err
	}
	if out.Abort {
		return w.step(End{Hold: w.hold, Status: Failed, Reason: ToolAbort, Detail: out.Message})
	}
	return s.next(ctx, w)
}

// doubt notes that an outcome is unknown: the run waits for a person where only they
// can say what is to become of it.
func (s *session) doubt(w *writing, c *call.Case, asked *decision.Decision, why string) error {
	if err := w.step(Interrupt{w.hold, why}); err != nil || asked == nil {
		return err
	}
	return w.step(Pause{w.hold, *asked, c.Call().ID})
}

// recordLate writes the outcome of an attempt whose run went on, or ended, without
// it. Nobody waits for it any more, so a failure is logged.
func (s *session) recordLate(c *call.Case, st call.Started, out call.Outcome) {
	if err := s.storeLate(c, st, out); err != nil {
		a := st.Attempt()
		s.e.conf.Log.Error("a late outcome could not be stored", "call", a.CallID, "attempt", a.N, "status", out.Status, "error", err)
	}
}

func (s *session) storeLate(c *call.Case, st call.Started, out call.Outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeOutcome)
	defer cancel()
	return txn.Retry(ctx, func() error {
		return s.e.update(ctx, func(tx Tx) error {
			r, err := tx.Run(c.Call().RunID)
			if err != nil {
				return err
			}
			_, err = s.e.calls.End(tx, c, st, out, r.Status.Terminal(), false)
			return err
		})
	})
}

// persist repeats a write that the outcome of a tool hangs on, also where ctx has
// ended. Where it is not known whether it was committed, the run tells.
func (s *session) persist(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeOutcome)
	defer cancel()
	before := s.known()
	return txn.Retry(ctx, func() error {
		err := write(ctx)
		if !errors.Is(err, txn.ErrUnknown) {
			return err
		}
		r, readErr := s.e.read(ctx, before.ID)
		if readErr == nil && r.Fence == before.Fence && (r.Status != before.Status || r.Current.ID != before.Current.ID || r.Current.Status != before.Current.Status) {
			s.relearn(r)
			if r.Status == Cancelled { // which needs no fence: that tells nothing of this write
				return errOver
			}
			return nil // nobody else can have written that: it was committed
		}
		return err
	})
}
