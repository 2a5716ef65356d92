package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
)

func operation(n int, in input, at int64, out output, end int64) porcupine.Operation {
	return porcupine.Operation{ClientId: n, Input: in, Call: at, Output: out, Return: end}
}

const (
	// toAnswer bounds how long a waiter may not be answered although everything is settled.
	toAnswer = 30 * time.Second
	// veryLong is how long those wait who ask once and rely on being told.
	veryLong = 30 * time.Minute
)

// await lets one more wait until it is answered, asking again at another daemon after
// each error, as long as it takes. Some ask again every few seconds in any case; others
// rely on being told. Who is not answered when everything is settled is a problem.
func (c *client) await(ctx context.Context, what, id string, once func(c *client, ctx context.Context, long time.Duration) (answered bool)) {
	c = c.fork()
	ctx = context.WithoutCancel(ctx)
	patient := c.rnd.IntN(2) == 0
	c.waiters.Go(func() {
		for !closed(c.grace) {
			long := some(c.rnd, time.Second, 5*time.Second)
			if patient {
				long = veryLong
			}
			if c.turn(ctx, id, long, once) {
				c.count(what + ": answered")
				return
			}
			pause(ctx, c.rnd, 50*time.Millisecond)
		}
		c.problem(what + " of " + id + " was not answered")
	})
}

// turn waits once, and no longer than there is something to wait for.
func (c *client) turn(ctx context.Context, id string, long time.Duration, once func(*client, context.Context, time.Duration) bool) bool {
	turn, stop := within(ctx, long)
	defer stop()
	go func() {
		select {
		case <-turn.Done():
			return
		case <-c.over:
		}
		if c.resting[id] {
			stop()
			return
		}
		select {
		case <-turn.Done():
		case <-c.grace:
			stop()
		}
	}()
	return once(c, turn, long)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var errHeard = errors.New("heard")

// waitFor waits for the event that settles an approval.
func (c *client) waitFor(ctx context.Context, a asked) {
	after := event.Cursor("")
	at := c.h.now()
	c.await(ctx, "a wait for a decision", a.id, func(c *client, ctx context.Context, _ time.Duration) bool {
		var out output
		err := c.anywhere("bot", c.rnd).Follow(ctx, a.stream, after, func(e event.Object) error {
			after = e.Cursor
			status, settles := settling[e.Type]
			if !settles || e.Subject != a.id {
				return nil
			}
			out = heardOf(e, status)
			return errHeard
		})
		if errors.Is(err, errHeard) {
			c.h.add(operation(c.n, input{act: heard, id: a.id}, at, out, c.h.now()))
			return true
		}
		c.expect("follow a call", err)
		return false
	})
}

// heardOf is what an event tells of a decision.
func heardOf(e event.Object, status decision.Status) output {
	out := output{done: true, stands: standing{status: status}}
	if status != "" {
		return out
	}
	var p struct{ Status decision.Status }
	if json.Unmarshal(e.Payload, &p) != nil {
		return out
	}
	out.stands = standing{p.Status, decision.ChoiceReject, e.Actor}
	if p.Status == decision.Approved {
		out.stands.choice = decision.ChoiceApprove
	}
	return out
}

// waitForCall waits for a call's end. One of unknown outcome, about which people said no,
// has none: who waits for it waits until everything is settled.
func (c *client) waitForCall(ctx context.Context, id string) {
	c.await(ctx, "a wait for a call", id, func(c *client, ctx context.Context, long time.Duration) bool {
		rests := closed(c.over) && c.resting[id]
		if rests {
			long = 0
			ctx = context.WithoutCancel(ctx)
		}
		o, err := c.anywhere("bot", c.rnd).GetCall(ctx, id, long)
		if c.expect("wait for a call", err) != well || !o.Status.Terminal() && !rests {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ends[id] = append(c.ends[id], o.Status)
		return true
	})
}

// waitForQuestion waits for an answer with the cursor that asking gave.
func (c *client) waitForQuestion(ctx context.Context, a asked, after event.Cursor) {
	at := c.h.now()
	c.await(ctx, "a wait for an answer", a.id, func(c *client, ctx context.Context, long time.Duration) bool {
		got, err := c.anywhere("bot", c.rnd).WaitForQuestion(ctx, a.id, after, long)
		if c.expect("wait for an answer", err) != well || got.Event == nil {
			return false
		}
		c.h.add(operation(c.n, input{act: heard, id: a.id}, at, heardOfQuestion(got), c.h.now()))
		return true
	})
}

func heardOfQuestion(got httpapi.Waited) output {
	out := output{done: true}
	switch got.Event.Type {
	case event.DecisionWithdrawn:
		out.stands.status = decision.Withdrawn
	case event.DecisionExpired:
		out.stands.status = decision.Expired
	case event.DecisionResolved:
		var p struct{ Choice decision.Choice }
		if json.Unmarshal(got.Event.Payload, &p) == nil {
			out.stands = standing{resolved, p.Choice, got.Event.Actor}
		}
	}
	return out
}
