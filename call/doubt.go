package call

import (
	"context"
	"fmt"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

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
		approvalTTL = decision.Shorter(approvalTTL, from.ExpiresAt.Sub(from.CreatedAt))
	}
	return decision.Shorter(grantTTL, from.GrantTTL), approvalTTL
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
