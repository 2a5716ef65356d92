package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/store/sqlite"
)

func newDBCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Work on the database file",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		a.dbCommand("migrate", "Bring the schema up to this program's", cobra.NoArgs, a.migrate),
		a.dbCommand("backup FILE", "Write a consistent copy to a new file, while others go on", cobra.ExactArgs(1), a.backup),
		a.dbCommand("restore FILE", "Go back to a backup; what was approved since needs a new yes", cobra.ExactArgs(1), a.restore),
		a.dbCommand("accept-restore", "Accept that the file went back in time without db restore", cobra.NoArgs, a.acceptRestore),
		a.dbCommand("check", "Look through the whole file; change nothing", cobra.NoArgs, a.check),
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
	return a.tellDB(ctx, path, "", "%s has schema %d.")
}

// tellDB says how the database stands after a command. text takes its path and schema.
func (a *app) tellDB(ctx context.Context, path, backup, text string) error {
	r, err := sqlite.Check(ctx, path)
	if err != nil {
		return err
	}
	if !a.json {
		a.say(text, own(r.Path), r.Schema)
		return nil
	}
	o := dbObjectOf(r)
	o.Backup = backup
	a.emit(o)
	return nil
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
	if err := sqlite.Restore(ctx, path, args[0]); err != nil {
		return err
	}
	if err := a.tellDB(ctx, path, args[0], "%s was restored; it has schema %d."); err != nil || a.json {
		return err
	}
	return a.tellNewLife(ctx, path)
}

func (a *app) acceptRestore(ctx context.Context, path string, _ []string) error {
	if err := absent(path); err != nil {
		return err
	}
	if err := sqlite.AcceptRestore(ctx, path); err != nil {
		return err
	}
	if err := a.tellDB(ctx, path, "", "%s is used as it is from now on; it has schema %d."); err != nil || a.json {
		return err
	}
	return a.tellNewLife(ctx, path)
}

func (a *app) tellNewLife(ctx context.Context, path string) error {
	r, err := sqlite.Check(ctx, path)
	if err != nil {
		return err
	}
	a.say("It went back to %s. A yes that was given before then, and not used, needs a new one.", own(stamp(r.RestoredTo)))
	return nil
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
