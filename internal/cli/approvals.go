package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

type approvalsCommand struct {
	*app
	status, after string
	limit         int
}

func newApprovalsCommand(a *app) *cobra.Command {
	l := &approvalsCommand{app: a}
	c := &cobra.Command{
		Use:   "approvals",
		Short: "List approvals, newest first",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return l.run(c) },
	}
	f := c.Flags()
	f.StringVar(&l.status, "status", "pending", "`WORD`: pending, approved, rejected, expired, withdrawn, superseded, consumed or all")
	f.IntVar(&l.limit, "limit", 50, "at most `N`, 1 to 500")
	f.StringVar(&l.after, "after", "", "go on after this `ID`, the last one seen")
	return c
}

func (l *approvalsCommand) query() (decision.Query, error) {
	q := decision.Query{Space: event.MainSpace, Type: decision.Approval, Limit: l.limit}
	if l.limit < 1 || l.limit > 500 {
		return q, use("--limit is from 1 to 500.", "To see more, go on with --after.")
	}
	if l.status == "all" {
		return q, nil
	}
	q.Status = decision.Status(l.status)
	if !slices.Contains(decision.Statuses(), q.Status) {
		return q, use("There is no status "+quote(l.status)+".", "It is "+wordList(decision.Statuses())+" or all.")
	}
	q.Open = q.Status == decision.Pending // what waits for nothing any more is no work
	return q, nil
}

// wordList names words one after the other.
func wordList[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return strings.Join(list, ", ")
}

func (l *approvalsCommand) run(c *cobra.Command) error {
	q, err := l.query()
	if err != nil {
		return err
	}
	st, err := l.read(c.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	if l.after != "" {
		if q.After, err = l.find(c.Context(), st, l.after, id.Approval); err != nil {
			return err
		}
	}
	var list []decision.Shown
	err = txn.View(c.Context(), st, func(tx call.Tx) error {
		list = nil
		ds, err := tx.Decisions(q)
		for _, d := range ds {
			list = append(list, decision.Shown{Decision: d, Overdue: d.Overdue(tx.Now())})
		}
		return err
	})
	if err != nil {
		return err
	}
	l.list(list)
	if len(list) == q.Limit && !l.json {
		l.note("There may be more: add --after %s", own(list[len(list)-1].ID))
	}
	return nil
}

// list prints approvals: JSON Lines for programs, columns for people.
func (a *app) list(ds []decision.Shown) {
	if a.json {
		for _, d := range ds {
			a.emit(a.approvalObject(d.Decision))
		}
		return
	}
	if len(ds) == 0 {
		a.note("None.")
		return
	}
	t := a.table("id", "status", "tool", "asked", "expires")
	for _, d := range ds {
		status := string(d.Status)
		if d.Status == decision.Consumed {
			status += map[decision.Choice]string{decision.ChoiceApprove: " (approved)", decision.ChoiceReject: " (rejected)"}[d.Choice]
		}
		if d.Overdue {
			status += " (overdue)"
		}
		t.row(d.ID, status, d.Tool, stamp(d.CreatedAt), deadline(d.Decision))
	}
	t.print()
}

// deadline is the one that counts: the request's, or the grant's.
func deadline(d decision.Decision) string {
	switch d.Status {
	case decision.Pending:
		return orNever(d.ExpiresAt)
	case decision.Approved:
		return orNever(d.GrantExpiresAt)
	}
	return "-"
}
