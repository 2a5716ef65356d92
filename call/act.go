package call

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/policy"
)

// act writes what the judging came to. again: something moved, judge again.
func (e *Executor) act(ctx context.Context, s subject, v verdict) (res Result, again bool, err error) {
	switch {
	case v.refuse != nil:
		res, err = e.refuse(ctx, s, v)
	case v.ask != nil && v.answer == nil:
		res, err = e.park(ctx, s, v)
	default:
		res, err = e.startAndRun(ctx, s, v)
	}
	return res, errors.Is(err, decision.ErrMoved), err
}

// refuse answers for a gate. A policy's no to a fresh call is stored; a refusal
// on the way to an attempt leaves the call and its grant as they are.
func (e *Executor) refuse(ctx context.Context, s subject, v verdict) (Result, error) {
	if s.call.Status != "" {
		return s.stands(v.refuse), nil
	}
	if v.refuse.kind != KindPolicyDenied && v.refuse.kind != KindPolicyAbort {
		return Result{Status: Denied, Kind: v.refuse.kind, Message: v.refuse.message, RunID: s.call.RunID, Args: s.call.Args}, nil
	}
	var next Call
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) error {
		next = Call{}
		c, err := e.lock(tx, s, v)
		if err != nil {
			return err
		}
		ch, err := c.Step(Refuse{Kind: v.refuse.kind, Message: v.refuse.message, Actor: event.System}, tx.Now())
		if err != nil {
			return err
		}
		next = ch.Next
		return insert(tx, ch.Next, ch.Events, s.key)
	})
	return resultOf(next), err
}

// stands is the answer about a stored call that a gate stopped: it is as it was.
func (s subject) stands(r *refusal) Result {
	res := resultOf(s.call)
	res.Kind, res.Message = r.kind, r.message
	if s.grant != nil {
		res.ApprovalID = s.grant.ID
	}
	return res
}

// insert writes a new call and, with it, the key that its client named.
func insert(tx Tx, c Call, es []event.Event, key *IdempotencyKey) error {
	if err := mayJoin(tx, c); err != nil {
		return err
	}
	if err := tx.InsertCall(c, es...); err != nil {
		return err
	}
	return putKey(tx, c, key)
}

// putKey stores the key that a client named, with what its request came to.
func putKey(tx Tx, c Call, key *IdempotencyKey) error {
	if key == nil {
		return nil
	}
	k := *key
	k.CallID, k.Attempt, k.At = c.ID, c.Attempts, tx.Now()
	err := tx.PutIdempotent(k)
	if errors.Is(err, decision.ErrMoved) {
		err = errKeyTaken
	}
	return err
}

// park stores the request and lets go: the row waits from now on. An older
// grant of the same call is superseded.
func (e *Executor) park(ctx context.Context, s subject, v verdict) (Result, error) {
	var asked decision.Decision
	err := event.Update(ctx, e.conf.Store, e.conf.Observer, func(tx Tx) (err error) {
		asked, err = e.ask(tx, s, v)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	return Result{}, pendingError(asked, s.doubtful())
}

// ask writes the request, and replaces the grant that was not enough.
func (e *Executor) ask(tx Tx, s subject, v verdict) (decision.Decision, error) {
	c, err := e.lock(tx, s, v)
	if err != nil {
		return decision.Decision{}, err
	}
	if s.grant != nil {
		if err := e.supersede(tx, *s.grant); err != nil {
			return decision.Decision{}, err
		}
	}
	asked := e.stamp(tx, *v.ask, v.ttl)
	limit := e.maxPending
	if asked.Kind == decision.KindInterrupted { // the runtime's own question is never refused
		limit = 0
	}
	return asked, e.putParked(tx, c, s, asked, limit)
}

// putParked writes the call as waiting for d, and d, unless maxPending others wait.
func (e *Executor) putParked(tx Tx, c Call, s subject, d decision.Decision, maxPending int64) error {
	ch, err := c.Step(Park{Approval: d, Recovery: recoveryOf(s.tool)}, tx.Now())
	if err != nil {
		return err
	}
	if err := decision.Insert(tx, d, maxPending); err != nil {
		return err
	}
	ch.Events = append(ch.Events, d.Requested())
	return put(tx, c, ch, s.key)
}

// put writes a call's change: the first inserts it. Of a later one a key is stored only
// with the attempt that it started.
func put(tx Tx, prev Call, ch Change, key *IdempotencyKey) error {
	if prev.Status == "" {
		return insert(tx, ch.Next, ch.Events, key)
	}
	if err := tx.PutCall(prev, ch.Next, ch.Events...); err != nil || ch.Attempt == nil {
		return err
	}
	return putKey(tx, ch.Next, key)
}

// stamp fixes the times of a new approval.
func (e *Executor) stamp(tx Tx, d decision.Decision, ttl time.Duration) decision.Decision {
	d.CreatedAt, d.Epoch = e.clock(tx), tx.Epoch()
	if ttl > 0 {
		d.ExpiresAt = d.CreatedAt.Add(ttl)
	}
	return d
}

// lock locks the root and compares what was judged on. The call itself is compared
// where it is written: PutCall holds it against the row. For a fresh call there is
// no root yet: its insertion is the lock.
func (e *Executor) lock(tx Tx, s subject, v verdict) (Call, error) {
	if policy.VersionOf(e.conf.Policy) != v.policyVersion {
		return Call{}, decision.Moved("The policy")
	}
	if t, err := e.conf.Tools.Lookup(s.tool.Name); err != nil || t != s.tool { // a registered tool never changes
		return Call{}, decision.Moved("The tool")
	}
	if s.call.Status == "" {
		c := s.call
		c.CreatedAt, c.Epoch = tx.Now(), tx.Epoch()
		return c, nil
	}
	return s.call, tx.LockCall(s.call.ID)
}

// same compares two readings of one call in what an attempt is bound to.
func (c Call) same(o Call) bool {
	return c.Version == o.Version && c.Status == o.Status && c.Fence == o.Fence && c.Attempts == o.Attempts &&
		c.ApprovalID == o.ApprovalID && c.Tool == o.Tool && c.RunID == o.RunID && c.ArgsDigest == o.ArgsDigest
}

// supersede replaces a grant that the caller has judged on.
func (e *Executor) supersede(tx Tx, g decision.Decision) error {
	d, err := tx.Decision(g.ID)
	if err != nil {
		return err
	}
	if !d.Same(g) {
		return decision.Moved("The approval")
	}
	ch, err := d.Step(decision.Supersede{}, e.clock(tx))
	if err != nil {
		return err
	}
	return tx.PutDecision(d, ch)
}
