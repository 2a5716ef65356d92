package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// rest is what is still to happen.
type rest struct {
	approvals []decision.Decision // that wait for people
	questions []decision.Decision
	jobs      []job.Job
	daemons   int // calls and runs that daemons are at, or go on with
	sending   int // deliveries
}

func (r rest) none() bool {
	return len(r.approvals)+len(r.questions)+len(r.jobs)+r.daemons+r.sending == 0
}

// farOff is a time at which every lease and every pause has ended.
func farOff(tx txn.Tx) time.Time { return tx.Now().Add(24 * time.Hour) }

func (s *sim) rest(ctx context.Context) (r rest, err error) {
	err = txn.View(ctx, s.w.store, func(tx store.Tx) error {
		r = rest{}
		for _, look := range []func(store.Tx) error{r.lookAtPeople, r.lookAtDaemons, r.lookAtRuns} {
			if err := look(tx); err != nil {
				return err
			}
		}
		n, err := tx.CountDeliveries(event.MainSpace)
		r.sending = int(n[delivery.Pending] + n[delivery.Dispatching] + n[delivery.Retrying])
		return err
	})
	return r, err
}

func (r *rest) lookAtPeople(tx store.Tx) (err error) {
	q := decision.Query{Space: event.MainSpace, Type: decision.Approval, Status: decision.Pending, Open: true, Limit: 500}
	if r.approvals, err = tx.Decisions(q); err != nil {
		return err
	}
	q.Type, q.Open = decision.Question, false
	if r.questions, err = tx.Decisions(q); err != nil {
		return err
	}
	r.jobs, err = tx.Jobs(job.Query{Space: event.MainSpace, Active: true, Limit: 500})
	return err
}

func (r *rest) lookAtDaemons(tx store.Tx) error {
	running, err := tx.LeaseEnded(event.MainSpace, farOff(tx), "", 500)
	if err != nil {
		return err
	}
	next, err := tx.Continuable(event.MainSpace, farOff(tx), "", 500)
	r.daemons += len(running) + len(next)
	return err
}

// lookAtRuns counts those that no person holds up.
func (r *rest) lookAtRuns(tx store.Tx) error {
	for _, status := range []run.Status{run.Running, run.Waiting} {
		rs, err := tx.Runs(run.Query{Space: event.MainSpace, Status: status, Limit: 500})
		if err != nil {
			return err
		}
		r.daemons += len(rs)
	}
	return nil
}

// settle answers whatever waits for people until nothing is left to do, and looks again
// whenever something has happened.
func (s *sim) settle(ctx context.Context, rnd *rand.Rand) (left rest, err error) {
	c := &client{s, 99, rnd}
	after := event.Cursor("")
	for {
		if left, err = s.rest(ctx); err != nil || left.none() {
			return left, err
		}
		c.answerAll(ctx, left)
		got, err := event.Wait(ctx, s.w.store, event.Waiting{After: after, Timeout: 200 * time.Millisecond})
		if err != nil {
			return left, err
		}
		after = got.Cursor
	}
}

func (c *client) answerAll(ctx context.Context, r rest) {
	for _, d := range r.approvals {
		a := c.metObject(d.Object())
		again := d.Kind == decision.KindInterrupted && c.rnd.IntN(2) == 0
		c.decide(ctx, a, again || d.Kind != decision.KindInterrupted && c.rnd.IntN(3) > 0)
	}
	for _, d := range r.questions {
		a := asked{id: d.ID, owner: d.Owner.ID, stream: d.Owner.Stream()}
		c.met(a, true)
		c.resolve(ctx, a)
	}
	if len(r.questions) > 0 {
		return // a job that ends takes its questions back
	}
	for _, j := range r.jobs {
		one, stop := c.brief(ctx)
		_, err := c.anywhere("root", c.rnd).StopJob(one, j.ID, httpapi.Stopping{KillAfterSeconds: 1})
		stop()
		c.expect("stop a job", err)
	}
}

// heal ends all faults and has every daemon serve.
func (s *sim) heal(ctx context.Context) {
	for _, m := range s.w.members {
		m.heal()
		if m.ended() {
			s.raise(ctx, m)
		}
	}
	s.recv.recover()
}

// finals reads, at one daemon after the other, what clients would read in the end.
func (s *sim) finals(m stored) {
	for id := range s.h.known {
		d, found := m.decisions[id]
		if !found {
			s.problem("decision " + id + " is not in the store, and a client was told of it")
			continue
		}
		by := d.DecidedBy
		at := s.h.now()
		s.h.add(operation(100, input{act: read, id: id}, at, output{done: true, stands: standing{d.Status, d.Choice, by}}, s.h.now()))
	}
}

// resting are the calls that have not ended.
func resting(ctx context.Context, st txn.Store) (map[string]bool, error) {
	var m stored
	m.calls = map[string]call.Call{}
	err := m.readCalls(ctx, st)
	ids := map[string]bool{}
	for id, c := range m.calls {
		ids[id] = !c.Status.Terminal()
	}
	return ids, err
}

// checkCalls compares what clients were told of calls with the store.
func checkCalls(told []string, ends map[string][]call.Status, m stored) (f findings) {
	for _, id := range told {
		if m.calls[id].ID == "" {
			f.add("call %s is not in the store, and a client was told of it", id)
		}
	}
	for id, all := range ends {
		for _, status := range slices.Compact(all) {
			if m.calls[id].Status != status {
				f.add("who waited for %s was told that it is %s, and it is %s", id, status, m.calls[id].Status)
			}
		}
	}
	return f
}

var errRestless = errors.New("it does not come to rest")
