package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Defaults and limits of a driver.
const (
	DefaultLease         = 30 * time.Second
	DefaultDecideTimeout = 10 * time.Minute
	MaxGoal              = 1 << 20 // bytes
	MaxProposal          = 4 << 20 // bytes of everything in a proposal
)

// Config says what a driver or a gate works with. Store and Tools are required, and
// for a driver Agent.
type Config struct {
	Store txn.Store
	Agent Agent
	// Policy judges each request. Default: policy.Default, by side-effect class.
	Policy policy.Policy
	Tools  *tool.Registry
	Guards call.Guards
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Reconcile says what became of a step whose process was lost, before probe, key
	// or person are asked. Default: nobody does.
	Reconcile ReconcileFunc
	// Now judges deadlines and limits, and stamps; leases use the store's clock.
	// Default: the store's clock.
	Now func() time.Time
	// NewID makes ids from a prefix. Default: a UUIDv7.
	NewID func(prefix string) string
	// LeaseTTL is how long a run is claimed without renewal; it is renewed every
	// third. At least 30 ms. Default: 30 s.
	LeaseTTL time.Duration
	// LeaseOwner names this process to people. Default: host and process id.
	LeaseOwner string
	// Space is the tenant. Default: main.
	Space string
	// ApprovalTTL bounds how long a request may stay pending, GrantTTL how old a yes
	// may be; a run's or a ruling's shorter one wins. Default: 0, no limit.
	ApprovalTTL, GrantTTL time.Duration
	// DecideTimeout bounds one decision of the agent. Default: 10 min.
	DecideTimeout time.Duration
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Validate says why c cannot work: [ErrUsage] naming the field, or nil.
func (c Config) Validate() error {
	switch {
	case c.LeaseTTL != 0 && c.LeaseTTL < call.MinLease:
		return ErrUsage.Say("run.Config.LeaseTTL is %s; it has to be %s at least.", c.LeaseTTL, call.MinLease)
	case c.DecideTimeout < 0:
		return ErrUsage.Say("run.Config.DecideTimeout is negative.").Hint("0 means %s.", DefaultDecideTimeout)
	}
	return c.calls().Validate()
}

func (c Config) calls() call.Config {
	return call.Config{
		Store: c.Store, Tools: c.Tools, Policy: c.Policy, Guards: c.Guards, Observer: c.Observer, Now: c.Now, NewID: c.NewID,
		Space: c.Space, ApprovalTTL: c.ApprovalTTL, GrantTTL: c.GrantTTL, Lease: c.LeaseTTL, Log: c.Log,
	}
}

// engine is what driver and gate share.
type engine struct {
	conf     Config
	calls    *call.Executor
	misuse   error
	stopping chan struct{}
	stop     func()

	gate  bool  // its sessions end when they are closed, not when a caller's context ends
	reach reach // of its sessions, as they begin
}

func newEngine(c Config) *engine {
	e := &engine{misuse: c.Validate(), calls: call.NewExecutor(c.calls()), stopping: make(chan struct{})}
	e.stop = sync.OnceFunc(func() { close(e.stopping) })
	filled := e.calls.Config()
	c.Policy, c.NewID, c.Space, c.LeaseTTL, c.Log = filled.Policy, filled.NewID, filled.Space, filled.Lease, filled.Log
	if c.LeaseOwner == "" {
		c.LeaseOwner = processName()
	}
	if c.DecideTimeout == 0 {
		c.DecideTimeout = DefaultDecideTimeout
	}
	e.conf = c
	return e
}

func (e *engine) clock(tx txn.Tx) time.Time {
	if e.conf.Now != nil {
		return e.conf.Now().UTC().Truncate(time.Microsecond)
	}
	return tx.Now()
}

func (e *engine) operator() decision.Operator {
	return decision.Operator{Store: e.conf.Store, Observer: e.conf.Observer, Now: e.conf.Now, MayOwn: true}
}

func (e *engine) update(ctx context.Context, fn func(Tx) error) error {
	return event.Update(ctx, e.conf.Store, e.conf.Observer, fn)
}

func (e *engine) take(tx Tx) Take {
	return Take{Owner: e.conf.LeaseOwner, Epoch: tx.Epoch(), At: tx.Now(), Until: tx.Now().Add(e.conf.LeaseTTL)}
}

// Driver runs agents' loops. It is safe for concurrent use.
type Driver struct{ *engine }

// NewDriver makes a driver. A configuration that cannot work makes every method
// refuse with the error of [Config.Validate].
func NewDriver(c Config) *Driver {
	d := &Driver{newEngine(c)}
	if d.misuse == nil && c.Agent == nil {
		d.misuse = ErrUsage.Say("run.Config.Agent is missing.").Hint("Set it to what decides, for example a run.AgentFunc.")
	}
	return d
}

// Option refines a new run.
type Option func(*Run)

// As says who starts the run: an identity that the caller has proved.
func As(principal string) Option { return func(r *Run) { r.Principal = principal } }

// WithMetadata attaches words that policies and people see.
func WithMetadata(m map[string]string) Option {
	return func(r *Run) { r.Metadata = maps.Clone(m) }
}

// By notes what makes the run's decisions, so that another process can find it.
func By(a AgentRef) Option { return func(r *Run) { r.Agent = a } }

// ContinuedBy says who may go on with the run once it is approved. Default:
// call.ByCaller, only an explicit resume.
func ContinuedBy(c call.ContinueBy) Option { return func(r *Run) { r.ContinueBy = c } }

// OfFlow notes the flow that the run carries out.
func OfFlow(f FlowRef) Option { return func(r *Run) { r.Flow = f } }

// Start makes a run and works on it until it waits for a person or ends. It
// returns the run as it stands then; how a run ended is its status and reason, not
// an error.
//
// An error means that this process works on it no more: [ErrUsage] (nothing was
// made), ctx's own, [ErrStopped], [ErrLeaseLost], or the store's. The run is then as
// it is stored, and [Driver.Resume] goes on with it.
func (d *Driver) Start(ctx context.Context, goal string, limits Limits, opts ...Option) (Run, error) {
	return d.StartWithID(ctx, d.conf.NewID(id.Run), goal, limits, opts...)
}

// StartWithID is Start for a run whose id the caller chose: run_ and at most 200
// characters in all. One that is in use is [ErrRunState].
func (d *Driver) StartWithID(ctx context.Context, runID, goal string, limits Limits, opts ...Option) (Run, error) {
	if d.misuse != nil {
		return Run{}, d.misuse
	}
	defer d.calls.Hold()()
	s, err := d.begin(ctx, runID, goal, limits, opts)
	if err != nil {
		return Run{}, err
	}
	return s.loop(ctx)
}

// begin makes a run and claims its first step.
func (e *engine) begin(ctx context.Context, runID, goal string, limits Limits, opts []Option) (*session, error) {
	if e.isStopping() {
		return nil, ErrStopped.Say("The process is stopping; no run was made.")
	}
	r := Run{ID: runID, Space: e.conf.Space, Goal: goal, Limits: limits, ContinueBy: call.ByCaller}
	for _, f := range opts {
		f(&r)
	}
	if err := check(r); err != nil {
		return nil, err
	}
	asked := time.Now()
	var next Run
	err := e.update(ctx, func(tx Tx) error {
		next = Run{}
		now := e.clock(tx)
		t := e.take(tx)
		ch, err := r.Step(Create{t}, now)
		if err != nil {
			return err
		}
		ch, err = ch.Then(Advance{Hold{ch.Next.Fence, t.Epoch, t.At, t.Until}, e.conf.NewID(id.Step)}, now)
		if err != nil {
			return err
		}
		if err := tx.InsertRun(ch); err != nil {
			return err
		}
		next, err = stored(tx, 0, ch)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := newSession(ctx, e, next)
	s.keep(asked)
	return s, nil
}

// stored is a change as it stands in the store: with its version and head.
func stored(tx Tx, version int64, ch Change) (Run, error) {
	r := ch.Next
	h, err := tx.Head(r.Stream())
	r.Head, r.Version = h, version+1
	return r, err
}

// check refuses a run that could not be stored as given.
func check(r Run) error {
	if err := r.Limits.Check(); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(r.ID, id.Run) || len(r.ID) == len(id.Run) || len(r.ID) > 200 || strings.ContainsFunc(r.ID, notInID):
		return ErrUsage.Say("%q is no run id.", r.ID).Hint("Write run_ and letters, digits, - or _; at most 200 characters.")
	case r.Goal == "" || !validText(r.Goal):
		return ErrUsage.Say("The goal is empty or not valid text.").Hint("Say what the run is for, in UTF-8.")
	case len(r.Goal) > MaxGoal:
		return ErrUsage.Say("The goal has %d bytes; the limit is %d.", len(r.Goal), MaxGoal)
	case r.ContinueBy != call.ByCaller && r.ContinueBy != call.ByDaemon:
		return ErrUsage.Say("continue_by is %q; it is caller or daemon.", r.ContinueBy)
	}
	return checkMetadata(r)
}

func notInID(c rune) bool {
	return !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}

const maxMetadata = 4096

func checkMetadata(r Run) error {
	n := 0
	for k, v := range r.Metadata {
		switch {
		case decision.ReservedMetadata(k):
			return ErrUsage.Say("The metadata key %q is the server's own.", k).Hint("Choose another key.")
		case k == "" || !validText(k) || !validText(v):
			return ErrUsage.Say("The metadata %q is not valid text.", k)
		}
		n += len(k) + len(v)
	}
	switch {
	case n > maxMetadata:
		return ErrUsage.Say("The metadata has %d bytes; the limit is %d.", n, maxMetadata)
	case !validText(r.Principal) || len(r.Principal) > 200:
		return ErrUsage.Say("The principal is not valid text of at most 200 bytes.")
	}
	return nil
}

func validText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Approve says yes to a run's approval, by the driver's clock. It does not go on
// with the run. Errors: those of [decision.Operator.Decide].
func (d *Driver) Approve(ctx context.Context, runID, approvalID, by, note string) error {
	return d.operator().Approve(ctx, runID, approvalID, by, note)
}

// Reject says no: the run is cancelled as approval_rejected.
func (d *Driver) Reject(ctx context.Context, runID, approvalID, by, note string) error {
	return d.operator().Reject(ctx, runID, approvalID, by, note)
}

// ApproveShown says yes to exactly what was shown.
func (d *Driver) ApproveShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return d.operator().ApproveShown(ctx, runID, approvalID, shown, by, note)
}

// RejectShown says no to exactly what was shown.
func (d *Driver) RejectShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return d.operator().RejectShown(ctx, runID, approvalID, shown, by, note)
}

// Cancel ends a run that has not ended: [ErrRunState] if it has. A loop that works
// on it finds out at its next write; a tool that runs is not interrupted.
func (d *Driver) Cancel(ctx context.Context, runID, by, note string) error {
	return d.operator().Cancel(ctx, runID, by, note)
}

// ErrStopped: the driver was told to stop; the run's lease was given back.
var ErrStopped = fault.Sentinel(fault.Unavailable, "stopped", "The process is stopping; the run goes on when it is resumed.")

// Stop makes every loop of this driver end after its present step and give its
// lease back. They return [ErrStopped], and so does whatever is begun later. Stop
// returns at once; Wait waits.
func (d *Driver) Stop() { d.stop() }

// Wait waits for this driver's loops, and for tools that outlived their time limit so
// that their late outcomes are recorded, or until ctx ends.
func (d *Driver) Wait(ctx context.Context) error { return d.calls.Wait(ctx) }

func (e *engine) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// read is a run as it is stored, of this engine's space.
func (e *engine) read(ctx context.Context, runID string) (Run, error) {
	var r Run
	err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
		r, err = e.find(tx, runID)
		return err
	})
	return r, err
}

func (e *engine) find(tx Tx, runID string) (Run, error) {
	r, err := tx.Run(runID)
	if err == nil && r.Space != e.conf.Space {
		err = ErrNotFound.Say("There is no run %s.", runID)
	}
	return r, err
}

var errGoexit = errors.New("it ended its goroutine without returning (runtime.Goexit)")

// guarded calls fn, which others wrote, and turns a panic or Goexit into an error
// that is sent to done.
func guarded(done chan<- error, fn func() error) {
	err := errGoexit
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		done <- err
	}()
	err = fn()
}
