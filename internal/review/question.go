package review

import (
	"context"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// Question is a question with the job that asks it, as it stood at one moment.
type Question struct {
	decision.Decision
	At      time.Time
	Seen    event.Cursor // the end of its job's stream
	Altered error        // the stored record does not match its digest; nil: it does
	Moot    error        // why an answer would change nothing although it is pending; nil: it waits
	Overdue bool
	Mask    *display.Mask
	Job     job.Job
	History []Entry
}

// ReadQuestion reads a question of the space: [decision.ErrNotFound] where there is none.
func ReadQuestion(ctx context.Context, s txn.Store, space, id string) (q Question, err error) {
	err = txn.View(ctx, s, func(tx Tx) error {
		q = Question{}
		d, err := tx.Decision(id)
		if err == nil && (d.Type != decision.Question || d.Space != space) {
			err = decision.ErrNotFound.Say("There is no question %s.", id)
		}
		if err != nil {
			return err
		}
		q = Question{Decision: d, At: tx.Now(), Overdue: d.Overdue(tx.Now())}
		return q.read(tx)
	})
	if err == nil {
		q.Mask, q.Altered = Mask(q.Decision), q.Intact()
		hide(q.History, q.Mask)
	}
	return q, err
}

func (q *Question) read(tx Tx) error {
	h, err := tx.Head(q.Owner.Stream())
	if err != nil {
		return err
	}
	q.Seen = event.CursorAt(h)
	if q.Job, err = tx.Job(q.Owner.ID); err != nil {
		return err
	}
	owner, err := tx.Owner(q.Owner)
	if err != nil {
		return err
	}
	if q.Status == decision.Pending {
		q.Moot = owner.Waiting(q.Decision)
	}
	es, err := eventsOf(tx, q.Owner.Stream(), []string{q.ID}, historyOfOne)
	q.History = entriesOf(es)
	return err
}

// Decidable reports whether it can still be answered.
func (q Question) Decidable() bool {
	return q.Status == decision.Pending && q.Open && !q.Overdue && q.Moot == nil && q.Altered == nil
}
