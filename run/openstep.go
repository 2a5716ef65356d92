package run

import (
	"context"
	"sync/atomic"
)

// OpenStep is one turn of a run whose loop belongs to others: Propose, and where that
// is allowed Execute, or Reserve and Confirm. The call that ends the step has claimed
// the next one, or ended the run by its limits; [Session.Step] tells.
//
// Misuse is [ErrRunState] and changes nothing: what is out of order, of a step that
// has ended, or made while another call of the session is at work; after Close it is
// [ErrUsage]. Any other error means that nothing more was done than the run shows, and
// unless it is [ErrLeaseLost] the same call may be tried again.
type OpenStep struct {
	in       *Session
	id       string
	index    int64
	said     *Proposal // that this session has recorded, or tried to
	meter    *stepMeter
	verdict  Verdict
	reserved atomic.Pointer[attempt] // that the caller carries out, until it is confirmed
}

// Step is the step as it is recorded: tool and arguments of an approved one, for example.
func (o *OpenStep) Step() Step {
	s := o.in.held()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.ID == o.id {
		return *s.last
	}
	if s.run.Current.ID == o.id {
		return s.run.Current
	}
	return Step{ID: o.id, RunID: s.run.ID, Index: o.index}
}

// Verdict is the last one of this step. Before anything was proposed it has no
// outcome. Of a step whose approval was given it is allowed from the beginning.
func (o *OpenStep) Verdict() Verdict {
	o.in.mu.Lock()
	defer o.in.mu.Unlock()
	return o.verdict
}

// Input is what an agent would see before it decides: a copy of the run, what came
// before, the tools, and the meter for what the model costs.
func (o *OpenStep) Input(ctx context.Context) (StepInput, error) {
	leave, err := o.enter(ctx)
	if err != nil {
		return StepInput{}, err
	}
	defer leave()
	s := o.in.s
	if err := s.load(ctx); err != nil {
		return StepInput{}, err
	}
	in := s.input()
	if o.meter == nil {
		o.meter = &stepMeter{o, &meter{s: s, step: o.id}}
	}
	in.Meter = o.meter
	return in, nil
}

// stepMeter keeps a charge from going on beside another call of the session.
type stepMeter struct {
	o *OpenStep
	m *meter
}

func (m *stepMeter) Charge(ctx context.Context, tokens int64, cost Cost) error {
	return m.alone(ctx, func() error { return m.m.Charge(ctx, tokens, cost) })
}

func (m *stepMeter) Settle(ctx context.Context, tokens int64, cost Cost) error {
	return m.alone(ctx, func() error { return m.m.Settle(ctx, tokens, cost) })
}

func (m *stepMeter) alone(ctx context.Context, charge func() error) error {
	leave, err := m.o.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = charge()
	m.o.in.note(err)
	return err
}

// Propose records what the agent decided, as it said it, then validates and judges it.
// Complete and Fail end the run. An allowed tool call is not started: that is for
// Execute or Reserve, which judge it again, since the policy may have changed by then.
//
// Where it fails with the proposal recorded, Execute and Reserve go on from there.
func (o *OpenStep) Propose(ctx context.Context, p Proposal) (Verdict, error) {
	if p.size() <= MaxProposal { // else it is refused, and its bytes are not looked at
		p = p.clone()
	}
	return o.work(ctx, holds, o.undecided, func(s *session) error {
		o.said = &p
		if err := s.record(ctx, p); err != nil {
			return err
		}
		return s.follow(ctx, p)
	})
}

// Execute judges the step once more, starts it, calls the registered tool and
// records how it went. The tool's context ends with ctx and with the lease; its
// outcome is recorded even so. Where that is unknown, a probe, the tool's key or a
// person settles it (spec 1.7): the verdict may be pending.
func (o *OpenStep) Execute(ctx context.Context) (Verdict, error) {
	return o.work(ctx, carriesOut, o.decided, func(s *session) error { return o.goOn(ctx, s) })
}

// Fail ends the run on an error of the agent: as agent_error, or as
// model_unavailable or a limit where the error matches [ErrModelUnavailable] or
// [ErrLimit]. An agent that gives up its goal proposes that: kind [Fail].
func (o *OpenStep) Fail(ctx context.Context, cause error) (Verdict, error) {
	if cause == nil {
		return Verdict{}, ErrUsage.Say("OpenStep.Fail needs the agent's error.")
	}
	v, err := o.work(ctx, holds, o.undecided, func(s *session) error { return s.undecided(ctx, cause) })
	if err == nil {
		v.Outcome = VerdictEnded
	}
	return v, err
}

// undecided refuses a second proposal.
func (o *OpenStep) undecided() error {
	if o.in.ready || o.in.s.known().Current.Kind != "" {
		return ErrRunState.Say("Step %d is decided already.", o.index).Hint("Carry it out with Execute or Reserve.")
	}
	return nil
}

// decided refuses to carry out what was not proposed, or is carried out already.
func (o *OpenStep) decided() error {
	switch {
	case o.reserved.Load() != nil:
		return ErrRunState.Say("Step %d is reserved: its caller carries it out.", o.index).Hint("Tell how it went with Confirm.")
	case o.in.ready || o.in.s.known().Current.Kind != "": // then it was said here, or its outcome is to be found out
		return nil
	}
	return ErrRunState.Say("Nothing was proposed in step %d.", o.index).Hint("Call Propose first.")
}

// goOn carries a decided step on, as far as the session reaches.
func (o *OpenStep) goOn(ctx context.Context, s *session) error {
	switch {
	case o.in.ready:
		return o.resume(ctx, s)
	case s.known().Current.Status == Interrupted: // a repeat under the tool's key
		return s.settle(ctx)
	}
	return s.follow(ctx, *o.said)
}

// resume spends the grant that the run waits with.
func (o *OpenStep) resume(ctx context.Context, s *session) error {
	e := o.in.g.reaching(s.reach)
	next, r, err := e.resume(ctx, s.known())
	switch {
	case next == nil && err != nil && (r.ID == "" || r.Status == Waiting && r.ApprovalID == s.known().ApprovalID):
		return err // nothing was written: the grant is there to be tried again
	case next == nil:
		next = watching(ctx, e, r)
	}
	o.in.replace(next)
	return err
}

// enter is Session.enter for a step that has not ended.
func (o *OpenStep) enter(ctx context.Context) (leave func(), err error) {
	leave, err = o.in.enter(ctx)
	if err != nil {
		return nil, err
	}
	err = o.in.idle(ctx)
	if err == nil && o.in.s.known().Current.ID != o.id {
		err = ErrRunState.Say("Step %d has ended.", o.index).Hint("Ask the session for the next one.")
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// work does one thing with the step, if may lets it, and answers how it stands then.
func (o *OpenStep) work(ctx context.Context, r reach, may func() error, do func(s *session) error) (Verdict, error) {
	leave, err := o.enter(ctx)
	if err != nil {
		return Verdict{}, err
	}
	defer leave()
	if err := may(); err != nil {
		return Verdict{}, err
	}
	s := o.in.s
	s.reach = r
	err = do(s)
	return o.leave(ctx, err)
}

// leave tells how the step stands, also where ctx has ended: what was done was done.
func (o *OpenStep) leave(ctx context.Context, err error) (Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	o.in.note(err)
	if _, err = o.in.s.ended(err); err != nil {
		return Verdict{}, err
	}
	if o.in.closed || o.in.stale {
		_ = o.in.learn(ctx) // it is only to be told
	}
	v, err := o.see(ctx)
	if err != nil {
		return v, err
	}
	o.in.mu.Lock()
	defer o.in.mu.Unlock()
	o.verdict = v
	return v, nil
}
