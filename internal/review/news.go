package review

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/txn"
)

// News is what has happened to the queue since a page of it was read.
type News struct {
	Seen    event.Cursor
	Waiting []decision.Decision // that events tell of, and the filter shows; a page may have some of them already
	Settled []decision.Decision // that do not wait any more
	Counts  []decision.QueueCount
}

// atOnce is how many events are looked at together.
const atOnce = 1000

const (
	// mostNews is after how many bytes of requests no more events are read: the rest is
	// told next.
	mostNews = 4 << 20
	// newsAtOnce is how many events are looked into in one view: each may be about a
	// megabyte, and a view does not last.
	newsAtOnce = 8
)

// Newsroom reads what happens to a space's queue, once for all who follow it: many pages
// may be open, and each is told of everything. It is safe for concurrent use, and not copied
// once it was used.
type Newsroom struct {
	Store txn.Store
	Space string

	mu   sync.Mutex
	last batch
}

// batch is what happened up to a place.
type batch struct {
	from      map[event.Cursor]bool // the places behind which it tells everything
	to        event.Cursor
	now       time.Time
	concerned []decision.Decision
	counts    []decision.QueueCount
}

// Read reads what has happened behind a cursor, and some of what happened before it where
// that was read for somebody else. [event.ErrCursor].
func (n *Newsroom) Read(ctx context.Context, f Filter, after event.Cursor) (News, error) {
	s, err := n.batch(ctx, after)
	if err != nil {
		return News{}, err
	}
	return s.news(f), nil
}

func (n *Newsroom) batch(ctx context.Context, after event.Cursor) (batch, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last.from[after] {
		holds, err := n.last.holds(ctx, n.Store)
		if holds || err != nil {
			return n.last, err
		}
	}
	s, err := readBatch(ctx, n.Store, n.Space, after)
	if err == nil {
		n.last = s
	}
	return s, err
}

// holds reports whether the batch is of this life of the store: what stands before it may
// be the same in another, and its end is not.
func (s batch) holds(ctx context.Context, st txn.Store) (bool, error) {
	err := txn.View(ctx, st, func(tx event.Tx) error { _, err := event.Place(tx, "", s.to); return err })
	if errors.Is(err, event.ErrCursor) {
		return false, nil
	}
	return err == nil, err
}

func readBatch(ctx context.Context, st txn.Store, space string, after event.Cursor) (s batch, err error) {
	page, err := event.Read(ctx, st, "", after, atOnce)
	if err != nil {
		return s, err
	}
	s = batch{from: map[event.Cursor]bool{}, to: after}
	told := map[string]bool{}
	for es := range slices.Chunk(page.Events, newsAtOnce) {
		if s.size() > mostNews {
			break
		}
		if err := s.read(ctx, st, space, es, told); err != nil {
			return batch{}, err
		}
	}
	err = txn.View(ctx, st, func(tx Tx) (err error) {
		s.now = tx.Now()
		s.counts, err = tx.QueueCounts(space)
		return err
	})
	return s, err
}

// read goes on behind some events, and reads what they concern unless it was told.
func (s *batch) read(ctx context.Context, st txn.Store, space string, es []event.Event, told map[string]bool) error {
	var more []decision.Decision
	var now map[string]bool
	err := txn.View(ctx, st, func(tx Tx) (err error) {
		now = maps.Clone(told)
		more, err = concernedBy(tx, space, es, now)
		return err
	})
	if err != nil {
		return err
	}
	maps.Copy(told, now)
	s.concerned = append(s.concerned, more...)
	for _, e := range es {
		s.from[s.to] = true // what comes behind to is not read yet
		s.to = event.PosCursorOf(e)
	}
	return nil
}

func (s batch) size() (n int) {
	for _, d := range s.concerned {
		n += len(d.Request) + len(d.Presentation) + len(d.Capability) + len(d.Form) + len(d.Input) + len(d.EditedArgs)
	}
	return n
}

// news is what of it concerns who follows with a filter. Whether that shows something takes
// longer to judge than a view may last.
func (s batch) news(f Filter) News {
	n := News{Seen: s.to, Counts: s.counts}
	for _, d := range s.concerned {
		switch {
		case d.Status != decision.Pending || !d.Open:
			n.Settled = append(n.Settled, d)
		case f.Shows(d, s.now):
			n.Waiting = append(n.Waiting, d)
		}
	}
	return n
}

// concernedBy are the decisions that events tell of, each once.
func concernedBy(tx Tx, space string, es []event.Event, seen map[string]bool) (all []decision.Decision, err error) {
	for _, e := range es {
		if e.Space != space || seen[e.Subject] || !aboutDecisions(e.Type) && e.Type != event.RunFinished {
			continue
		}
		seen[e.Subject] = true
		ds, err := toldOf(tx, e)
		if err != nil {
			return nil, err
		}
		all = append(all, ds...)
	}
	return all, nil
}

// toldOf is the decision that an event names, or those of a run that ended: what waits for
// nothing any more is named by no event of its own.
func toldOf(tx Tx, e event.Event) ([]decision.Decision, error) {
	if e.Type == event.RunFinished {
		owner := decision.Ref{Kind: decision.OwnerRun, ID: e.Subject}
		return tx.Decisions(decision.Query{Space: e.Space, Owner: owner, Status: decision.Pending})
	}
	d, err := tx.Decision(e.Subject)
	if errors.Is(err, decision.ErrNotFound) {
		return nil, nil // it was cleaned up
	}
	return []decision.Decision{d}, err
}

func aboutDecisions(t event.Type) bool {
	switch t {
	case event.ApprovalRequested, event.ApprovalDecided, event.ApprovalExpired, event.ApprovalWithdrawn, event.ApprovalSuperseded,
		event.DecisionRequested, event.DecisionResolved, event.DecisionExpired, event.DecisionWithdrawn:
		return true
	}
	return false
}

// SettledText says in a few words why something does not wait any more. It is fit to be
// shown.
func SettledText(d decision.Decision) string {
	switch {
	case d.Type == decision.Question && d.Choice != "":
		return "answered “" + display.Short(string(d.Choice), 40) + "” by " + display.Short(d.DecidedBy, 40)
	case d.Choice == decision.ChoiceApprove && d.EditedArgs != nil:
		return "approved with other arguments by " + display.Short(d.DecidedBy, 40)
	case d.Choice == decision.ChoiceApprove:
		return "approved by " + display.Short(d.DecidedBy, 40)
	case d.Choice != "":
		return "rejected by " + display.Short(d.DecidedBy, 40)
	case d.WithdrawnBy != "":
		return "taken back by " + display.Short(d.WithdrawnBy, 40)
	case d.Status == decision.Pending:
		return "no longer needed"
	}
	return string(d.Status)
}

// DecidedText says in a sentence how something was decided, by whom and when. The names in
// it are foreign.
func DecidedText(d decision.Decision) string {
	verb := "rejected"
	switch {
	case d.Type == decision.Question:
		verb = "answered with “" + string(d.Choice) + "”"
	case d.Choice == decision.ChoiceApprove && d.EditedArgs != nil:
		verb = "approved with other arguments"
	case d.Choice == decision.ChoiceApprove:
		verb = "approved"
	}
	return "It was " + verb + " by " + d.DecidedBy + " on " + UTC(d.DecidedAt) + "."
}

const (
	// still is how often whoever waits finds out whether the store is still there, and
	// whether it may still look.
	still = 5 * time.Second
	// together is how long what happens is collected before anybody is told.
	together = 200 * time.Millisecond
)

// Follow waits until something has happened in a stream of a space behind a cursor; an
// empty stream stands for all of them. What comes within a moment comes together: it is
// read once. happened is false where nothing has for a while: whoever waits looks whether
// it still may, and goes on from at. That the stream is of the space is for [CheckStream].
func Follow(ctx context.Context, s txn.Store, space, stream string, after event.Cursor) (at event.Cursor, happened bool, err error) {
	return follow(ctx, s, event.Waiting{Stream: stream, After: after, Timeout: still}, space)
}

func follow(ctx context.Context, s txn.Store, w event.Waiting, space string) (at event.Cursor, happened bool, err error) {
	w.Match = func(e event.Event) bool { return e.Space == space }
	got, err := event.Wait(ctx, s, w)
	if err != nil {
		return w.After, false, err
	}
	if got.Outcome == event.TimedOut {
		return got.Cursor, false, nil
	}
	t := time.NewTimer(together)
	defer t.Stop()
	select {
	case <-t.C:
		return w.After, true, nil
	case <-ctx.Done():
		return w.After, false, context.Cause(ctx)
	}
}

// CheckStream refuses a stream of another space, as one that is not there: [event.ErrNoStream].
// All events of a stream are of its root's space, and a root is stored with its first. An
// empty stream stands for all, of which [Follow] tells those of the space.
func CheckStream(ctx context.Context, s txn.Store, space, stream string) error {
	if stream == "" {
		return nil
	}
	page, err := event.Read(ctx, s, stream, "", 1)
	if err == nil && (len(page.Events) == 0 || page.Events[0].Space != space) {
		err = event.ErrNoStream.Say("There is no stream %s.", stream)
	}
	return err
}
