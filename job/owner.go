package job

import (
	"errors"
	"time"

	"github.com/placet-dev/placet/decision"
)

// Owner lets a question see and change the job that asked it.
type Owner struct {
	Tx Tx
	ID string
}

var _ decision.Asker = Owner{}

// Waiting: a job waits for all its questions at once, until it ends.
func (o Owner) Waiting(decision.Decision) error {
	j, err := o.Tx.Job(o.ID)
	if err == nil && j.Status.Terminal() {
		err = j.errState()
	}
	return err
}

// MayAsk locks the job: one of another space is not there.
func (o Owner) MayAsk(space string) error {
	j, err := o.Tx.Job(o.ID)
	if err == nil && j.Space != space {
		err = ErrNotFound.Say("There is no job %s.", o.ID)
	}
	return err
}

// Asking counts one more question, unless the job has ended or has too many.
func (o Owner) Asking(now time.Time) (int64, error) {
	j, err := o.Tx.Job(o.ID)
	if err != nil {
		return 0, err
	}
	ch, err := j.Step(Ask{decision.MaxPendingOfJob, decision.MaxQuestionsOfJob}, now)
	if err != nil {
		return 0, err
	}
	return ch.Next.Questions, o.Tx.PutJob(j, ch)
}

// Settled counts a question that does not wait any more. The job's status stays.
func (o Owner) Settled(_ decision.Decision, now time.Time) error {
	j, err := o.Tx.Job(o.ID)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil // it is being cleaned up
		}
		return err
	}
	return put(o.Tx, j, Answered{}, now)
}

// Cancel wants the job stopped. A supervisor carries it out.
func (o Owner) Cancel(by, _ string, clock func() time.Time) error {
	j, err := o.Tx.Job(o.ID)
	if err != nil {
		return err
	}
	if j.Status.Terminal() {
		return j.errState()
	}
	return put(o.Tx, j, Stop{By: by, KillAfter: DefaultKillAfter}, clock())
}

// put judges a command and writes what comes of it. A job that ends leaves no
// question and no good token behind; the event of its end is its stream's last.
func put(tx Tx, j Job, cmd Command, now time.Time) error {
	ch, err := j.Step(cmd, now)
	if err != nil || ch.Repeated {
		return err
	}
	if ch.Next.Status.Terminal() && j.Pending > 0 {
		if err := decision.CloseQuestions(tx, j.Space, j.Ref()); err != nil {
			return err
		}
	}
	if ch.Next.Status.Terminal() {
		if err := tx.EndTokens(j); err != nil {
			return err
		}
	}
	return tx.PutJob(j, ch)
}
