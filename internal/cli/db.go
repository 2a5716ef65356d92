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
	"github.com/placet-dev/placet/store/sqlite"
)

func newDBCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Work on the database file",
		Args:  subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		a.dbCommand("migrate", "Bring the schema up to this program's", noArgs, a.migrate),
		a.dbCommand("backup FILE", "Write a consistent copy to a new file, while others go on", oneArg("FILE", ""), a.backup),
		a.dbCommand("restore FILE", "Replace the database by a backup; yeses in it that were not used need a new one", oneArg("FILE", ""), a.restore),
		a.dbCommand("accept-restore", "Accept that the file went back in time without db restore", noArgs, a.acceptRestore),
		a.dbCommand("check", "Look through the whole file; change nothing", noArgs, a.check),
	)
	return c
}

func (a *app) dbCommand(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, path string, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		path, err := a.dbPath()
		if err != nil {
			return err
		}
		return do(c.Context(), path, args)
	}}
}

// dbObject is what the commands that change a database answer with.
type dbObject struct {
	Path       string `json:"path"`
	Schema     int64  `json:"schema"`
	Epoch      int64  `json:"epoch"`
	RestoredAt string `json:"restored_at,omitempty"`
	RestoredTo string `json:"restored_to,omitempty"`
	Backup     string `json:"backup,omitempty"`
	Kept       string `json:"kept,omitempty"` // copy of what a restore replaced
}

func dbObjectOf(r sqlite.Report) dbObject {
	return dbObject{Path: r.Path, Schema: r.Schema, Epoch: r.Epoch, RestoredAt: stamp(r.RestoredAt), RestoredTo: stamp(r.RestoredTo)}
}

func (a *app) migrate(ctx context.Context, path string, _ []string) error {
	st, err := a.create(ctx)
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	_, err = a.tellDB(ctx, path, "%s has schema %d.")
	return err
}

// tellDB says how the database stands after a command. text takes its path and schema.
func (a *app) tellDB(ctx context.Context, path, text string) (sqlite.Report, error) {
	r, err := sqlite.Check(ctx, path)
	switch {
	case err != nil:
	case a.json:
		a.emit(dbObjectOf(r))
	default:
		a.say(text, own(r.Path), r.Schema)
	}
	return r, err
}

func (a *app) backup(ctx context.Context, path string, args []string) error {
	if err := absent(path); err != nil {
		return err
	}
	if err := sqlite.Backup(ctx, path, args[0]); err != nil {
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
		}{path, args[0], fi.Size()})
		return nil
	}
	a.say("Wrote %s (%s).", own(args[0]), safe(display.Bytes(int(fi.Size()))))
	return nil
}

func (a *app) restore(ctx context.Context, path string, args []string) error {
	kept, err := a.keep(ctx, path)
	if err != nil {
		return err
	}
	if err := sqlite.Restore(ctx, path, args[0]); err != nil {
		kept.dropUnused(ctx)
		return err
	}
	r, err := sqlite.Check(ctx, path)
	if err != nil {
		return err
	}
	if a.json {
		o := dbObjectOf(r)
		o.Backup, o.Kept = args[0], kept.copy
		a.emit(o)
		return nil
	}
	a.say("%s was restored; it has schema %d.", own(r.Path), r.Schema)
	a.say("Tokens that were revoked since the backup are good again: look through placet token list. What was asked before it may have been done since: each yes to it is asked about once more.")
	if kept.copy != "" {
		a.say("What it was before is kept in %s.", own(kept.copy))
	}
	a.tellNewLife(r)
	return nil
}

// kept is a copy of a database that is about to be replaced.
type kept struct {
	path, copy string // copy is empty where there was nothing to keep
	was        sqlite.Report
}

// keep copies the database beside it, so that restoring the wrong backup can be
// undone. What is damaged already is no reason not to restore.
func (a *app) keep(ctx context.Context, path string) (kept, error) {
	k := kept{path: path}
	if absent(path) != nil {
		return k, nil
	}
	var unsound error
	k.was, unsound = sqlite.Check(ctx, path)
	dest := ""
	for n := 1; dest == ""; n++ {
		name := fmt.Sprintf("%s.before-restore-%d", path, n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			dest = name
		} else if err != nil {
			return k, fault.New(fault.Invalid, "%s cannot be looked at.", name).Because(err)
		}
	}
	switch err := sqlite.Backup(ctx, path, dest); {
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
	now, err := sqlite.Check(context.WithoutCancel(ctx), k.path)
	if k.copy != "" && err == nil && now.StoreID == k.was.StoreID && now.Epoch == k.was.Epoch {
		_ = os.Remove(k.copy) // one that stays is only in the way
	}
}

func (a *app) acceptRestore(ctx context.Context, path string, _ []string) error {
	if err := absent(path); err != nil {
		return err
	}
	if err := sqlite.AcceptRestore(ctx, path); err != nil {
		return err
	}
	r, err := a.tellDB(ctx, path, "%s is used as it is from now on; it has schema %d.")
	if err == nil && !a.json {
		a.tellNewLife(r)
	}
	return err
}

func (a *app) tellNewLife(r sqlite.Report) {
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
	dbObject
	StoreID  string            `json:"store_id"`
	Events   int64             `json:"events"`
	LastAt   string            `json:"last_at,omitempty"`
	Newest   int64             `json:"newest"`
	Mark     string            `json:"mark"`
	SQLite   string            `json:"sqlite"`
	Settings map[string]string `json:"settings"`
	Bytes    int64             `json:"bytes"`
	LogBytes int64             `json:"log_bytes"`
}

func (a *app) check(ctx context.Context, path string, _ []string) error {
	if err := absent(path); err != nil {
		return err
	}
	r, err := sqlite.Check(ctx, path)
	if err != nil {
		return err
	}
	a.tellCheck(r)
	if !r.OK() {
		return exitCode(exitFailed)
	}
	return nil
}

func (a *app) tellCheck(r sqlite.Report) {
	if a.json {
		a.emit(checkObject{
			OK: r.OK(), Problems: append([]string{}, r.Problems...), dbObject: dbObjectOf(r), StoreID: r.StoreID, Events: r.Events, LastAt: stamp(r.LastAt),
			Newest: r.Newest, Mark: r.Mark, SQLite: r.SQLite, Settings: r.Settings, Bytes: r.Bytes, LogBytes: r.LogBytes,
		})
		return
	}
	if r.OK() {
		a.say("%s is sound.", own(r.Path))
	} else {
		a.say("%s needs attention:", own(r.Path))
	}
	for _, p := range r.Problems {
		a.say("  %s", own(p))
	}
	p := page{a: a, to: a.out, mask: a.mask}
	p.facts([]fact{
		{"store", own(r.StoreID)},
		{"schema", own(fmt.Sprintf("%d (this program knows %d)", r.Schema, r.Newest))},
		{"events", own(fmt.Sprintf("%d", r.Events))},
		{"last", own(stamp(r.LastAt))},
		{"epoch", own(fmt.Sprintf("%d", r.Epoch))},
		{"restored", own(stamp(r.RestoredAt))},
		{"mark", own(r.Mark)},
		{"size", own(display.Bytes(int(r.Bytes)) + ", log " + display.Bytes(int(r.LogBytes)))},
		{"SQLite", own(r.SQLite)},
	})
}
