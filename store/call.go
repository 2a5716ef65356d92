package store

import (
	"errors"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// Call reads a call once: it is locked from then on, and what this transaction
// writes to it is known.
func (t *tx) Call(id string) (call.Call, error) {
	if i := t.find(id); i >= 0 {
		return t.headed(t.calls[i]), nil
	}
	return t.keep(t.Rows.Call(id))
}

func (t *tx) CallByExternalID(space, runID, externalID string) (call.Call, error) {
	return t.keep(t.Rows.CallByExternalID(space, runID, externalID))
}

func (t *tx) find(id string) int {
	for i := range t.calls {
		if t.calls[i].ID == id {
			return i
		}
	}
	return -1
}

// keep remembers a call as it stands and the head that came with it, and shows a
// later head.
func (t *tx) keep(c call.Call, err error) (call.Call, error) {
	if err != nil {
		return c, err
	}
	c = t.headed(c)
	if i := t.find(c.ID); i >= 0 {
		t.calls[i] = c
	} else {
		t.calls = append(t.calls, c)
	}
	return c, nil
}

// headed shows a call with its stream's head. One that hangs below a run has none
// of its own: its root's row has it.
func (t *tx) headed(c call.Call) call.Call {
	if !c.Hosted() {
		c.Head = t.know(c.Head, c.Space).Head
	}
	return c
}

func (t *tx) InsertCall(c call.Call, es ...event.Event) (err error) {
	defer t.note(&err)
	h := new(head)
	if !c.Hosted() {
		h = t.know(event.Head{Stream: c.Stream()}, c.Space)
	}
	if err := t.Append(c.Stream(), es...); err != nil {
		return err
	}
	c.Head, c.Version = h.Head, 1
	if err := t.hold(&t.roots, func() error { return t.Rows.InsertCall(c) }); err != nil {
		return err
	}
	h.written()
	_, err = t.keep(c, nil)
	return err
}

// PutCall holds prev whole against the row, unless it was read here. Its head
// needs no reading either: it is the row's if the version is.
func (t *tx) PutCall(prev, next call.Call, es ...event.Event) (err error) {
	defer t.note(&err)
	h := new(head)
	if !prev.Hosted() {
		prev.Head.Stream = prev.Stream()
		h = t.know(prev.Head, prev.Space)
	}
	if err := t.Append(prev.Stream(), es...); err != nil {
		return err
	}
	next.Head, next.Version = h.Head, prev.Version+1
	whole := t.find(prev.ID) < 0
	if err := t.hold(&t.roots, func() error { return t.UpdateCall(prev, next, whole) }); err != nil {
		return err
	}
	h.written()
	_, err = t.keep(next, nil)
	return err
}

func (t *tx) InsertAttempt(a call.Attempt) error {
	return t.hold(&t.others, func() error { return t.Rows.InsertAttempt(a) })
}

func (t *tx) PutAttempt(prev, next call.Attempt) error {
	return t.hold(&t.others, func() error { return t.UpdateAttempt(prev, next) })
}

func (t *tx) PutGuard(g call.Guard) (err error) {
	defer t.note(&err)
	return t.Rows.PutGuard(g)
}

func (t *tx) DropGuard(g call.Guard) (err error) {
	defer t.note(&err)
	return t.Rows.DropGuard(g)
}

func (t *tx) PutIdempotent(k call.IdempotencyKey) (err error) {
	defer t.note(&err)
	ok, err := t.InsertIdempotent(k)
	if err == nil && !ok {
		err = decision.ErrMoved.Say("The idempotency key was used in the meantime; nothing was written.")
	}
	return err
}

func (t *tx) DropKey(k call.IdempotencyKey) (done bool, err error) {
	defer t.note(&err)
	return t.Rows.DropKey(k)
}

// FindIdempotent reads a key's record; found is false if there is none.
func (t *tx) FindIdempotent(k call.IdempotencyKey) (call.IdempotencyKey, bool, error) {
	got, err := t.IdempotentCall(k)
	if errors.Is(err, decision.ErrNotFound) {
		return k, false, nil
	}
	return got, err == nil, err
}
