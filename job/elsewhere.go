package job

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// ErrElsewhere: what was asked for needs the files of the job's launch, and they lie with
// another home. Its details are an [Elsewhere].
var ErrElsewhere = fault.Sentinel(fault.Conflict, "job_elsewhere", "The job is looked after by another daemon.")

// Elsewhere says where a job is that is not this supervisor's.
type Elsewhere struct {
	JobID   string `json:"job_id"`
	HomeID  string `json:"home_id"`
	Host    string `json:"host,omitempty"`
	URL     string `json:"url,omitempty"` // of the daemon there, where it told others
	Present bool   `json:"present"`       // its lease has not ended
	Until   string `json:"lease_until,omitempty"`
}

// Mine reports whether the job is launched from this supervisor's home.
func (s *Supervisor) Mine(j Job) bool { return s.mine(j) }

// HomeOf is the home of a job, and whether it is there now. The zero Home stands for one
// that was never registered.
func (s *Supervisor) HomeOf(ctx context.Context, j Job) (h Home, present bool, err error) {
	if s.misuse != nil {
		return Home{}, false, s.misuse
	}
	err = txn.View(ctx, s.conf.Store, func(tx Tx) error {
		h, present = Home{}, false
		got, err := tx.Home(j.Home)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		h, present = got, got.Present(tx.Now())
		return err
	})
	return h, present, err
}

// Homes lists the homes that are registered, by id, and the store's time by which their
// leases count.
func (s *Supervisor) Homes(ctx context.Context) (all []Home, now time.Time, err error) {
	if s.misuse != nil {
		return nil, now, s.misuse
	}
	for after := ""; ; {
		var hs []Home
		err = txn.View(ctx, s.conf.Store, func(tx Tx) (err error) {
			now = tx.Now()
			hs, err = tx.Homes(HomeQuery{After: after, Limit: 500})
			return err
		})
		if err != nil || len(hs) == 0 {
			return all, now, err
		}
		all, after = append(all, hs...), hs[len(hs)-1].ID
	}
}

// elsewhere says that a job is not here, where it is, and how it is reached.
func (s *Supervisor) elsewhere(ctx context.Context, j Job) error {
	h, present, err := s.HomeOf(ctx, j)
	if err != nil {
		return err
	}
	at := Elsewhere{JobID: j.ID, HomeID: j.Home, Host: h.Host, URL: h.URL, Present: present, Until: txn.Stamp(h.LeaseUntil)}
	no := ErrElsewhere.With(at)
	switch {
	case h.ID == "":
		return no.Say("Job %s belongs to another home, %s.", j.ID, j.Home).
			Hint("placet doctor, or GET /v1/homes, shows the homes that are known. This one never registered, or was lost so long ago that it is forgotten.")
	case !present:
		return no.Say("Job %s belongs to %s, and the daemon there is away since %s (home %s).", j.ID, h.Host, at.Until, h.ID).
			Hint("Start placet serve there, and ask again.")
	case h.URL == "":
		return no.Say("Job %s belongs to %s (home %s), and the daemon there tells no address.", j.ID, h.Host, h.ID).
			Hint("Ask on that machine, or start its daemon with placet serve --advertise URL: requests are then passed on to it.")
	}
	return no.Say("Job %s belongs to %s (home %s).", j.ID, h.Host, h.ID).Hint("Ask the daemon there, at %s.", h.URL)
}
