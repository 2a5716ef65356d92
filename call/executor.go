package call

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/process"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// DefaultLease is how long a claim on an attempt lasts without renewal.
const DefaultLease = 30 * time.Second

// Config says what an executor works with. Store and Tools are required.
type Config struct {
	Store txn.Store
	Tools *tool.Registry
	// Policy judges each request. Default: policy.Default, by side-effect class.
	Policy policy.Policy
	// Approval answers calls that need a person. Default: Deferred(Store).
	Approval Port
	Guards   Guards
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Now judges deadlines and stamps decisions; leases use the store's clock.
	// Default: the store's clock.
	Now func() time.Time
	// NewID makes ids from a prefix. Default: a UUIDv7.
	NewID func(prefix string) string
	// Space is the tenant. Default: main.
	Space string
	// ApprovalTTL bounds how long a request may stay pending, GrantTTL how old a
	// yes may be when it is acted on; a ruling's shorter one wins. Default: 0, no limit.
	ApprovalTTL, GrantTTL time.Duration
	// Lease is how long an attempt is claimed without renewal; it is renewed
	// every third while the tool runs. At least 30 ms. Default: 30 s.
	Lease time.Duration
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Executor carries out calls. It is safe for concurrent use.
type Executor struct {
	conf       Config // a copy: what was checked cannot be changed from outside
	maxPending int64
	misuse     error // why every method refuses; nil: the configuration is usable
	working    tally
}

// NewExecutor makes an executor. A configuration that cannot work makes every
// method refuse with the error of [Config.Validate].
func NewExecutor(c Config) *Executor {
	e := &Executor{misuse: c.Validate(), maxPending: DefaultMaxPending}
	if p, ok := c.Approval.(*DeferredPort); ok && p != nil {
		e.maxPending = p.MaxPending
	}
	e.conf = c.withDefaults()
	return e
}

// Config is a copy of what the executor works with, defaults filled in.
func (e *Executor) Config() Config { return e.conf }

func (c Config) withDefaults() Config {
	if c.Policy == nil {
		c.Policy = policy.Default()
	}
	if c.Approval == nil {
		c.Approval = Deferred(c.Store)
	}
	if c.NewID == nil {
		c.NewID = id.New
	}
	if c.Space == "" {
		c.Space = event.MainSpace
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// MinLease is the shortest lease: a shorter one could not be renewed in time.
const MinLease = 30 * time.Millisecond

// Validate says why c cannot work: [ErrUsage] naming the field, or nil.
func (c Config) Validate() error {
	switch {
	case c.Store == nil:
		return ErrUsage.Say("call.Config.Store is missing.").Hint("Set it to what sqlite.Open returned.")
	case c.Tools == nil:
		return ErrUsage.Say("call.Config.Tools is missing.").Hint("Set it to a tool.Registry.")
	case c.Lease != 0 && c.Lease < MinLease:
		return ErrUsage.Say("call.Config.Lease is %s; it has to be %s at least.", c.Lease, MinLease)
	}
	for field, n := range map[string]int64{
		"ApprovalTTL": int64(c.ApprovalTTL), "GrantTTL": int64(c.GrantTTL),
		"Guards.CallsPerRun": c.Guards.CallsPerRun, "Guards.CallsPerMinute": c.Guards.CallsPerMinute,
		"Guards.Repeats": c.Guards.Repeats, "Guards.Cost": c.Guards.Cost,
	} {
		if n < 0 {
			return ErrUsage.Say("call.Config.%s is negative.", field).Hint("0 means no limit.")
		}
	}
	return c.checkPort()
}

func (c Config) checkPort() error {
	p, ok := c.Approval.(*DeferredPort)
	switch {
	case !ok:
		return nil
	case p == nil || p.store != c.Store:
		return ErrUsage.Say("The approval port parks in another store than the executor's.").Hint("Use call.Deferred(store) with the same store.")
	case p.MaxPending <= 0:
		return ErrUsage.Say("MaxPending is %d; it has to be above 0.", p.MaxPending)
	}
	return nil
}

// Option refines one call.
type Option func(*options)

type options struct {
	runID      string
	principal  string
	metadata   map[string]string
	continueBy ContinueBy
	route, key string // an idempotency key and what it is good for
	origin     string // of a server's: which door it came through
	handed     *Handed
}

// InRun puts a call under a run id of the caller's, or, for Resume, insists that
// the record belongs to it. A run id names the calls whose guards count together.
func InRun(runID string) Option { return func(o *options) { o.runID = runID } }

// As says who asks, or for Resume who answers: an identity that the caller has proved.
func As(principal string) Option { return func(o *options) { o.principal = principal } }

// WithMetadata attaches words that policies and people see. The keys origin,
// principal and anonymous are the server's and refused.
func WithMetadata(m map[string]string) Option { return func(o *options) { o.metadata = m } }

// ContinuedBy says who may carry out the call once it is approved. Default:
// [ByCaller], only an explicit resume.
func ContinuedBy(c ContinueBy) Option { return func(o *options) { o.continueBy = c } }

// WithIdempotencyKey makes a repeat of the same request with the same key answer
// with the first one's call instead of making another: pending, running or
// ended. Keys are per space, principal and route, and kept for 30 days; one used
// for another request is [ErrCallConflict].
func WithIdempotencyKey(route, key string) Option {
	return func(o *options) { o.route, o.key = route, key }
}

func (e *Executor) options(opts []Option) (options, error) {
	o := options{continueBy: ByCaller}
	for _, f := range opts {
		f(&o)
	}
	if err := decision.CheckReserved(o.metadata); err != nil {
		return o, err
	}
	if o.origin != "" {
		o.metadata = o.asServers()
	}
	if o.continueBy != ByCaller && o.continueBy != ByDaemon {
		return o, ErrUsage.Say("continue_by is %q; it is caller or daemon.", o.continueBy)
	}
	if err := decision.CheckAsker(o.principal, o.metadata); err != nil {
		return o, err
	}
	return o, checkID("run id", o.runID)
}

// Call makes a new call with a new id and carries it out, or parks it: then the
// error is a [*PendingError]. Calling again with the same arguments is another
// call, which asks again.
//
// A call that is refused is a Result, not an error: unknown tool or unusable
// arguments are status invalid and store nothing. An error means that something
// failed (policy, store) and that nothing was started, unless it matches
// txn.ErrUnknown.
func (e *Executor) Call(ctx context.Context, toolName string, args []byte, opts ...Option) (Result, error) {
	return e.fresh(ctx, toolName, args, "", opts)
}

func (e *Executor) fresh(ctx context.Context, toolName string, args []byte, externalID string, opts []Option) (Result, error) {
	if e.misuse != nil {
		return Result{}, e.misuse
	}
	o, err := e.options(opts)
	if err != nil {
		return Result{}, err
	}
	args = bytes.Clone(args) // what foreign code does to the caller's slice meanwhile changes nothing
	s, refused := e.admit(toolName, args)
	if refused != nil {
		return *refused, nil
	}
	c := Call{
		ID: e.conf.NewID(id.Call), Space: e.conf.Space, RunID: o.runID, ExternalID: externalID, Tool: toolName,
		SpecDigest: s.tool.SpecDigest(), Recovery: recoveryOf(s.tool), Args: args, ArgsDigest: s.argsDigest,
		Principal: o.principal, Metadata: o.metadata, ContinueBy: o.continueBy,
	}
	if c.RunID == "" {
		c.RunID, c.OwnRun = e.conf.NewID(id.Run), true
	}
	s.call, s.handed, s.holder = c, o.handed, o.principal
	if o.origin != "" {
		if err := e.mayJoin(ctx, c); err != nil {
			return Result{}, err
		}
	}
	if o.key == "" {
		return e.carryOut(ctx, s)
	}
	return e.once(ctx, s, o)
}

// subject is one request on its way through the stages.
type subject struct {
	call       Call
	tool       *tool.Tool
	argsDigest string
	grant      *decision.Decision // the record it is resumed under; nil: a fresh call
	attempt    *Attempt           // the last one
	paid       *decision.Decision // the record that attempt spent; nil: it needed none
	spent      *decision.Decision // the policy's own approval behind it, where paid is one for running again
	life       life               // the store's, when this was read
	key        *IdempotencyKey    // of a fresh call: stored with it
	site       Site               // where a call below a run's step hangs
	handed     *Handed            // filled in instead of calling the tool: somebody else carries the attempt out
	holder     string             // who that is, as proved
	may        May                // whether who asked still may, where the attempt starts; nil: that is not asked
}

// goingOn is what was read of a call, to be gone on with as s was.
func (s subject) goingOn(fresh subject) subject {
	fresh.tool, fresh.key, fresh.handed, fresh.holder, fresh.may = s.tool, s.key, s.handed, s.holder, s.may
	return fresh
}

// admit is the first three stages: bounds, tool, schema.
func (e *Executor) admit(toolName string, args []byte) (subject, *Result) {
	t, err := e.conf.Tools.Lookup(toolName)
	if err != nil {
		return subject{}, invalid(args, err)
	}
	if err := t.CheckArgs(args); err != nil {
		return subject{}, invalid(args, err)
	}
	digest, err := request.ArgsDigest(args)
	if err != nil {
		return subject{}, invalid(args, err)
	}
	return subject{tool: t, argsDigest: digest}, nil
}

// readmit takes a fresh call through those stages again, for the tool as it is now.
func (e *Executor) readmit(s subject) (subject, *Result) {
	now, refused := e.admit(s.call.Tool, s.call.Args)
	if refused != nil {
		return s, refused
	}
	s.tool, s.call.SpecDigest = now.tool, now.tool.SpecDigest()
	return s, nil
}

// judgeTries is how often a request is judged again because something moved
// between the judging and the writing (design §4, rule 1).
const judgeTries = 3

// carryOut judges the request outside every transaction, then starts or parks it
// in one that compares what was judged on.
func (e *Executor) carryOut(ctx context.Context, s subject) (Result, error) {
	var last error
	for range judgeTries {
		v, err := e.judge(ctx, s)
		if err != nil {
			return Result{}, err
		}
		res, again, err := e.act(ctx, s, v)
		if !again {
			return res, err
		}
		last = err
		if s.call.Status == "" { // nothing is stored yet
			var refused *Result
			if s, refused = e.readmit(s); refused != nil {
				return *refused, nil
			}
		} else if s, err = e.reload(ctx, s); err != nil {
			return Result{}, err
		}
	}
	return Result{}, ErrRunState.Say("The request changed while it was judged, %d times in a row; nothing was started.", judgeTries).
		Hint("Try again.").Because(last)
}

func (e *Executor) clock(tx txn.Tx) time.Time {
	return txn.Clock(e.conf.Now, tx)
}

// self identifies this process in attempts.
var self = sync.OnceValue(func() string { return process.Self().String() })

// Wait waits for tools that outlived their time limit, so that their late
// outcomes are recorded before the process ends, or until ctx ends.
func (e *Executor) Wait(ctx context.Context) error {
	return e.working.wait(ctx)
}
