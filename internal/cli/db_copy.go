package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/daemon"
	"github.com/placet-dev/placet/internal/dbcopy"
	"github.com/placet-dev/placet/internal/place"
)

func newDBCopyCommand(a *app) *cobra.Command {
	var yes, retire bool
	c := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a whole store to another place, such as from SQLite to PostgreSQL",
		Long: `Copies everything in the store FROM to the place TO, which has no store yet. Each is
the path of a SQLite file or the URL of a PostgreSQL database; --db and PLACET_DB play no
part. No daemon may serve either. Every table is compared by a digest, and every chain of
events verified, before there is anything at TO; until then TO is as it was.

FROM stays as it is: use it no more, since what waits in both could be decided in both.
With --retire it can only be read from then on. A yes that was given and not used needs
a new one in the copy, and so does what waits now, except for tools that declare
idempotency.`,
		Example: `  placet db copy ~/.placet/placet.db postgres://placet@db.internal/placet
  placet db copy --retire --yes old.db new.db`,
		Args: twoArgs("FROM", "TO"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.copyStore(c.Context(), args[0], args[1], yes, retire)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "copy without asking; needed where nobody can be asked")
	c.Flags().BoolVar(&retire, "retire", false, "end the use of FROM for good: once the copy is there, FROM can only be read")
	return c
}

func (a *app) copyStore(ctx context.Context, from, to string, yes, retire bool) error {
	source, dest, err := copyEnds(from, to)
	if err != nil {
		return err
	}
	for _, p := range []place.Place{source, dest} {
		giveBack, err := daemon.Hold(p)
		if err != nil {
			return err
		}
		defer giveBack()
	}
	if err := a.agreeToCopy(ctx, source, dest, yes, retire); err != nil {
		return err
	}
	res, err := dbcopy.Copy(ctx, from, to, dbcopy.Options{Progress: a.copying(), Retire: retire})
	if err != nil {
		return err
	}
	a.tellCopied(source, dest, res)
	return nil
}

// copyEnds reads both names, and refuses what cannot be copied before anything is touched.
func copyEnds(from, to string) (source, dest place.Place, err error) {
	if from == "" || to == "" {
		return source, dest, use("FROM and TO cannot be empty.", "Give the path of a SQLite file or the URL of a PostgreSQL database for each.")
	}
	if source, err = place.Named(from); err != nil {
		return source, dest, err
	}
	if dest, err = place.Named(to); err != nil {
		return source, dest, err
	}
	if source.Same(dest) {
		return source, dest, fault.New(fault.Conflict, "FROM and TO are one store, %s. Nothing was copied.", source).Hint("Give another place to copy it to.")
	}
	return source, dest, source.Absent()
}

// agreeToCopy asks whoever is at the terminal, unless --yes was given.
func (a *app) agreeToCopy(ctx context.Context, source, dest place.Place, yes, retire bool) error {
	if yes {
		return nil
	}
	who := a.person()
	if who == nil || a.json {
		return use("Copying a store needs a yes, and there is nobody to ask.", "Add --yes.")
	}
	p := page{a: a, to: who.show, mask: a.mask}
	p.facts([]fact{{"from", own(source.String())}, {"to", own(dest.String())}})
	p.say("What was approved and not used needs a new yes in the copy. From then on, only the copy is to be used.")
	if retire {
		p.say("The first is retired: it can only be read then.")
	}
	answer, err := who.put(ctx, "Copy it?")
	if err != nil {
		return errNotCopied
	}
	select {
	case line := <-answer:
		if isYes(line) {
			return nil
		}
	case <-ctx.Done():
		p.say("")
	}
	return errNotCopied
}

var errNotCopied = fault.New(fault.Invalid, "Nothing was copied.")

// copying tells people which table is under way.
func (a *app) copying() func(table string, rows int64) {
	if a.json {
		return nil
	}
	last := ""
	return func(table string, _ int64) {
		if table != last {
			a.note("Copying %s …", own(table))
		}
		last = table
	}
}

// copiedObject is what db copy answers programs with.
type copiedObject struct {
	From     string         `json:"from"`
	To       string         `json:"to"`
	StoreID  string         `json:"store_id"`
	Epoch    int64          `json:"epoch"`
	Rows     int64          `json:"rows"`
	Streams  int            `json:"streams"`
	OpenJobs int64          `json:"open_jobs"`
	Retired  bool           `json:"retired"`
	Tables   []dbcopy.Table `json:"tables"`
}

func (a *app) tellCopied(source, dest place.Place, res dbcopy.Result) {
	if a.json {
		a.emit(copiedObject{
			From: source.String(), To: dest.String(), StoreID: res.StoreID, Epoch: res.Epoch, Rows: res.Rows(), Streams: res.Streams,
			OpenJobs: res.Jobs, Retired: res.Retired, Tables: append([]dbcopy.Table{}, res.Tables...),
		})
		return
	}
	for _, t := range res.Tables {
		a.say("  %-20s %d", own(t.Name), t.Rows)
	}
	a.say("%s was copied to %s: %s, epoch %d. Every table is equal, and %s verified.", own(source.String()), own(dest.String()),
		count(int(res.Rows()), "row", "rows"), res.Epoch, count(res.Streams, "chain of events was", "chains of events were"))
	a.say("Use the copy from now on, with --db or PLACET_DB, and start the daemons with it.")
	if res.Retired {
		a.say("%s is retired: it can only be read.", own(source.String()))
	} else {
		a.say("Put %s away: what waits in both could be decided in both. (--retire does that.)", own(source.String()))
	}
	if res.Jobs > 0 {
		a.say("%s not ended. What jobs work with stays where it is on this machine, and the copy's daemon looks after jobs of its own home only.",
			count(int(res.Jobs), "job has", "jobs have"))
	}
}
