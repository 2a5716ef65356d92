package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func newInboxCommand(a *app) *cobra.Command {
	var list bool
	var by string
	c := &cobra.Command{
		Use:   "inbox",
		Short: "Look at what waits for a person and decide it, what expires soonest first",
		Long: `At a terminal this opens the inbox: what waits, each thing with exactly what would run,
and what became of it, live. Nothing is decided by a single key: a yes or a no is a word
that is typed, and it is bound to the digest of what was shown. ? lists the keys.

Elsewhere, with --list and with --json it prints the list of approvals that wait.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, out := a.wholeTerminal()
			if list || in == nil {
				return a.listInbox(c.Context())
			}
			if !c.Flags().Changed("by") {
				by = osUser()
			}
			return a.openInbox(c.Context(), in, out, by)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "print the list, also at a terminal")
	c.Flags().StringVar(&by, "by", "", "`NAME` to record with answers (default: the OS user)")
	return c
}

func (a *app) listInbox(ctx context.Context) error {
	st, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	list, err := waiting(ctx, st)
	if err != nil {
		return err
	}
	a.list(list)
	return a.noteQuestions(ctx, st)
}

// noteQuestions says that jobs ask something too.
func (a *app) noteQuestions(ctx context.Context, st *store.Store) error {
	if a.json {
		return nil
	}
	var ds []decision.Decision
	err := txn.View(ctx, st, func(tx decision.Tx) (err error) {
		ds, err = tx.Decisions(decision.Query{Space: event.MainSpace, Type: decision.Question, Status: decision.Pending, Open: true, Limit: listed})
		return err
	})
	if len(ds) > 0 {
		a.note("Jobs ask too, %s: %s", own(upTo(len(ds), "question")), own(a.withGlobals("decisions")))
	}
	return err
}

// waiting is every pending approval, in the order of the queue.
func waiting(ctx context.Context, st *store.Store) ([]decision.Shown, error) {
	var all []decision.Shown
	q := decision.Queued{Space: event.MainSpace, Type: decision.Approval, Limit: 500}
	for {
		var page []decision.Shown
		var end decision.QueuePlace
		err := txn.View(ctx, st, func(tx decision.Tx) error {
			page = nil
			p, err := tx.Queue(q)
			for _, d := range p.Decisions {
				page = append(page, decision.Shown{Decision: d, Overdue: d.Overdue(tx.Now())})
			}
			end = p.End
			return err
		})
		if err != nil {
			return nil, err
		}
		if all, q.After = append(all, page...), end; end.IsZero() {
			return all, nil
		}
	}
}
