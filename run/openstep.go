package run

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
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

// Verdict is how a step stands after a call of the gate.
type Verdict struct {
	Outcome VerdictOutcome
	Reason  string // in words: the policy's, the tool's message, or how the run ended
	Ruling  Ruling // the policy's; without an outcome it was not asked
	Result  json.RawMessage
	CallID  string // of the tool call; empty: it has none yet

	// Of pending, and of an allowed step that an approval was given for. ApprovalDigest is
	// what a reviewer's yes is bound to.
	ApprovalID     string
	ApprovalDigest string

	// Late: what Confirm reported came after the lease or the run had ended, and is
	// recorded on its attempt.
	Late bool
	Run  Run // as it is now: the next step may be claimed, or a limit have ended it
}

// VerdictOutcome is how a step stands.
type VerdictOutcome string

// The outcomes. Allowed is the only one after which the step is still to be done;
// where a repeat under the tool's idempotency key is to settle an unknown outcome, it
// is allowed again.
const (
	VerdictAllowed     VerdictOutcome = "allowed"     // Execute, or Reserve
	VerdictPending     VerdictOutcome = "pending"     // a person has to agree; the run waits
	VerdictDenied      VerdictOutcome = "denied"      // by the policy or a guard; the run goes on
	VerdictInvalid     VerdictOutcome = "invalid"     // no such tool, or it does not take the arguments; the run goes on
	VerdictSucceeded   VerdictOutcome = "succeeded"   // Result is the tool's
	VerdictFailed      VerdictOutcome = "failed"      // Reason is the tool's message; the run goes on
	VerdictInterrupted VerdictOutcome = "interrupted" // it is not known how the tool ended, and the run goes on
	VerdictAborted     VerdictOutcome = "aborted"     // the policy or the tool ended the run
	VerdictEnded       VerdictOutcome = "ended"       // the run ended with this step otherwise
)

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
			return Verdict{}, unstored(a.st, stored)
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
		return false, nil // an earlier try has stored it
	}
	s.s.reach = holds
	err = s.s.finish(ctx, a.c, a.st, out)
	return errors.Is(err, errOver) || errors.Is(err, ErrLeaseLost), err
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

// see reads how the step stands.
func (o *OpenStep) see(ctx context.Context) (Verdict, error) {
	s := o.in.s
	r := s.known()
	st, err := s.find(ctx, o.id, o.index)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{
		Outcome: standing(r, st), Reason: st.Message, Ruling: st.Ruling, CallID: st.CallID, ApprovalID: st.ApprovalID, Run: r.Clone(),
	}
	switch {
	case o.in.ready || s.held != nil || s.reserved != nil:
		v.Outcome = VerdictAllowed
	case v.Outcome == VerdictSucceeded:
		v.Result = json.RawMessage(st.Result)
	case v.Outcome == VerdictEnded && v.Reason == "":
		v.Reason = r.Detail
	}
	if s.held != nil {
		ru := s.held.Ruling()
		v.Ruling = Ruling{Outcome: ru.Outcome, Reason: ru.Reason, Kind: ru.Kind}
	}
	if v.Reason == "" {
		v.Reason = v.Ruling.Reason
	}
	if v.ApprovalID == "" || v.Outcome != VerdictPending && v.Outcome != VerdictAllowed {
		return v, nil
	}
	err = txn.View(ctx, s.e.conf.Store, func(tx Tx) error {
		var d decision.Decision
		if d, err = tx.Decision(v.ApprovalID); err == nil {
			v.ApprovalDigest = d.Digest
		}
		return err
	})
	return v, err
}

// find is a step of the run as it stands now.
func (s *session) find(ctx context.Context, stepID string, index int64) (Step, error) {
	s.mu.Lock()
	r, last := s.run, s.last
	s.mu.Unlock()
	switch {
	case r.Current.ID == stepID:
		return r.Current, nil
	case last != nil && last.ID == stepID:
		return *last, nil
	}
	var found []Step
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
		found, err = tx.Steps(r.ID, index-1, 1)
		return err
	})
	if err != nil || len(found) == 0 || found[0].ID != stepID {
		return Step{}, errors.Join(err, ErrNotFound.Say("There is no step %s.", stepID))
	}
	return found[0], nil
}

// standing is how a step stands in its run.
func standing(r Run, st Step) VerdictOutcome {
	with := r.Status.Terminal() && r.Current.ID == st.ID && !r.Reason.limit()
	switch {
	case with && (r.Reason == PolicyAbort || r.Reason == ToolAbort):
		return VerdictAborted
	case with || st.Kind == "":
		return VerdictEnded
	case st.Status == AwaitingApproval:
		return VerdictPending
	case st.Status == Done:
		return VerdictSucceeded
	case st.Observation == ToolError:
		return VerdictFailed
	case st.Observation == PolicyDenied:
		return VerdictDenied
	case st.Observation == InvalidDecision:
		return VerdictInvalid
	}
	return VerdictInterrupted
}

// limit reports whether a run that ended so did for what came before, and not for
// what its last step did.
func (r Reason) limit() bool {
	switch r {
	case LimitSteps, LimitActiveTime, LimitElapsedTime, LimitModelCalls, LimitTokens, LimitCost, RepeatedFailures, LoopDetected:
		return true
	}
	return false
}
