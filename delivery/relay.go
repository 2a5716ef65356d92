package delivery

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Limits of a relay's poll.
const (
	MaxPoll          = 100 // deliveries at once
	DefaultPollLease = time.Minute
	MaxPollLease     = time.Hour
	MaxPollWait      = time.Minute
	pollAgain        = time.Second     // where what was due was taken by another
	longestPoll      = 2 * MaxPollWait // longer than any poll waits
)

// Polling says what a client fetches.
type Polling struct {
	TargetID string
	Holder   string        // who holds what is fetched, for people
	Limit    int           // 1 to MaxPoll; 0 means 10
	Lease    time.Duration // until when it has to be acknowledged; 0 means DefaultPollLease
	Wait     time.Duration // for the first one, where there is none yet; at most MaxPollWait
}

// Polled is one delivery that a client holds until its lease ends.
type Polled struct {
	Delivery Delivery
	// LeaseToken proves that the client holds it. It is told this once.
	LeaseToken string
	Body       []byte
}

func (p *Polling) check() error {
	if p.Limit == 0 {
		p.Limit = 10
	}
	if p.Lease == 0 {
		p.Lease = DefaultPollLease
	}
	switch {
	case p.Limit < 1 || p.Limit > MaxPoll:
		return ErrUsage.Say("%d deliveries were asked for; it is from 1 to %d.", p.Limit, MaxPoll)
	case p.Lease < time.Second || p.Lease > MaxPollLease:
		return ErrUsage.Say("The lease is %s; it is from 1 s to %s.", p.Lease, MaxPollLease)
	case p.Wait < 0 || p.Wait > MaxPollWait:
		return ErrUsage.Say("The wait is %s; it is at most %s.", p.Wait, MaxPollWait)
	}
	return nil
}

// Register adds a relay, or finds the principal's own of that name on that root and
// gives it what is asked for now: a client that comes again goes on with what it has not
// acknowledged, also where the root has ended since. Errors: those of [Desk.Add].
func (k Desk) Register(ctx context.Context, stream, principal string, a Adding, stays func(tx txn.Tx) error) (Target, error) {
	a.Type = KindRelay
	if a.Name == "" {
		return k.Add(ctx, stream, principal, a, stays)
	}
	t, err := k.Channels.Target(k.Space, stream, principal, a)
	if err != nil {
		return t, err
	}
	var got Target
	err = txn.Update(ctx, k.Store, func(tx Tx) error {
		got = t
		earlier, err := tx.Targets(TargetQuery{Space: k.Space, Stream: stream, Global: stream == "", Principal: principal, Name: a.Name, Kind: KindRelay, Limit: 1})
		switch {
		case err != nil:
			return err
		case len(earlier) == 0 && stays != nil:
			if err := stays(tx); err != nil {
				return err
			}
		}
		if len(earlier) == 0 {
			return Add(tx, &got)
		}
		prev := earlier[0]
		got.ID, got.CreatedAt, got.Version = prev.ID, prev.CreatedAt, prev.Version+1
		if !prev.InUse() {
			if err := fits(tx, got); err != nil {
				return err
			}
		}
		return tx.PutTarget(prev, got)
	})
	return got, err
}

// Poll claims what is due for a relay, and waits for the first where there is none. An
// empty answer is no error. Errors: [ErrNotFound], [ErrUsage], [ErrState] where the
// target is not one that polls or is disabled.
//
// Something has to take back what was not acknowledged: a [Dispatcher] in some process,
// or [Desk.Sweep].
func (k Desk) Poll(ctx context.Context, p Polling) ([]Polled, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	woken, stop := k.Store.Watch(WakeTarget(p.TargetID))
	defer stop()
	over := time.NewTimer(p.Wait)
	defer over.Stop()
	again := time.NewTimer(p.Wait)
	defer again.Stop()
	for {
		got, next, err := k.fetch(ctx, p)
		if err != nil || len(got) > 0 || p.Wait == 0 {
			return got, err
		}
		again.Reset(next)
		select {
		case <-woken:
		case <-again.C:
		case <-over.C:
			p.Wait = 0 // one last look
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fetch looks before it writes: most polls find nothing. Where all that was due came to
// its end instead, it looks again. next is when something becomes due by itself.
func (k Desk) fetch(ctx context.Context, p Polling) (got []Polled, next time.Duration, err error) {
	for {
		if next, err = k.nextFor(ctx, p.TargetID); err != nil || next > 0 {
			return nil, next, err
		}
		got, moved, err := k.claim(ctx, p)
		if err != nil || !moved || len(got) > 0 {
			return got, pollAgain, err
		}
	}
}

// nextFor is how long it takes until something is due for a relay; 0: it is.
func (k Desk) nextFor(ctx context.Context, targetID string) (next time.Duration, err error) {
	err = txn.View(ctx, k.Store, func(tx Tx) error {
		next = longestPoll
		t, err := k.relay(tx, targetID)
		if err != nil {
			return err
		}
		ds, err := tx.DueOf(t, tx.Now().Add(longestPoll), 1)
		if err == nil && len(ds) > 0 {
			next = max(0, ds[0].Due.Sub(tx.Now()))
		}
		return err
	})
	return next, err
}

// claim makes the claims of a poll. moved: something was claimed, or has come to its end.
func (k Desk) claim(ctx context.Context, p Polling) (got []Polled, moved bool, err error) {
	var es []event.Event
	err = event.Update(ctx, k.Store, k.Observer, func(tx Tx) error {
		got, es, moved = nil, nil, false
		t, err := k.relay(tx, p.TargetID)
		if err != nil {
			return err
		}
		ds, err := tx.DueOf(t, tx.Now(), p.Limit)
		if err != nil {
			return err
		}
		told, err := tx.EventsOf(ds)
		if err != nil {
			return err
		}
		tokens := make([]string, len(ds))
		all, err := claimAll(tx, ds, told, func(i int) Claim {
			tokens[i] = newLeaseToken()
			return Claim{Target: t, Owner: p.Holder, Lease: p.Lease, Token: hashOf(tokens[i])}
		})
		if err != nil {
			return err
		}
		for i, c := range all {
			moved = moved || c.next.Status != ds[i].Status
			if c.begun {
				got, es = append(got, Polled{Delivery: c.next, LeaseToken: tokens[i]}), append(es, *told[i])
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for i := range got {
		got[i].Body = got[i].Delivery.Body(es[i])
	}
	return got, moved, nil
}

func (k Desk) relay(tx Tx, id string) (Target, error) {
	t, err := k.target(tx, id)
	switch {
	case err != nil:
	case t.Kind != KindRelay:
		err = ErrState.Say("Target %s is a %s: it is not polled.", id, t.Kind)
	case !t.DisabledAt.IsZero():
		err = ErrState.Say("Target %s is disabled: %s", id, t.Disabled).Hint("Put it in use again: placet wake enable %s.", id)
	}
	return t, err
}

// Acknowledge says that a delivery has arrived. Again with the same token is fine.
// [ErrLeaseLost]: the token is not the one under which it is held; nothing was changed.
func (k Desk) Acknowledge(ctx context.Context, deliveryID, token string) (Delivery, error) {
	return k.answer(ctx, deliveryID, token, func(d Delivery, t Target) Command {
		if d.Status == Delivered {
			return nil
		}
		return Settle{Target: t, Fence: d.Fence, Outcome: Outcome{Result: Arrived}}
	})
}

// GiveBack returns a delivery unsent: no attempt is spent, and it is due again at once.
// [ErrLeaseLost] as in [Desk.Acknowledge].
func (k Desk) GiveBack(ctx context.Context, deliveryID, token string) (Delivery, error) {
	return k.answer(ctx, deliveryID, token, func(d Delivery, _ Target) Command { return Release{Fence: d.Fence} })
}

func (k Desk) answer(ctx context.Context, deliveryID, token string, how func(Delivery, Target) Command) (next Delivery, err error) {
	err = event.Update(ctx, k.Store, k.Observer, func(tx Tx) error {
		d, err := tx.Delivery(deliveryID)
		if err == nil && (d.Space != k.Space || d.Pushed) {
			err = ErrNotFound.Say("There is no delivery %s that is fetched.", deliveryID)
		}
		if err != nil {
			return err
		}
		if !d.heldBy(token, tx.Now()) {
			return ErrLeaseLost.Say("Delivery %s is not held under this token.", d.ID).Hint("Poll again: what has not been acknowledged comes again.")
		}
		t, err := tx.Target(d.TargetID)
		if err != nil {
			return err
		}
		cmd := how(d, t)
		if cmd == nil {
			next = d
			return nil
		}
		ch, err := d.Step(cmd, tx.Now())
		if err != nil {
			return err
		}
		next = ch.Next
		return put(tx, d, ch)
	})
	return next, err
}

// heldBy reports whether the token is the one of the claim, and the lease goes on or has
// led to its end.
func (d Delivery) heldBy(token string, now time.Time) bool {
	same := subtle.ConstantTimeCompare(d.Token, hashOf(token)) == 1
	return same && (d.Status == Delivered || d.Status == Dispatching && !now.After(d.LeaseUntil))
}

func newLeaseToken() string {
	b := make([]byte, 24)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

func hashOf(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}
