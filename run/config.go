package run

import (
	"log/slog"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
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
