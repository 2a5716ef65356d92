package store

import (
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
)

// Run reads a run as it stands, with the head that this transaction knows.
func (t *tx) Run(id string) (run.Run, error) {
	r, err := t.Rows.Run(id)
	if err == nil {
		r.Head = t.know(r.Head, r.Space).Head
	}
	return r, err
}

func (t *tx) LockRun(r run.Run) error {
	if err := t.Rows.LockRun(r.ID); err != nil {
		return err
	}
	r.Head.Stream = r.Stream()
	t.know(r.Head, r.Space)
	return nil
}

func (t *tx) InsertRun(ch run.Change) (err error) {
	defer t.note(&err)
	r := ch.Next
	h := t.know(event.Head{Stream: r.Stream()}, r.Space)
	if err := t.Append(r.Stream(), ch.Events...); err != nil {
		return err
	}
	r.Head, r.Version = h.Head, 1
	if err := t.hold(&t.roots, func() error { return t.Rows.InsertRun(r) }); err != nil {
		return err
	}
	h.written()
	if r.Current.ID == "" {
		return nil
	}
	return t.insertStep(r.Current)
}

func (t *tx) insertStep(s run.Step) error {
	return t.hold(&t.others, func() error { return t.InsertStep(s) })
}

// PutRun appends before it writes the run's row, which so takes the stream's head
// once. It needs no reading of prev: its head is the row's if the
// version is.
func (t *tx) PutRun(prev run.Run, ch run.Change) (err error) {
	defer t.note(&err)
	prev.Head.Stream = prev.Stream()
	h := t.know(prev.Head, prev.Space)
	if err := t.Append(prev.Stream(), ch.Events...); err != nil {
		return err
	}
	next := ch.Next
	next.Head, next.Version = h.Head, prev.Version+1
	if err := t.hold(&t.roots, func() error { return t.UpdateRun(prev, next) }); err != nil {
		return err
	}
	h.written()
	return t.putSteps(prev.Current, ch)
}

func (t *tx) putSteps(prev run.Step, ch run.Change) error {
	next := ch.Next.Current
	if ended := ch.Ended; ended != nil {
		if err := t.putStep(prev, *ended); err != nil {
			return err
		}
		return t.insertStep(next)
	}
	if prev.ID == "" && next.ID != "" {
		return t.insertStep(next)
	}
	return t.putStep(prev, next)
}

func (t *tx) putStep(prev, next run.Step) error {
	prev.Result = next.Result // its call's row has it
	if prev == next {
		return nil
	}
	return t.hold(&t.others, func() error { return t.UpdateStep(prev, next) })
}

func (t *tx) RenewRun(id string, fence int64, until time.Time) (held bool, err error) {
	defer t.note(&err)
	return t.Rows.RenewRun(id, fence, until)
}
