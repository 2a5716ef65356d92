package place

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/store/sqlite"
)

// Options are what opening takes for either kind.
type Options struct {
	// ReadOnly is for who only looks: nothing is created, migrated or written.
	ReadOnly bool
	// Logger hears of what no caller can be told. Default: slog.Default().
	Logger *slog.Logger
}

// Open opens the store. Unless o says ReadOnly, it is made where there is none: a file
// in a folder that is there, or the tables in a database that is there.
func (p Place) Open(ctx context.Context, o Options) (*store.Store, error) {
	if p.url != "" {
		return postgres.Open(ctx, p.url, &postgres.Options{ReadOnly: o.ReadOnly, Logger: o.Logger})
	}
	return sqlite.Open(ctx, p.path, &sqlite.Options{ReadOnly: o.ReadOnly, Logger: o.Logger})
}

// Prepare makes the home, where the store is a file that is to lie directly in it.
func (p Place) Prepare() error {
	if p.url != "" || p.home == "" || filepath.Dir(p.path) != p.home {
		return nil
	}
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		return fault.New(fault.Invalid, "The folder %s cannot be made.", p.home).Hint("Give --db PATH, or set PLACET_HOME.").Because(err)
	}
	return nil
}

// Absent says that there is no store, and what to do. It is nil where there may be one:
// a server has to be asked.
func (p Place) Absent() error {
	if p.url != "" {
		return nil
	}
	if _, err := os.Lstat(p.path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.New(fault.NotFound, "There is no database at %s.", p.path).
		Hint("Check --db or PLACET_DB. The first placet call makes one; placet demo shows how.")
}

// Migrate brings the schema up to this program's; a store that is not there is made.
func (p Place) Migrate(ctx context.Context) error {
	if p.url != "" {
		return postgres.Migrate(ctx, p.url)
	}
	st, err := sqlite.Open(ctx, p.path, nil)
	if err != nil {
		return err
	}
	return st.Close()
}

// AcceptRestore lets a store that went back in time be used as it is.
func (p Place) AcceptRestore(ctx context.Context) error {
	if p.url != "" {
		return postgres.AcceptRestore(ctx, p.url)
	}
	return sqlite.AcceptRestore(ctx, p.path)
}

// ErrServer: what was asked for is the server's own to do.
var ErrServer = fault.Sentinel(fault.Invalid, "other_kind", "This is done with PostgreSQL's own tools.")

// Backup writes a consistent copy to the new file dest. On a server it is refused with
// [ErrServer].
func (p Place) Backup(ctx context.Context, dest string) error {
	if p.url != "" {
		return p.noFile("backup", "Back the database up with pg_dump")
	}
	return sqlite.Backup(ctx, p.path, dest)
}

// Restore puts the backup at from in place of the store. On a server it is refused with
// [ErrServer].
func (p Place) Restore(ctx context.Context, from string) error {
	if p.url != "" {
		return p.noFile("restore", "Bring what pg_dump wrote back with pg_restore")
	}
	return sqlite.Restore(ctx, p.path, from)
}

func (p Place) noFile(verb, instead string) error {
	return ErrServer.Say("placet db %s is for SQLite files, and the store %s is in PostgreSQL. Nothing was done.", verb, p).
		Hint("%s; after pg_restore, run placet db accept-restore. How: docs/guide/postgres.md.", instead)
}

// Report is what was found in a store: what both kinds have, and under SQLite or
// Postgres what only one has; the other is nil.
type Report struct {
	Place    string // for people
	Problems []string
	Warnings []string // no faults, and worth knowing; a file has none

	StoreID    string
	Epoch      int64
	Events     int64 // number of the last event
	LastAt     time.Time
	RestoredAt time.Time
	RestoredTo time.Time
	Schema     int64
	Newest     int64 // schema this program knows
	Settings   map[string]string
	Bytes      int64

	SQLite   *sqlite.Report
	Postgres *postgres.Report
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Check looks through the whole store and changes nothing. The error is for a store that
// could not be looked at.
func (p Place) Check(ctx context.Context) (Report, error) {
	if p.url != "" {
		r, err := postgres.Check(ctx, p.url)
		return Report{
			Place: p.String(), Problems: r.Problems, Warnings: r.Warnings, StoreID: r.StoreID, Epoch: r.Epoch, Events: r.Events, LastAt: r.LastAt,
			RestoredAt: r.RestoredAt, RestoredTo: r.RestoredTo, Schema: r.Schema, Newest: r.Newest, Settings: r.Settings, Bytes: r.Bytes, Postgres: &r,
		}, err
	}
	r, err := sqlite.Check(ctx, p.path)
	return Report{
		Place: r.Path, Problems: r.Problems, StoreID: r.StoreID, Epoch: r.Epoch, Events: r.Events, LastAt: r.LastAt,
		RestoredAt: r.RestoredAt, RestoredTo: r.RestoredTo, Schema: r.Schema, Newest: r.Newest, Settings: r.Settings, Bytes: r.Bytes, SQLite: &r,
	}, err
}
