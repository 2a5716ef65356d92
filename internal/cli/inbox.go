package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func newInboxCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for a person, what expires soonest first",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := a.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			list, err := waiting(c.Context(), st)
			if err != nil {
				return err
			}
			a.list(list)
			return a.noteQuestions(c.Context(), st)
		},
	}
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

// waiting is every pending approval, in the order of their deadlines; those
// without one come last, oldest first.
func waiting(ctx context.Context, st *store.Store) ([]decision.Shown, error) {
	var all []decision.Shown
	after := ""
	for {
		n := 0
		var page []decision.Shown
		err := txn.View(ctx, st, func(tx call.Tx) error {
			page = nil
			ds, err := tx.Decisions(decision.Query{
				Space: event.MainSpace, Type: decision.Approval, Status: decision.Pending, Open: true, After: after, Limit: 500,
			})
			n = len(ds)
			for _, d := range ds {
				page = append(page, decision.Shown{Decision: d, Overdue: d.Overdue(tx.Now())})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if n < 500 {
			break
		}
		after = page[n-1].ID
	}
	slices.SortStableFunc(all, func(a, b decision.Shown) int {
		switch {
		case a.ExpiresAt.IsZero() != b.ExpiresAt.IsZero():
			return cmp.Compare(b.ExpiresAt.UnixMicro(), a.ExpiresAt.UnixMicro()) // the zero time is the last
		case !a.ExpiresAt.Equal(b.ExpiresAt):
			return a.ExpiresAt.Compare(b.ExpiresAt)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return all, nil
}
