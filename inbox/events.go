package inbox

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
)

// eventList is a page of events as the API lists them.
type eventList struct {
	Events []event.Object
	Next   string
}

func listEvents(ctx context.Context, d Door, q url.Values) (eventList, error) {
	return get[eventList](ctx, d, "/v1/log", q)
}

// names are what events or deliveries are about, in words. A page does without where they
// cannot be read.
func (b *Inbox) names(ctx context.Context, all []review.About) review.Names {
	names, err := review.ReadNames(ctx, b.c.Store, b.c.Space, all)
	if err != nil && ctx.Err() == nil {
		b.c.Log.Warn("names were not read for a page", "error", err)
	}
	return names
}

func aboutOf[T any](all []T, of func(T) review.About) []review.About {
	as := make([]review.About, len(all))
	for i, one := range all {
		as[i] = of(one)
	}
	return as
}

func aboutEvent(e event.Object) review.About {
	return review.About{Stream: e.Stream, Subject: e.Subject}
}

// rowsOf are events as a page shows them, with what they told of secrets hidden by name in
// what of them a line repeats, too.
func rowsOf(es []event.Object) []view.EventRow {
	rows := make([]view.EventRow, len(es))
	for i, e := range es {
		m := &display.Mask{}
		m.Learn(e.Payload)
		if len(e.Payload) > 0 {
			e.Payload = m.Scrub(e.Payload)
		}
		rows[i] = view.EventRow{Object: e, Mask: m, To: pageOf(e.Subject)}
		if id, ok := strings.CutPrefix(e.Stream, "run:"); ok && id == e.Subject { // it may be its starter's choice
			rows[i].To = "/runs/" + url.PathEscape(id)
		}
	}
	return rows
}

func (b *Inbox) events(w http.ResponseWriter, r *http.Request, who reviewer) {
	q := r.URL.Query()
	l := view.EventList{Stream: q.Get("stream"), Type: q.Get("type"), Room: view.NewRoom()}
	order := q.Get("order")
	if order == "" && l.Stream == "" {
		order = "newest"
	}
	l.Newest = order == "newest"
	list, err := listEvents(r.Context(), who.door, params("stream", l.Stream, "type", l.Type, "order", order, "after", q.Get("after"), "limit", strconv.Itoa(onPage)))
	if err == nil && l.Stream != "" {
		l.Chain, err = b.chain(r.Context(), l.Stream, q.Get("check") == "1")
	}
	if err != nil {
		b.unread(w, r, who, err)
		return
	}
	l.Rows, l.Names = rowsOf(list.Events), b.names(r.Context(), aboutOf(list.Events, aboutEvent))
	l.Types = typeOptions(l.Type)
	l.Orders = []view.Option{{Value: "oldest", Text: "oldest first", Chosen: !l.Newest}, {Value: "newest", Text: "newest first", Chosen: l.Newest}}
	l.Back, l.Next = around("/events", q.Get("after"), list.Next, "stream", l.Stream, "type", l.Type, "order", order)
	b.show(w, r, http.StatusOK, view.EventsPage(b.shell(r, who, view.Events, "Events"), l))
}

func typeOptions(chosen string) []view.Option {
	os := []view.Option{{Text: "any type", Chosen: chosen == ""}}
	for _, t := range event.Stored() {
		os = append(os, view.Option{Value: string(t), Text: review.TypeWords(t), Chosen: string(t) == chosen})
	}
	return os
}

// checkedAtOnce is how many events a stream may have whose chain is looked at whenever it
// is shown. That of a longer one is looked at when somebody asks.
const checkedAtOnce = 2000

// chain says whether a stream's record holds.
func (b *Inbox) chain(ctx context.Context, stream string, asked bool) (*view.Chain, error) {
	end, err := b.endOf(ctx, stream)
	if err != nil {
		return nil, err
	}
	if end.Seq > checkedAtOnce && !asked {
		return &view.Chain{Events: end.Seq, CheckTo: address("/events", "stream", stream, "check", "1")}, nil
	}
	rep, err := event.VerifyStream(ctx, b.c.Store, stream)
	if err != nil {
		return nil, err
	}
	c := &view.Chain{Checked: true, Events: int64(rep.Events), Removed: rep.Redacted, Break: rep.Break}
	if len(rep.Heads) > 0 {
		c.Hash = hex.EncodeToString(rep.Heads[0].Hash)
	}
	return c, nil
}
