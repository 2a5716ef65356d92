package mcpserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config says what a server works with. Door is required.
type Config struct {
	// Door carries out operations for whoever sent a request with this header; over
	// standard input and output there is none.
	Door func(h http.Header) Door
	// Cwd is where jobs run that name no folder. Default: the API's own.
	Cwd string
	// Version is this program's, told to clients. Default: dev.
	Version string
	// Slice bounds how long one call of a waiting tool takes, so that no client gives it
	// up. Default: 25 s.
	Slice time.Duration
	// FormPatience is how long a person may take over a form. Default: 50 s.
	FormPatience time.Duration
	// ProgressEvery is how often a client that asked for it is told that a wait goes on.
	// Default: 5 s.
	ProgressEvery time.Duration
	// Idle is how long a session without requests is kept. Default: 30 min.
	Idle time.Duration
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Server is an MCP server for any number of connections. It is safe for concurrent use.
type Server struct {
	c                 Config
	agents, reviewers *mcp.Server // who may not answer questions, and who may

	forReviewers map[string]bool // names of tools

	sessions sessions

	stopping context.Context // ends when the server is told to stop
	stop     context.CancelFunc
	mu       sync.Mutex
	stopped  bool           // nothing new is begun
	working  sync.WaitGroup // requests over HTTP that will be answered
}

// New makes a server.
func New(c Config) *Server {
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Slice == 0 {
		c.Slice = 25 * time.Second
	}
	if c.FormPatience == 0 {
		c.FormPatience = 50 * time.Second
	}
	if c.ProgressEvery == 0 {
		c.ProgressEvery = 5 * time.Second
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{c: c, forReviewers: map[string]bool{}, sessions: sessions{owner: map[string]string{}, beginning: map[string]int{}}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.agents, s.reviewers = s.serverOf(false), s.serverOf(true)
	return s
}

const instructions = `Placet makes risky actions wait for a person's yes. tools_list tells which tools are guarded, tool_call calls one; where the answer is pending, wait with call_wait. Start long work with job_start, ask people with job_request_decision, wait with job_wait. Where a wait answers still_waiting, call it again with what it returned.`

// serverOf is the SDK's server with the tools of one kind of connection.
func (s *Server) serverOf(reviews bool) *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "placet", Title: "Placet", Version: s.c.Version}, &mcp.ServerOptions{
		Instructions: instructions, Logger: s.c.Log,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}, // what there is does not change
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	m.AddSendingMiddleware(keepAnswers)
	m.AddReceivingMiddleware(s.onlyClaimed, s.noteAttempts(reviews))
	for _, t := range tools() {
		if t.reviews {
			s.forReviewers[t.name] = true
		}
		if !t.reviews || reviews {
			m.AddTool(t.spec(), s.handler(t))
		}
	}
	return m
}

// Serve serves one connection over a pair of streams until the client closes it or ctx
// ends. Which tools there are depends on what the Door's token may.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	in, out = lines(in, out)
	return s.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// Connect is [Server.Serve] over any transport.
func (s *Server) Connect(ctx context.Context, t mcp.Transport) error {
	who, err := whoami(ctx, s.c.Door(nil))
	if err != nil {
		return err
	}
	session, err := s.of(who).Connect(context.WithValue(ctx, callerKey{}, who), t, nil)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = session.Close() })() // why it ends is known
	err = session.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// of is the server for who may that much.
func (s *Server) of(who identity) *mcp.Server {
	if who.reviews() {
		return s.reviewers
	}
	return s.agents
}

// begin counts a request that is answered before sessions are closed; false: too late.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.working.Add(1)
	}
	return !s.stopped
}

// Shutdown ends forms, waits until what was asked is answered, and ends sessions with
// their streams; or ctx ends. Waits end by the API's own stop: tell it first, or at the
// same time.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		s.closeSessions()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) closeSessions() {
	var closing sync.WaitGroup
	for _, m := range []*mcp.Server{s.agents, s.reviewers} {
		for session := range m.Sessions() {
			closing.Go(func() { _ = session.Close() }) // the client may be gone
		}
	}
	closing.Wait()
}

// onlyClaimed refuses what this server does not claim: the SDK would answer with lists of
// nothing. And it lets no request outlast the server that only listens for changes: there
// are none.
func (s *Server) onlyClaimed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch {
		case strings.HasPrefix(method, "prompts/"), strings.HasPrefix(method, "resources/"):
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		case method == "subscriptions/listen":
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.stopping, cancel)()
		}
		return next(ctx, method, req)
	}
}

// noteAttempts logs who calls a tool that is there only for others: an agent that means
// to answer its own question is worth a look.
func (s *Server) noteAttempts(reviews bool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && !reviews && s.forReviewers[p.Name] {
				s.c.Log.Warn("a tool was called that this connection does not have", "tool", p.Name, "principal", callerOf(ctx).Principal)
			}
			return next(ctx, method, req)
		}
	}
}
