package view

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// DeliveryList is a page of deliveries, and who is told.
type DeliveryList struct {
	At         time.Time
	Deliveries []delivery.DeliveryObject
	Names      review.Names
	Targets    map[string]delivery.Object // by id, those that are known
	Listed     []delivery.Object          // targets on this page
	More       bool                       // there are more targets than these
	Statuses   []Option
	Filtered   bool
	Back, Next string
	Room       *Room
}

// Delivery is the page of one delivery.
type Delivery struct {
	delivery.DeliveryObject
	At       time.Time
	Name     string // of what it is about; empty: not known
	Target   delivery.Object
	Attempts []delivery.AttemptObject
	Room     *Room
	Notice   *Notice
}

// retry is the button by which it is tried again by hand; empty: it cannot be.
func (d Delivery) retry() string {
	switch d.Status {
	case delivery.Dead:
		return "Try it again"
	case delivery.Retrying:
		return "Try it at once"
	}
	return ""
}

// standingOf is where a delivery stands, in words.
func standingOf(s delivery.Status) string {
	return map[delivery.Status]string{
		delivery.Pending: "It was not tried yet.", delivery.Dispatching: "It is being sent now.", delivery.Retrying: "An attempt failed; another follows.",
		delivery.Delivered: "It arrived.", delivery.Dead: "It was given up. A person may try it again.", delivery.Dropped: "Nobody needs it any more.",
	}[s]
}

// AboutDelivery is what a delivery is about.
func AboutDelivery(d delivery.DeliveryObject) review.About {
	return review.About{Stream: d.Stream, Subject: d.Subject}
}

// DeliveryWord is where a delivery stands, in a word or three.
func DeliveryWord(status string) string {
	if w, ok := deliveryWords[delivery.Status(status)]; ok {
		return w
	}
	return review.PlainWord(status)
}

var deliveryWords = map[delivery.Status]string{
	delivery.Pending: "not sent yet", delivery.Dispatching: "being sent", delivery.Retrying: "tried again later",
	delivery.Dead: "given up", delivery.Dropped: "not needed",
}

// targetTitle is a target in a word. An address and a command are not shown whole: they
// may hold a secret.
func targetTitle(t delivery.Object) string {
	switch {
	case t.Name != "":
		return t.Name
	case t.URL != "":
		return hostOf(t.URL)
	case len(t.Command) > 1:
		return t.Command[0] + " …"
	case len(t.Command) == 1:
		return t.Command[0]
	case t.Type != "":
		return string(t.Type)
	}
	return "a target that was removed"
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "a webhook"
	}
	return u.Scheme + "://" + u.Host
}

// hears is what a target is told of.
func hears(t delivery.Object) string {
	about := "all runs, calls and jobs"
	switch {
	case t.JobID != "":
		about = "one job"
	case t.RunID != "":
		about = "one run"
	}
	names := make([]string, len(t.Events))
	for i, name := range t.Events {
		if names[i] = name; slices.Contains(event.Stored(), event.Type(name)) {
			names[i] = uncapital(review.TypeWords(event.Type(name)))
		}
	}
	return about + ": " + display.Short(strings.Join(names, ", "), 300)
}

func (d Delivery) version() string {
	return string(d.Status) + d.NextTryAt + d.LeaseUntil + d.EndedAt + display.Count(len(d.Attempts))
}
