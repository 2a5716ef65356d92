package store

import (
	"crypto/rand"
	"fmt"

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
	hears     hears

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
		e = event.Seal(e, h.Head, h.space, id.New(id.Event), t.Latest(), salt)
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
		return ErrOver
	}
	*list = append(*list, write)
	return nil
}

// end makes the transaction void for whoever kept it.
func (t *tx) end() { t.over = true }

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
			if err := t.PutHead(h.stored, h.Head); err != nil {
				return err
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
	if err := t.InsertEvents(es); err != nil {
		return err
	}
	return t.match(es)
}

func (t *tx) Head(stream string) (event.Head, error) {
	h, err := t.head(stream)
	if err != nil {
		return event.Head{}, err
	}
	return h.Head, nil
}

func (t *tx) Redact(stream string, streamSeq int64) (done bool, err error) {
	defer t.note(&err)
	return t.EmptyEvent(stream, streamSeq)
}

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

// Add changes a counter by n.
func (t *tx) Add(space, name string, n int64) (err error) {
	defer t.note(&err)
	return t.Rows.Add(space, name, n)
}
