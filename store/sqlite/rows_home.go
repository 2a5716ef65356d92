package sqlite

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

const (
	homeColumns   = `id, host, folder, url, program_version, process, since, lease_until, epoch`
	insertHomeSQL = `INSERT INTO home(` + homeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateHomeSQL = `UPDATE home SET host = ?, folder = ?, url = ?, program_version = ?, process = ?, since = ?, lease_until = ?, epoch = ?
		WHERE id = ? AND process = ? AND lease_until = ?`
	deleteHomeSQL = `DELETE FROM home WHERE id = ? AND process = ? AND lease_until = ?`
	renameHomeSQL = `UPDATE job SET home = ? WHERE id IN (SELECT id FROM job WHERE home = ? LIMIT +?)`
)

var (
	selectHomes = `SELECT ` + selected(homeColumns) + ` FROM home`
	homeSQL     = selectHomes + ` WHERE id = ?`
)

func (x rows) Home(id string) (h job.Home, err error) {
	found, err := x.h.queryRow(homeSQL, []any{id}, func(r row) error {
		h = scanHome(r)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("There is no home %s.", id)
	}
	return h, err
}

func scanHome(r row) job.Home {
	return job.Home{
		ID: r.str(0), Host: r.str(1), Dir: r.str(2), URL: r.str(3), Version: r.str(4), Process: r.str(5),
		Since: r.time(6), LeaseUntil: r.time(7), Epoch: r.int(8),
	}
}

func (x rows) Homes(q job.HomeQuery) ([]job.Home, error) {
	w := where{}
	w.and(`id > ?`, q.After)
	w.and(`lease_until < ?`, q.EndedBefore, !q.EndedBefore.IsZero())
	var hs []job.Home
	err := x.h.query(selectHomes+w.sql+` ORDER BY id LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500)), func(r row) error {
		hs = append(hs, scanHome(r))
		return nil
	})
	return hs, err
}

func (x rows) InsertHome(h job.Home) (bool, error) {
	_, err := x.h.exec(insertHomeSQL, h.ID, h.Host, h.Dir, h.URL, h.Version, h.Process, h.Since, h.LeaseUntil, h.Epoch)
	if isUnique(err) {
		return false, nil
	}
	return err == nil, err
}

func (x rows) UpdateHome(prev, h job.Home) (bool, error) {
	return x.one(updateHomeSQL, h.Host, h.Dir, h.URL, h.Version, h.Process, h.Since, h.LeaseUntil, h.Epoch, prev.ID, prev.Process, prev.LeaseUntil)
}

func (x rows) DeleteHome(prev job.Home) (bool, error) {
	return x.one(deleteHomeSQL, prev.ID, prev.Process, prev.LeaseUntil)
}

func (x rows) RenameHome(from, to string, limit int) (int, error) {
	n, err := x.h.exec(renameHomeSQL, to, from, limit)
	return int(n), err
}
