package job

import (
	"context"

	"github.com/placet-dev/placet/txn"
)

// View lists the jobs that q selects by how much they need a person (spec 3.3): those
// with a question that waits, those that failed or were orphaned, those that run, the
// rest; within each the newest first. It is one page of at most q.Limit: since jobs
// change their rank, a second one would show some twice and others never. q.After is
// [ErrUsage]; q.Space is the supervisor's.
func (s *Supervisor) View(ctx context.Context, q Query) ([]Job, error) {
	if q.After != "" {
		return nil, ErrUsage.Say("A view by attention is one page.").Hint("Leave After out, or list the newest.")
	}
	if err := s.freshen(ctx); err != nil {
		return nil, err
	}
	q.Space = s.conf.Space
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Limit = min(q.Limit, 500)
	var js []Job
	err := txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
		js, err = byAttention(tx, q)
		return err
	})
	return js, err
}

func byAttention(tx Tx, all Query) ([]Job, error) {
	v := ranking{seen: map[string]bool{}, limit: all.Limit}
	for _, qs := range [][]Query{
		{{Asking: true}},
		{{Status: Failed}, {Status: Orphaned}},
		{{Status: Running}, {Status: Launching}},
		{{}},
	} {
		var rank []Job
		for _, q := range qs {
			if q.Status != "" && all.Status != "" && q.Status != all.Status {
				continue
			}
			js, err := tx.Jobs(all.of(q))
			if err != nil {
				return nil, err
			}
			rank = append(rank, js...)
		}
		if v.add(rank); len(v.list) == v.limit {
			break
		}
	}
	return v.list, nil
}

// of is what q selects of a rank.
func (q Query) of(rank Query) Query {
	q.Asking = q.Asking || rank.Asking
	if rank.Status != "" {
		q.Status = rank.Status
	}
	return q
}

type ranking struct {
	list  []Job
	seen  map[string]bool
	limit int
}

func (v *ranking) add(rank []Job) {
	newestFirst(rank)
	for _, j := range rank {
		if len(v.list) < v.limit && !v.seen[j.ID] {
			v.seen[j.ID] = true
			v.list = append(v.list, j)
		}
	}
}
