package call

import (
	"context"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
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
		err = decision.Moved("The call")
	}
	return c, err
}

// reread reads the call again, keeping the record it is handled under.
func (e *Executor) reread(ctx context.Context, s subject) (subject, error) {
	fresh, err := e.readAgain(ctx, subject{call: s.call})
	fresh = s.goingOn(fresh)
	fresh.grant = s.grant
	return fresh, err
}
