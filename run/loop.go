package run

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// loop works on the run until it waits or ends.
func (s *session) loop(ctx context.Context) (Run, error) {
	defer s.close()
	for {
		r := s.known()
		if r.Status != Running {
			return r, nil
		}
		if err := s.left(ctx); err != nil {
			return r, err
		}
		if err := s.turn(ctx); err != nil {
			s.letGo(ctx, err)
			return s.ended(err)
		}
	}
}

// left is why this process does nothing more with a run that is running; nil: it has
// a step to do.
func (s *session) left(ctx context.Context) error {
	switch r := s.known(); {
	case r.LeaseUntil.IsZero():
		return s.stopped(ctx)
	case !r.Current.Status.open():
		return r.errLost() // the lease ended before the next step could be claimed
	}
	return nil
}

// stopped is why this process gave the run back.
func (s *session) stopped(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.life.Err() != nil:
		return s.known().errLost()
	}
	return ErrStopped
}

// ended is the answer where the loop could not go on.
func (s *session) ended(err error) (Run, error) {
	r := s.known()
	switch {
	case errors.Is(err, errOver):
		return r, nil
	case errors.Is(err, errAgain):
		err = ErrRunState.Say("Something of run %s was changed in the store while it was worked on; nothing was written.", r.ID).
			Hint("Look at it: placet show %s.", r.ID)
	}
	return r, err
}

// turn is one step: the agent decides, and what it decided is recorded, checked,
// judged and carried out.
func (s *session) turn(ctx context.Context) error {
	p, err := s.decide(ctx)
	if err != nil {
		return s.undecided(ctx, err)
	}
	if err := s.record(ctx, p); err != nil {
		return err
	}
	return s.follow(ctx, p)
}

// follow does what a recorded proposal asks for.
func (s *session) follow(ctx context.Context, p Proposal) error {
	why := p.unusable()
	if why == "" && s.known().Flow.Name == "" && (p.Kind == AskApproval || p.Node != "") {
		why = "Only a flow has nodes, and asks for an approval without a tool."
	}
	if why != "" {
		return s.invalid(ctx, why)
	}
	switch p.Kind {
	case Complete:
		return s.write(ctx, func(w *writing) error {
			return w.step(End{Hold: w.hold, Status: Completed, Reason: GoalCompleted, Result: string(p.Result)})
		})
	case Fail:
		return s.write(ctx, func(w *writing) error {
			return w.step(End{Hold: w.hold, Status: Failed, Reason: GoalFailed, Detail: words(p.Text)})
		})
	case AskApproval:
		return s.askNode(ctx, p)
	}
	c, refused := s.e.calls.NewCase(s.site(), p.Tool, p.Args)
	if refused != nil {
		return s.invalid(ctx, refused.Message)
	}
	return s.act(ctx, c)
}

// letGo gives back the lease of a run that could not be gone on with, so that the
// next process need not wait for its end. Where that fails the lease ends by itself.
func (s *session) letGo(ctx context.Context, why error) {
	if errors.Is(why, errOver) || errors.Is(why, ErrLeaseLost) || errors.Is(why, txn.ErrUnknown) {
		return
	}
	if err := s.giveBack(ctx); err != nil {
		s.e.conf.Log.Warn("a run's lease could not be given back; it ends by itself", "run", s.known().ID, "error", err)
	}
}

// giveBack releases the lease. A step that is not carried out yet ends with it.
func (s *session) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeOutcome)
	defer cancel()
	return s.write(ctx, func(w *writing) error {
		if w.run.Current.Status == Deciding {
			err := w.step(Observe{Hold: w.hold, Kind: WasInterrupted, Message: "The process stopped before this step was carried out."})
			if err != nil {
				return err
			}
		}
		return w.step(Release{w.hold})
	})
}

// record notes what the agent said, before anything looks at it.
func (s *session) record(ctx context.Context, p Proposal) error {
	digest := ""
	if p.Kind == CallTool {
		digest, _ = request.ArgsDigest(p.Args) // what has none is refused next
	}
	p = p.recorded()
	return s.write(ctx, func(w *writing) error {
		return w.step(Record{Hold: w.hold, Proposal: p, ArgsDigest: digest})
	})
}

func (s *session) invalid(ctx context.Context, why string) error {
	return s.observe(ctx, Observe{Kind: InvalidDecision, Message: words(why)})
}

// observe ends the step and claims the next.
func (s *session) observe(ctx context.Context, o Observe) error {
	return s.write(ctx, func(w *writing) error {
		o.Hold = w.hold
		if err := w.step(o); err != nil {
			return err
		}
		return s.next(ctx, w)
	})
}
