package delivery

import (
	"time"

	"github.com/placet-dev/placet/event"
)

// Command is what can happen to a delivery.
type Command interface{ command() }

// Claim takes a delivery that is due, to send it.
type Claim struct {
	Target  Target
	Owner   string
	Lease   time.Duration
	Token   []byte // hash of what its holder proves itself with; nil: the fence is enough
	Epoch   int64
	Settled bool // what it asks for needs no answer any more
	Cleaned bool // its event is not there any more: its root was cleaned up
}

// Settle tells how an attempt ended.
type Settle struct {
	Target  Target
	Fence   int64
	Outcome Outcome
	Jitter  float64 // 0 to 1, drawn for this
}

// Release gives a claim back that was not sent.
type Release struct {
	Fence   int64
	Message string
}

// Reclaim closes an attempt whose lease has ended: its process was lost.
type Reclaim struct {
	Target Target
	Jitter float64
}

// GiveUp ends a delivery that has not arrived in its time.
type GiveUp struct{}

// Drop gives up a delivery that nobody has claimed.
type Drop struct{ Message string }

// Retry tries a dead one again, at a person's word, or one that is retrying at once.
type Retry struct {
	Target Target
	By     string
}

func (Claim) command()   {}
func (Settle) command()  {}
func (Release) command() {}
func (Reclaim) command() {}
func (GiveUp) command()  {}
func (Drop) command()    {}
func (Retry) command()   {}

// Change is what the transaction must write, all of it or none.
type Change struct {
	Next    Delivery
	Began   *Attempt      // one that begins
	Ended   *Attempt      // one that ends
	Events  []event.Event // in the event's own stream
	Disable string        // why the target is to be disabled; empty: it is not
}

// Step judges a command. It is pure: the same delivery, command and time give the same
// answer. An error means that there is nothing to write.
func (d Delivery) Step(cmd Command, now time.Time) (Change, error) {
	ch, err := d.judge(cmd, now)
	ch.Next.Version = d.Version + 1
	return ch, err
}

func (d Delivery) judge(cmd Command, now time.Time) (Change, error) {
	switch cmd := cmd.(type) {
	case Claim:
		return d.claim(cmd, now)
	case Settle:
		return d.settle(cmd, now)
	case Release:
		return d.release(cmd, now)
	case Reclaim:
		return d.reclaim(cmd, now)
	case GiveUp:
		return d.giveUp(now)
	case Drop:
		return d.drop(cmd, now)
	case Retry:
		return d.retry(cmd, now)
	}
	panic("delivery: unknown command")
}

// claim begins an attempt, unless there is no need for one any more: then the delivery
// ends, and nothing was begun.
func (d Delivery) claim(c Claim, now time.Time) (Change, error) {
	switch {
	case d.Status != Pending && d.Status != Retrying || d.Due.IsZero() || now.Before(d.Due):
		return Change{}, d.errState("cannot be sent now")
	case !c.Target.RemovedAt.IsZero():
		return d.drop(Drop{targetRemoved}, now)
	case !c.Target.DisabledAt.IsZero():
		return d.over(Dead, "Its target is disabled: "+c.Target.Disabled, now), nil
	case c.Settled:
		return d.drop(Drop{isSettled}, now)
	case c.Cleaned:
		return d.drop(Drop{isCleaned}, now)
	case now.After(d.GivesUpAt):
		return d.giveUp(now)
	}
	next := d
	next.Status, next.Due = Dispatching, time.Time{}
	next.Fence, next.Owner, next.Token, next.Epoch = d.Fence+1, c.Owner, c.Token, c.Epoch
	next.LeaseUntil = now.Add(c.Lease)
	return Change{Next: next, Began: &Attempt{DeliveryID: d.ID, N: next.Fence, Owner: c.Owner, StartedAt: now}}, nil
}

const (
	targetRemoved = "Its target was removed."
	isSettled     = "What it asks for is settled."
	isCleaned     = "What it tells of was cleaned up."
)

func (d Delivery) settle(c Settle, now time.Time) (Change, error) {
	if err := d.held(c.Fence); err != nil {
		return Change{}, err
	}
	if c.Outcome.Result == NotSent {
		return d.release(Release{Fence: c.Fence, Message: c.Outcome.Message}, now)
	}
	d.Attempts++
	var ch Change
	switch c.Outcome.Result {
	case Arrived:
		ch = d.over(Delivered, "", now)
		ch.Next.Token = d.Token // its holder may say so again
	case Gone:
		ch = d.over(Dead, c.Outcome.Message, now)
		ch.Disable = c.Outcome.Message
	case Refused:
		ch = d.over(Dead, c.Outcome.Message, now)
	default:
		ch = d.again(c, now)
	}
	ch.Ended = d.ended(AttemptOutcome(c.Outcome.Result), c.Outcome, now)
	return ch, nil
}

// again plans the attempt after one that failed, if there is one.
func (d Delivery) again(c Settle, now time.Time) Change {
	t := c.Target
	if d.Attempts-d.Budget >= t.MaxAttempts {
		return d.over(Dead, c.Outcome.Message, now)
	}
	wait := max(backoff(t.RetryDelay, d.Attempts-d.Budget, c.Jitter), min(c.Outcome.RetryAfter, t.MaxAge))
	return Change{Next: d.waiting(Retrying, now.Add(wait), c.Outcome.Message)}
}

// release gives the claim back: no attempt is spent, and the delivery is due at once.
func (d Delivery) release(c Release, now time.Time) (Change, error) {
	if err := d.held(c.Fence); err != nil {
		return Change{}, err
	}
	to := Pending
	if d.Attempts > 0 {
		to = Retrying
	}
	return Change{Next: d.waiting(to, now, c.Message), Ended: d.ended(Released, Outcome{Message: c.Message}, now)}, nil
}

// reclaim takes a lost claim back. Nobody knows whether it arrived, so it is sent
// again; it spends no attempt, since none was answered, and waits longer each time.
func (d Delivery) reclaim(c Reclaim, now time.Time) (Change, error) {
	if d.Status != Dispatching || !now.After(d.LeaseUntil) {
		return Change{}, d.errState("is not lost")
	}
	const lost = "The process that sent it was lost; whether it arrived is not known."
	wait := backoff(c.Target.RetryDelay, min(d.Fence, 10), c.Jitter)
	return Change{Next: d.waiting(Retrying, now.Add(wait), lost), Ended: d.ended(AttemptOutcome(Reclaimed), Outcome{Message: lost}, now)}, nil
}

func (d Delivery) giveUp(now time.Time) (Change, error) {
	if d.Status != Pending && d.Status != Retrying || !now.After(d.GivesUpAt) {
		return Change{}, d.errState("is not given up yet")
	}
	return d.over(Dead, d.said("It did not arrive in its time."), now), nil
}

// drop gives up what was not sent. Its stream tells.
func (d Delivery) drop(c Drop, now time.Time) (Change, error) {
	if d.Status != Pending && d.Status != Retrying {
		return Change{}, d.errState("cannot be dropped")
	}
	ch := d.over(Dropped, c.Message, now)
	ch.Events = []event.Event{event.New(event.DeliveryDropped, d.ID, event.System, droppedPayload{d.ID, d.TargetID})}
	return ch, nil
}

type droppedPayload struct {
	DeliveryID string `json:"delivery_id"`
	TargetID   string `json:"target_id"`
}

func (d Delivery) retry(c Retry, now time.Time) (Change, error) {
	switch {
	case d.Status != Dead && d.Status != Retrying:
		return Change{}, d.errState("is tried again only once it has failed")
	case !c.Target.RemovedAt.IsZero():
		return Change{}, ErrState.Say("Its target %s was removed: nobody is told of it any more.", d.TargetID)
	case !c.Target.InUse():
		return Change{}, ErrState.Say("Its target %s is not in use.", d.TargetID).Hint("Put it in use again: placet wake enable %s.", d.TargetID)
	}
	if d.Status == Retrying { // in its order, and with the attempts that it has left
		d.Due = now
		return Change{Next: d}, nil
	}
	next := d.waiting(Retrying, now, "Tried again by "+c.By+".")
	next.Ordered, next.OutOfOrder = false, true
	next.GivesUpAt, next.Budget, next.EndedAt = now.Add(c.Target.MaxAge), d.Attempts, time.Time{}
	return Change{Next: next}, nil
}

// held refuses whoever does not hold the claim.
func (d Delivery) held(fence int64) error {
	if d.Status != Dispatching || d.Fence != fence {
		return ErrLeaseLost.Say("Delivery %s is %s, and not under claim %d.", d.ID, d.Status, fence)
	}
	return nil
}

func (d Delivery) waiting(s Status, due time.Time, why string) Delivery {
	d.Status, d.Due, d.Message = s, due, why
	d.Token, d.LeaseUntil = nil, time.Time{}
	return d
}

func (d Delivery) over(s Status, why string, now time.Time) Change {
	d = d.waiting(s, time.Time{}, why)
	d.EndedAt = now
	return Change{Next: d}
}

// said is why it ends, with what went wrong last.
func (d Delivery) said(why string) string {
	if d.Message == "" {
		return why
	}
	return why + " " + d.Message
}

func (d Delivery) ended(how AttemptOutcome, o Outcome, now time.Time) *Attempt {
	return &Attempt{DeliveryID: d.ID, N: d.Fence, EndedAt: now, Outcome: how, Status: o.Status, Message: o.Message}
}

func (d Delivery) errState(why string) error {
	return ErrState.Say("Delivery %s is %s; it %s.", d.ID, d.Status, why)
}

// backoff is how long to wait after so many failures in a row: it doubles, up to
// [LongestRetryDelay], and is spread by a fifth to either side, so that what failed
// together is not tried together.
func backoff(first time.Duration, failures int64, jitter float64) time.Duration {
	wait := first
	for range max(failures, 1) - 1 {
		if wait *= 2; wait >= LongestRetryDelay {
			break
		}
	}
	wait = min(wait, LongestRetryDelay)
	return wait - wait/5 + time.Duration(jitter*float64(2*(wait/5)))
}
