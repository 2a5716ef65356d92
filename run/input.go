package run

import (
	"context"
	"slices"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// load reads what came before the present step, once.
func (s *session) load(ctx context.Context) error {
	r := s.known()
	if s.loaded {
		return nil
	}
	var steps []Step
	var approvals []decision.Decision
	err := txn.View(ctx, s.e.conf.Store, func(tx Tx) (err error) {
		if steps, err = AllSteps(tx, r.ID); err != nil {
			return err
		}
		approvals, err = allApprovals(tx, r)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range steps {
		if st.ID != r.Current.ID {
			s.steps = append(s.steps, st)
		}
	}
	s.approvals, s.loaded = approvals, true
	return nil
}

// AllSteps lists every step of a run, oldest first.
func AllSteps(tx Tx, runID string) ([]Step, error) {
	const page = 1000
	var all []Step
	for after := int64(0); ; {
		steps, err := tx.Steps(runID, after, page)
		if err != nil {
			return nil, err
		}
		all = append(all, steps...)
		if len(steps) < page {
			return all, nil
		}
		after = steps[len(steps)-1].Index
	}
}

// allApprovals lists the run's approvals, oldest first.
func allApprovals(tx Tx, r Run) ([]decision.Decision, error) {
	const page = 500
	var all []decision.Decision
	for q := (decision.Query{Space: r.Space, Type: decision.Approval, Owner: r.Ref(), Limit: page}); r.ApprovalN > 0; {
		ds, err := tx.Decisions(q)
		if err != nil {
			return nil, err
		}
		all = append(all, ds...)
		if len(ds) < page {
			break
		}
		q.After = ds[len(ds)-1].ID
	}
	slices.Reverse(all)
	return all, nil
}

// input is what the agent sees: its own copy of everything.
func (s *session) input() StepInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := StepInput{Run: s.run.Clone(), Steps: slices.Clone(s.steps)}
	for _, d := range s.approvals {
		in.Approvals = append(in.Approvals, d.Clone())
	}
	for _, t := range s.e.conf.Tools.List() {
		in.Tools = append(in.Tools, specOf(&t))
	}
	return in
}

func specOf(t *tool.Tool) tool.Spec {
	spec := t.Spec
	spec.InputSchema = slices.Clone(spec.InputSchema)
	return spec
}
