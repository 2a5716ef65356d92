package store

import (
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
)

// Job reads a job as it stands, with the head that this transaction knows.
func (t *tx) Job(id string) (job.Job, error) {
	return t.knowJob(t.Rows.Job(id))
}

func (t *tx) JobByKey(space, principal, key string) (job.Job, error) {
	return t.knowJob(t.Rows.JobByKey(space, principal, key))
}

func (t *tx) knowJob(j job.Job, err error) (job.Job, error) {
	if err == nil {
		j.Head = t.know(j.Head, j.Space).Head
	}
	return j, err
}

func (t *tx) InsertJob(ch job.Change) (err error) {
	defer t.note(&err)
	j := ch.Next
	h := t.know(event.Head{Stream: j.Stream()}, j.Space)
	if err := t.Append(j.Stream(), ch.Events...); err != nil {
		return err
	}
	j.Head, j.Version = h.Head, 1
	if err := t.hold(&t.roots, func() error { return t.Rows.InsertJob(j) }); err != nil {
		return err
	}
	h.written()
	return nil
}

// PutJob appends before it writes the job's row, which so takes the stream's head once.
func (t *tx) PutJob(prev job.Job, ch job.Change) (err error) {
	defer t.note(&err)
	prev.Head.Stream = prev.Stream()
	h := t.know(prev.Head, prev.Space)
	if err := t.Append(prev.Stream(), ch.Events...); err != nil {
		return err
	}
	next := ch.Next
	next.Head, next.Version = h.Head, prev.Version+1
	if err := t.hold(&t.roots, func() error { return t.UpdateJob(prev, next) }); err != nil {
		return err
	}
	h.written()
	return nil
}

// EndTokens revokes them in the transaction that ends the job.
func (t *tx) EndTokens(j job.Job) error { return token.RevokeJobs(t, j.Space, j.ID) }

// CleanJob leaves the head of the stream, so that what was cleaned is told from what
// was cut.
func (t *tx) CleanJob(j job.Job, by string) (err error) {
	defer t.note(&err)
	next := j
	next.CleanedAt, next.IdempotencyKey = t.Now(), ""
	if err := t.PutJob(j, job.Change{Next: next}); err != nil {
		return err
	}
	j.Head.Stream = j.Stream()
	return t.hold(&t.others, func() error { return t.InsertTombstone(j.Head, j.Space, by) })
}

func (t *tx) DeleteJob(id string, limit int) (n int, err error) {
	defer t.note(&err)
	return t.Rows.DeleteJob(id, limit)
}
