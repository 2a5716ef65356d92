package job

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Cleaning says which jobs go.
type Cleaning struct {
	OlderThan time.Duration // since they ended
	By        string        // who wants it; recorded
	DryRun    bool          // only say which
}

// chunk is how many rows one transaction deletes.
const chunk = 500

// Clean removes jobs of this home, and of homes that are lost, that ended long enough
// ago, with all that belongs to them: events, questions, output. They are not seen any
// more once they are marked; a tombstone stays of each one's stream. What a lost home has
// in its folder stays there. Clean returns the ids.
func (s *Supervisor) Clean(ctx context.Context, c Cleaning) ([]string, error) {
	if err := s.may(c.By); err != nil {
		return nil, err
	}
	if c.OlderThan < 0 {
		return nil, ErrUsage.Say("The age is negative.").Hint("0 means every job that has ended.")
	}
	js, err := s.old(ctx, c.OlderThan)
	if err != nil || c.DryRun {
		return ids(js), err
	}
	var marked []string
	for _, j := range js {
		err := s.update(ctx, func(tx Tx) error {
			now, err := s.job(tx, j.ID)
			if err != nil {
				return err
			}
			ours, err := s.mayClean(tx, now)
			if err != nil {
				return err
			}
			if !ours || !now.Status.Terminal() || !now.EndedAt.Before(s.clock(tx).Add(-c.OlderThan)) {
				return ErrNotFound.Say("Job %s has not ended long enough ago.", j.ID)
			}
			return tx.CleanJob(now, c.By)
		})
		switch {
		case errors.Is(err, ErrNotFound): // another was first, or it is no longer one to clean
			continue
		case err != nil:
			return marked, err
		}
		marked = append(marked, j.ID)
	}
	failed := s.sweepCleaned(ctx)
	for _, j := range js {
		if !s.mine(j) && slices.Contains(marked, j.ID) {
			failed = errors.Join(failed, s.deleteRows(ctx, j)) // what fails, whoever keeps a home tries again
		}
	}
	return marked, failed
}

// mayClean reports whether the job is of this home, or of one that is lost.
func (s *Supervisor) mayClean(tx Tx, j Job) (bool, error) {
	if s.mine(j) {
		return true, nil
	}
	s.mu.Lock()
	judge := s.held
	s.mu.Unlock()
	h, err := tx.Home(j.Home)
	if errors.Is(err, ErrNotFound) {
		return id.Has(id.Home, j.Home) && judge.Present(tx.Now()), nil // it was lost for so long that it is forgotten
	}
	return judge.Epoch == tx.Epoch() && h.LostTo(judge, s.conf.OrphanAfter, tx.Now()), err
}

// old lists the jobs that ended before, and that are ours to clean.
func (s *Supervisor) old(ctx context.Context, age time.Duration) (all []Job, err error) {
	after := ""
	for {
		var js, ours []Job
		err = txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
			ours = nil
			if js, err = tx.Jobs(Query{Space: s.conf.Space, EndedBefore: s.clock(tx).Add(-age), After: after, Limit: 500}); err != nil {
				return err
			}
			homes := map[string]bool{}
			for _, j := range js {
				may, known := homes[j.Home]
				if !known {
					if may, err = s.mayClean(tx, j); err != nil {
						return err
					}
					homes[j.Home] = may
				}
				if may {
					ours = append(ours, j)
				}
			}
			return nil
		})
		if err != nil || len(js) == 0 {
			return all, err
		}
		after = js[len(js)-1].ID
		all = append(all, ours...)
	}
}

func ids(js []Job) []string {
	list := make([]string, len(js))
	for i, j := range js {
		list[i] = j.ID
	}
	return list
}

// sweepCleaned deletes what has been marked, also by a process that ended meanwhile:
// first the directory, then the rows, so that nothing is left that no row names. One
// that cannot be deleted stays marked and holds up no other.
func (s *Supervisor) sweepCleaned(ctx context.Context) error {
	return s.sweepHome(ctx, s.conf.Home, s.delete)
}

func (s *Supervisor) sweepHome(ctx context.Context, home string, remove func(context.Context, Job) error) error {
	var failed error
	for after := ""; ; {
		var js []Job
		err := txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
			js, err = tx.CleanedJobs(home, after, atOnce)
			return err
		})
		if err != nil || len(js) == 0 {
			return errors.Join(failed, err)
		}
		for _, j := range js {
			if after = j.ID; ctx.Err() != nil {
				return context.Cause(ctx)
			}
			failed = errors.Join(failed, remove(ctx, j))
		}
	}
}

func (s *Supervisor) delete(ctx context.Context, j Job) error {
	if err := os.RemoveAll(filepath.Join(s.conf.Dir, j.ID)); err != nil {
		return err
	}
	return s.deleteRows(ctx, j)
}

func (s *Supervisor) deleteRows(ctx context.Context, j Job) error {
	for n := chunk; n == chunk; {
		err := s.update(ctx, func(tx Tx) (err error) {
			n, err = tx.DeleteJob(j.ID, chunk)
			return err
		})
		if err != nil && !errors.Is(err, decision.ErrMoved) {
			return err
		}
	}
	return nil
}

func newestFirst(js []Job) {
	slices.SortFunc(js, func(a, b Job) int { return cmp.Compare(b.ID, a.ID) })
}
