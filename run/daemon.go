package run

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Leave makes a run that a daemon works on: it is stored without a step, its lease
// given back, and the daemon that knows its agent takes it over. The options have to
// name that agent by [By].
func (d *Driver) Leave(ctx context.Context, goal string, limits Limits, opts ...Option) (Run, error) {
	if d.misuse != nil {
		return Run{}, d.misuse
	}
	r := Run{ID: d.conf.NewID(id.Run), Space: d.conf.Space, Goal: goal, Limits: limits}
	for _, f := range opts {
		f(&r)
	}
	r.ContinueBy = call.ByDaemon
	if err := check(r); err != nil {
		return Run{}, err
	}
	if r.Agent.Name == "" {
		return Run{}, ErrUsage.Say("A run that is left to the daemon needs an agent of the configuration.").Hint("Name it.")
	}
	err := d.update(ctx, func(tx Tx) error {
		now, t := d.clock(tx), d.take(tx)
		ch, err := r.Step(Create{t}, now)
		if err != nil {
			return err
		}
		if ch, err = ch.Then(Release{t.hold(ch.Next.Fence)}, now); err != nil {
			return err
		}
		return tx.InsertRun(ch)
	})
	if err != nil {
		return Run{}, err
	}
	return d.read(ctx, r.ID)
}

// Postpone notes that going on with a run was refused: a daemon does not try again
// before wait has passed. Of a run that moved in the meantime nothing is written.
func (d *Driver) Postpone(ctx context.Context, r Run, reason string, wait time.Duration) error {
	err := d.update(ctx, func(tx Tx) error {
		now, err := tx.Run(r.ID)
		if err != nil {
			return err
		}
		worked := now.Status == Running && tx.Now().Before(now.LeaseUntil)
		if now.Status.Terminal() || worked || now.ApprovalID != r.ApprovalID {
			return nil
		}
		next := now
		next.NextTryAt = tx.Now().Add(wait)
		told := refusedPayload{now.ApprovalID, reason, txn.Stamp(next.NextTryAt)}
		return tx.PutRun(now, Change{Next: next, Events: []event.Event{now.event(event.ResumeRefused, event.System, told)}})
	})
	if errors.Is(err, decision.ErrMoved) {
		return nil
	}
	return err
}

type refusedPayload struct {
	ApprovalID string `json:"approval_id,omitempty"`
	Reason     string `json:"reason"`
	NextTryAt  string `json:"next_try_at"`
}
