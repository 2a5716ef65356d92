package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Report is what Check found. Problems is empty if all is well.
type Report struct {
	Path     string   `json:"path"`
	Problems []string `json:"problems"`

	StoreID    string    `json:"store_id"`
	Epoch      int64     `json:"epoch"`
	Events     int64     `json:"events"` // number of the last event
	LastAt     time.Time `json:"last_at,omitzero"`
	RestoredAt time.Time `json:"restored_at,omitzero"`
	RestoredTo time.Time `json:"restored_to,omitzero"`

	Schema    int64 `json:"schema"`
	Newest    int64 `json:"newest"` // schema this program knows
	MinWriter int64 `json:"min_writer"`
	MinReader int64 `json:"min_reader"`

	Mark     string            `json:"mark"` // "agrees", "none", or in what the store falls short of it
	SQLite   string            `json:"sqlite"`
	Settings map[string]string `json:"settings"`
	Bytes    int64             `json:"bytes"`
	LogBytes int64             `json:"log_bytes"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Check looks through the store at path: SQLite's own check of every page and
// index, rows that point to nothing, schema, settings, and the mark. It changes
// nothing. The error is for a store that could not be looked at.
func Check(ctx context.Context, path string) (Report, error) {
	a, err := newAdmin(path, migrations())
	if err != nil {
		return Report{}, err
	}
	return a.check(ctx)
}

func (a *admin) check(ctx context.Context) (Report, error) {
	r := Report{Path: a.path, Newest: a.newest(), Settings: map[string]string{}}
	if found, err := checkFile(a.path, false); err != nil {
		return r, err
	} else if !found {
		return r, missing(a.path)
	}
	k, marked, err := lookMark(a.path) // first: while others write, the store may only be ahead of it
	if err != nil {
		return r, err
	}
	if bad, err := a.spoilt(k); err != nil {
		return r, err
	} else if bad {
		r.Problems = append(r.Problems, overwritten+"; run placet db accept-restore if it is meant to be used as it is")
	}
	c, err := openConn(dsn(a.path, forReading, a.o.BusyTimeout, readMode(a.path)))
	if err != nil {
		return r, openError(a.path, err)
	}
	defer c.close()
	p := &prepared{path: a.path}
	if err := p.readMeta(ctx, c); err != nil {
		return r, err
	}
	if p.meta.schema == 0 {
		return r, refuse(a.path, "is empty: there is no store in it")
	}
	r.describe(p.meta)
	if err := r.settings(ctx, c); err != nil {
		return r, openError(a.path, err)
	}
	faults, err := findFaults(ctx, c)
	if err != nil {
		return r, openError(a.path, err)
	}
	r.Problems = append(r.Problems, faults...)
	r.sizes(a.path)
	r.compare(p.meta, k, marked)
	return r, nil
}

// spoilt looks without the lock: a fold that went on meanwhile changed the mark too.
func (a *admin) spoilt(k mark) (bool, error) {
	now, err := look(a.path)
	if err != nil {
		return false, err
	}
	again, _, err := lookMark(a.path)
	return again.main == k.main && k.changed(now) && (k.main == spoilt || hasLog(a.path)), err
}

func (r *Report) describe(m meta) {
	r.StoreID, r.Epoch, r.Events = m.store, m.epoch, m.nextSeq-1
	r.Schema, r.MinWriter, r.MinReader = m.schema, m.minWriter, m.minReader
	r.RestoredAt, r.RestoredTo = m.restoredAt, m.restoredTo
	if m.lastAt > 0 {
		r.LastAt = time.UnixMicro(m.lastAt).UTC()
	}
	if tooFar(m.lastAt - time.Now().UnixMicro()) {
		r.Problems = append(r.Problems, "the last commit is ahead of this computer's clock: set the clock right, or run placet db accept-restore if it is right now")
	}
	if err := m.mayRead(r.Newest); err != nil {
		r.Problems = append(r.Problems, err.Error())
	} else if err := m.mayWrite(r.Newest); err != nil {
		r.Problems = append(r.Problems, err.Error())
	} else if m.schema < r.Newest {
		r.Problems = append(r.Problems, fmt.Sprintf("schema %d is older than this program's %d: run placet db migrate", m.schema, r.Newest))
	}
}

// checkedSettings are those of every connection, and of the file.
var checkedSettings = []string{
	"journal_mode", "synchronous", "foreign_keys", "trusted_schema", "busy_timeout", "cell_size_check", "temp_store", "page_size",
}

func (r *Report) settings(ctx context.Context, c *conn) (err error) {
	for _, s := range checkedSettings {
		if r.Settings[s], err = c.one(ctx, `PRAGMA `+s); err != nil {
			return err
		}
	}
	if m := r.Settings["journal_mode"]; m != "wal" {
		r.Problems = append(r.Problems, "journal mode is "+m+", not wal: open it once to write")
	}
	r.SQLite, err = c.one(ctx, `SELECT sqlite_version()`)
	return err
}

func (r *Report) sizes(path string) {
	if fi, err := os.Lstat(path); err == nil {
		r.Bytes = fi.Size()
		if fi.Mode().Perm()&0o077 != 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("other users can read the file (mode %04o): chmod 600 %s", fi.Mode().Perm(), path))
		}
	}
	if fi, err := os.Lstat(path + "-wal"); err == nil {
		r.LogBytes = fi.Size()
	}
}

// lookMark reads a mark without making one.
func lookMark(path string) (k mark, ok bool, err error) {
	b, err := os.ReadFile(path + ".mark")
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	if err != nil {
		return k, false, fmt.Errorf("read %s.mark: %w", path, err)
	}
	var raw [markSize]byte
	copy(raw[:], b)
	k, ok = parseMark(raw)
	return k, ok, nil
}

func (r *Report) compare(m meta, k mark, marked bool) {
	r.Mark = "agrees"
	if !marked {
		r.Mark = "none"
	}
	switch why := m.wentBack(k, marked); why {
	case "":
	case noMark:
		r.Problems = append(r.Problems, "the store may have gone back in time: "+why+"; if it is to be used where it lies, run placet db accept-restore")
	default:
		r.Mark = why
		r.Problems = append(r.Problems, "the store went back in time: "+why+"; run placet db accept-restore if that is meant")
	}
}
