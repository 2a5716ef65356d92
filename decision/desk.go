package decision

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// The functions of this file take a transaction; engines downstream compose
// them. [Operator] wraps them for people who hold nothing but a store.

// Ask stores a new pending approval and its approval.requested event. The caller
// has locked the owner and writes its part. maxPending bounds the space's pending
// approvals; 0 means no limit, and at the limit the answer is [ErrTooManyPending].
func Ask(tx Tx, d Decision, maxPending int64) error {
	if err := Insert(tx, d, maxPending); err != nil {
		return err
	}
	return tx.Append(d.Owner.Stream(), d.Requested())
}

// Insert is [Ask] without the event, for a caller that writes [Decision.Requested]
// together with the owner's own: the owner's row then takes the stream's head once.
func Insert(tx Tx, d Decision, maxPending int64) error {
	if maxPending > 0 {
		n, err := tx.Pending(d.Space, maxPending)
		if err != nil {
			return err
		}
		if n >= maxPending {
			return ErrTooManyPending.Say("%d approvals are pending; the limit is %d.", n, maxPending).
				Hint("Decide or withdraw some of them, then ask again.")
		}
	}
	return tx.InsertDecision(d)
}

// Requested is the event that tells of the asking.
func (d Decision) Requested() event.Event {
	actor := d.RequestedBy
	if actor == "" {
		actor = event.System
	}
	if d.Type == Question {
		return d.event(event.DecisionRequested, actor, askedPayload{d.ID, d.Prompt, d.Options, d.Form, txn.Stamp(d.ExpiresAt)})
	}
	return d.event(event.ApprovalRequested, actor, requestedPayload{d.ID, d.Kind, d.Reason, d.Digest})
}

// Settle writes a change and what it does to the owner.
func Settle(tx Tx, prev Decision, ch Change, now time.Time) error {
	if err := tx.PutDecision(prev, ch); err != nil {
		return err
	}
	own, err := tx.Owner(prev.Owner)
	if err != nil {
		return err
	}
	return own.Settled(ch.Next, now)
}

// target is the decision that is meant.
type target struct {
	id   string
	of   Type   // empty: any
	root string // the run or job it has to belong to; empty: any
}

// names refuses a decision that is not the one meant, as if it were not there.
func (t target) names(d Decision) error {
	root := d.RunID
	if d.Type == Question {
		root = d.Owner.ID
	}
	if (t.of == "" || d.Type == t.of) && (t.root == "" || t.root == root) {
		return nil
	}
	return t.missing()
}

// missing is the answer about a decision that is not there, or not the one meant.
func (t target) missing() error {
	switch {
	case t.of == Question && t.root != "":
		return ErrNotFound.Say("Job %s has no question %s.", t.root, t.id)
	case t.of == Question:
		return ErrNotFound.Say("There is no question %s.", t.id)
	case t.root != "":
		return ErrNotFound.Say("Run %s has no approval %s.", t.root, t.id)
	}
	return ErrNotFound.Say("There is no approval %s.", t.id)
}

// apply locks, reads the clock, asks the owner, steps and writes: the whole of a
// decision's transaction.
func (o Operator) apply(tx Tx, t target, command func(waiting error) Command) (Change, error) {
	d, err := tx.LockDecision(t.id)
	if errors.Is(err, ErrNotFound) {
		err = t.missing()
	}
	if err != nil {
		return Change{}, err
	}
	now := o.clock(tx) // not before: the wait for the lock may have passed the deadline (case 052)
	if err := t.names(d); err != nil {
		return Change{}, err
	}
	own, err := tx.Owner(d.Owner)
	if err != nil {
		return Change{}, err
	}
	var waiting error
	if d.Status == Pending {
		if waiting = own.Waiting(d); waiting != nil && !errors.Is(waiting, ErrRunState) {
			return Change{}, waiting
		}
	}
	ch, err := d.Step(command(waiting), now)
	if err != nil || ch.Repeated {
		return ch, err
	}
	if err := tx.PutDecision(d, ch); err != nil {
		return Change{}, err
	}
	ch.Next.Version = d.Version + 1 // as it is stored now
	return ch, own.Settled(ch.Next, now)
}

// Operator decides for people: it needs a store and neither agent, tools nor
// policy. The zero Observer and the zero Now (the store's clock) are allowed.
type Operator struct {
	Store    txn.Store
	Observer event.Observer
	Now      func() time.Time // judges deadlines and stamps decisions; nil: the store's clock, on SQLite the wall clock

	// Principal is who was proved to act, Verified that it was proved to
	// somebody other than the store's own user. Adapters set them.
	Principal string
	Verified  bool
	// MayOwn lets the principal decide what it asked for itself, and take back
	// what others asked for: the command line on the store itself has it.
	MayOwn bool

	// MaxEventBytes bounds what an event tells of a question, of an answer to one and of
	// its withdrawal, in bytes of its data as it is stored. What would be more is
	// [ErrTooLarge], and nothing is written. Default: MaxEventBytes.
	MaxEventBytes int
}

// Decide records an answer to one approval; it does not continue what waits.
// The first of these is the answer: [ErrNotFound], [ErrApprovalExpired],
// [ErrNotPending] with the standing decision, [ErrRunState],
// [ErrApprovalChanged], [ErrApprovalExpired] (then it is expired here),
// [ErrSelfDecision]; for a yes [ErrApprovalHash]; for one with edited arguments
// [ErrUsage] where they cannot be edited, and tool.ErrInvalidArguments where they
// do not fit the recorded schema or still have the mask of a secret that was shown.
// An answer that could never be recorded is [ErrUsage] before all of these. On an
// error nothing is decided.
func (o Operator) Decide(ctx context.Context, approvalID string, a Answer) (Decision, error) {
	return o.decide(ctx, "", approvalID, a, false)
}

// Approve says yes to an approval of a run or of the call with that run id.
func (o Operator) Approve(ctx context.Context, runID, approvalID, by, note string) error {
	_, err := o.decide(ctx, runID, approvalID, Answer{Approved: true, By: by, Note: note}, false)
	return err
}

// Reject says no.
func (o Operator) Reject(ctx context.Context, runID, approvalID, by, note string) error {
	_, err := o.decide(ctx, runID, approvalID, Answer{By: by, Note: note}, false)
	return err
}

// ApproveShown says yes to exactly what was shown: the approval whose digest the
// reviewer saw. Any other stored digest is [ErrApprovalChanged], also an empty one.
func (o Operator) ApproveShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	_, err := o.decide(ctx, runID, approvalID, Answer{Approved: true, By: by, Note: note, Shown: shown}, true)
	return err
}

// RejectShown says no to exactly what was shown.
func (o Operator) RejectShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	_, err := o.decide(ctx, runID, approvalID, Answer{By: by, Note: note, Shown: shown}, true)
	return err
}

func (o Operator) decide(ctx context.Context, runID, id string, a Answer, bound bool) (Decision, error) {
	if err := CheckAnswer(a); err != nil {
		return Decision{}, err
	}
	cmd := Decide{Answer: a, Bound: bound, Principal: o.Principal, Verified: o.Verified, MayOwn: o.MayOwn}
	if a.EditedArgs != nil {
		var err error
		if cmd.Checked, cmd.Unfit, err = o.tryEdit(ctx, id, a.EditedArgs); err != nil {
			return Decision{}, err
		}
	}
	return o.run(ctx, target{id, Approval, runID}, func(waiting error) Command {
		cmd.Waiting = waiting
		return cmd
	})
}

// Withdraw takes a pending request of a call back: the call is cancelled. A proved
// principal takes back only what it asked for, else [ErrForbidden].
func (o Operator) Withdraw(ctx context.Context, approvalID, by, note string) (Decision, error) {
	if err := CheckAnswer(Answer{By: by, Note: note}); err != nil {
		return Decision{}, err
	}
	return o.run(ctx, target{id: approvalID, of: Approval}, func(waiting error) Command {
		return Withdraw{By: by, Principal: o.Principal, Note: note, MayOwn: o.MayOwn, Waiting: waiting}
	})
}

// Cancel ends a run that has not ended: [ErrRunState] if it has, [ErrNotFound] if
// there is none.
func (o Operator) Cancel(ctx context.Context, runID, by, note string) error {
	if err := CheckAnswer(Answer{By: by, Note: note}); err != nil {
		return err
	}
	return event.Update(ctx, o.Store, o.Observer, func(tx Tx) error {
		own, err := tx.Owner(Ref{Kind: OwnerRun, ID: runID})
		if err != nil {
			return err
		}
		return own.Cancel(by, note, func() time.Time { return o.clock(tx) })
	})
}

// run applies a command, which is made of what the owner said.
func (o Operator) run(ctx context.Context, t target, command func(waiting error) Command) (Decision, error) {
	var ch Change
	err := event.Update(ctx, o.Store, o.Observer, func(tx Tx) (err error) {
		ch, err = o.apply(tx, t, command)
		return err
	})
	if err != nil {
		return Decision{}, err
	}
	return ch.Next, ch.Refuse
}

// clock is read inside the transaction, once the lock is held (design §4, rule 8).
func (o Operator) clock(tx txn.Tx) time.Time {
	return txn.Clock(o.Now, tx)
}

// tryEdit holds edited arguments against the schema in the recorded request,
// outside the transaction: a schema is foreign code. The transaction takes what was
// found only for the digest it was found with, and has the right words for
// everything else that may be wrong.
func (o Operator) tryEdit(ctx context.Context, id string, args []byte) (checked string, unfit, err error) {
	var d Decision
	err = txn.View(ctx, o.Store, func(tx Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	if err != nil || d.Status != Pending || d.mayEdit() != nil {
		return d.Digest, nil, err
	}
	return d.Digest, CheckEditedArgs(d, args), nil
}

// CheckAnswer refuses names and notes that cannot be recorded as given:
// [ErrUsage]. by has 1 to 200 characters, a note at most 10,000; both are valid
// UTF-8 without NUL. Only a yes has edited arguments.
func CheckAnswer(a Answer) error {
	if a.By == "" {
		return ErrUsage.Say("Who decides has to be named.").Hint("Give a name, for example --by ana.")
	}
	if !a.Approved && a.EditedArgs != nil {
		return ErrUsage.Say("A rejection has no edited arguments.").Hint("Approve with them, or reject without.")
	}
	if err := checkText("by", a.By, MaxBy); err != nil {
		return err
	}
	return checkText("note", a.Note, MaxNote)
}

func checkText(name, s string, limit int) error {
	if !utf8.ValidString(s) {
		return ErrUsage.Say("The %s is not valid UTF-8.", name).Hint(txn.TextHint)
	}
	for _, r := range s {
		if r == 0 {
			return ErrUsage.Say("The %s has a NUL character.", name).Hint(txn.TextHint)
		}
	}
	if n := utf8.RuneCountInString(s); n > limit {
		return ErrUsage.Say("The %s has %d characters; the limit is %d.", name, n, limit)
	}
	return nil
}
