package cli

import (
	"context"

	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// awayHome is a home that nobody holds, with whether a job of it has not ended.
type awayHome struct {
	job.Home
	busy bool
}

// lookHomes tells of the other machines on the store: those that are there, and those that
// are away with jobs that have not ended.
func (a *app) lookHomes(ctx context.Context, f *findings, st *store.Store) error {
	ours, err := a.ourHome()
	if err != nil {
		return err
	}
	var present []job.Home
	var away []awayHome
	if err := txn.View(ctx, st, func(tx job.Tx) (err error) {
		present, away, err = othersHomes(tx, ours)
		return err
	}); err != nil {
		return err
	}
	for _, h := range present {
		if h.URL == "" {
			f.ok("homes", "%s has a daemon on this store (home %s). What needs its jobs' files is asked for there: it tells no address.", h.Host, h.ID)
			continue
		}
		f.ok("homes", "%s has a daemon on this store, at %s (home %s)", h.Host, h.URL, h.ID)
	}
	for _, h := range away {
		if h.busy {
			f.attention("homes", "%s is away since %s, with jobs that have not ended. Start placet serve there; else they are orphaned by another machine's daemon (home %s).",
				h.Host, stamp(h.LeaseUntil), h.ID)
		} else {
			f.note("homes", "%s is away since %s; nothing is left to do there (home %s).", h.Host, stamp(h.LeaseUntil), h.ID)
		}
	}
	return nil
}

func othersHomes(tx job.Tx, ours string) (present []job.Home, away []awayHome, err error) {
	hs, err := tx.Homes(job.HomeQuery{Limit: listed})
	if err != nil {
		return nil, nil, err
	}
	for _, h := range hs {
		if h.ID == ours {
			continue
		}
		if h.Present(tx.Now()) {
			present = append(present, h)
			continue
		}
		js, err := tx.ActiveJobs(h.ID, "", 1)
		if err != nil {
			return nil, nil, err
		}
		away = append(away, awayHome{h, len(js) > 0})
	}
	return present, away, nil
}
