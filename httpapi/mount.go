package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Mount lets another handler answer at a path. Who reaches it has been let in as to any
// operation: host, site, token and the size and kind of the body are looked at before.
// What it does then is its own; rights on what the store has are judged where it asks
// for that, so a job's token is let in as well. Call it before the server serves, and stop the
// handler when the server is stopped.
func (s *Server) Mount(path, id string, h http.Handler) {
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		r := &route{method: m, path: path, id: id, jobs: true}
		if m == http.MethodPost {
			r.takes = takes{body: true, required: true, check: anyBody}
		}
		s.routes[r.pattern()] = r
		s.mux.Handle(r.pattern(), s.mounted(h))
	}
}

// anyBody leaves the shape of a body to the handler.
func anyBody([]byte) error { return nil }

// mounted serves with the patience of this server: an answer may come in pieces, each of
// which has its own time, and what is a stream ends with the token or the server.
func (s *Server) mounted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waits, stop := s.waiting(r.Context())
		defer stop()
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		defer context.AfterFunc(waits, func() { s.endMounted(r, context.Cause(waits), end) })()
		if r.Method == http.MethodGet {
			defer s.metrics.waits()()
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream has no last byte to wait for
		}
		go s.watchToken(ctx, end)
		h.ServeHTTP(&inPieces{w, s.patience.answer}, r.WithContext(ctx))
	})
}

// endMounted ends a request whose token is revoked. One that does something may be
// answered yet: what it asked of the API is being refused. When the server stops, the
// handler ends what it has by itself: it knows what has to be answered before.
func (s *Server) endMounted(r *http.Request, why error, end context.CancelCauseFunc) {
	switch {
	case errors.Is(why, ErrShutdown):
	case r.Method == http.MethodGet:
		end(why)
	default:
		time.AfterFunc(s.patience.linger, func() { end(why) })
	}
}

// watchToken ends a stream whose token was revoked by another process.
func (s *Server) watchToken(ctx context.Context, end context.CancelCauseFunc) {
	look := time.NewTicker(s.keepAlive)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if err := s.stillGood(ctx); err != nil {
				end(err)
				return
			}
		}
	}
}

// inPieces gives the client its time for each piece of an answer anew.
type inPieces struct {
	http.ResponseWriter
	each time.Duration
}

// Write is http.ResponseWriter's.
func (w *inPieces) Write(b []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.each))
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *inPieces) Unwrap() http.ResponseWriter { return w.ResponseWriter }
