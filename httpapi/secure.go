package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/token"
)

// ServeHTTP admits a request (the host's name, the site it comes from, the whole path,
// the token, the scope, the parameters, and only then the body) and carries out its operation.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw, patience: s.patience, unread: hasBody(r)}
	began := time.Now()
	to := noRoute
	sent := r.Body
	defer func() {
		s.recovered(w, recover())
		s.metrics.served(to, w.status, time.Since(began))
		w.hearOut(sent)
	}()
	harmless(w.Header())
	to, r, err := s.admit(w, r)
	if err != nil {
		var p *Problem
		if !errors.As(s.failure(r.Context(), err), &p) {
			p = problemOf(err)
		}
		p.write(w)
		return
	}
	if to == ofPages {
		s.page(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// harmless tells a browser that an answer is no page: it runs and loads nothing, and is
// shown in nobody's frame. Pages say what they need themselves.
func harmless(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// recovered answers for a panic, which is ours.
func (s *Server) recovered(w *response, p any) {
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.c.Log.Error("a request panicked", "panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		problemOf(fault.Sentinel(fault.Internal, "internal", "Something failed inside Placet.")).write(w)
	}
}

// response notes the status, and gives a client only so long to read the answer. It
// hangs up on one whose body was not read, once it was heard out: net/http would wait for that body before it
// answers, and again before it takes the next request, for as long as the client likes.
type response struct {
	http.ResponseWriter
	patience
	status int
	unread bool // there is a body, and it was not taken to its end
}

// WriteHeader is http.ResponseWriter's.
func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		return // what could not be written to its end stands
	}
	w.status = status
	c := http.NewResponseController(w.ResponseWriter)
	_ = c.SetWriteDeadline(time.Now().Add(w.answer))
	if w.unread {
		w.Header().Set("Connection", "close")
		_ = c.SetReadDeadline(time.Now().Add(w.linger))
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is http.ResponseWriter's.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// mostHeard is how much of a refused body is taken all the same, in bytes.
const mostHeard = 16 << 20

// hearOut takes what a client still sends of a body that was refused, for as long as it may
// linger. One that writes on when the connection is closed never reads why it was refused.
func (w *response) hearOut(sent io.Reader) {
	if !w.unread || w.status == 0 || http.NewResponseController(w.ResponseWriter).Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, sent, mostHeard)
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// noRoute stands for the operation of a request that reached none.
var noRoute = &route{}

func (s *Server) admit(w *response, r *http.Request) (*route, *http.Request, error) {
	if !s.hosts.knows(r) {
		return noRoute, r, ErrHost
	}
	if s.pages != nil && !s.serves(r.URL.Path) {
		return ofPages, r, fromLink(r)
	}
	if err := sameSite(r); err != nil {
		return noRoute, r, err
	}
	to, err := s.route(w, r)
	if err != nil {
		return to, r, err
	}
	c := caller{Token: &token.Token{}}
	if !to.open {
		if c, err = s.prove(to, r); err != nil {
			return to, r, err
		}
	}
	if err := checkParams(to, r); err != nil {
		return to, r, err
	}
	if err := w.takeBody(to, r); err != nil {
		return to, r, to.tell(err)
	}
	ctx := context.WithValue(r.Context(), callerKey{}, c)
	if to.files {
		ctx = context.WithValue(ctx, passingKey{}, passingOf(r))
	}
	return to, r.WithContext(ctx), nil
}

// prove finds out who sent a request, and that they may do this.
func (s *Server) prove(to *route, r *http.Request) (caller, error) {
	c, err := s.authenticate(r)
	if err != nil {
		return c, err
	}
	if !to.allows(c.Scope) {
		return c, ErrScope.Say("A token with scope %s may not do that.", c.Scope).Hint("It needs %s.", scopesOf(to))
	}
	if c.JobID != "" {
		if err := s.jobIsOn(r.Context(), c); err != nil {
			return c, err
		}
		if !to.jobs {
			return c, ErrScope.Say("The token of job %s is good for that job only.", c.JobID)
		}
	}
	return c, nil
}

// route finds the operation of exactly this path. Nothing is cleaned, redirected or
// decoded: our paths have no escapes.
func (s *Server) route(w http.ResponseWriter, r *http.Request) (*route, error) {
	p := r.URL.Path
	if r.URL.EscapedPath() != p || path.Clean(p) != p {
		return noRoute, ErrNoRoute
	}
	if to, ok := s.at(r, r.Method); ok {
		return to, nil
	}
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if _, ok := s.at(r, m); ok {
			allowed = append(allowed, m)
		}
	}
	if allowed == nil {
		return noRoute, ErrNoRoute
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return noRoute, ErrMethod.Say("%s does not take %s.", p, method(r.Method)).Hint("It takes %s.", strings.Join(allowed, ", "))
}

// method is a foreign word, cut to a size.
func method(m string) string { return m[:min(len(m), 20)] }

func (s *Server) at(r *http.Request, m string) (*route, bool) {
	_, pattern := s.mux.Handler(&http.Request{Method: m, Host: r.Host, URL: r.URL})
	to := s.routes[pattern]
	return to, to != nil && to.method == m // HEAD is no GET of ours
}

func (s *Server) authenticate(r *http.Request) (caller, error) {
	if tokenID, ok := r.Context().Value(provedKey{}).(string); ok {
		t, err := token.Good(r.Context(), s.c.Store, s.c.Space, tokenID)
		return caller{Token: &t, onPage: true}, err
	}
	words := r.Header.Values("Authorization")
	if len(words) != 1 {
		return caller{}, token.ErrUnauthenticated.Hint("Send one header Authorization: Bearer TOKEN.")
	}
	scheme, secret, _ := strings.Cut(words[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, token.ErrUnauthenticated.Hint("Send one header Authorization: Bearer TOKEN.")
	}
	t, err := token.Find(r.Context(), s.c.Store, s.c.Space, secret)
	return caller{Token: &t}, err
}
