package decision

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// The functions below are the Operator's methods for callers with a store and
// the clock of the store. observer may be nil.

// Approve is [Operator.Approve].
func Approve(ctx context.Context, s txn.Store, observer event.Observer, runID, approvalID, by, note string) error {
	return Operator{Store: s, Observer: observer}.Approve(ctx, runID, approvalID, by, note)
}

// Reject is [Operator.Reject].
func Reject(ctx context.Context, s txn.Store, observer event.Observer, runID, approvalID, by, note string) error {
	return Operator{Store: s, Observer: observer}.Reject(ctx, runID, approvalID, by, note)
}

// ApproveShown is [Operator.ApproveShown].
func ApproveShown(ctx context.Context, s txn.Store, observer event.Observer, runID, approvalID, shown, by, note string) error {
	return Operator{Store: s, Observer: observer}.ApproveShown(ctx, runID, approvalID, shown, by, note)
}

// RejectShown is [Operator.RejectShown].
func RejectShown(ctx context.Context, s txn.Store, observer event.Observer, runID, approvalID, shown, by, note string) error {
	return Operator{Store: s, Observer: observer}.RejectShown(ctx, runID, approvalID, shown, by, note)
}

// Cancel is [Operator.Cancel].
func Cancel(ctx context.Context, s txn.Store, observer event.Observer, runID, by, note string) error {
	return Operator{Store: s, Observer: observer}.Cancel(ctx, runID, by, note)
}

// Shown is an approval as a front end shows it.
type Shown struct {
	Decision
	Overdue bool // its deadline has passed, although nobody has expired it yet
}

// Approver is what a chat bot, page or terminal is written against: every
// deciding call names one decision and the digest that was shown. [Operator]
// satisfies it, and so does the HTTP client, with the same errors. runID may be
// empty: then any run or call is meant.
type Approver interface {
	Pending(ctx context.Context, limit int) ([]Shown, error)
	Show(ctx context.Context, approvalID string) (Shown, error)
	ApproveShown(ctx context.Context, runID, approvalID, shown, by, note string) error
	RejectShown(ctx context.Context, runID, approvalID, shown, by, note string) error
	Cancel(ctx context.Context, runID, by, note string) error
}

var _ Approver = Operator{}

// Pending lists open pending approvals of the main space, newest first, with the
// policy's reason and whether each is overdue. limit is 1 to 500; 0 means 50.
func (o Operator) Pending(ctx context.Context, limit int) ([]Shown, error) {
	var list []Shown
	err := txn.View(ctx, o.Store, func(tx Tx) error {
		list = nil
		ds, err := tx.Decisions(Query{Space: event.MainSpace, Type: Approval, Status: Pending, Open: true, Limit: limit})
		for _, d := range ds {
			list = append(list, o.shown(tx, d))
		}
		return err
	})
	return list, err
}

// Show reads one approval: [ErrNotFound] if there is none.
func (o Operator) Show(ctx context.Context, approvalID string) (Shown, error) {
	var s Shown
	err := txn.View(ctx, o.Store, func(tx Tx) error {
		d, err := tx.Decision(approvalID)
		if err == nil {
			err = target{id: approvalID, of: Approval}.names(d)
		}
		s = o.shown(tx, d)
		return err
	})
	return s, err
}

func (o Operator) shown(tx Tx, d Decision) Shown {
	d.Reason = cut(d.Reason)
	return Shown{Decision: d, Overdue: d.Overdue(o.clock(tx))}
}

// ApprovalReason is the reason the policy gave for asking, from the
// approval.requested event, cut at [MaxPageText] with a marker. It stays so
// after a later ruling. Empty: there is no such event, or it was redacted.
// [ErrNotFound]: the run has no such approval. The text may be a model's.
func ApprovalReason(ctx context.Context, s txn.Store, runID, approvalID string) (string, error) {
	var reason string
	err := txn.View(ctx, s, func(tx Tx) error {
		reason = ""
		d, err := tx.Decision(approvalID)
		if err != nil {
			return err
		}
		if err := (target{approvalID, Approval, runID}).names(d); err != nil {
			return err
		}
		es, err := tx.Events(event.Query{
			Stream: d.Owner.Stream(), Types: []event.Type{event.ApprovalRequested}, Subject: d.ID, Limit: 1,
		})
		if err != nil || len(es) == 0 || es[0].Redacted {
			return err
		}
		var p requestedPayload
		if err := json.Unmarshal(es[0].Payload, &p); err != nil {
			return err
		}
		reason = cut(p.Reason)
		return nil
	})
	return reason, err
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= MaxPageText {
		return s
	}
	return string([]rune(s)[:MaxPageText]) + " [cut]"
}
