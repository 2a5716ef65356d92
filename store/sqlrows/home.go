package sqlrows

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

const (
	homeColumns   = `id, host, folder, url, program_version, process, since, lease_until, epoch`
	insertHomeSQL = `INSERT INTO home(` + homeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	updateHomeSQL = `UPDATE home SET host = ?, folder = ?, url = ?, program_version = ?, process = ?, since = ?, lease_until = ?, epoch = ?
		WHERE id = ? AND process = ? AND lease_until = ?`
	deleteHomeSQL = `DELETE FROM home WHERE id = ? AND process = ? AND lease_until = ?`
	renameHomeSQL = `UPDATE job SET home = ? WHERE id IN (SELECT id FROM job WHERE home = ? LIMIT +?)`
)

var (
	selectHomes = `SELECT ` + Selected(homeColumns) + ` FROM home`
	homeSQL     = selectHomes + ` WHERE id = ?`
)

func (x Rows) Home(id string) (h job.Home, err error) {
	found, err := x.queryRow(x.locking(homeSQL), []any{id}, func(r Row) error {
		h = scanHome(r)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("There is no home %s.", id)
	}
	return h, err
}

func scanHome(r Row) job.Home {
	return job.Home{
		ID: r.Str(0), Host: r.Str(1), Dir: r.Str(2), URL: r.Str(3), Version: r.Str(4), Process: r.Str(5),
		Since: r.Time(6), LeaseUntil: r.Time(7), Epoch: r.Int(8),
	}
}

func (x Rows) Homes(q job.HomeQuery) ([]job.Home, error) {
	w := where{}
	w.and(`id > ?`, q.After)
	w.and(`lease_until < ?`, q.EndedBefore, !q.EndedBefore.IsZero())
	var hs []job.Home
	err := x.Query(selectHomes+w.sql+` ORDER BY id LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500)), func(r Row) error {
		hs = append(hs, scanHome(r))
		return nil
	})
	return hs, err
}

func (x Rows) InsertHome(h job.Home) (bool, error) {
	return x.one(insertHomeSQL, h.ID, h.Host, h.Dir, h.URL, h.Version, h.Process, h.Since, h.LeaseUntil, h.Epoch)
}

func (x Rows) UpdateHome(prev, h job.Home) (bool, error) {
	return x.one(updateHomeSQL, h.Host, h.Dir, h.URL, h.Version, h.Process, h.Since, h.LeaseUntil, h.Epoch, prev.ID, prev.Process, prev.LeaseUntil)
}

func (x Rows) DeleteHome(prev job.Home) (bool, error) {
	return x.one(deleteHomeSQL, prev.ID, prev.Process, prev.LeaseUntil)
}

func (x Rows) RenameHome(from, to string, limit int) (int, error) {
	n, err := x.Exec(renameHomeSQL, to, from, limit)
	return int(n), err
}
