package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// EventList is a page of stored events, in the order that was asked for.
type EventList struct {
	Events []event.Object `json:"events"`
	Next   event.Cursor   `json:"next,omitempty" doc:"after=… of the next page; absent on the last one"`
}

type listEventsIn struct {
	Stream string `query:"stream" maxLength:"200" doc:"run:…, call:… or job:…; left out: all streams, which an agent does not see"`
	Type   string `query:"type" maxLength:"100" doc:"only those of this type"`
	Order  string `query:"order" enum:"oldest,newest" default:"oldest" doc:"which come first"`
	After  string `query:"after" maxLength:"100" doc:"next of the page before, or an event's cursor: what comes behind it in this order"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

func (s *Server) registerEventList() {
	add(s, route{method: http.MethodGet, path: "/v1/log", id: "listEvents", jobs: true, summary: "A page of events as they are stored"}, s.listEvents)
}

func (in *listEventsIn) query() (event.Query, error) {
	q := event.Query{Stream: in.Stream, Newest: in.Order == "newest"}
	if in.Type != "" {
		q.Types = []event.Type{event.Type(in.Type)}
		if !slices.Contains(event.Stored(), q.Types[0]) {
			return q, ErrMalformed.Say("query.type: no event is of type %s.", shown(in.Type))
		}
	}
	return q, nil
}

func (s *Server) listEvents(ctx context.Context, c caller, in *listEventsIn) (*body[EventList], error) {
	if err := s.mayFollow(ctx, c, in.Stream); err != nil {
		return nil, err
	}
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	var es []event.Event
	var more bool
	err = txn.View(ctx, s.c.Store, func(tx event.Tx) (err error) {
		q := q
		if in.Stream != "" {
			if _, err := tx.Head(in.Stream); err != nil {
				return err
			}
		}
		if q.After, err = event.Place(tx, in.Stream, event.Cursor(in.After)); err != nil {
			return err
		}
		es, more, err = s.eventsOf(tx, q, in.Limit)
		return err
	})
	list, view := EventList{Events: make([]event.Object, len(es))}, s.eventsFor(c)
	for i, e := range es {
		at := event.CursorOf(e)
		if in.Stream == "" {
			at = event.PosCursorOf(e)
		}
		if err == nil {
			list.Events[i], err = view.object(ctx, e, at)
		}
		if more {
			list.Next = at
		}
	}
	return answer(list, err)
}

// eventsOf are at most limit events of this space, and whether there may be more. Those of
// other spaces are passed over, as many as a list looks through.
func (s *Server) eventsOf(tx event.Tx, q event.Query, limit int) (es []event.Event, more bool, err error) {
	q.Limit = limit + 1
	for range pagesOfOthers {
		page, err := tx.Events(q)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page {
			q.After = e.Pos
			if q.Stream != "" {
				q.After = e.StreamSeq
			}
			switch {
			case e.Space != s.c.Space:
			case len(es) == limit:
				return es, true, nil
			default:
				es = append(es, e)
			}
		}
		if len(page) < q.Limit {
			return es, false, nil
		}
		q.Limit = 1000
	}
	return es, len(es) > 0, nil
}
