package call

import (
	"context"
	"errors"
	"sync"

	"github.com/placet-dev/placet/txn"
)

// Sweep expires overdue approvals and grants and looks after up to limit lost
// attempts whose tools this executor knows: it marks them unknown, asks their
// probes, and opens the question to a person. It forgets idempotency keys that are
// older than [KeptKeys]. It starts no tool. Several sweepers share the work. limit is
// 1 to 1,000; the count is of rows changed, and of each kind there are up to limit.
func (e *Executor) Sweep(ctx context.Context, limit int) (int, error) {
	if e.misuse != nil {
		return 0, e.misuse
	}
	forgotten, err := e.forgetKeys(ctx, limit)
	expired, failed := e.operator().ExpireDue(ctx, limit)
	lost, lerr := e.sweepLeases(ctx, limit)
	return forgotten + expired + lost, errors.Join(err, failed, lerr)
}

// sweepLeases looks after up to limit lost attempts. One that cannot be helped keeps
// none of the others, however many there are of its kind.
func (e *Executor) sweepLeases(ctx context.Context, limit int) (n int, failed error) {
	for after, more := "", true; more && n < limit; {
		var lost []Call
		err := txn.View(ctx, e.conf.Store, func(tx Tx) (err error) {
			lost, err = tx.LeaseEnded(e.conf.Space, tx.Now(), after, limit)
			return err
		})
		if err != nil {
			return n, errors.Join(failed, err)
		}
		more = len(lost) == limit
		lost = lost[:min(len(lost), limit-n)]
		swept, err := e.sweepAll(ctx, lost)
		n, failed = n+swept, errors.Join(failed, err)
		if len(lost) > 0 {
			after = lost[len(lost)-1].ID
		}
	}
	return n, failed
}

// lostAtOnce is how many lost attempts are looked after at the same moment: a probe may
// take its time.
const lostAtOnce = 16

func (e *Executor) sweepAll(ctx context.Context, lost []Call) (n int, failed error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan Call)
	for range min(lostAtOnce, len(lost)) {
		all.Go(func() {
			for c := range next {
				swept, err := e.sweepLost(ctx, subject{call: c})
				mu.Lock()
				if swept {
					n++
				}
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for _, c := range lost {
		next <- c
	}
	close(next)
	all.Wait()
	return n, failed
}

// isLostRace: another process settled it between the reading and the writing.
func isLostRace(err error) bool {
	return errors.Is(err, ErrRunState) || errors.Is(err, ErrRunning)
}

func (e *Executor) sweepLost(ctx context.Context, s subject) (bool, error) {
	t, err := e.conf.Tools.Lookup(s.call.Tool)
	if err != nil {
		return false, nil // another process knows this tool
	}
	if s, err = e.readAgain(ctx, s); err != nil {
		return false, err
	}
	if err := s.unaltered(); err != nil {
		return false, err
	}
	s.tool = t
	asked, err := e.markLost(ctx, &s)
	if isLostRace(err) {
		return false, nil
	}
	if err != nil || asked != nil || !s.recovery().probe() {
		return err == nil, err
	}
	_, settled, err := e.probe(ctx, s)
	if err == nil && !settled && !s.recovery().key() {
		_, err = e.askAgain(ctx, s)
	}
	if isLostRace(err) {
		err = nil
	}
	return true, err
}
