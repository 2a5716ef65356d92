package decision

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/placet-dev/placet/txn"
)

// expiringAtOnce is how many overdue decisions are ended at the same moment: their
// commits are grouped, and no batch keeps others for long.
const expiringAtOnce = 16

// ExpireDue expires up to limit overdue approvals, grants and questions, each in a
// transaction of its own, and says how many. Of several sweepers each finds
// only what the others left. One that cannot be expired is part of the error, and
// keeps none of the others.
func (o Operator) ExpireDue(ctx context.Context, limit int) (n int, err error) {
	tried := map[string]bool{} // what is still due after that is not tried again
	var failed []error
	for more := true; more && n < limit; {
		asked := limit - n + len(tried)
		due, err := o.due(ctx, asked)
		if err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		more = len(due) == asked
		due = slices.DeleteFunc(due, func(d Decision) bool { return tried[d.ID] })
		due = due[:min(len(due), limit-n)]
		for i, err := range o.expireAll(ctx, due) {
			switch {
			case err == nil:
				n++
				continue
			case errors.Is(err, ErrNotPending), errors.Is(err, ErrRunState): // another sweeper or a person was first
			default:
				failed = append(failed, err)
			}
			tried[due[i].ID] = true
		}
	}
	return n, errors.Join(failed...)
}

func (o Operator) due(ctx context.Context, limit int) (due []Decision, err error) {
	err = txn.View(ctx, o.Store, func(tx Tx) error {
		due, err = tx.Due(o.clock(tx), limit)
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
	return o.run(ctx, target{id: id}, func(int64, error) Command { return Expire{} })
}
