package store

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

// HomeRows are the rows of homes.
type HomeRows interface {
	// Home reads one and, in a transaction that writes, locks it; decision.ErrNotFound.
	Home(id string) (job.Home, error)
	Homes(q job.HomeQuery) ([]job.Home, error)
	// InsertHome reports false when the id is in use.
	InsertHome(h job.Home) (bool, error)
	// UpdateHome and DeleteHome are guarded by prev's process and lease; false: another
	// writer won.
	UpdateHome(prev, next job.Home) (bool, error)
	DeleteHome(prev job.Home) (bool, error)
	// RenameHome changes the home of up to limit jobs. Their versions stay: nobody judges
	// a job by its home's name.
	RenameHome(from, to string, limit int) (int, error)
}

func (t *tx) PutHome(prev, next job.Home) (err error) {
	defer t.note(&err)
	var won bool
	if prev.ID == "" {
		won, err = t.InsertHome(next)
	} else {
		won, err = t.UpdateHome(prev, next)
	}
	if err == nil && !won {
		err = decision.Moved("Home %s", next.ID)
	}
	return err
}

func (t *tx) DropHome(h job.Home) (err error) {
	defer t.note(&err)
	won, err := t.DeleteHome(h)
	if err == nil && !won {
		err = decision.Moved("Home %s", h.ID)
	}
	return err
}

func (t *tx) MoveJobs(from, to string, limit int) (n int, err error) {
	defer t.note(&err)
	return t.RenameHome(from, to, limit)
}
