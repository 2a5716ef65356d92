package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/placet-dev/placet/event"
)

type eventsIn struct {
	Stream string `query:"stream" maxLength:"200" doc:"run:…, call:… or job:…; left out: all streams, which an agent does not see"`
	After  string `query:"after" maxLength:"100" doc:"a cursor; left out: from the beginning"`
	Last   string `header:"Last-Event-ID" maxLength:"100" doc:"the same, as a browser sends it; it wins"`
}

func (s *Server) registerEvents() {
	add(s, route{
		method: http.MethodGet, path: "/v1/events", id: "events", jobs: true,
		summary: "Events as they are stored, as Server-Sent Events: id is the cursor, event the type, data the event. A last event shutdown tells that the server stops",
	}, s.follow)
}

// keepAlive is how often a stream without events says that it is still there, and looks
// whether it may be.
const keepAlive = 15 * time.Second

// follow sends events until the client hangs up or the server stops.
func (s *Server) follow(ctx context.Context, c caller, in *eventsIn) (*huma.StreamResponse, error) {
	after := event.Cursor(in.After)
	if in.Last != "" {
		after = event.Cursor(in.Last)
	}
	if err := s.mayFollow(ctx, c, in.Stream); err != nil {
		return nil, err
	}
	if _, err := event.Read(ctx, s.c.Store, in.Stream, after, 1); err != nil {
		return nil, err
	}
	if s.stopping.Err() != nil {
		return nil, ErrShutdown
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		_, w := humago.Unwrap(h)
		ctx, stop := s.waiting(ctx)
		defer stop()
		defer s.metrics.waits()()
		f := follower{s: s, by: c, w: w, c: http.NewResponseController(w), stream: in.Stream, after: after}
		f.run(ctx)
	}}, nil
}

// mayFollow lets an agent follow what it started, and a job's token that job; nothing else.
func (s *Server) mayFollow(ctx context.Context, c caller, stream string) error {
	noun, id := rootOf(stream)
	switch {
	case c.reads():
		return nil
	case noun == "":
		return ErrScope.Say("An agent follows one stream that it started.").Hint("Name it: stream=call:call_….")
	case noun == "job":
		return s.maySeeJob(ctx, c, id)
	case c.JobID != "":
	case noun == "call":
		_, err := s.readCall(ctx, c, id)
		return err
	case noun == "run":
		_, _, err := s.readRun(ctx, c, id)
		return err
	}
	return event.ErrNoStream.Say("There is no stream %s.", stream)
}

type follower struct {
	s      *Server
	by     caller
	w      http.ResponseWriter
	c      *http.ResponseController
	stream string
	after  event.Cursor
}

func (f *follower) run(ctx context.Context) {
	f.w.Header().Set("Content-Type", "text/event-stream")
	f.w.Header().Set("Cache-Control", "no-store")
	f.w.WriteHeader(http.StatusOK)
	err := f.send(": follows\n\n")
	for err == nil {
		err = f.next(ctx)
	}
	if errors.Is(err, ErrShutdown) {
		_ = f.send("event: shutdown\ndata: {}\n\n")
	}
}

// next sends what is stored, or waits for more.
func (f *follower) next(ctx context.Context) error {
	page, err := event.Read(ctx, f.s.c.Store, f.stream, f.after, 0)
	if err != nil {
		return because(ctx, err)
	}
	if len(page.Events) > 0 {
		return f.tell(ctx, page.Events)
	}
	got, err := event.Wait(ctx, f.s.c.Store, event.Waiting{Stream: f.stream, After: f.after, Timeout: f.s.keepAlive})
	if err != nil {
		return because(ctx, err)
	}
	if got.Outcome == event.TimedOut {
		return f.tell(ctx, nil)
	}
	return f.tell(ctx, []event.Event{got.Event})
}

// tell sends events to who may still have them, or that there are none.
func (f *follower) tell(ctx context.Context, es []event.Event) error {
	if err := f.s.stillGood(ctx); err != nil {
		return err
	}
	if len(es) == 0 {
		return f.send(": still here\n\n")
	}
	var b bytes.Buffer
	view := f.s.eventsFor(f.by)
	for _, e := range es {
		f.after = event.CursorOf(e)
		if f.stream == "" {
			f.after = event.PosCursorOf(e)
		}
		if e.Space != f.s.c.Space {
			continue
		}
		o, err := view.object(ctx, e, f.after)
		if err != nil {
			return err
		}
		b.WriteString("id: " + string(f.after) + "\nevent: " + string(e.Type) + "\ndata: ")
		if err := encode(&b, o); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	return f.send(b.String())
}

func (f *follower) send(text string) error {
	_ = f.c.SetWriteDeadline(time.Now().Add(f.s.patience.answer))
	if _, err := f.w.Write([]byte(text)); err != nil {
		return err
	}
	return f.c.Flush()
}
