package job

import (
	"context"

	"github.com/placet-dev/placet/txn"
)

// View lists jobs by how much they need a person (spec 3.3): those with a question
// that waits, those that failed or were orphaned, those that run, the rest; within
// each the newest first. limit is 1 to 500; 0 means 50.
func (s *Supervisor) View(ctx context.Context, limit int) ([]Job, error) {
	if err := s.freshen(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 || limit > 500 {
		limit = 50
	}
	var js []Job
	err := txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
		js, err = byAttention(tx, s.conf.Space, limit)
		return err
	})
	return js, err
}

func byAttention(tx Tx, space string, limit int) ([]Job, error) {
	v := ranking{seen: map[string]bool{}, limit: limit}
	for _, qs := range [][]Query{
		{{Asking: true}},
		{{Status: Failed}, {Status: Orphaned}},
		{{Status: Running}, {Status: Launching}},
		{{}},
	} {
		var rank []Job
		for _, q := range qs {
			q.Space, q.Limit = space, limit
			js, err := tx.Jobs(q)
			if err != nil {
				return nil, err
			}
			rank = append(rank, js...)
		}
		if v.add(rank); len(v.list) == limit {
			break
		}
	}
	return v.list, nil
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
