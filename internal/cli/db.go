package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/place"
)

func newDBCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Work on the database",
		Long: `Works on a whole store: a SQLite file, or a PostgreSQL database. Files are backed up
and restored here; a database in PostgreSQL is with pg_dump and pg_restore, and then
needs accept-restore (docs/guide/postgres.md).`,
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			a.tellKind(c)
			return c.Help()
		},
	}
	c.AddCommand(
		a.dbCommand("migrate", "Bring the schema up to this program's", noArgs, a.migrate),
		a.dbCommand("backup FILE", "Write a consistent copy of a SQLite file to a new one, while others go on", oneArg("FILE", ""), a.backup),
		a.dbCommand("restore FILE", "Replace a SQLite file by a backup; yeses in it that were not used need a new one", oneArg("FILE", ""), a.restore),
		a.dbCommand("accept-restore", "Accept that the store went back in time without db restore", noArgs, a.acceptRestore),
		a.dbCommand("check", "Look through the whole store; change nothing", noArgs, a.check),
		newDBCopyCommand(a),
	)
	return c
}

// tellKind says which kind of store it is, and takes from the list what does not fit it.
func (a *app) tellKind(c *cobra.Command) {
	p, err := a.place()
	if err != nil || a.json {
		return // the commands say what is wrong
	}
	if _, file := p.File(); file {
		a.say("The store is the SQLite file %s.", own(p.String()))
	} else {
		a.say("The store is in PostgreSQL: %s.", own(p.String()))
		for _, sub := range c.Commands() {
			sub.Hidden = sub.Hidden || sub.Name() == "backup" || sub.Name() == "restore"
		}
	}
	a.say("")
}

func (a *app) dbCommand(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, p place.Place, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		p, err := a.place()
		if err != nil {
			return err
		}
		return do(c.Context(), p, args)
	}}
}

// dbObject is what the commands that change a database answer with.
type dbObject struct {
	Path       string `json:"path,omitempty"` // of a file
	URL        string `json:"url,omitempty"`  // of a database in PostgreSQL, without secrets
	Schema     int64  `json:"schema"`
	Epoch      int64  `json:"epoch"`
	RestoredAt string `json:"restored_at,omitempty"`
	RestoredTo string `json:"restored_to,omitempty"`
	Backup     string `json:"backup,omitempty"`
	Kept       string `json:"kept,omitempty"` // copy of what a restore replaced
}

func dbObjectOf(r place.Report) dbObject {
	o := dbObject{Schema: r.Schema, Epoch: r.Epoch, RestoredAt: stamp(r.RestoredAt), RestoredTo: stamp(r.RestoredTo)}
	if r.SQLite != nil {
		o.Path = r.Place
	} else {
		o.URL = r.Place
	}
	return o
}

func (a *app) migrate(ctx context.Context, p place.Place, _ []string) error {
	if err := p.Prepare(); err != nil {
		return err
	}
	if err := p.Migrate(ctx); err != nil {
		return err
	}
	_, err := a.tellDB(ctx, p, "%s has schema %d.")
	return err
}

// tellDB says how the database stands after a command. text takes its place and schema.
func (a *app) tellDB(ctx context.Context, p place.Place, text string) (place.Report, error) {
	r, err := p.Check(ctx)
	switch {
	case err != nil:
	case a.json:
		a.emit(dbObjectOf(r))
	default:
		a.say(text, own(r.Place), r.Schema)
	}
	return r, err
}

func (a *app) backup(ctx context.Context, p place.Place, args []string) error {
	if err := p.Absent(); err != nil {
		return err
	}
	if err := p.Backup(ctx, args[0]); err != nil {
		return err
	}
	fi, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	if a.json {
		a.emit(struct {
			Path   string `json:"path"`
			Backup string `json:"backup"`
			Bytes  int64  `json:"bytes"`
		}{p.String(), args[0], fi.Size()})
		return nil
	}
	a.say("Wrote %s (%s).", own(args[0]), safe(display.Bytes(int(fi.Size()))))
	return nil
}

func (a *app) restore(ctx context.Context, p place.Place, args []string) error {
	var k kept
	if path, file := p.File(); file { // the other kind says itself that it is refused
		var err error
		if k, err = a.keep(ctx, p, path); err != nil {
			return err
		}
	}
	if err := p.Restore(ctx, args[0]); err != nil {
		k.dropUnused(ctx)
		return err
	}
	r, err := p.Check(ctx)
	if err != nil {
		return err
	}
	if a.json {
		o := dbObjectOf(r)
		o.Backup, o.Kept = args[0], k.copy
		a.emit(o)
		return nil
	}
	a.say("%s was restored; it has schema %d.", own(r.Place), r.Schema)
	a.say("Tokens that were revoked since the backup are good again: look through placet token list. What was asked before it may have been done since: each yes to it is asked about once more.")
	if k.copy != "" {
		a.say("What it was before is kept in %s.", own(k.copy))
	}
	a.tellNewLife(r)
	return nil
}

// kept is a copy of a database that is about to be replaced.
type kept struct {
	place place.Place
	copy  string // empty: there was nothing to keep
	was   place.Report
}

// keep copies the database beside it, so that restoring the wrong backup can be
// undone. What is damaged already is no reason not to restore.
func (a *app) keep(ctx context.Context, p place.Place, path string) (kept, error) {
	k := kept{place: p}
	if p.Absent() != nil {
		return k, nil
	}
	var unsound error
	k.was, unsound = p.Check(ctx)
	dest := ""
	for n := 1; dest == ""; n++ {
		name := fmt.Sprintf("%s.before-restore-%d", path, n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			dest = name
		} else if err != nil {
			return k, fault.New(fault.Invalid, "%s cannot be looked at.", name).Because(err)
		}
	}
	switch err := p.Backup(ctx, dest); {
	case err == nil:
		k.copy = dest
	case unsound == nil && k.was.OK():
		return k, fmt.Errorf("nothing was restored, since what is there now could not be kept: %w", err)
	default:
		a.note("placet: %s could not be copied before it is replaced: it is not sound.", own(path))
	}
	return k, nil
}

// dropUnused removes the copy again where the database was not replaced after all.
func (k kept) dropUnused(ctx context.Context) {
	if k.copy == "" {
		return
	}
	now, err := k.place.Check(context.WithoutCancel(ctx))
	if err == nil && now.StoreID == k.was.StoreID && now.Epoch == k.was.Epoch {
		_ = os.Remove(k.copy) // one that stays is only in the way
	}
}

func (a *app) acceptRestore(ctx context.Context, p place.Place, _ []string) error {
	if err := p.Absent(); err != nil {
		return err
	}
	if err := p.AcceptRestore(ctx); err != nil {
		return err
	}
	r, err := a.tellDB(ctx, p, "%s is used as it is from now on; it has schema %d.")
	if err == nil && !a.json {
		a.tellNewLife(r)
	}
	return err
}

func (a *app) tellNewLife(r place.Report) {
	before := "before now"
	if !r.RestoredTo.IsZero() {
		a.say("It went back to %s.", own(stamp(r.RestoredTo)))
		before = "before then"
	}
	a.say("A yes that was given %s and not used needs a new one, except for tools that declare idempotency.", safe(before))
}

type checkObject struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings,omitempty"`
	dbObject
	StoreID string `json:"store_id"`
	Events  int64  `json:"events"`
	LastAt  string `json:"last_at,omitempty"`
	Newest  int64  `json:"newest"`
	*fileObject
	*serverObject
	Settings map[string]string `json:"settings"`
	Bytes    int64             `json:"bytes"`
	LogBytes *int64            `json:"log_bytes,omitempty"`
}

// fileObject is what only a SQLite file has, and serverObject what only a database in
// PostgreSQL has.
type fileObject struct {
	Mark   string `json:"mark"`
	SQLite string `json:"sqlite"`
}

type serverObject struct {
	Server     string `json:"server"`
	Database   string `json:"database"`
	SchemaName string `json:"schema_name"`
	Role       string `json:"role"`
	Identity   string `json:"identity"`
}

func checkObjectOf(r place.Report) checkObject {
	o := checkObject{
		OK: r.OK(), Problems: append([]string{}, r.Problems...), Warnings: r.Warnings, dbObject: dbObjectOf(r), StoreID: r.StoreID, Events: r.Events,
		LastAt: stamp(r.LastAt), Newest: r.Newest, Settings: r.Settings, Bytes: r.Bytes,
	}
	if f := r.SQLite; f != nil {
		o.fileObject, o.LogBytes = &fileObject{f.Mark, f.SQLite}, &f.LogBytes
	}
	if s := r.Postgres; s != nil {
		o.serverObject = &serverObject{s.Server, s.Database, s.SchemaName, s.Role, s.Identity}
	}
	return o
}

func (a *app) check(ctx context.Context, p place.Place, _ []string) error {
	if err := p.Absent(); err != nil {
		return err
	}
	r, err := p.Check(ctx)
	if err != nil {
		return err
	}
	a.tellCheck(r)
	if !r.OK() {
		return exitCode(exitFailed)
	}
	return nil
}

func (a *app) tellCheck(r place.Report) {
	if a.json {
		a.emit(checkObjectOf(r))
		return
	}
	if r.OK() {
		a.say("%s is sound.", own(r.Place))
	} else {
		a.say("%s needs attention:", own(r.Place))
	}
	for _, p := range r.Problems {
		a.say("  %s", own(p))
	}
	if len(r.Warnings) > 0 {
		a.say("Worth knowing:")
	}
	for _, w := range r.Warnings {
		a.say("  %s", own(w))
	}
	size := display.Bytes(int(r.Bytes))
	var kind []fact
	if f := r.SQLite; f != nil {
		size += ", log " + display.Bytes(int(f.LogBytes))
		kind = []fact{{"mark", own(f.Mark)}, {"SQLite", own(f.SQLite)}}
	}
	if s := r.Postgres; s != nil {
		kind = []fact{{"identity", own(s.Identity)}, {"PostgreSQL", own(s.Server)}, {"database", own(s.Database)}, {"tables in", own(s.SchemaName)}, {"role", own(s.Role)}}
	}
	p := page{a: a, to: a.out, mask: a.mask}
	p.facts(append([]fact{
		{"store", own(r.StoreID)},
		{"schema", own(fmt.Sprintf("%d (this program knows %d)", r.Schema, r.Newest))},
		{"events", own(fmt.Sprintf("%d", r.Events))},
		{"last", own(stamp(r.LastAt))},
		{"epoch", own(fmt.Sprintf("%d", r.Epoch))},
		{"restored", own(stamp(r.RestoredAt))},
		{"size", own(size)},
	}, kind...))
}
