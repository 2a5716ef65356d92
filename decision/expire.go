package decision

import (
	"context"
	"errors"
	"sync"

	"github.com/placet-dev/placet/txn"
)

const (
	expiringAtOnce  = 16   // ended at the same moment: their commits are grouped, and none waits for the rest
	expiringInOneGo = 1000 // read at a time
)

// ExpireDue expires up to limit overdue approvals, grants and questions, each in a
// transaction of its own, and says how many. Of several sweepers each finds
// only what the others left. One that cannot be expired is part of the error, and
// keeps none of the others.
func (o Operator) ExpireDue(ctx context.Context, limit int) (n int, err error) {
	var failed []error
	skip := 0 // those that could not be expired are due still
	for more := true; more && n < limit; {
		asked := min(limit-n, expiringInOneGo)
		due, err := o.due(ctx, skip, asked)
		if err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		more = len(due) == asked
		for _, err := range o.expireAll(ctx, due) {
			switch {
			case err == nil:
				n++
				continue
			case errors.Is(err, ErrNotPending), errors.Is(err, ErrRunState): // another sweeper or a person was first
			default:
				failed = append(failed, err)
			}
			skip++
		}
	}
	return n, errors.Join(failed...)
}

func (o Operator) due(ctx context.Context, skip, limit int) (due []Decision, err error) {
	err = txn.View(ctx, o.Store, func(tx Tx) error {
		due, err = tx.Due(o.clock(tx), skip, limit)
		return err
	})
	return due, err
}

func (o Operator) expireAll(ctx context.Context, due []Decision) []error {
	errs, next := make([]error, len(due)), make(chan int)
	var all sync.WaitGroup
	for range min(expiringAtOnce, len(due)) {
		all.Go(func() {
			for i := range next {
				_, errs[i] = o.Expire(ctx, due[i].ID)
			}
		})
	}
	for i := range due {
		next <- i
	}
	close(next)
	all.Wait()
	return errs
}

// Expire ends one overdue approval, grant or question: [ErrNotPending] if it is not overdue.
func (o Operator) Expire(ctx context.Context, id string) (Decision, error) {
	return o.run(ctx, target{id: id}, func(error) Command { return Expire{} })
}
