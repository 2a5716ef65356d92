package placet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Config says what Placet works with. Store and Tools are required.
type Config struct {
	Store txn.Store // what sqlite.Open returned
	Tools *tool.Registry
	// Policy judges each request. Default: by side-effect class.
	Policy policy.Policy
	Guards call.Guards
	// ApprovalTTL bounds how long a request may stay pending, GrantTTL how old a
	// yes may be when it is acted on. Default: 0, no limit.
	ApprovalTTL, GrantTTL time.Duration
	// Agent makes the decisions of agents' runs. Default: none, and no run is started.
	Agent run.Agent
	// Reconcile says what became of a run's step whose process was lost, before the
	// tool or a person is asked. Default: nobody does.
	Reconcile run.ReconcileFunc
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Channels are the ways to wake targets; events are brought to these once Start was
	// called. Default: none.
	Channels delivery.Channels
	// Sweep is how often overdue approvals and lost attempts are looked after
	// once Start was called. Default: 5 s.
	Sweep time.Duration
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger
}

// Placet is the engines over one store.
type Placet struct {
	Calls    *call.Executor
	Runs     *run.Driver
	Gate     *run.Gate // for agents whose loop is another framework's; it needs no Agent
	Operator decision.Operator
	Wakes    delivery.Desk // who is told of events

	every time.Duration
	log   *slog.Logger
	flow  run.Config // of every flow's runner
	mu    sync.Mutex
	stop  context.CancelCauseFunc
	done  chan struct{}
	flows []*flow.Runner
	over  bool // Stop was called

	deliver func(context.Context) // brings events to wake targets until its context ends
}

// ErrStopping is the cause of contexts that end because Stop was called.
var ErrStopping = errors.New("placet is stopping")

const (
	defaultSweep = 5 * time.Second
	sweepAtOnce  = 100 // rows a sweep looks at before it lets others write
)

// Open wires the engines. It starts nothing. A configuration that cannot work
// is call.ErrUsage with a sentence that says what is wrong.
func Open(c Config) (*Placet, error) {
	calls := call.Config{
		Store: c.Store, Tools: c.Tools, Policy: c.Policy, Guards: c.Guards, Observer: c.Observer,
		ApprovalTTL: c.ApprovalTTL, GrantTTL: c.GrantTTL, Log: c.Log,
	}
	if err := calls.Validate(); err != nil {
		return nil, err
	}
	if c.Sweep < 0 {
		return nil, call.ErrUsage.Say("placet.Config.Sweep is negative.").Hint("0 means every 5 s.")
	}
	if c.Sweep == 0 {
		c.Sweep = defaultSweep
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	runs := run.Config{
		Store: c.Store, Policy: c.Policy, Tools: c.Tools, Guards: c.Guards, Observer: c.Observer, Reconcile: c.Reconcile,
		ApprovalTTL: c.ApprovalTTL, GrantTTL: c.GrantTTL, Log: c.Log,
	}
	p := &Placet{
		Calls:    call.NewExecutor(calls),
		Operator: decision.Operator{Store: c.Store, Observer: c.Observer},
		Wakes:    delivery.Desk{Store: c.Store, Space: event.MainSpace, Channels: c.Channels, Observer: c.Observer},
		every:    c.Sweep,
		log:      c.Log,
		flow:     runs,
	}
	p.deliver = func(ctx context.Context) { // without a channel too: it looks after what relays have claimed
		d := delivery.Dispatcher{Store: c.Store, Channels: c.Channels, Owner: deliverer(), Observer: c.Observer, Log: c.Log}
		d.Loop(ctx)
	}
	runs.Agent = c.Agent
	p.Runs, p.Gate = run.NewDriver(runs), run.NewGate(runs)
	return p, nil
}

// Flow makes a runner of a flow, with the same store, tools and policy; Stop stops it
// too. Make one when the program starts, not one for each run. The error is that of
// flow.NewRunner.
func (p *Placet) Flow(f flow.Flow) (*flow.Runner, error) {
	r, err := flow.NewRunner(f, p.flow)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flows = append(p.flows, r)
	if p.over {
		r.Stop()
	}
	return r, nil
}

// Start looks after overdue approvals and lost attempts in the background, and brings
// events to wake targets, until Stop. It returns once the first sweep has succeeded: the store answers. It
// starts no tool. Starting twice is fine.
func (p *Placet) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		return nil
	}
	if _, err := p.Calls.Sweep(ctx, sweepAtOnce); err != nil {
		return err
	}
	run, stop := context.WithCancelCause(context.Background())
	p.stop, p.done = stop, make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { p.sweep(run) })
	loops.Go(func() { p.deliver(run) })
	go func(done chan<- struct{}) {
		loops.Wait()
		close(done)
	}(p.done)
	return nil
}

// deliverer names this process to people.
func deliverer() string { return fmt.Sprintf("process %d", os.Getpid()) }

func (p *Placet) sweep(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for {
			n, err := p.Calls.Sweep(ctx, sweepAtOnce)
			if err != nil && ctx.Err() == nil {
				p.log.Error("a sweep failed; it is tried again", "error", err)
			}
			if err != nil || n < sweepAtOnce {
				break
			}
		}
	}
}

// Stop ends the sweeps, lets runs end their present step and give their leases back,
// waits for the gate's sessions to be closed, and for tools that outlived their time
// limit so that their outcomes are stored, and returns when that is done or ctx ends.
// It does not close the store. Stopping twice, or before Start, is fine; no run is
// started afterwards.
func (p *Placet) Stop(ctx context.Context) error {
	p.Runs.Stop()
	p.Gate.Stop()
	p.mu.Lock()
	stop, done, flows := p.stop, p.done, slices.Clone(p.flows)
	p.stop, p.done, p.over = nil, nil, true
	p.mu.Unlock()
	for _, r := range flows {
		r.Stop()
	}
	if stop != nil {
		stop(ErrStopping)
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := errors.Join(p.Calls.Wait(ctx), p.Runs.Wait(ctx), p.Gate.Wait(ctx))
	for _, r := range flows {
		err = errors.Join(err, r.Wait(ctx))
	}
	return err
}
