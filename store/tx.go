package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
)

// tx adds to a backend's rows what must be alike on all of them.
type tx struct {
	Rows
	heads    []*head
	appended []event.Event
	inserted int   // how many of them are in the log already
	failed   error // the first write that failed

	// What is held back, each in its order: writes of roots, then the others. A
	// backend writes them when the closure has returned, so that judging and
	// writing go on side by side; and where the root has moved, nothing is written
	// before that is noticed.
	roots, others []func() error
	over          bool // the closure has returned

	// What this transaction has read or written, and so knows as it stands.
	calls     []call.Call
	decisions []string // ids

	// Room for what most transactions have, so that it is one piece of memory.
	head1     head
	heads1    [1]*head
	events2   [2]event.Event
	call1     [1]call.Call
	decision2 [2]string
}

func newTx(r Rows) *tx {
	t := &tx{Rows: r}
	t.heads, t.appended, t.calls, t.decisions = t.heads1[:0], t.events2[:0], t.call1[:0], t.decision2[:0]
	return t
}

// note remembers a write that failed: the transaction is not committed then, also
// if its closure overlooks the error. Else half of a change could be kept, and
// on one backend only: PostgreSQL takes back the whole by itself.
func (t *tx) note(err *error) {
	if t.failed == nil {
		t.failed = *err
	}
}

// head is a stream's end as this transaction knows it.
type head struct {
	event.Head
	space  string
	stored event.Head // what the root's row has
	dirty  bool       // the root's row does not have it yet
}

// written notes that the root's row has the head now.
func (h *head) written() { h.stored, h.dirty = h.Head, false }

var _ Tx = (*tx)(nil) // every noun's port is here

const pendingCounter = "pending_approvals"

// Append chains events to the end of a stream. They are numbered when they are written.
func (t *tx) Append(stream string, es ...event.Event) (err error) {
	if len(es) == 0 {
		return nil
	}
	defer t.note(&err)
	h, err := t.head(stream)
	if err != nil {
		return err
	}
	for _, e := range es {
		salt := make([]byte, 16)
		rand.Read(salt)
		e = event.Seal(e, h.Head, h.space, id.New(id.Event), t.Now(), salt)
		h.Head, h.dirty = event.NextHead(e), true
		t.appended = append(t.appended, e)
	}
	t.Touch(stream)
	return nil
}

// Appended lists what this transaction appended so far.
func (t *tx) Appended() []event.Event { return t.appended }

func (t *tx) head(stream string) (*head, error) {
	for i := range t.heads {
		if t.heads[i].Stream == stream {
			return t.heads[i], nil
		}
	}
	h, space, err := t.RootHead(stream)
	if err != nil {
		return nil, err
	}
	return t.know(h, space), nil
}

// know remembers a head that came with its root's row.
func (t *tx) know(h event.Head, space string) *head {
	for i := range t.heads {
		if t.heads[i].Stream == h.Stream {
			return t.heads[i]
		}
	}
	known := &t.head1
	if len(t.heads) > 0 {
		known = new(head)
	}
	*known = head{Head: h, space: space, stored: h}
	t.heads = append(t.heads, known)
	return known
}

// flush writes what is held back. all says that the closure has returned: then
// also the heads whose root was not written after them.
func (t *tx) flush(all bool) (err error) {
	defer t.note(&err)
	if t.failed != nil {
		return t.failed
	}
	if err := writeAll(&t.roots); err != nil {
		return err
	}
	if all {
		if err := t.putHeads(); err != nil {
			return err
		}
	}
	if err := writeAll(&t.others); err != nil {
		return err
	}
	return t.insertEvents()
}

// hold puts a write behind the others of its list.
func (t *tx) hold(list *[]func() error, write func() error) error {
	if t.over {
		return errOver
	}
	*list = append(*list, write)
	return nil
}

// end makes the transaction void for whoever kept it.
func (t *tx) end() { t.over = true }

var errOver = errors.New("the transaction is over: a Tx is valid only inside its closure")

func writeAll(writes *[]func() error) error {
	for i, write := range *writes {
		if err := write(); err != nil {
			return err
		}
		(*writes)[i] = nil
	}
	*writes = (*writes)[:0]
	return nil
}

func (t *tx) putHeads() error {
	for _, h := range t.heads {
		if h.dirty {
			won, err := t.PutHead(h.stored, h.Head)
			if err != nil {
				return err
			}
			if !won {
				return decision.ErrMoved.Say("Stream %s changed in the meantime; nothing was written.", h.Stream)
			}
			h.written()
		}
	}
	return nil
}

func (t *tx) insertEvents() (err error) {
	es := t.appended[t.inserted:]
	if len(es) == 0 {
		return nil
	}
	t.inserted = len(t.appended)
	for i := range es {
		if es[i].Seq, err = t.NextSeq(); err != nil {
			return err
		}
		es[i].Pos = es[i].Seq
	}
	return t.InsertEvents(es)
}

func (t *tx) Head(stream string) (event.Head, error) {
	for i := range t.heads {
		if t.heads[i].Stream == stream {
			return t.heads[i].Head, nil
		}
	}
	h, _, err := t.RootHead(stream)
	return h, err
}

func (t *tx) Redact(stream string, streamSeq int64) (done bool, err error) {
	defer t.note(&err)
	return t.EmptyEvent(stream, streamSeq)
}

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
		won, err := t.UpdateDecision(prev, next, whole)
		if err != nil {
			return err
		}
		if !won {
			return decision.ErrMoved.Say("Approval %s changed in the meantime; nothing was written.", prev.ID)
		}
		if vote != nil {
			return t.InsertVote(*vote)
		}
		return nil
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

// awaited reports whether an approval counts as pending: one whose run has ended
// is no work any more.
func awaited(d decision.Decision) bool {
	return d.Type == decision.Approval && d.Status == decision.Pending && d.Open
}

func (t *tx) Pending(space string) (int64, error) { return t.Count(space, pendingCounter) }

// Owner binds what waits to this transaction.
func (t *tx) Owner(r decision.Ref) (decision.Owner, error) {
	switch r.Kind {
	case decision.OwnerCall:
		return call.Owner{Tx: t, ID: r.ID}, nil
	case decision.OwnerRun:
		return run.Owner{Tx: t, ID: r.ID}, nil
	case decision.OwnerJob:
		return job.Owner{Tx: t, ID: r.ID}, nil
	}
	return nil, fmt.Errorf("unknown owner kind %q", r.Kind)
}

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
	if err := t.hold(&t.roots, func() error {
		ok, err := t.Rows.InsertCall(c)
		if err == nil && !ok {
			err = call.ErrCallConflict.Say("Run %s has a call %q already.", c.RunID, c.ExternalID)
		}
		return err
	}); err != nil {
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
	if err := t.hold(&t.roots, func() error {
		won, err := t.UpdateCall(prev, next, whole)
		if err == nil && !won {
			err = decision.ErrMoved.Say("Call %s changed in the meantime; nothing was written.", prev.ID)
		}
		return err
	}); err != nil {
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
	return t.hold(&t.others, func() error {
		won, err := t.UpdateAttempt(prev, next)
		if err == nil && !won {
			err = decision.ErrMoved.Say("Attempt %d at call %s changed in the meantime; nothing was written.", prev.N, prev.CallID)
		}
		return err
	})
}

func (t *tx) PutGuard(g call.Guard) (err error) {
	defer t.note(&err)
	return t.Rows.PutGuard(g)
}

func (t *tx) DropGuard(g call.Guard) (err error) {
	defer t.note(&err)
	return t.Rows.DropGuard(g)
}

// Add changes a counter by n.
func (t *tx) Add(space, name string, n int64) (err error) {
	defer t.note(&err)
	return t.Rows.Add(space, name, n)
}

func (t *tx) PutIdempotent(k call.IdempotencyKey) (err error) {
	defer t.note(&err)
	ok, err := t.InsertIdempotent(k)
	if err == nil && !ok {
		err = decision.ErrMoved.Say("The idempotency key was used in the meantime; nothing was written.")
	}
	return err
}

// FindIdempotent reads a key's record; found is false if there is none.
func (t *tx) FindIdempotent(k call.IdempotencyKey) (call.IdempotencyKey, bool, error) {
	got, err := t.IdempotentCall(k)
	if errors.Is(err, decision.ErrNotFound) {
		return k, false, nil
	}
	return got, err == nil, err
}
