package run

import (
	"context"
	"errors"
	"fmt"
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
	ctx, cancel := context.WithTimeoutCause(ctx, s.e.conf.DecideTimeout, errDecideTimeout)
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
			err = notAgents{context.Cause(ctx)}
			if errors.Is(context.Cause(ctx), errDecideTimeout) {
				err = errDecideTimeout
			}
		}
		return p, err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errDecideTimeout) {
			return Proposal{}, errDecideTimeout
		}
		return Proposal{}, notAgents{context.Cause(ctx)}
	}
}

var errDecideTimeout = errors.New("it did not decide in time")

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
