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

// toAnswer bounds how long a waiter may still ask when everything is settled.
const toAnswer = 20 * time.Second

// await lets one more wait until it is answered, asking again at another daemon after
// each error, as long as it takes. Who is not answered when everything is settled is a
// problem.
func (c *client) await(ctx context.Context, what, id string, once func(c *client, ctx context.Context) (answered bool)) {
	c = c.fork()
	ctx = context.WithoutCancel(ctx)
	c.waiters.Go(func() {
		var end time.Time
		for end.IsZero() || time.Now().Before(end) {
			turn, stop := within(ctx, some(c.rnd, time.Second, 5*time.Second))
			answered := once(c, turn)
			stop()
			if answered {
				c.count(what + ": answered")
				return
			}
			select {
			case <-c.over:
				if end.IsZero() {
					end = time.Now().Add(toAnswer)
				}
			default:
			}
			pause(ctx, c.rnd, 50*time.Millisecond)
		}
		c.problem(what + " of " + id + " was not answered")
	})
}

var errHeard = errors.New("heard")

// waitFor waits for the event that settles an approval.
func (c *client) waitFor(ctx context.Context, a asked) {
	after := event.Cursor("")
	at := c.h.now()
	c.await(ctx, "a wait for a decision", a.id, func(c *client, ctx context.Context) bool {
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
	c.await(ctx, "a wait for a call", id, func(c *client, ctx context.Context) bool {
		wait := some(c.rnd, 500*time.Millisecond, 4*time.Second)
		select {
		case <-c.over:
			wait = 0
		default:
		}
		o, err := c.anywhere("bot", c.rnd).GetCall(ctx, id, wait)
		if c.expect("wait for a call", err) != well {
			return false
		}
		if !o.Status.Terminal() && wait > 0 {
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
	c.await(ctx, "a wait for an answer", a.id, func(c *client, ctx context.Context) bool {
		got, err := c.anywhere("bot", c.rnd).WaitForQuestion(ctx, a.id, after, some(c.rnd, 500*time.Millisecond, 4*time.Second))
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
