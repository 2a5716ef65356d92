package gallery

import (
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/review"
)

const (
	deliveryID = "dlv_01900000-0000-7000-8000-000000000007"
	targetID   = "wak_01900000-0000-7000-8000-000000000008"
	headHash   = "9c1185a5c5e9fc54612808977ee8f548b2258d31ddadef707ba62c166051b9e3"
)

func (f Frame) events() []State {
	s := f.shell(ana, view.Events, "Events")
	orders := []view.Option{{Value: "oldest", Text: "oldest first"}, {Value: "newest", Text: "newest first", Chosen: true}}
	all := view.EventList{Newest: true, Types: chosen("any type", event.Stored(), func(t string) string { return review.TypeWords(event.Type(t)) }), Orders: orders, Next: "/events?after=x", Room: view.NewRoom()}
	all.Rows, all.Names = recent(), review.Names{approvalID: "approval of " + odd, jobID: "job train"}
	text, err := json.Marshal(map[string]string{"status": "approved", "choice": "approve", "note": odd, "password": "hunter2"})
	if err != nil {
		panic(err) // it is made up here
	}
	inRun := happened(4, event.ApprovalDecided, approvalID, odd, string(text))
	inRun.Stream, inRun.To = "run:"+runID, "/approvals/"+approvalID
	removed := happened(3, event.CallStarted, callID, "", "")
	removed.Redacted, removed.To = true, "/calls/"+callID
	all.Rows = append(all.Rows, inRun, removed)
	stream := func(name string, c view.Chain) State {
		l := view.EventList{Stream: "job:" + jobID, Types: all.Types, Orders: orders, Rows: recent(), Chain: &c, Room: view.NewRoom()}
		return State{"events-" + name, view.EventsPage(s, l)}
	}
	none := view.EventList{Newest: true, Types: all.Types, Orders: orders, Room: view.NewRoom()}
	filtered := none
	filtered.Type = string(event.JobOutput)
	return []State{
		{"events", view.EventsPage(s, all)},
		{"events-empty", view.EventsPage(s, none)},
		{"events-filtered-empty", view.EventsPage(s, filtered)},
		stream("of-a-stream", view.Chain{Checked: true, Events: 4, Removed: 1, Hash: headHash}),
		stream("broken", view.Chain{Checked: true, Events: 4, Break: &event.Break{Stream: "job:" + jobID, StreamSeq: 3, Problem: "its hash is not that of its content"}}),
		stream("unchecked", view.Chain{Events: 120_000, CheckTo: "/events?check=1"}),
	}
}

// aDelivery is a delivery that stands so.
func aDelivery(s delivery.Status) delivery.DeliveryObject {
	d := delivery.DeliveryObject{
		DeliveryID: deliveryID, TargetID: targetID, Status: s, Stream: "call:" + callID, StreamSeq: 2, Type: event.ApprovalRequested, Subject: approvalID, CreatedAt: before(14 * time.Minute),
	}
	switch s {
	case delivery.Dispatching:
		d.Attempts, d.LeaseUntil = 1, before(-time.Minute)
	case delivery.Retrying:
		d.Attempts, d.Message, d.NextTryAt = 2, "the answer was 503", before(-3*time.Minute)
	case delivery.Dead:
		d.Attempts, d.Message = 8, "connection refused"
	case delivery.Delivered:
		d.Attempts = 1
	}
	if !s.Open() {
		d.EndedAt = before(time.Minute)
	}
	return d
}

func (f Frame) deliveries() []State {
	s := f.shell(operator, view.Deliveries, "Deliveries")
	hook := delivery.Object{TargetID: targetID, Type: delivery.KindWebhook, URL: "https://hooks.example/T0/secret-part", Events: []string{"approval.requested", "decision_requested"}, Status: "in_use"}
	off := delivery.Object{TargetID: targetID, Type: delivery.KindCommand, Command: []string{"/usr/local/bin/notify", "--all"}, JobID: jobID, Events: []string{"*"}, Status: "disabled", Disabled: odd}
	relay := delivery.Object{TargetID: targetID, Type: delivery.KindRelay, Name: "phone of ana", Events: []string{"approval.requested"}, Status: "removed"}
	all := view.DeliveryList{
		Names: review.Names{jobID: "job train", approvalID: "approval of refund"},
		At:    now, Targets: map[string]delivery.Object{targetID: hook}, Listed: []delivery.Object{hook, off, relay}, More: true,
		Statuses: chosen("any status", delivery.Statuses(), view.DeliveryWord), Next: "/deliveries?after=x", Room: view.NewRoom(),
	}
	for _, status := range delivery.Statuses() {
		all.Deliveries = append(all.Deliveries, aDelivery(status))
	}
	none := view.DeliveryList{At: now, Statuses: all.Statuses, Room: view.NewRoom()}
	filtered := none
	filtered.Filtered = true
	states := []State{
		{"deliveries", view.DeliveriesPage(s, all)}, {"deliveries-empty", view.DeliveriesPage(s, none)}, {"deliveries-filtered-empty", view.DeliveriesPage(s, filtered)},
	}
	return append(states, f.eachDelivery(hook, off)...)
}

func (f Frame) eachDelivery(hook, off delivery.Object) []State {
	page := func(name string, who view.Who, v view.Delivery) State {
		v.At, v.Room = now, view.NewRoom()
		return State{"delivery-" + name, view.DeliveryPage(f.shell(who, view.Deliveries, "A delivery"), v)}
	}
	tries := []delivery.AttemptObject{
		{Attempt: 1, StartedAt: before(10 * time.Minute), EndedAt: before(9 * time.Minute), Outcome: "failed", Status: 503, Message: odd},
		{Attempt: 2, StartedAt: before(8 * time.Minute), EndedAt: before(7 * time.Minute), Outcome: delivery.Reclaimed},
		{Attempt: 3, StartedAt: before(time.Minute)},
	}
	dead := aDelivery(delivery.Dead)
	dead.OutOfOrder = true
	var states []State
	for _, s := range delivery.Statuses() {
		v := view.Delivery{DeliveryObject: aDelivery(s), Target: hook}
		v.Attempts = tries[:min(v.DeliveryObject.Attempts, int64(len(tries)))]
		states = append(states, page(string(s), operator, v))
	}
	refused := &view.Notice{Sort: view.Refused, Title: "It is not tried again", Text: "The wake target is disabled.", More: "Enable it first: placet wake enable " + targetID}
	return append(states,
		page("refused", operator, view.Delivery{DeliveryObject: dead, Target: off, Attempts: tries[:2], Notice: refused}),
		page("reviewer", ana, view.Delivery{DeliveryObject: dead, Target: hook, Attempts: tries}),
	)
}
