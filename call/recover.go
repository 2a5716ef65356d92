package call

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// life is where the store stood when a subject was read.
type life struct {
	epoch      int64
	restoredTo time.Time
	now        time.Time // the store's clock: judges leases
	clock      time.Time // the executor's: judges deadlines
}

func (e *Executor) lifeOf(tx Tx) life {
	return life{tx.Epoch(), tx.RestoredTo(), tx.Now(), e.clock(tx)}
}

// interrupted reports whether the last attempt's outcome is unknown, or has to
// be marked so: its lease ended, or it is of an earlier life of the store.
func (s subject) interrupted() bool {
	return s.call.Status == Unknown ||
		s.call.Status == Running && (s.life.now.After(s.call.LeaseUntil) || s.call.Epoch < s.life.epoch)
}

// recover settles an attempt that was lost: the tool's probe, its declared
// idempotency key, or a person. Nothing is run again silently (spec 2.3).
func (e *Executor) recover(ctx context.Context, s subject) (Result, error) {
	t, err := e.conf.Tools.Lookup(s.call.Tool)
	if err != nil {
		return Result{}, err
	}
	if err := s.unaltered(); err != nil {
		return Result{}, err
	}
	s.tool = t
	if s.call.Status == Running {
		asked, err := e.markLost(ctx, &s)
		if err != nil || asked != nil {
			return e.pendingOr(asked, err)
		}
	}
	return e.recoverUnknown(ctx, s)
}

func (e *Executor) recoverUnknown(ctx context.Context, s subject) (Result, error) {
	how := s.recovery()
	if how.probe() {
		res, settled, err := e.probe(ctx, s)
		if settled || err != nil {
			return res, err
		}
	}
	if how.key() {
		s.grant = nil
		return e.carryOut(ctx, s)
	}
	asked, err := e.askAgain(ctx, s)
	return e.pendingOr(asked, err)
}

func (e *Executor) pendingOr(asked *decision.Decision, err error) (Result, error) {
	if err != nil || asked == nil {
		return Result{}, err
	}
	return Result{}, pendingError(*asked, true)
}

// recovery is what may settle this attempt: what the tool declares now, and for
// the key also what it declared when the attempt started, as the same tool: what
// another one does under that key nobody promised.
func (s subject) recovery() Recovery {
	how := recoveryOf(s.tool)
	keyed := s.call.keyed(how, s.tool.SpecDigest())
	if s.attempt != nil {
		keyed = keyed && s.attempt.Recovery.key()
	}
	if !keyed {
		switch how {
		case RecoverByKey:
			return RecoverByPerson
		case RecoverByProbeKey:
			return RecoverByProbe
		}
	}
	return how
}

// keyed reports whether a repeat of the call is protected by an idempotency key:
// the tool declares one now and declared it when the call was parked or started
// last, as the same tool.
func (c Call) keyed(now Recovery, specDigest string) bool {
	return now.key() && c.Recovery.key() && c.SpecDigest == specDigest
}

// markLost writes a running attempt whose lease ended as unknown and, where
// only a person can settle it, opens that question in the same transaction.
func (e *Executor) markLost(ctx context.Context, s *subject) (*decision.Decision, error) {
	var asked *decision.Decision
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		asked, err = e.lose(tx, *s, Lose{Epoch: tx.Epoch()}, true)
		return err
	})
	if err == nil && asked == nil {
		*s, err = e.reread(ctx, *s)
	}
	return asked, err
}

func (e *Executor) lose(tx Tx, s subject, cmd Lose, ask bool) (*decision.Decision, error) {
	c, err := s.unmoved(tx)
	if err != nil {
		return nil, err
	}
	a, err := tx.Attempt(c.ID, c.Attempts)
	if err != nil {
		return nil, err
	}
	ch, err := c.Step(cmd, tx.Now())
	if err != nil {
		return nil, err
	}
	if err := endAttempt(tx, a, Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: ch.Next.Message}, false, tx.Now()); err != nil {
		return nil, err
	}
	if ask && s.recovery() == RecoverByPerson {
		_, asked, err := e.putDoubt(tx, s, c, ch)
		return asked, err
	}
	return nil, tx.PutCall(c, ch.Next, ch.Events...)
}

// unmoved locks the call, as it was when s was read.
func (s subject) unmoved(tx Tx) (Call, error) {
	c, err := tx.Call(s.call.ID)
	if err == nil && !c.same(s.call) {
		err = moved("The call")
	}
	return c, err
}

// reread reads the call again, keeping the record it is handled under.
func (e *Executor) reread(ctx context.Context, s subject) (subject, error) {
	t := s.tool
	fresh, err := e.readAgain(ctx, subject{call: s.call})
	fresh.tool, fresh.grant, fresh.handed = t, s.grant, s.handed
	return fresh, err
}

// putDoubt writes a call as unknown together with the question whether to run it again.
func (e *Executor) putDoubt(tx Tx, s subject, prev Call, ch Change) (Call, *decision.Decision, error) {
	s.call = ch.Next
	d, err := e.doubt(tx, s)
	if err != nil {
		return ch.Next, nil, err
	}
	parked, err := ch.Next.Step(Park{Approval: d, Recovery: recoveryOf(s.tool)}, tx.Now())
	if err != nil {
		return ch.Next, nil, err
	}
	if err := tx.PutCall(prev, parked.Next, ch.Events...); err != nil {
		return ch.Next, nil, err
	}
	return parked.Next, &d, decision.Ask(tx, d, 0)
}

// doubt is the runtime's own approval: the call started and its outcome is unknown.
func (e *Executor) doubt(tx Tx, s subject) (decision.Decision, error) {
	s.life.epoch, s.life.restoredTo = tx.Epoch(), tx.RestoredTo()
	d, ttl, err := e.doubtQuestion(s)
	if err != nil {
		return decision.Decision{}, err
	}
	return e.stamp(tx, *d, ttl), nil
}

// doubtQuestion is what the runtime asks, and for how long. A yes to it lasts no
// longer than the one that was spent: that limit is the policy's, who is not asked here.
func (e *Executor) doubtQuestion(s subject) (*decision.Decision, time.Duration, error) {
	d := e.newApproval(s)
	args, spent, err := s.ran()
	if err != nil {
		return nil, 0, err
	}
	d.SpentDigest = spent
	d.Kind, d.ForbidEdits = decision.KindInterrupted, true
	var ttl time.Duration
	d.GrantTTL, ttl = e.doubtLimits(s)
	d.Reason = s.notice(s.life.restoredTo)
	plain := fmt.Appendf(nil, `{"tool":%q,"args":%s}`, s.tool.Name, args) // tool names are plain ASCII
	d.Capability = plain
	if d.Presentation, err = doubtShown(s, args, d.Reason); err != nil {
		return nil, 0, err
	}
	return d, ttl, bind(s, d, args)
}

// doubtLimits is the shorter of the executor's limits and those of the grant
// that the interrupted attempt spent, or that the restored call has.
func (e *Executor) doubtLimits(s subject) (grantTTL, approvalTTL time.Duration) {
	grantTTL, approvalTTL = e.grantTTL(s), e.approvalTTL(s)
	from := s.paid
	if from == nil {
		from = s.grant
	}
	if from == nil {
		return grantTTL, approvalTTL
	}
	if !from.ExpiresAt.IsZero() {
		approvalTTL = shorter(approvalTTL, from.ExpiresAt.Sub(from.CreatedAt))
	}
	return shorter(grantTTL, from.GrantTTL), approvalTTL
}

// ran is what the last attempt ran and the digest of the grant it spent. Where the
// store went back in time that attempt is lost; then it can only be what the grant
// of the earlier life allowed.
func (s subject) ran() (args []byte, spent string, err error) {
	switch {
	case s.attempt != nil:
		return s.attempt.ran(s.call), s.attempt.GrantDigest, nil
	case s.grant != nil:
		args, _, err = s.granted(*s.grant)
		return args, s.grant.Digest, err
	}
	return s.call.Args, "", nil
}

// ran is what the attempt ran with.
func (a Attempt) ran(c Call) []byte {
	if a.Args != nil {
		return a.Args
	}
	return c.Args
}

func doubtShown(s subject, args []byte, notice string) ([]byte, error) {
	b, err := canon.AppendString([]byte(`{"notice":`), notice)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(b, `,"tool":%q,"args":%s,"side_effect":%q}`, s.tool.Name, args, s.tool.SideEffect), nil
}

// askAgain opens the question for a call that is unknown already.
func (e *Executor) askAgain(ctx context.Context, s subject) (*decision.Decision, error) {
	var asked *decision.Decision
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		asked, err = e.askDoubt(tx, s)
		return err
	})
	return asked, err
}

func (e *Executor) askDoubt(tx Tx, s subject) (*decision.Decision, error) {
	c, err := s.unmoved(tx)
	if err != nil {
		return nil, err
	}
	_, asked, err := e.putDoubt(tx, s, c, Change{Next: c})
	return asked, err
}

// doubtGrant handles a yes of an earlier life of the store: the call may have
// run after the backup was taken, so that yes is superseded and a new one needed.
func (e *Executor) doubtGrant(ctx context.Context, s subject) (Result, error) {
	var asked *decision.Decision
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		asked, err = e.outlive(tx, s)
		return err
	})
	if err != nil || asked != nil {
		return e.pendingOr(asked, err)
	}
	if s, err = e.reread(ctx, s); err != nil {
		return Result{}, err
	}
	return e.recoverUnknown(ctx, s)
}

// outlive replaces a yes of an earlier life of the store, by a new question where
// only a person can say what became of the call.
func (e *Executor) outlive(tx Tx, s subject) (*decision.Decision, error) {
	c, err := s.unmoved(tx)
	if err != nil {
		return nil, err
	}
	if err := e.supersede(tx, *s.grant); err != nil {
		return nil, err
	}
	ch := Change{Next: c} // unknown already: only the yes is too old
	if c.Status == Pending {
		if ch, err = c.Step(Doubt{Message: restoredNotice(tx.RestoredTo())}, tx.Now()); err != nil {
			return nil, err
		}
	}
	if recoveryOf(s.tool).probe() {
		return nil, tx.PutCall(c, ch.Next, ch.Events...)
	}
	_, asked, err := e.putDoubt(tx, s, c, ch)
	return asked, err
}

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
	res := resultOf(s.call)
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

// Sweep expires overdue approvals and grants and looks after up to limit lost
// attempts whose tools this executor knows: it marks them unknown, asks their
// probes, and opens the question to a person. It starts no tool. Several
// sweepers share the work. limit is 1 to 1,000; the count is of rows changed.
func (e *Executor) Sweep(ctx context.Context, limit int) (int, error) {
	if e.misuse != nil {
		return 0, e.misuse
	}
	n, failed := e.operator().ExpireDue(ctx, limit)
	var lost []subject
	err := txn.View(ctx, e.conf.Store, func(tx Tx) error {
		lost = nil
		for after := ""; len(lost) < limit; {
			cs, err := tx.LeaseEnded(e.conf.Space, tx.Now(), after, limit)
			if err != nil || len(cs) == 0 {
				return err
			}
			for _, c := range cs { // those of tools that only others know must not hide the rest
				if _, err := e.conf.Tools.Lookup(c.Tool); err == nil && len(lost) < limit {
					lost = append(lost, subject{call: c})
				}
				after = c.ID
			}
		}
		return nil
	})
	failed = errors.Join(failed, err)
	for _, s := range lost {
		swept, err := e.sweepLost(ctx, s)
		if swept {
			n++
		}
		failed = errors.Join(failed, err) // one that cannot be helped must not keep the others
	}
	return n, failed
}

// isLostRace: another process settled it between the reading and the writing.
func isLostRace(err error) bool {
	return errors.Is(err, ErrRunState) || errors.Is(err, ErrRunning)
}

func (e *Executor) sweepLost(ctx context.Context, s subject) (bool, error) {
	t, err := e.conf.Tools.Lookup(s.call.Tool)
	if err != nil {
		return false, nil // another process knows this tool
	}
	if s, err = e.readAgain(ctx, s); err != nil {
		return false, err
	}
	if err := s.unaltered(); err != nil {
		return false, err
	}
	s.tool = t
	asked, err := e.markLost(ctx, &s)
	if isLostRace(err) {
		return false, nil
	}
	if err != nil || asked != nil || !s.recovery().probe() {
		return err == nil, err
	}
	_, settled, err := e.probe(ctx, s)
	if err == nil && !settled && !s.recovery().key() {
		_, err = e.askAgain(ctx, s)
	}
	if isLostRace(err) {
		err = nil
	}
	return true, err
}
