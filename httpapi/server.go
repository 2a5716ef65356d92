package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Origin is this door's name in the records that it makes.
const Origin = "http"

// Config says what a server works with. Store, Calls and Tools are required.
type Config struct {
	Store txn.Store
	Calls *call.Executor
	Tools *tool.Registry
	// Continue goes on with a run in the background, and returns once that has begun; an
	// error means that nothing goes on. Default: runs are not resumed here.
	Continue func(ctx context.Context, r run.Run) error
	// Jobs looks after jobs. Default: there are none.
	Jobs *job.Supervisor
	// Channels are the ways to wake targets. Default: none but relays.
	Channels delivery.Channels
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Space is the tenant. Default: main.
	Space string
	// URL is how clients reach this server, for the addresses in its answers. Default:
	// answers have paths.
	URL string
	// Hosts are the names, with their ports, that the server goes by; a request for any
	// other is refused. Case does not matter, and ports 80 and 443 may be left out.
	// Default: none but [SocketHost], over a Unix socket.
	Hosts []string
	// MayOwn lets a principal decide what it asked for itself. Default: it cannot.
	MayOwn bool
	// Home is the id of the token of the store's own user: what is decided with it is
	// not verified. Default: none.
	Home string
	// Ready says why the daemon is not ready; nil: it is. Default: the store answers.
	Ready func(context.Context) error
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Limits of a request.
const (
	MaxBody = 1 << 20 // bytes
	MaxWait = time.Hour
)

func usualPatience() patience {
	return patience{body: 30 * time.Second, answer: time.Minute, linger: 2 * time.Second, far: farAnswer}
}

// Server is an http.Handler. It is safe for concurrent use.
type Server struct {
	c       Config
	calls   call.Server
	mux     *http.ServeMux
	api     huma.API
	routes  map[string]*route // by the mux's pattern
	pages   http.Handler      // of what is no operation; nil: there are none
	hosts   hosts
	metrics *metrics

	document func() ([]byte, error)

	patience  patience
	keepAlive time.Duration

	inside    *inside
	far       *http.Client // for what is passed on to other daemons
	callWaits callWaits
	tokenUses tokenUses

	stopping context.Context // ends when the server is told to stop
	stop     context.CancelCauseFunc
	mu       sync.Mutex
	stopped  bool // nothing new is begun
	working  sync.WaitGroup
}

// New makes a server. A configuration that cannot work is [call.ErrUsage].
func New(c Config) (*Server, error) {
	if c.Store == nil || c.Calls == nil || c.Tools == nil {
		return nil, call.ErrUsage.Say("httpapi.Config needs Store, Calls and Tools.")
	}
	if c.Space == "" {
		c.Space = event.MainSpace
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{
		c: c, calls: c.Calls.Server(Origin), mux: http.NewServeMux(), routes: map[string]*route{},
		hosts: hostsOf(c.Hosts), metrics: newMetrics(figures{c.Store, c.Space, c.Log}), patience: usualPatience(), keepAlive: keepAlive,
		callWaits: callWaits{of: map[string]*callWait{}}, tokenUses: tokenUses{of: map[string]*tokenUse{}},
	}
	s.inside, s.far = &inside{s}, farHTTP()
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	s.api = humago.New(s.mux, humaConfig())
	s.document = sync.OnceValues(s.api.OpenAPI().YAML)
	s.register()
	return s, nil
}

func humaConfig() huma.Config {
	c := huma.DefaultConfig("Placet", "1")
	c.Info.Description = "A person's yes, durably waited for: tools, approvals, runs and events of one store."
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "placet token create"}}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // no $schema members in answers
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	c.RejectUnknownQueryParameters = true
	return c
}

// Shutdown tells whoever waits, and lets nothing new begin. It returns once the calls
// that were begun have ended, or ctx ends: those are left as they stand, for another
// process to find.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.stop(ErrShutdown)
	defer s.far.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin counts work that is not given up when its client hangs up.
func (s *Server) begin() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, ErrShutdown
	}
	s.working.Add(1)
	return s.working.Done, nil
}

// operator decides for a caller. The store's own user is proved to nobody else, and
// may decide what they asked for themselves (design §7).
func (s *Server) operator(c caller) decision.Operator {
	home := c.ID == s.c.Home
	return decision.Operator{
		Store: s.c.Store, Observer: s.c.Observer, Principal: c.Principal, Verified: !home, MayOwn: s.c.MayOwn || home,
	}
}

// caller is who sent a request, as its token proves.
type caller struct {
	*token.Token
	onPage bool // its answers stand in pages, in which its own secrets are masked, too
}

// reads reports whether the caller sees what others asked for.
func (c caller) reads() bool { return c.Scope != token.Agent }

// manages reports whether the caller acts on what others asked for.
func (c caller) manages() bool { return c.Scope == token.Operator || c.Scope == token.Admin }

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		return c
	}
	return caller{Token: &token.Token{}}
}

// byOr is the name that a caller gave, or its own.
func (c caller) byOr(by string) string {
	if by == "" {
		return c.Principal
	}
	return by
}

// hidden is the answer about what is somebody else's: it is as if it were not there.
func hidden(what, id string) error {
	return decision.ErrNotFound.Say("There is no %s %s.", what, id)
}

// route is one operation.
type route struct {
	method, path string
	id, summary  string
	scopes       []token.Scope // who may; nil: whoever has a token
	open         bool          // without a token
	jobs         bool          // also with a job's own token, which is good for that job only
	files        bool          // it needs a job's files: where they lie elsewhere it is passed on
	status       int           // of success; 0: 200
	shape        string        // of the body, told to whoever sends another
	takes                      // what it takes; add fills it in
}

func (r *route) pattern() string { return r.method + " " + r.path }

func (r *route) allows(s token.Scope) bool {
	if s == token.Admin || r.scopes == nil {
		return true
	}
	for _, one := range r.scopes {
		if one == s {
			return true
		}
	}
	return false
}

var (
	readers   = []token.Scope{token.Reviewer, token.Operator}
	agents    = []token.Scope{token.Agent}
	reviewers = []token.Scope{token.Reviewer}
	operators = []token.Scope{token.Operator}
	admins    = []token.Scope{}
)

// tell adds to a refusal of a body what to send.
func (r *route) tell(err error) error {
	if f := fault.From(err); errors.Is(f, ErrMalformed) && f.Advice == "" && r.shape != "" {
		return f.Hint("Send %s.", r.shape)
	}
	return err
}

// add registers an operation. What it returns as an error becomes a problem.
func add[I, O any](s *Server, r route, fn func(context.Context, caller, *I) (*O, error)) {
	r.takes = takesOf(reflect.TypeFor[I]())
	s.routes[r.pattern()] = &r
	huma.Register(s.api, operation(&r), func(ctx context.Context, in *I) (*O, error) {
		c := callerOf(ctx)
		out, err := fn(ctx, c, in)
		if err != nil {
			return nil, s.failure(ctx, s.withoutSecrets(ctx, c, err))
		}
		return out, nil
	})
}

func operation(r *route) huma.Operation {
	op := huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, DefaultStatus: r.status,
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the body is there already
		RejectUnknownQueryParameters: true,
		Metadata:                     map[string]any{ours: r},
		Responses:                    problemsOf(r),
	}
	if !r.open {
		op.Security = []map[string][]string{{"token": {}}}
		op.Description = "Scopes: " + scopesOf(r) + "."
	}
	return op
}

func scopesOf(r *route) string {
	if r.scopes == nil {
		return "any"
	}
	words := ""
	for _, s := range r.scopes {
		words += string(s) + ", "
	}
	return words + string(token.Admin)
}

// body is an answer's.
type body[T any] struct{ Body T }

func answer[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{v}, nil
}

// none is the input of an operation without any.
type none struct{}

// Page is which part of a list is asked for.
type Page struct {
	After string `query:"after" maxLength:"200" doc:"id of the last one seen"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

var errNoRuns = fault.Sentinel(fault.Unavailable, "no_runs", "No runs are worked on here.")
