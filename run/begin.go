package run

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

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
		ch, err = ch.Then(Advance{t.hold(ch.Next.Fence), e.conf.NewID(id.Step)}, now)
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

// check refuses a run that could not be stored as given.
func check(r Run) error {
	if err := r.Limits.Check(); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(r.ID, id.Run) || len(r.ID) == len(id.Run) || len(r.ID) > 200 || strings.ContainsFunc(r.ID, notInID):
		return ErrUsage.Say("%q is no run id.", r.ID).Hint("Write run_ and letters, digits, - or _; at most 200 characters.")
	case r.Goal == "" || !txn.IsText(r.Goal):
		return ErrUsage.Say("The goal is empty or not valid text.").Hint("Say what the run is for, in UTF-8.")
	case len(r.Goal) > MaxGoal:
		return ErrUsage.Say("The goal has %d bytes; the limit is %d.", len(r.Goal), MaxGoal)
	case r.ContinueBy != call.ByCaller && r.ContinueBy != call.ByDaemon:
		return ErrUsage.Say("continue_by is %q; it is caller or daemon.", r.ContinueBy)
	}
	for _, word := range append([]string{r.Agent.Name, r.Agent.Dir}, r.Agent.Argv...) {
		if !txn.IsText(word) { // stored, it would become the command line of another agent
			return ErrUsage.Say("The agent's %q is not valid text.", word).Hint(txn.TextHint)
		}
	}
	if err := decision.CheckReserved(r.Metadata); err != nil {
		return err
	}
	return decision.CheckAsker(r.Principal, r.Metadata)
}

func notInID(c rune) bool {
	return !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}
