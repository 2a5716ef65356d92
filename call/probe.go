package call

import (
	"context"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/tool"
)

// probe asks the tool what became of the call. settled: the Result is the
// answer; otherwise the tool knows of no such call, and running it is possible.
func (e *Executor) probe(ctx context.Context, s subject) (res Result, settled bool, err error) {
	out, wait, err := e.askProbe(ctx, s)
	switch {
	case err != nil:
		return Result{}, false, err
	case out != nil:
		res, err = e.learn(ctx, s, *out)
		return res, true, err
	case wait != "":
		return s.undecided(wait), true, nil
	}
	return Result{}, false, nil
}

// askProbe asks the tool's probe. It comes to an outcome, or to why one has to wait for
// it; with neither, nothing ran and another try is possible.
func (e *Executor) askProbe(ctx context.Context, s subject) (out *Outcome, wait string, err error) {
	if err := s.unaltered(); err != nil {
		return nil, "", err
	}
	pr, err := tool.InvokeProbe(ctx, s.tool, probeCall(s))
	if err != nil {
		return nil, "The tool could not say what became of the call: " + err.Error(), nil
	}
	switch pr.Outcome {
	case tool.ProbeSucceeded:
		return &Outcome{Status: Succeeded, Result: pr.Result}, "", nil
	case tool.ProbeFailed:
		return &Outcome{Status: Failed, Kind: KindToolError, Message: pr.Message}, "", nil
	}
	if !s.recovery().key() && !e.ownerGone(s) {
		return nil, "The tool knows nothing of the call yet, and the process that ran it may still be at work.", nil
	}
	return nil, "", nil
}

func probeCall(s subject) tool.Call {
	a := Attempt{N: 1}
	if s.attempt != nil {
		a = *s.attempt
	}
	return toolCall(s.call, a, a.ran(s.call))
}

func (s subject) undecided(message string) Result {
	res := ResultOf(s.call, s.attempt)
	res.Status, res.Kind, res.Message = Unknown, KindUnknownOutcome, message
	return res
}

// ownerGone reports whether the process that made the attempt can do nothing
// more: twice the lease has passed and, on this host, it does not live any more.
func (e *Executor) ownerGone(s subject) bool {
	if s.attempt == nil {
		return true // of another life of the store: a person decides in any case
	}
	lost := s.attempt.EndedAt // when its lease had ended for certain
	if lost.IsZero() {
		lost = s.life.now
	}
	if s.life.now.Before(lost.Add(e.conf.Lease)) {
		return false
	}
	owner, err := process.Parse(s.attempt.Owner)
	return err != nil || !process.Alive(owner)
}

// learn settles an unknown call by what its probe said.
func (e *Executor) learn(ctx context.Context, s subject, out Outcome) (Result, error) {
	var next Call
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		next, err = e.settle(tx, s, out)
		return err
	})
	switch {
	case err != nil:
		return Result{}, err
	case next.Status == Running:
		return Result{}, next.ErrStillRunning()
	}
	res := resultOf(next)
	if s.attempt != nil && next.Attempts == s.attempt.N {
		res.edited(*s.attempt)
	}
	return res, nil
}

// settle writes what a probe found out, unless the call was settled or tried again
// in the meantime: that stands.
func (e *Executor) settle(tx Tx, s subject, out Outcome) (Call, error) {
	c, err := tx.Call(s.call.ID)
	if err != nil || c.Status != Unknown || c.Attempts != s.call.Attempts {
		return c, err
	}
	ch, err := c.Step(Learn{Outcome: out}, tx.Now())
	if err != nil {
		return c, err
	}
	if s.attempt != nil {
		if err := endAttempt(tx, *s.attempt, out, true, tx.Now()); err != nil {
			return c, err
		}
	}
	if err := e.answerLate(tx, c); err != nil {
		return c, err
	}
	if err := e.freeGuards(tx, s, ch.Next); err != nil {
		return c, err
	}
	return ch.Next, tx.PutCall(c, ch.Next, ch.Events...)
}

// learnOrStay answers for a call that stays unknown after a no: its probe may
// still tell; otherwise nothing runs.
func (e *Executor) learnOrStay(ctx context.Context, s subject) (Result, error) {
	t, err := e.conf.Tools.Lookup(s.call.Tool)
	if err == nil && t.Probe != nil {
		s.tool = t
		if res, settled, err := e.probe(ctx, s); settled || err != nil {
			return res, err
		}
	}
	return s.undecided(reasonOr(s.call.Message, "It is not known whether the tool had its effect.")), nil
}
