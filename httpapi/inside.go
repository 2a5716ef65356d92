package httpapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/placet-dev/placet/token"
)

// Inside is a client in the server's own process, with the rights of that token: its
// requests are judged like any other, but cross no network.
func (s *Server) Inside(secret string) *Client {
	return &Client{URL: "http://" + SocketHost, Token: secret, HTTP: &http.Client{Transport: s.inside}}
}

// As is a client in the server's own process with the rights of a token that somebody
// proved to hold earlier, such as whoever signed in to the inbox. Each request looks
// whether the token is still good. What it answers is for pages: secrets that the holder
// brought are masked, too.
func (s *Server) As(t token.Token) *Client {
	return &Client{URL: "http://" + SocketHost, HTTP: &http.Client{Transport: &proved{s.inside, t.ID}}}
}

// proved carries requests in the name of a token, which only this process can do: what
// comes over a network has no such context.
type proved struct {
	to      *inside
	tokenID string
}

type provedKey struct{}

// RoundTrip is http.RoundTripper's.
func (p *proved) RoundTrip(req *http.Request) (*http.Response, error) {
	return p.to.RoundTrip(req.WithContext(context.WithValue(req.Context(), provedKey{}, p.tokenID)))
}

// inside carries requests to the server's handler.
type inside struct{ s *Server }

// ownAddr is where requests of this process arrive: as over the Unix socket, they are
// for SocketHost.
var ownAddr = &net.UnixAddr{Name: SocketHost, Net: "unix"}

// RoundTrip is http.RoundTripper's.
func (t *inside) RoundTrip(req *http.Request) (*http.Response, error) {
	in := req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(ownAddr)))
	in.Host = req.URL.Host
	w := &inMemory{header: http.Header{}}
	t.s.ServeHTTP(w, in)
	if err := req.Context().Err(); err != nil {
		return nil, context.Cause(req.Context())
	}
	return &http.Response{
		StatusCode: max(w.status, http.StatusOK), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}, nil
}

// inMemory is an answer that goes nowhere else.
type inMemory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is http.ResponseWriter's.
func (w *inMemory) Header() http.Header { return w.header }

// WriteHeader is http.ResponseWriter's.
func (w *inMemory) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write is http.ResponseWriter's.
func (w *inMemory) Write(b []byte) (int, error) { return w.body.Write(b) }
