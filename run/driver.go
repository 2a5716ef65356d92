package run

import (
	"context"

	"github.com/placet-dev/placet/internal/id"
)

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

// Stop makes every loop of this driver end after its present step and give its
// lease back. They return [ErrStopped], and so does whatever is begun later. Stop
// returns at once; Wait waits.
func (d *Driver) Stop() { d.stop() }

// Wait waits for this driver's loops, and for tools that outlived their time limit so
// that their late outcomes are recorded, or until ctx ends.
func (d *Driver) Wait(ctx context.Context) error { return d.calls.Wait(ctx) }
