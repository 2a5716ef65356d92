package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// Deliveries is a page of deliveries, newest first.
type Deliveries struct {
	Deliveries []delivery.DeliveryObject `json:"deliveries"`
	Next       string                    `json:"next,omitempty"`
}

// DeliveryAttempts are all tries at a delivery, oldest first.
type DeliveryAttempts struct {
	Attempts []delivery.AttemptObject `json:"attempts"`
}

type listDeliveriesIn struct {
	Page
	TargetID string `query:"target_id" maxLength:"200"`
	JobID    string `query:"job_id" maxLength:"200"`
	RunID    string `query:"run_id" maxLength:"200"`
	Prefix   string `query:"prefix" maxLength:"200" doc:"those whose id begins so"`
	Status   string `query:"status" enum:"pending,dispatching,retrying,delivered,dead,dropped,all" default:"all"`
}

type retryIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body *By
}

// Registering is what a relay is made of.
type Registering struct {
	Events        []string `json:"events,omitempty"`
	Name          string   `json:"name,omitempty" doc:"registering the same name again goes on with what was not acknowledged"`
	JobID         string   `json:"job_id,omitempty" doc:"the one job it hears of"`
	RunID         string   `json:"run_id,omitempty" doc:"the one run it hears of; without either it hears of all"`
	MaxAgeSeconds float64  `json:"max_age_seconds,omitempty" minimum:"1" maximum:"2592000"`
	Unordered     bool     `json:"unordered,omitempty"`
}

type registerIn struct{ Body Registering }

type pollIn struct {
	TargetID     string `query:"target_id" maxLength:"200" doc:"of the relay, as registering answered; needed"`
	Limit        int    `query:"limit" minimum:"1" maximum:"100" default:"10"`
	Wait         string `query:"wait" maxLength:"20" doc:"at most 1m: 30s; for the first, where there is none yet"`
	LeaseSeconds int    `query:"lease_seconds" minimum:"1" maximum:"3600" default:"60" doc:"until when it has to be acknowledged"`
}

// Fetched is a delivery that a client holds until its lease ends.
type Fetched struct {
	DeliveryID string          `json:"delivery_id"`
	LeaseToken string          `json:"lease_token"`
	LeaseUntil string          `json:"lease_until"`
	Attempt    int64           `json:"attempt" doc:"1 for the first; a repeat has the same delivery_id"`
	Event      json.RawMessage `json:"event" doc:"CloudEvents 1.0, as a webhook gets it"`
}

// FetchedList is what a poll found.
type FetchedList struct {
	Deliveries []Fetched `json:"deliveries"`
}

// Holding proves that a client holds a delivery.
type Holding struct {
	DeliveryID string `json:"delivery_id" maxLength:"200"`
	LeaseToken string `json:"lease_token" maxLength:"200"`
}

type holdIn struct{ Body Holding }

func (s *Server) registerDeliveries() {
	get, post := http.MethodGet, http.MethodPost
	add(s, route{method: get, path: "/v1/deliveries", id: "listDeliveries", summary: "Deliveries, newest first; an agent sees those to its own targets", jobs: true}, s.listDeliveries)
	add(s, route{method: get, path: "/v1/deliveries/{id}", id: "getDelivery", summary: "One delivery", jobs: true},
		func(ctx context.Context, c caller, in *idIn) (*body[delivery.DeliveryObject], error) {
			d, t, err := s.delivery(ctx, c, in.ID)
			return answer(c.deliveryObject(d, t), err)
		})
	add(s, route{method: get, path: "/v1/deliveries/{id}/attempts", id: "listDeliveryAttempts", summary: "All tries at a delivery, oldest first", jobs: true}, s.deliveryAttempts)
	add(s, route{
		method: post, path: "/v1/deliveries/{id}/retry", id: "retryDelivery", scopes: agentsAndOps, jobs: true,
		summary: "Try a dead delivery again, out of its order, or one that is retrying at once", shape: `{"by":"ana"}, or nothing`,
	}, s.retryDelivery)
}

func (s *Server) registerRelay() {
	get, post := http.MethodGet, http.MethodPost
	hold := `{"delivery_id":"dlv_…","lease_token":"…"}`
	add(s, route{
		method: post, path: "/v1/relay/register", id: "registerRelay", status: http.StatusCreated, scopes: agentsAndOps, jobs: true,
		summary: "Become a target that fetches what it is told", shape: `{"events":["completed"],"name":"my-agent","job_id":"job_…"}`,
	}, s.registerRelayTarget)
	add(s, route{method: get, path: "/v1/relay/poll", id: "pollRelay", scopes: agentsAndOps, jobs: true, summary: "Fetch what is due, under a lease"}, s.pollRelay)
	add(s, route{method: post, path: "/v1/relay/ack", id: "ackRelay", scopes: agentsAndOps, jobs: true, summary: "Say that a delivery has arrived; again is fine", shape: hold},
		s.answerRelay(delivery.Desk.Acknowledge))
	add(s, route{method: post, path: "/v1/relay/release", id: "releaseRelay", scopes: agentsAndOps, jobs: true, summary: "Give a delivery back unsent; it comes again", shape: hold},
		s.answerRelay(delivery.Desk.GiveBack))
}

func (c caller) deliveryObject(d delivery.Delivery, t delivery.Target) delivery.DeliveryObject {
	o := d.Object()
	if !c.owns(t) {
		o.Message = ""
	}
	return o
}

// delivery is one that the caller sees, and its target.
func (s *Server) delivery(ctx context.Context, c caller, id string) (d delivery.Delivery, t delivery.Target, err error) {
	err = txn.View(ctx, s.c.Store, func(tx delivery.Tx) error {
		if d, err = tx.Delivery(id); err != nil {
			return err
		}
		if t, err = tx.Target(d.TargetID); err != nil {
			return err
		}
		if d.Space != s.c.Space || !c.seesTarget(t) {
			return hidden("delivery", id)
		}
		return nil
	})
	return d, t, err
}

func (s *Server) deliveryAttempts(ctx context.Context, c caller, in *idIn) (*body[DeliveryAttempts], error) {
	_, t, err := s.delivery(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	var as []delivery.Attempt
	err = txn.View(ctx, s.c.Store, func(tx delivery.Tx) (err error) {
		as, err = tx.DeliveryAttempts(in.ID)
		return err
	})
	list := objects(as, delivery.Attempt.Object)
	for i := range list {
		if !c.owns(t) {
			list[i].Message = ""
		}
	}
	return answer(DeliveryAttempts{list}, err)
}

func (s *Server) retryDelivery(ctx context.Context, c caller, in *retryIn) (*body[delivery.DeliveryObject], error) {
	_, t, err := s.delivery(ctx, c, in.ID)
	if err == nil {
		err = c.mustOwn(t)
	}
	if err != nil {
		return nil, err
	}
	by := By{}
	if in.Body != nil {
		by = *in.Body
	}
	d, err := s.desk().Retry(ctx, in.ID, c.byOr(by.By))
	return answer(d.Object(), err)
}

func (s *Server) listDeliveries(ctx context.Context, c caller, in *listDeliveriesIn) (*body[Deliveries], error) {
	q := delivery.Query{Space: s.c.Space, TargetID: in.TargetID, Stream: streamOf(in.JobID, in.RunID), Prefix: in.Prefix, Status: delivery.Status(in.Status)}
	if in.Status == "all" {
		q.Status = ""
	}
	switch {
	case c.JobID != "" && q.Stream != "" && q.Stream != job.RefOf(c.JobID).Stream():
		return answer(Deliveries{Deliveries: []delivery.DeliveryObject{}}, nil)
	case c.JobID != "":
		q.Stream, q.Principal = job.RefOf(c.JobID).Stream(), c.Principal
	case !c.reads():
		q.Principal = c.Principal
	}
	err := c.behind(in.After, "delivery", id.Delivery, func(id string) error { _, _, err := s.delivery(ctx, c, id); return err })
	if err != nil {
		return nil, err
	}
	targets := map[string]delivery.Target{}
	ds, next, err := listing[delivery.Delivery]{
		read: func(after string, limit int) (ds []delivery.Delivery, err error) {
			q.After, q.Limit = after, limit
			err = txn.View(ctx, s.c.Store, func(tx delivery.Tx) error {
				ds, err = tx.Deliveries(q)
				for _, d := range ds {
					if _, known := targets[d.TargetID]; !known && err == nil {
						targets[d.TargetID], err = tx.Target(d.TargetID)
					}
				}
				return err
			})
			return ds, err
		},
		id:   func(d delivery.Delivery) string { return d.ID },
		sees: func(d delivery.Delivery) bool { return c.seesTarget(targets[d.TargetID]) },
	}.page(in.After, in.Limit)
	return answer(Deliveries{objects(ds, func(d delivery.Delivery) delivery.DeliveryObject { return c.deliveryObject(d, targets[d.TargetID]) }), next}, err)
}

func (s *Server) registerRelayTarget(ctx context.Context, c caller, in *registerIn) (*body[delivery.Object], error) {
	b := in.Body
	stream, stays, err := s.rootFor(ctx, c, b.JobID, b.RunID)
	if err != nil {
		return nil, err
	}
	t, err := s.desk().Register(ctx, stream, c.Principal, delivery.Adding{
		Events: b.Events, Name: b.Name, MaxAgeSeconds: b.MaxAgeSeconds, Unordered: b.Unordered,
	}, stays)
	return answer(t.Object(), err)
}

func (s *Server) pollRelay(ctx context.Context, c caller, in *pollIn) (*body[FetchedList], error) {
	if in.TargetID == "" {
		return nil, ErrMalformed.Say("query.target_id: there is none.").Hint("Give the target_id that registering answered with.")
	}
	if _, err := s.ownTarget(ctx, c, in.TargetID); err != nil {
		return nil, err
	}
	p := delivery.Polling{TargetID: in.TargetID, Holder: c.Principal, Limit: in.Limit, Lease: time.Duration(in.LeaseSeconds) * time.Second}
	if in.Wait != "" {
		wait, err := time.ParseDuration(in.Wait)
		if err != nil || wait < 0 || wait > delivery.MaxPollWait {
			return nil, ErrMalformed.Say("query.wait: %q is no time from 0s to %s.", in.Wait, delivery.MaxPollWait).Hint("Write it like wait=30s.")
		}
		p.Wait = wait
		defer s.metrics.waits()()
	}
	ctx, stop := s.waiting(ctx)
	defer stop()
	got, err := s.desk().Poll(ctx, p)
	if err = because(ctx, err); err == nil {
		err = s.stillGood(ctx)
	}
	return answer(FetchedList{objects(got, fetched)}, err)
}

func fetched(p delivery.Polled) Fetched {
	return Fetched{
		DeliveryID: p.Delivery.ID, LeaseToken: p.LeaseToken, LeaseUntil: txn.Stamp(p.Delivery.LeaseUntil), Attempt: p.Delivery.Fence, Event: p.Body,
	}
}

func (s *Server) answerRelay(how func(delivery.Desk, context.Context, string, string) (delivery.Delivery, error)) func(context.Context, caller, *holdIn) (*body[delivery.DeliveryObject], error) {
	return func(ctx context.Context, c caller, in *holdIn) (*body[delivery.DeliveryObject], error) {
		_, t, err := s.delivery(ctx, c, in.Body.DeliveryID)
		if err == nil {
			err = c.mustOwn(t)
		}
		if err != nil {
			return nil, err
		}
		d, err := how(s.desk(), ctx, in.Body.DeliveryID, in.Body.LeaseToken)
		return answer(d.Object(), err)
	}
}
