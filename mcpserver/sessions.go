package mcpserver

import (
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/placet-dev/placet/fault"
)

// maxSessions bounds how many sessions one token has at once.
const maxSessions = 100

const sessionHeader = "Mcp-Session-Id"

var errSessions = fault.Sentinel(fault.TooMany, "too_many_sessions", "This token has too many MCP sessions.")

// sessions are whose each one is, so that none takes the room of others.
type sessions struct {
	mu        sync.Mutex
	owner     map[string]string // of a session's id: the token's
	beginning map[string]int    // of a token: sessions that have no id yet
}

// beginSession begins one, unless its token has as many as it may.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request, h http.Handler) {
	who := callerOf(r.Context()).ID
	if !s.sessions.reserve(who, s.agents, s.reviewers) {
		refuse(w, errSessions.Say("This token has %d MCP sessions; it may have no more at once.", maxSessions).Hint("End some with DELETE, or wait: idle ones end by themselves."))
		return
	}
	defer func() { s.sessions.began(who, w.Header().Get(sessionHeader)) }()
	h.ServeHTTP(w, r)
}

func (l *sessions) reserve(token string, servers ...*mcp.Server) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	live, n := map[string]string{}, l.beginning[token]
	for _, m := range servers {
		for session := range m.Sessions() {
			if owner, ok := l.owner[session.ID()]; ok {
				live[session.ID()] = owner
				if owner == token {
					n++
				}
			}
		}
	}
	l.owner = live // those that ended are forgotten
	if n >= maxSessions {
		return false
	}
	l.beginning[token]++
	return true
}

// began notes whose a session is; there is none where the request began none.
func (l *sessions) began(token, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beginning[token]--; l.beginning[token] == 0 {
		delete(l.beginning, token)
	}
	if id != "" {
		l.owner[id] = token
	}
}
