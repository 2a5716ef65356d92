package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// InterruptedStep is a step whose process was lost while its tool ran.
type InterruptedStep struct {
	Run     Run
	Step    Step
	Tool    tool.Spec
	Args    string // what ran
	CallID  string // the key under which it ran
	Attempt int64
}

// ReconcileVerdict is what became of an interrupted step.
type ReconcileVerdict string

// The verdicts (spec 1.7).
const (
	Continue     ReconcileVerdict = "continue"  // nothing is to be done about it: the agent goes on in a new step
	WasCompleted ReconcileVerdict = "completed" // it had its effect: Result is what it would have returned
	AskPerson    ReconcileVerdict = "waiting"   // a person has to say
	Conflict     ReconcileVerdict = "conflict"  // what is there is neither: the run ends as reconcile_conflict
)

// Reconciliation is the answer of a [ReconcileFunc].
type Reconciliation struct {
	Verdict ReconcileVerdict
	Result  json.RawMessage // of completed: one JSON value
	Message string          // of continue and conflict, for the agent and for people
}

// ReconcileFunc says what became of a step whose process was lost. It is foreign
// code, called outside every transaction; an error means that nothing is written and
// that the run stays interrupted.
type ReconcileFunc func(ctx context.Context, i InterruptedStep) (Reconciliation, error)

// takeOver takes a running run whose process was lost, or gave it back.
func (e *engine) takeOver(ctx context.Context, r Run) (*session, Run, error) {
	for range judgeTries {
		s, now, err := e.tryTakeOver(ctx, r)
		if !errors.Is(err, decision.ErrMoved) {
			return s, now, err
		}
	}
	return nil, r, ErrRunState.Say("Run %s changed while it was taken over, %d times in a row; nothing was started.", r.ID, judgeTries).Hint("Try again.")
}

func (e *engine) tryTakeOver(ctx context.Context, r Run) (*session, Run, error) {
	var c *call.Case
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		if r, err = e.find(tx, r.ID); err != nil {
			return err
		}
		if _, err = r.Step(TakeOver{e.take(tx)}, e.clock(tx)); err != nil {
			return err
		}
		if err = r.whole(); err != nil || !r.mayHaveRun() {
			return err
		}
		c, err = e.calls.OpenCase(tx, r.site(), r.Current.CallID, "")
		return err
	})
	if err != nil {
		return nil, r, err
	}
	if c != nil {
		if err := c.Unaltered(); err != nil {
			return nil, r, err
		}
	}
	s, next, err := e.takeInto(ctx, r, func(t Take) Command { return TakeOver{t} }, func(s *session, w *writing) error {
		if c == nil {
			return s.next(ctx, w)
		}
		return e.loseCall(w, c)
	})
	switch {
	case err != nil || s == nil:
		return nil, next, err
	case next.Current.Status == Interrupted:
		return s.settled(ctx)
	}
	return s, next, nil
}

// mayHaveRun reports whether the step's tool was started and its outcome is not known.
func (r Run) mayHaveRun() bool {
	return r.Current.CallID != "" && (r.Current.Status == Executing || r.Current.Status == Interrupted)
}

// loseCall writes the call of a run that was taken over as unknown, and makes the run
// wait where only a person can say what became of it.
func (e *engine) loseCall(w *writing, c *call.Case) error {
	if c.Call().Status != call.Running { // found out before, and not settled yet
		return nil
	}
	ask := e.conf.Reconcile == nil && !c.ReadOnly()
	asked, err := e.calls.Lose(w.tx, c, ask)
	if err != nil || asked == nil {
		return err
	}
	return w.step(Pause{w.hold, *asked, c.Call().ID})
}

// settled is settle for a session that was just opened: without a session in the
// answer there is nothing to go on with.
func (s *session) settled(ctx context.Context) (*session, Run, error) {
	err := s.settle(ctx)
	if r := s.known(); err == nil && r.Status == Running {
		return s, r, nil
	}
	if err != nil {
		s.letGo(ctx, err)
	}
	s.close()
	r, err := s.ended(err)
	return nil, r, err
}

// settle finds out what became of an interrupted step and goes on: by Reconcile, the
// tool's probe, its idempotency key, or a person (spec 1.7).
func (s *session) settle(ctx context.Context) error {
	r := s.known()
	var c *call.Case
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
		// Under its approval: where the attempt is lost with an earlier life of the store,
		// only that says what may have run.
		c, err = s.e.calls.OpenCase(tx, r.site(), r.Current.CallID, r.Current.ApprovalID)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.Unaltered(); err != nil {
		return err
	}
	if now := c.Call(); now.Status == call.Succeeded || now.Status == call.Failed { // its process told, too late for the run
		return s.write(ctx, func(w *writing) error { return s.outcome(ctx, w, outcomeOf(now)) })
	}
	if s.e.conf.Reconcile != nil {
		return s.reconcile(ctx, c)
	}
	if c.ReadOnly() {
		return s.goOn(ctx)
	}
	return s.recover(ctx, c)
}

func (s *session) recover(ctx context.Context, c *call.Case) error {
	out, wait, err := s.e.calls.Probe(ctx, c)
	switch {
	case err != nil:
		return err
	case out != nil:
		return s.learn(ctx, c, *out)
	case c.Keyed() && wait == "" && c.Call().Attempts < s.known().Limits.MaxConsecutiveToolFailures:
		return s.repeat(ctx, c) // not for ever: a tool that never tells is asked about in the end
	}
	return s.askAgain(ctx, c)
}

// goOn leaves the interrupted step as it is and claims the next.
func (s *session) goOn(ctx context.Context) error {
	return s.write(ctx, func(w *writing) error { return s.next(ctx, w) })
}

// learn ends the step with an outcome that became known.
func (s *session) learn(ctx context.Context, c *call.Case, out call.Outcome) error {
	return s.write(ctx, func(w *writing) error {
		return s.settleAs(ctx, w, c, out)
	})
}

// settleAs ends the step with what became of its call. Where its process told meanwhile,
// that is what the call holds, and not out.
func (s *session) settleAs(ctx context.Context, w *writing, c *call.Case, out call.Outcome) error {
	now, err := s.e.calls.Settle(w.tx, c, out)
	switch {
	case err != nil:
		return err
	case now.Status != call.Succeeded && now.Status != call.Failed:
		return decision.Moved("Call %s", now.ID)
	}
	return s.outcome(ctx, w, outcomeOf(now))
}

// outcomeOf is how a call ended whose outcome is known.
func outcomeOf(c call.Call) call.Outcome {
	return call.Outcome{Status: c.Status, Kind: c.Kind, Message: c.Message, Result: c.Result}
}

func (s *session) askAgain(ctx context.Context, c *call.Case) error {
	return s.write(ctx, func(w *writing) error {
		c.Moved(w.run.ApprovalN)
		d, err := s.e.calls.AskAgain(w.tx, c)
		if err != nil {
			return err
		}
		return w.step(Pause{w.hold, *d, c.Call().ID})
	})
}

// repeat runs the call again under the tool's idempotency key, if the policy agrees
// as it did the first time.
func (s *session) repeat(ctx context.Context, c *call.Case) error {
	for range judgeTries {
		err := s.try(ctx, c.Ungranted())
		if !errors.Is(err, errAgain) {
			return err
		}
		r := s.known()
		err = txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
			c, err = s.e.calls.OpenCase(tx, r.site(), r.Current.CallID, "")
			return err
		})
		if err != nil {
			return err
		}
	}
	return errRestless()
}

func (s *session) reconcile(ctx context.Context, c *call.Case) error {
	rec, err := s.askReconcile(ctx, c)
	if err != nil {
		return err
	}
	switch rec.Verdict {
	case Continue:
		return s.goOn(ctx)
	case WasCompleted:
		return s.learn(ctx, c, call.Outcome{Status: call.Succeeded, Result: rec.Result})
	case AskPerson:
		return s.askAgain(ctx, c)
	}
	why := words(rec.Message)
	if why == "" {
		why = "What the interrupted step left behind does not fit what it was to do."
	}
	return s.write(ctx, func(w *writing) error {
		return w.step(End{Hold: w.hold, Status: Failed, Reason: ReconcileConflict, Detail: why})
	})
}

// askReconcile calls foreign code, and refuses an answer that cannot be acted on.
func (s *session) askReconcile(ctx context.Context, c *call.Case) (Reconciliation, error) {
	r := s.known()
	i := InterruptedStep{
		Run: r.Clone(), Step: r.Current, Tool: specOf(c.Tool()), Args: string(c.Ran()), CallID: c.Call().ID, Attempt: c.Call().Attempts,
	}
	ctx, stop := s.within(ctx)
	defer stop()
	var rec Reconciliation
	done := make(chan error, 1)
	go guarded(done, func() (err error) {
		rec, err = s.e.conf.Reconcile(ctx, i)
		return err
	})
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		return Reconciliation{}, context.Cause(ctx)
	}
	if err == nil {
		err = rec.usable()
	}
	if err != nil {
		return Reconciliation{}, ErrRunState.Say("What became of step %d of run %s could not be found out; nothing was written.", r.Current.Index, r.ID).Because(err)
	}
	return rec, nil
}

func (r Reconciliation) usable() error {
	switch r.Verdict {
	case Continue, AskPerson, Conflict:
		return nil
	case WasCompleted:
		if err := canon.Valid(r.Result); err != nil || len(r.Result) > tool.MaxResult {
			return fmt.Errorf("the result is not one JSON value of at most %d bytes", tool.MaxResult)
		}
		return nil
	}
	return fmt.Errorf("the verdict %q is unknown; it is continue, completed, waiting or conflict", r.Verdict)
}
