package run

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// decide asks the agent, which is foreign code: it may panic, hang, or change what
// it was given.
func (s *session) decide(ctx context.Context) (Proposal, error) {
	if err := s.load(ctx); err != nil {
		return Proposal{}, notAgents{err}
	}
	in := s.input()
	in.Meter = &meter{s: s, step: in.Run.Current.ID}
	ctx, stop := s.within(ctx)
	defer stop()
	limit, cut := s.decideTime()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, cut)
	defer cancel()
	var p Proposal
	done := make(chan error, 1)
	go guarded(done, func() (err error) {
		p, err = s.e.conf.Agent.Decide(ctx, in)
		if p.size() <= MaxProposal {
			p = p.clone()
		}
		return err
	})
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			err = cutOff(ctx)
		}
		return p, err
	case <-ctx.Done():
		return Proposal{}, cutOff(ctx)
	}
}

var (
	errDecideTimeout = errors.New("it did not decide in time")
	errTimeUsedUp    = errors.New("the run's time was used up while it decided")
)

// cutOff is why an agent was not waited for any longer.
func cutOff(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDecideTimeout), errors.Is(cause, errTimeUsedUp):
		return cause
	default:
		return notAgents{cause}
	}
}

// decideTime is how long the agent may take, and what it is told then: at most what
// is left of the run's time. A clock of the engine's own says nothing of that.
func (s *session) decideTime() (time.Duration, error) {
	most := s.e.conf.DecideTimeout
	if s.e.conf.Now != nil {
		return most, errDecideTimeout
	}
	r := s.known()
	left, limited := r.timeLeft(r.Current.StartedAt) // it was claimed a moment ago, by the clock that judges it
	if !limited || left >= most {
		return most, errDecideTimeout
	}
	return left + time.Millisecond, errTimeUsedUp // the limit itself is in time
}

// notAgents is an error that is not the agent's.
type notAgents struct{ error }

func (e notAgents) Unwrap() error { return e.error }

// undecided ends the run on an agent's error, or gives it back where the agent was
// only interrupted.
func (s *session) undecided(ctx context.Context, err error) error {
	var ours notAgents
	if errors.As(err, &ours) {
		if s.life.Err() != nil {
			return s.known().errLost()
		}
		return ours.error
	}
	if errors.Is(err, errTimeUsedUp) { // the limit ends the run where the next step would be claimed
		return s.observe(ctx, Observe{Kind: WasInterrupted, Message: "The run's time was used up while the agent decided."})
	}
	end := End{Status: Failed, Reason: AgentError, Detail: "The agent failed: " + words(err.Error()), Kind: InvalidDecision}
	switch {
	case errors.Is(err, ErrModelUnavailable):
		end.Reason, end.Detail = ModelUnavailable, words(err.Error())
	case errors.Is(err, ErrLimit):
		end.Reason, end.Detail = limitOf(err), words(err.Error())
	}
	end.Message = end.Detail
	return s.write(ctx, func(w *writing) error {
		end.Hold = w.hold
		return w.step(end)
	})
}

var errGoexit = errors.New("it ended its goroutine without returning (runtime.Goexit)")

// guarded calls fn, which others wrote, and turns a panic or Goexit into an error
// that is sent to done.
func guarded(done chan<- error, fn func() error) {
	err := errGoexit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		done <- err
	}()
	err = fn()
}
