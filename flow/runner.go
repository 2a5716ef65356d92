package flow

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Runner starts and resumes the runs of one flow. It is safe for concurrent use. For
// another flow, or another version, make another.
type Runner struct {
	plan   *plan
	conf   run.Config
	space  string
	driver *run.Driver
}

// NewRunner checks the definition and the configuration: run.ErrUsage, naming the node
// or the field and saying what to write. c.Agent stays nil: the plan is in its place.
func NewRunner(f Flow, c run.Config) (*Runner, error) {
	p, err := newPlan(f)
	if err != nil {
		return nil, err
	}
	if c.Agent != nil {
		return nil, run.ErrUsage.Say("run.Config.Agent is set.").Hint("Leave it out: the flow decides.")
	}
	r := &Runner{plan: p, conf: c, space: c.Space}
	if r.space == "" {
		r.space = event.MainSpace
	}
	c.Agent = run.AgentFunc(r.decide)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r.driver = run.NewDriver(c)
	return r, nil
}

// decide is the plan in place of a model.
func (r *Runner) decide(_ context.Context, in run.StepInput) (run.Proposal, error) {
	return r.plan.next(r.inputOf(in.Run), in.Steps, in.Approvals), nil
}

// Ref is the flow as its runs name it.
func (r *Runner) Ref() run.FlowRef { return r.plan.ref }

// Limits are what a run of this flow is bounded by where nothing else is said. They
// follow from the number of nodes and rounds, with some steps to spare for lost processes.
func (r *Runner) Limits() run.Limits { return r.plan.flow.derived() }

// StartOptions refine a new run.
type StartOptions struct {
	RunID     string            // as for run.Driver.StartWithID. Default: a new one.
	Principal string            // who starts it, as proved. Default: not known.
	Metadata  map[string]string // words that policies and people see
	// Limits bound the run. Default, also of each of the first three by itself:
	// those of [Runner.Limits].
	Limits run.Limits
}

// Start makes a run and works on it until it waits for a person or ends. input is what
// its nodes read with [Results.Input]: a json.RawMessage is taken as it is, anything else
// is encoded, nil is none. It stands in the run's goal after the flow's name, so people
// and policies see it. o may be nil.
//
// Errors and what the returned run says are those of run.Driver.Start: how it ended is
// its status, reason and detail. A node that failed or was denied with nowhere to go ends it
// as goal_failed. run.ErrUsage also where a tool of the flow is not known, or fixed
// arguments do not fit its schema; nothing was made then.
func (r *Runner) Start(ctx context.Context, input any, o *StartOptions) (run.Run, error) {
	if o == nil {
		o = &StartOptions{}
	}
	goal, err := r.goal(input)
	if err != nil {
		return run.Run{}, err
	}
	if err := r.ready(true); err != nil {
		return run.Run{}, err
	}
	limits, opts := r.plan.flow.fill(o.Limits), []run.Option{run.OfFlow(r.plan.ref), run.As(o.Principal), run.WithMetadata(o.Metadata)}
	if o.RunID == "" {
		return r.driver.Start(ctx, goal, limits, opts...)
	}
	return r.driver.StartWithID(ctx, o.RunID, goal, limits, opts...)
}

// goal is the flow's name and the input behind it: names have no spaces.
func (r *Runner) goal(input any) (string, error) {
	f := r.plan.flow
	raw, err := safely(func() (json.RawMessage, error) { return encode(input, min(MaxArgs, run.MaxGoal-MaxName-1)) })
	if err != nil {
		return "", f.wrong("the input cannot be used.").Because(err)
	}
	if f.Input != nil {
		if err := f.fits(raw); err != nil {
			return "", err
		}
	}
	if raw == nil {
		return f.Name, nil
	}
	return f.Name + " " + string(raw), nil
}

// fits holds an input against the flow's schema.
func (f Flow) fits(input json.RawMessage) error {
	if input == nil {
		return f.wrong("it needs an input.").Hint("Its Input says what fits: %s", f.Input)
	}
	s, err := tool.CompileSchema(f.Input)
	if err == nil {
		err = s.Check(input)
	}
	if err != nil {
		return f.wrong("the input does not fit.").Because(err)
	}
	return nil
}

// inputOf reads the input out of a run's goal; nil: it has none.
func (r *Runner) inputOf(of run.Run) json.RawMessage {
	if raw, ok := strings.CutPrefix(of.Goal, r.plan.flow.Name+" "); ok {
		return json.RawMessage(raw)
	}
	return nil
}

// ready refuses to work on a flow whose tools this process does not know. A new run is
// also refused where fixed arguments do not fit.
func (r *Runner) ready(fresh bool) error {
	f := r.plan.flow
	for _, n := range f.Nodes {
		c, ok := n.(Call)
		if !ok {
			continue
		}
		t, err := r.conf.Tools.Lookup(c.Tool)
		if err == nil && fresh && c.ArgsFrom == nil {
			err = t.CheckArgs(orObject(c.Args))
		}
		if err != nil {
			return f.wrongAt(n, "its call cannot be made.").Because(err)
		}
	}
	return nil
}

// Resume goes on with a run of this flow, in whatever process calls it. The id is the
// run's, or that of the approval it waits on, whether a node's or that of a node's call.
// It returns as run.Driver.Resume does.
//
// Nothing is started on an error: decision.ErrAlreadyDecided for an approval that the
// run has left behind, run.ErrUsage for what is not this flow's, a run of another version
// (both are named) or of a definition that changed, and those of run.Driver.Resume.
func (r *Runner) Resume(ctx context.Context, runOrApproval string) (run.Run, error) {
	of, err := r.find(ctx, runOrApproval)
	if err != nil {
		return of, err
	}
	if of.Flow == r.plan.ref {
		if err := r.ready(false); err != nil {
			return of, err
		}
	}
	return r.driver.ResumeFlow(ctx, of.ID, r.plan.ref)
}

// find is the flow's run that is meant by an id.
func (r *Runner) find(ctx context.Context, runOrApproval string) (run.Run, error) {
	var of run.Run
	err := txn.View(ctx, r.conf.Store, func(tx run.Tx) (err error) {
		of = run.Run{}
		runID, d := runOrApproval, (*decision.Decision)(nil)
		if !strings.HasPrefix(runID, id.Run) {
			if d, err = r.approval(tx, runOrApproval); err != nil {
				return err
			}
			runID = d.Owner.ID
		}
		if of, err = tx.Run(runID); err != nil {
			return err
		}
		if of.Space != r.space {
			of = run.Run{}
			return run.ErrNotFound.Say("There is no run or approval %s.", runOrApproval)
		}
		if of.Flow == (run.FlowRef{}) {
			return run.ErrUsage.Say("Run %s is an agent's, not a flow's.", of.ID).
				Hint("Continue it with run.Driver.Resume, or placet run resume %s.", of.ID)
		}
		return leftBehind(of, d)
	})
	return of, err
}

// approval reads the approval that is to be gone on with, and names the right door for
// what is not a run's.
func (r *Runner) approval(tx run.Tx, approvalID string) (*decision.Decision, error) {
	d, err := tx.Decision(approvalID)
	switch {
	case err != nil:
		return nil, err
	case d.Space != r.space:
		return nil, run.ErrNotFound.Say("There is no run or approval %s.", approvalID)
	case d.Type != decision.Approval:
		return nil, run.ErrUsage.Say("%s is a question of a job, not an approval.", d.ID).Hint("Answer it with placet resolve.")
	case d.Owner.Kind != decision.OwnerRun:
		return nil, run.ErrUsage.Say("Approval %s is a call's, not a flow's.", d.ID).
			Hint("Continue it with call.Executor.Resume, or placet resume %s.", d.ID)
	}
	return &d, nil
}

// leftBehind refuses an approval that is not the run's latest: somebody who follows an
// old notice must not set off what nobody agreed to by it.
func leftBehind(of run.Run, d *decision.Decision) error {
	if d == nil || d.ID == of.ApprovalID || of.Status.Terminal() {
		return nil
	}
	e := decision.ErrAlreadyDecided.Say("Approval %s is %s already, and run %s has gone on.", d.ID, d.Status, of.ID).With(d.Standing())
	if of.Status == run.Waiting {
		return e.Hint("The run waits on approval %s.", of.ApprovalID)
	}
	return e.Hint("Name the run to go on with it: %s.", of.ID)
}

// Approve says yes, by the runner's clock. It does not go on with the run. Errors, of the
// methods below too: those of [decision.Operator.Decide].
func (r *Runner) Approve(ctx context.Context, runID, approvalID, by, note string) error {
	return r.driver.Approve(ctx, runID, approvalID, by, note)
}

// Reject says no: the run is cancelled as approval_rejected.
func (r *Runner) Reject(ctx context.Context, runID, approvalID, by, note string) error {
	return r.driver.Reject(ctx, runID, approvalID, by, note)
}

// ApproveShown says yes to exactly what was shown.
func (r *Runner) ApproveShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return r.driver.ApproveShown(ctx, runID, approvalID, shown, by, note)
}

// RejectShown says no to exactly what was shown.
func (r *Runner) RejectShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return r.driver.RejectShown(ctx, runID, approvalID, shown, by, note)
}

// Cancel ends a run that has not ended, like run.Driver.Cancel.
func (r *Runner) Cancel(ctx context.Context, runID, by, note string) error {
	return r.driver.Cancel(ctx, runID, by, note)
}

// Stop makes the runs that this runner works on end after their present node and give
// their lease back. It returns at once.
func (r *Runner) Stop() { r.driver.Stop() }

// Wait waits for tools that outlived their time limit, or until ctx ends.
func (r *Runner) Wait(ctx context.Context) error { return r.driver.Wait(ctx) }
