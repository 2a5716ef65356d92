package store

import (
	"slices"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

func (t *tx) Decision(id string) (decision.Decision, error) {
	d, err := t.Rows.Decision(id)
	if err == nil {
		t.decisions = append(t.decisions, id)
	}
	return d, err
}

func (t *tx) LockDecision(id string) (decision.Decision, error) {
	d, err := t.Rows.LockDecision(id)
	if err == nil {
		t.decisions = append(t.decisions, id)
	}
	return d, err
}

func (t *tx) InsertDecision(d decision.Decision, es ...event.Event) (err error) {
	defer t.note(&err)
	if err := t.hold(&t.others, func() error { return t.Rows.InsertDecision(d) }); err != nil {
		return err
	}
	t.decisions = append(t.decisions, d.ID)
	if awaited(d) {
		if err := t.Add(d.Space, pendingCounter, 1); err != nil {
			return err
		}
	}
	return t.Append(d.Owner.Stream(), es...)
}

// PutDecision holds prev whole against the row, unless it was read here.
func (t *tx) PutDecision(prev decision.Decision, ch decision.Change) (err error) {
	defer t.note(&err)
	next := ch.Next
	next.Version = prev.Version + 1
	vote, whole := ch.Vote, !slices.Contains(t.decisions, prev.ID)
	if err := t.hold(&t.others, func() error {
		if err := t.UpdateDecision(prev, next, whole); err != nil || vote == nil {
			return err
		}
		return t.InsertVote(*vote)
	}); err != nil {
		return err
	}
	if awaited(prev) && !awaited(next) {
		if err := t.Add(prev.Space, pendingCounter, -1); err != nil {
			return err
		}
	}
	return t.Append(prev.Owner.Stream(), ch.Events...)
}

func (t *tx) Queue(q decision.Queued) (decision.QueuePage, error) {
	if err := q.Check(); err != nil {
		return decision.QueuePage{}, err
	}
	return t.Rows.Queue(q)
}

const pendingCounter = "pending_approvals"

// awaited reports whether an approval counts as pending: one whose run has ended
// is no work any more.
func awaited(d decision.Decision) bool {
	return d.Type == decision.Approval && d.Status == decision.Pending && d.Open
}

func (t *tx) Pending(space string, limit int64) (int64, error) {
	return t.Count(space, pendingCounter, limit)
}
