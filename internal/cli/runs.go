package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

type runsCommand struct {
	*app
	status, after string
	limit         int
}

func newRunsCommand(a *app) *cobra.Command {
	l := &runsCommand{app: a}
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return l.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&l.status, "status", "all", "`WORD`: running, waiting_for_approval, completed, failed, cancelled or all")
	f.IntVar(&l.limit, "limit", 50, "at most `N`, 1 to 500")
	f.StringVar(&l.after, "after", "", "go on after this `ID`, the last one seen")
	return c
}

func (l *runsCommand) query() (run.Query, error) {
	q := run.Query{Space: event.MainSpace, Limit: l.limit}
	if l.limit < 1 || l.limit > 500 {
		return q, use("--limit is from 1 to 500.", "To see more, go on with --after.")
	}
	if l.status == "all" {
		return q, nil
	}
	q.Status = run.Status(strings.ToUpper(l.status))
	if !slices.Contains(run.Statuses(), q.Status) {
		return q, use("There is no status "+quote(l.status)+".", "It is "+strings.ToLower(wordList(run.Statuses()))+" or all.")
	}
	return q, nil
}

func (l *runsCommand) run(ctx context.Context) error {
	q, err := l.query()
	if err != nil {
		return err
	}
	st, err := l.read(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	if l.after != "" {
		if q.After, err = l.find(ctx, st, l.after, id.Run); err != nil {
			return err
		}
	}
	list, err := readRuns(ctx, st, q)
	if err != nil {
		return err
	}
	l.listRuns(list)
	if len(list) == q.Limit && !l.json {
		l.note("There may be more: add --after %s", own(list[len(list)-1].ID))
	}
	return nil
}

// lastSteps is how many steps of a run a list looks at, for the secrets in them: what
// a list shows besides the goal is what they came to.
const lastSteps = 100

func readRuns(ctx context.Context, st *store.Store, q run.Query) (list []wholeRun, err error) {
	err = txn.View(ctx, st, func(tx run.Tx) error {
		list = nil
		rs, err := tx.Runs(q)
		for _, r := range rs {
			w := wholeRun{Run: r, now: tx.Now()}
			if w.steps, err = tx.Steps(r.ID, max(0, r.StepCount-lastSteps), lastSteps); err != nil {
				return err
			}
			list = append(list, w)
		}
		return err
	})
	return list, err
}

// listRuns prints runs: JSON Lines for programs, columns for people.
func (a *app) listRuns(rs []wholeRun) {
	conf := a.known()
	if a.json {
		for _, r := range rs {
			a.emit(maskedRun(r.Object(r.now), a.runMask(conf, r.steps, nil)))
		}
		return
	}
	if len(rs) == 0 {
		a.note("None.")
		return
	}
	t := a.table("id", "status", "steps", "started", "last", "goal")
	for _, r := range rs {
		status := string(r.Status)
		if r.Reason != "" {
			status += " (" + string(r.Reason) + ")"
		}
		t.row(r.ID, status, fmt.Sprint(r.StepCount), stamp(r.CreatedAt), r.Current.Tool, a.runMask(conf, r.steps, nil).Text(r.Goal))
	}
	t.print()
}
