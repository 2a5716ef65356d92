package run

import (
	"context"
	"errors"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// judgeTries is how often a request is judged again because something moved
// between the judging and the writing (design §4, rule 1).
const judgeTries = 3

// act judges a fresh request and does what the judging came to.
func (s *session) act(ctx context.Context, c *call.Case) error {
	for range judgeTries {
		err := s.try(ctx, c)
		if !errors.Is(err, errAgain) {
			return err
		}
		var refused *call.Result
		if c, refused = s.e.calls.NewCase(s.site(), c.Call().Tool, c.Call().Args); refused != nil {
			return s.invalid(ctx, refused.Message)
		}
	}
	return errRestless()
}

// try judges once; errAgain where something moved before that was acted on.
func (s *session) try(ctx context.Context, c *call.Case) error {
	if err := s.e.calls.Judge(ctx, c); err != nil {
		return s.unjudged(ctx, err)
	}
	return s.apply(ctx, c)
}

func errRestless() error {
	return ErrRunState.Say("The request changed while it was judged, %d times in a row; nothing was started.", judgeTries).Hint("Try again.")
}

// unjudged fails a run whose policy cannot be acted on.
func (s *session) unjudged(ctx context.Context, err error) error {
	if !errors.Is(err, policy.ErrRuling) && !errors.Is(err, request.ErrUnencodable) {
		return err // the store's
	}
	return s.write(ctx, func(w *writing) error {
		return w.step(internal(w, err))
	})
}

func internal(w *writing, err error) End {
	detail := words(err.Error())
	return End{Hold: w.hold, Status: Failed, Reason: InternalError, Detail: detail, Kind: PolicyDenied, Message: detail}
}

func (s *session) apply(ctx context.Context, c *call.Case) error {
	kind, why := c.Refused()
	switch {
	case kind != "":
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, kind, why) })
	case c.Asks():
		return s.pause(ctx, c)
	case s.reach == holds:
		s.held = c
		return nil
	}
	return s.carryOut(ctx, c)
}

// ask pauses the run on an approval of the judged call.
func (e *engine) ask(w *writing, c *call.Case) error {
	if err := w.ruled(c); err != nil {
		return err
	}
	d, err := e.calls.Ask(w.tx, c)
	if err != nil {
		return err
	}
	return w.step(Pause{w.hold, d, c.Call().ID})
}

// start spends what the judged call needs, and starts its attempt.
func (e *engine) start(w *writing, c *call.Case) (st call.Started, err error) {
	if err := w.ruled(c); err != nil {
		return st, err
	}
	if st, err = e.calls.Start(w.tx, c); err != nil {
		return st, err
	}
	return st, w.step(Execute{w.hold, c.Call().ID})
}

// ruled notes the policy's ruling ahead of what the call writes.
func (w *writing) ruled(c *call.Case) error {
	if err := w.judged(c); err != nil {
		return err
	}
	return w.tell()
}

// judged notes the policy's ruling, if it was asked.
func (w *writing) judged(c *call.Case) error {
	ru := c.Ruling()
	if ru.Outcome == "" {
		return nil
	}
	return w.step(Judged{Ruling{Outcome: ru.Outcome, Reason: ru.Reason, Kind: ru.Kind}})
}

// refuse ends a step that a gate stopped: an abort ends the run with it.
func (s *session) refuse(ctx context.Context, w *writing, c *call.Case, kind call.Kind, why string) error {
	if err := w.judged(c); err != nil {
		return err
	}
	if kind == call.KindPolicyAbort {
		return w.step(End{Hold: w.hold, Status: Failed, Reason: PolicyAbort, Detail: why, Kind: PolicyDenied, Message: why})
	}
	observed := PolicyDenied
	if kind == call.KindInvalidArguments {
		observed = InvalidDecision
	}
	if err := w.step(Observe{Hold: w.hold, Kind: observed, Message: why}); err != nil {
		return err
	}
	return s.next(ctx, w)
}

// pause stores the request and lets go of the run. Where too many wait already the
// step is refused.
func (s *session) pause(ctx context.Context, c *call.Case) error {
	err := s.write(ctx, func(w *writing) error {
		return s.e.ask(w, c)
	})
	if errors.Is(err, decision.ErrTooManyPending) {
		return s.write(ctx, func(w *writing) error { return s.refuse(ctx, w, c, call.KindGuardRefused, err.Error()) })
	}
	return err
}
