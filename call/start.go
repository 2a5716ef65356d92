package call

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/request"
)

// started is an attempt whose start is committed.
type started struct {
	call    Call
	attempt Attempt
	refuse  error    // committed instead of a start: the grant expired
	denial  *Result  // committed instead of a start: the port's answer was no
	stopped *refusal // nothing was committed: a guard is at its limit, or who asked may no more
}

// startAndRun commits the start, then calls the tool. If the commit took so long
// that the lease is nearly over, the tool is not called (design §4, rule 4).
func (e *Executor) startAndRun(ctx context.Context, s subject, v verdict) (Result, error) {
	asked := time.Now() // monotonic: taken before the commit is asked for
	st, err := e.start(ctx, s, v)
	switch {
	case err != nil:
		return Result{}, err
	case st.stopped != nil:
		v.refuse = st.stopped
		return e.refuse(ctx, s, v)
	case st.refuse != nil:
		return Result{}, st.refuse
	case st.denial != nil:
		return *st.denial, nil
	}
	if time.Since(asked) >= e.conf.Lease*2/3 {
		return e.finish(ctx, s, st, Outcome{
			Status: Failed, Kind: KindNotStarted, Message: "Storing the start took longer than two thirds of the lease; the tool was not called.",
		})
	}
	if s.handed != nil {
		*s.handed = Handed{Call: st.call, Attempt: st.attempt, Args: v.args}
		return resultOf(st.call), nil
	}
	return e.run(ctx, s, st, v.args, asked)
}

// errStopped ends a start that a guard refuses, or its asker's lost right, with nothing
// written.
var errStopped = errors.New("the start is refused")

func (e *Executor) start(ctx context.Context, s subject, v verdict) (started, error) {
	var st started
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		st, err = e.begin(tx, s, v)
		return err
	})
	if st.stopped != nil && errors.Is(err, errStopped) {
		return st, nil
	}
	return st, err
}

// begin writes one attempt: attempt row, fence, lease, the grant spent, guards
// counted, events. Everything it was judged on is compared here, where it writes.
func (e *Executor) begin(tx Tx, s subject, v verdict) (st started, err error) {
	c, err := e.lock(tx, s, v)
	if err != nil {
		return st, err
	}
	if st.stopped, err = s.stillMay(tx); err != nil {
		return st, err
	} else if st.stopped != nil {
		return st, errStopped
	}
	b := Begin{
		SpecDigest: v.specDigest, Recovery: recoveryOf(s.tool), Owner: s.carriedOutBy(),
		Epoch: tx.Epoch(), Lease: e.conf.Lease, Attempts: s.call.Attempts,
	}
	if v.edited {
		b.Args = v.args
	}
	switch {
	case s.grant != nil:
		st.refuse, err = e.spend(tx, c, *s.grant, &b)
	case v.ask != nil:
		c, st.denial, err = e.answerNow(tx, c, s, v, &b)
	case s.attempt != nil: // a repeat under the tool's key, on what the last attempt spent
		b.ApprovalID, b.GrantDigest, b.EffectiveDigest = s.attempt.ApprovalID, s.attempt.GrantDigest, s.attempt.EffectiveDigest
	}
	if err != nil || st.refuse != nil || st.denial != nil {
		return st, err
	}
	ch, err := c.Step(b, tx.Now())
	if err != nil {
		return st, err
	}
	if err := put(tx, c, ch, s.key); err != nil {
		return st, err
	}
	// Only now: a call that moved meanwhile is judged again, and no guard refuses it.
	if st.stopped, err = e.countGuards(tx, s, c.Attempts > 0, v.args); err != nil {
		return st, err
	} else if st.stopped != nil {
		return st, errStopped
	}
	st.attempt = *ch.Attempt
	if st.call, err = tx.Call(c.ID); err != nil { // as it is stored now
		return st, err
	}
	return st, tx.InsertAttempt(*ch.Attempt)
}

// spend consumes the grant in the transaction that starts the attempt. The grant
// is what was judged on; PutDecision holds all of it against the row. One that is
// overdue expires here instead; that is committed, and refuse returned.
func (e *Executor) spend(tx Tx, c Call, d decision.Decision, b *Begin) (refuse, err error) {
	if d.Epoch < tx.Epoch() && !c.keyed(b.Recovery, b.SpecDigest) {
		return nil, decision.Moved("The store's life")
	}
	if err := c.waitsFor(d); err != nil {
		return nil, err
	}
	now := e.clock(tx)
	ch, err := d.Step(decision.Consume{Attempt: b.Attempts + 1}, now)
	if err != nil {
		return nil, err
	}
	if ch.Refuse != nil {
		return ch.Refuse, decision.Settle(tx, d, ch, now)
	}
	b.ApprovalID, b.GrantDigest, b.EffectiveDigest = d.ID, d.Digest, d.EffectiveDigest
	if d.EffectiveDigest == "" && b.Args != nil { // the request itself holds edited arguments
		edited, err := request.ArgsDigest(b.Args)
		if err != nil {
			return nil, err
		}
		if b.EffectiveDigest, err = request.EffectiveDigest(d.Digest, edited); err != nil {
			return nil, err
		}
	}
	return nil, tx.PutDecision(d, ch)
}

// answerNow stores a request together with the answer that its port gave at
// once, through the same doors as a parked one. A no ends the call.
func (e *Executor) answerNow(tx Tx, c Call, s subject, v verdict, b *Begin) (Call, *Result, error) {
	d := e.stamp(tx, *v.ask, v.ttl)
	if err := e.putParked(tx, c, s, d, 0); err != nil { // it is not pending when this is committed
		return c, nil, err
	}
	d, err := tx.Decision(d.ID) // as it is stored, like one that was parked
	if err != nil {
		return c, nil, err
	}
	now := e.clock(tx)
	ch, err := d.Step(decision.Decide{Answer: *v.answer, Checked: v.ask.Digest, MayOwn: true}, now)
	if err != nil {
		return c, nil, err
	}
	if err := decision.Settle(tx, d, ch, now); err != nil {
		return c, nil, err
	}
	d, err = tx.Decision(d.ID)
	if err != nil {
		return c, nil, err
	}
	if c, err = tx.Call(c.ID); err != nil {
		return c, nil, err
	}
	b.Attempts = c.Attempts
	if d.Status == decision.Rejected {
		res, err := returnDenial(tx, d, c, now)
		return c, &res, err
	}
	refuse, err := e.spend(tx, c, d, b)
	return c, nil, errors.Join(err, refuse)
}
