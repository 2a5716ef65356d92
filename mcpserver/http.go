package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// maxBody bounds a request's body.
const maxBody = 1 << 20

// Handler serves any number of connections over streamable HTTP. It has to stand behind
// what authenticates requests, and looks at the host and the site they are for and from:
// it asks the API only who the caller is, to know which tools there are and whose a
// session is.
//
// The current revision of the protocol has no sessions; the older ones do, as a form is
// answered and a call cancelled by a request of its own. Both are served at one address.
func (s *Server) Handler() http.Handler {
	server := func(r *http.Request) *mcp.Server { return s.of(callerOf(r.Context())) }
	options := mcp.StreamableHTTPOptions{
		Logger: s.c.Log, SessionTimeout: s.c.Idle, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the host was looked at, against a list that the operator may lengthen
	}
	withSessions := mcp.NewStreamableHTTPHandler(server, &options)
	options.Stateless = true
	without := mcp.NewStreamableHTTPHandler(server, &options)
	h := bind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= asksInResults:
			without.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "":
			s.beginSession(w, r, withSessions)
		default:
			withSessions.ServeHTTP(w, r)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if !s.begin() {
				refuse(w, errStopping)
				return
			}
			defer s.working.Done()
		}
		who, err := whoami(r.Context(), s.c.Door(r.Header))
		if err != nil {
			refuse(w, err)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

type callerKey struct{}

func callerOf(ctx context.Context) identity {
	who, _ := ctx.Value(callerKey{}).(identity)
	return who
}

// bind makes a session good only with the token that began it: the SDK compares the
// user of each request with the session's.
func bind(h http.Handler) http.Handler {
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: callerOf(ctx).ID}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}

// errStopping is the API's word for it.
var errStopping = fault.Sentinel(fault.Unavailable, "shutdown", "The server is shutting down.")

// refuse answers a request whose caller the API does not take.
func refuse(w http.ResponseWriter, err error) {
	f := fault.From(err)
	status := http.StatusServiceUnavailable
	switch f.Code {
	case fault.Unauthenticated:
		w.Header().Set("WWW-Authenticate", `Bearer realm="placet"`)
		status = http.StatusUnauthorized
	case fault.Forbidden:
		status = http.StatusForbidden
	case fault.TooMany:
		status = http.StatusTooManyRequests
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": f}) // the client may be gone
}
