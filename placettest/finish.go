package placettest

import (
	"context"
	"errors"
	"fmt"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// Finish brings a run to its end, whatever an earlier process came to: it starts or
// resumes it, and lets person answer what it waits for. The driver's store has to be
// p's. A run that nobody answers is returned with an error.
//
// Where a tool's probe knows nothing of a call yet, it lets time pass: a probe is
// believed only when the dead process can be at work no more.
func (p *Process) Finish(ctx context.Context, d *run.Driver, id, goal string, limits run.Limits, person Reviewer) (run.Run, error) {
	for tries := 0; ; {
		r, pending, err := p.stands(ctx, id)
		switch {
		case errors.Is(err, run.ErrNotFound):
			_, err = d.StartWithID(ctx, id, goal, limits)
		case err != nil:
		case r.Status.Terminal():
			return r, nil
		case pending:
			err = answer(ctx, person, r)
		default:
			_, err = d.Resume(ctx, id)
			if errors.Is(err, run.ErrRunState) && tries < 3 {
				tries++
				p.Clock.Advance(run.DefaultLease)
				err = nil
			}
		}
		if err != nil {
			return r, err
		}
	}
}

func answer(ctx context.Context, person Reviewer, r run.Run) error {
	n, err := person.Decide(ctx)
	if err == nil && n == 0 {
		err = fmt.Errorf("run %s waits on approval %s, and no rule of the reviewer is for it", r.ID, r.ApprovalID)
	}
	return err
}

// stands reads a run, and whether it waits for a person.
func (p *Process) stands(ctx context.Context, id string) (r run.Run, pending bool, err error) {
	err = txn.View(ctx, p.Store, func(tx run.Tx) (err error) {
		if r, err = tx.Run(id); err != nil || r.Status != run.Waiting {
			return err
		}
		asked, err := tx.Decision(r.ApprovalID)
		pending = asked.Status == decision.Pending
		return err
	})
	return r, pending, err
}
