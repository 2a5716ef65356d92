package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// AskedAt is a question that was asked, and the place in its owner's stream from
// which to wait for the answer.
type AskedAt struct {
	Decision
	Cursor event.Cursor
}

// Ask asks a question for a job (spec 3.2). Nothing is stored on an error: [ErrUsage]
// and [ErrTooLarge] for what cannot be asked, [ErrNotFound] without such a job,
// [ErrRunState] for one that has ended, [ErrTooManyPending] at its limits,
// [ErrKeyConflict] where the idempotency key stands for another question.
func (o Operator) Ask(ctx context.Context, space, jobID string, q Asking) (AskedAt, error) {
	q, err := q.Checked()
	if err != nil {
		return AskedAt{}, err
	}
	var got AskedAt
	err = event.Update(ctx, o.Store, o.Observer, func(tx Tx) (err error) {
		got, err = o.ask(tx, space, Ref{OwnerJob, jobID}, q)
		return err
	})
	return got, err
}

func (o Operator) ask(tx Tx, space string, owner Ref, q Asking) (AskedAt, error) {
	own, err := tx.Owner(owner)
	if err != nil {
		return AskedAt{}, err
	}
	asker, ok := own.(Asker)
	if !ok {
		return AskedAt{}, ErrUsage.Say("A %s asks no questions.", owner.Kind)
	}
	if err := asker.MayAsk(space); err != nil {
		return AskedAt{}, err
	}
	if q.IdempotencyKey != "" {
		d, err := tx.DecisionByKey(owner, q.IdempotencyKey)
		if err == nil {
			return asked(tx, d, q)
		}
		if !errors.Is(err, ErrNotFound) {
			return AskedAt{}, err
		}
	}
	now := o.clock(tx)
	n, err := asker.Asking(now)
	if err != nil {
		return AskedAt{}, err
	}
	d, err := q.Asked(id.New(id.Question), space, owner, n, now, tx.Epoch())
	if err != nil {
		return AskedAt{}, err
	}
	told := d.Requested()
	if err := fits(told, o.MaxEventBytes); err != nil {
		return AskedAt{}, err
	}
	if err := tx.InsertDecision(d, told); err != nil {
		return AskedAt{}, err
	}
	d.Version = 1 // as it is stored now
	return asked(tx, d, q)
}

// asked is d with the cursor behind its own event. An earlier question under the same
// key is answered with that one.
func asked(tx Tx, d Decision, q Asking) (AskedAt, error) {
	if !d.sameQuestion(q) {
		return AskedAt{}, ErrKeyConflict.Say("The idempotency key %q was used for another question, %s.", q.IdempotencyKey, d.ID).
			Hint("Use a new key for a new question.")
	}
	es, err := tx.Events(event.Query{Stream: d.Owner.Stream(), Types: []event.Type{event.DecisionRequested}, Subject: d.ID, Limit: 1})
	if err != nil || len(es) == 0 {
		return AskedAt{Decision: d}, err
	}
	return AskedAt{d, event.CursorOf(es[0])}, nil
}

// Answering is an answer to a question.
type Answering struct {
	Choice string // exactly one of the options; another Unicode form of it is another text
	// Input is what the form asks for, JSON. Nil, null and {} are the same: nothing is
	// filled in. With a form that is held against it, and kept, as {}; without a form it
	// is the only input there can be, and none is kept.
	Input []byte
	By    string // recorded as given; not empty
	Note  string
	Shown string // digest of the question that was shown; empty: not bound to a showing
}

// Resolve answers a question of a job; jobID may be empty, then any job's is meant.
// The same answer again is fine and changes nothing. On an error nothing is decided:
// [ErrNotFound], [ErrChoiceConflict] with the standing answer, [ErrWithdrawn],
// [ErrExpired] (past its deadline it is expired here), [ErrSelfDecision],
// [ErrNotOffered], tool.ErrInvalidArguments for an input that does not fit the form,
// [ErrTooLarge]; of an answer that is bound to a showing [ErrApprovalChanged] where that
// showed another question, and [ErrApprovalHash] where the stored one was altered.
func (o Operator) Resolve(ctx context.Context, jobID, decisionID string, a Answering) (Decision, error) {
	if err := CheckAnswer(Answer{By: a.By, Note: a.Note}); err != nil {
		return Decision{}, err
	}
	if err := checkText("choice", a.Choice, MaxOption); err != nil {
		return Decision{}, err
	}
	cmd := Resolve{
		Choice: Choice(a.Choice), Input: a.Input, By: a.By, Note: a.Note, Shown: a.Shown, MaxEventBytes: o.MaxEventBytes,
		Principal: o.Principal, Verified: o.Verified, MayOwn: o.MayOwn,
	}
	var err error
	if cmd.Checked, cmd.Unfit, err = o.tryInput(ctx, decisionID, a.Input); err != nil {
		return Decision{}, err
	}
	return o.run(ctx, target{decisionID, Question, jobID}, func(waiting error) Command {
		cmd.Waiting = waiting
		return cmd
	})
}

// tryInput holds an input against the recorded form outside the transaction: a schema
// is foreign code.
func (o Operator) tryInput(ctx context.Context, id string, input []byte) (checked string, unfit, err error) {
	if input != nil {
		if err := canon.Valid(input); err != nil {
			return "", nil, ErrUsage.Say("The input is not one JSON value.").Because(err)
		}
	}
	var d Decision
	err = txn.View(ctx, o.Store, func(tx Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	if err != nil || d.Status != Pending || d.Form == nil {
		return d.Digest, nil, err
	}
	s, err := tool.CompileSchema(d.Form)
	if err != nil {
		return d.Digest, ErrUsage.Say("The form of question %s cannot be used as stored.", id).Because(err), nil
	}
	return d.Digest, s.CheckInput(d.filledIn(input)), nil
}

// WithdrawQuestion takes a pending question back; the note is kept with it. Once more
// is fine and changes nothing. On an error nothing is changed: [ErrNotFound],
// [ErrExpired], [ErrNotPending] where it is answered, [ErrForbidden] where another
// principal asked it, [ErrTooLarge].
func (o Operator) WithdrawQuestion(ctx context.Context, jobID, decisionID, by, note string) (Decision, error) {
	if err := CheckAnswer(Answer{By: by, Note: note}); err != nil {
		return Decision{}, err
	}
	return o.run(ctx, target{decisionID, Question, jobID}, func(waiting error) Command {
		return Withdraw{By: by, Principal: o.Principal, Note: note, MayOwn: o.MayOwn, Waiting: waiting, MaxEventBytes: o.MaxEventBytes}
	})
}

// CloseQuestions withdraws what is still pending of an owner that ends, in the
// transaction that ends it.
func CloseQuestions(tx Tx, space string, owner Ref) error {
	for {
		ds, err := tx.Decisions(Query{Space: space, Type: Question, Status: Pending, JobID: owner.ID, Limit: MaxPendingOfJob})
		if err != nil || len(ds) == 0 {
			return err
		}
		for _, d := range ds {
			ch, err := d.Step(Withdraw{By: event.System, Note: "The job has ended.", MayOwn: true, ByRuntime: true}, tx.Now())
			if err != nil {
				return err
			}
			if err := tx.PutDecision(d, ch); err != nil {
				return err
			}
		}
	}
}

// questionDigest is over what people are shown of a question.
func (d Decision) questionDigest() (string, error) {
	b, err := json.Marshal(struct {
		Prompt  string          `json:"prompt"`
		Options []string        `json:"options"`
		Form    json.RawMessage `json:"form,omitempty"`
	}{d.Prompt, d.Options, d.Form})
	if err != nil {
		return "", fmt.Errorf("encode the question: %w", err)
	}
	return canon.Digest("placet/question/v1", b)
}
