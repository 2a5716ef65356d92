package storetest

import (
	"context"
	"errors"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// image is everything in a store that its readers can ask for, or what of it has
// an event behind some pos.
type image struct {
	Epoch     int64
	After     int64
	Calls     map[string]call.Call
	Attempts  map[string][]call.Attempt
	Decisions map[string]decision.Decision
	Runs      map[string]run.Run
	Steps     map[string][]run.Step // by run
	Jobs      map[string]job.Job
	Cleaned   map[string]event.Head            // where streams ended whose jobs are cleaned up, as far as an event of them is left
	Events    []event.Event                    // by pos
	Pending   map[string]int64                 // the counter, by space
	Queue     map[string][]decision.QueueCount // by space

	Targets    map[string]delivery.Target // removed ones as far as a delivery names them
	Deliveries map[string]delivery.Delivery
	Tries      map[string][]delivery.Attempt // by delivery
}

// look reads everything. It takes several views: nobody may write meanwhile.
func look(ctx context.Context, t Tester, s txn.Store) image {
	t.Helper()
	m := newImage(0)
	for _, step := range []func(context.Context, txn.Store) error{m.readEvents, m.readRoots, m.readRuns, m.readJobs, m.readBelow, m.readDeliveries} {
		if err := step(ctx, s); err != nil {
			t.Fatalf("look through the store: %v", err)
		}
	}
	return m
}

func newImage(after int64) image {
	return image{
		After: after, Calls: map[string]call.Call{}, Attempts: map[string][]call.Attempt{},
		Decisions: map[string]decision.Decision{}, Runs: map[string]run.Run{}, Steps: map[string][]run.Step{}, Jobs: map[string]job.Job{}, Cleaned: map[string]event.Head{},
		Pending: map[string]int64{event.MainSpace: 0}, Queue: map[string][]decision.QueueCount{},
		Targets: map[string]delivery.Target{}, Deliveries: map[string]delivery.Delivery{}, Tries: map[string][]delivery.Attempt{},
	}
}

// lookBehind reads those calls that began behind a pos, in one view.
func (w *world) lookBehind(pos int64) image {
	w.Helper()
	m := newImage(pos)
	err := w.view(func(tx store.Tx) (err error) {
		m = newImage(pos)
		m.Epoch = tx.Epoch()
		if m.Pending[event.MainSpace], err = tx.Pending(event.MainSpace, 0); err != nil {
			return err
		}
		if m.Events, err = tx.Events(event.Query{After: pos, Limit: 1000}); err != nil {
			return err
		}
		if err := m.readTargets(tx, event.MainSpace); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, e := range m.Events {
			if err := m.readRoot(tx, e.Stream); err != nil {
				return err
			}
			if seen[e.Stream] {
				continue
			}
			seen[e.Stream] = true
			if err := m.readDeliveriesOf(tx, e.Space, e.Stream); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.Fatalf("look behind %d: %v", pos, err)
	}
	return m
}

func (m *image) readRoot(tx store.Tx, stream string) error {
	if id, ok := strings.CutPrefix(stream, "run:"); ok {
		return m.readRun(tx, id)
	}
	if id, ok := strings.CutPrefix(stream, "job:"); ok {
		return m.readJob(tx, id)
	}
	return m.readCall(tx, strings.TrimPrefix(stream, "call:"))
}

// readRun reads a run and all below it.
func (m *image) readRun(tx store.Tx, id string) (err error) {
	if _, known := m.Runs[id]; known {
		return nil
	}
	if m.Runs[id], err = tx.Run(id); err != nil {
		return err
	}
	if m.Steps[id], err = tx.Steps(id, 0, 1000); err != nil {
		return err
	}
	ds, err := tx.Decisions(decision.Query{Space: m.Runs[id].Space, RunID: id, Limit: 500})
	for _, d := range ds {
		m.Decisions[d.ID] = d
	}
	for _, s := range m.Steps[id] {
		if s.CallID != "" && err == nil {
			err = m.readCall(tx, s.CallID)
		}
	}
	return err
}

// readJob reads a job and its questions, or where the stream ended of one that is
// cleaned up.
func (m *image) readJob(tx store.Tx, id string) error {
	if _, known := m.Jobs[id]; known {
		return nil
	}
	j, err := tx.Job(id)
	if errors.Is(err, decision.ErrNotFound) {
		return m.readTombstone(tx, job.RefOf(id).Stream())
	}
	if err != nil {
		return err
	}
	m.Jobs[id] = j
	ds, err := tx.Decisions(decision.Query{Space: j.Space, JobID: id, Limit: 500})
	for _, d := range ds {
		m.Decisions[d.ID] = d
	}
	return err
}

func (m *image) readTombstone(tx store.Tx, stream string) error {
	h, found, err := tx.Tombstone(stream)
	if found {
		m.Cleaned[stream] = h
	}
	return err
}

// readJobs reads the jobs of every space, and looks for the tombstones of those that
// only events tell of.
func (m *image) readJobs(ctx context.Context, s txn.Store) error {
	for space := range m.Pending {
		for after, more := "", true; more; {
			var page []job.Job
			err := txn.View(ctx, s, func(tx store.Tx) (err error) {
				page, err = tx.Jobs(job.Query{Space: space, After: after, Limit: 100})
				return err
			})
			if err != nil {
				return err
			}
			for _, j := range page {
				m.Jobs[j.ID], after = j, j.ID
			}
			more = len(page) > 0
		}
	}
	return txn.View(ctx, s, func(tx store.Tx) error {
		for _, e := range m.Events {
			id, ok := strings.CutPrefix(e.Stream, "job:")
			if _, known := m.Jobs[id]; !ok || known {
				continue
			}
			if _, known := m.Cleaned[e.Stream]; known {
				continue
			}
			if err := m.readTombstone(tx, e.Stream); err != nil {
				return err
			}
		}
		return nil
	})
}

// readRuns reads the runs of every space, and their steps.
func (m *image) readRuns(ctx context.Context, s txn.Store) error {
	for space := range m.Pending {
		for after, more := "", true; more; {
			var page []run.Run
			err := txn.View(ctx, s, func(tx store.Tx) (err error) {
				if page, err = tx.Runs(run.Query{Space: space, After: after, Limit: 100}); err != nil {
					return err
				}
				for _, r := range page {
					m.Runs[r.ID] = r
					if m.Steps[r.ID], err = tx.Steps(r.ID, 0, 1000); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if more = len(page) > 0; more { // not before: the view may be run again
				after = page[len(page)-1].ID
			}
		}
	}
	return nil
}

func (m *image) readCall(tx store.Tx, id string) error {
	if _, known := m.Calls[id]; known {
		return nil
	}
	c, err := tx.Call(id)
	if err != nil {
		return err
	}
	m.Calls[id] = c
	as, err := tx.Attempts(id)
	if err != nil {
		return err
	}
	if len(as) > 0 {
		m.Attempts[id] = as
	}
	ds, err := tx.Decisions(decision.Query{Space: c.Space, CallID: id, Limit: 500})
	for _, d := range ds {
		m.Decisions[d.ID] = d
	}
	return err
}

func (w *world) look() image {
	w.Helper()
	return look(w.ctx, w.T, w.s)
}

func (m *image) readEvents(ctx context.Context, s txn.Store) error {
	for after, more := int64(0), true; more; {
		var page []event.Event
		err := txn.View(ctx, s, func(tx store.Tx) (err error) {
			m.Epoch = tx.Epoch()
			page, err = tx.Events(event.Query{After: after, Limit: 200})
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range page {
			m.Pending[e.Space] = 0
			after = e.Pos
		}
		m.Events = append(m.Events, page...)
		more = len(page) > 0
	}
	return nil
}

// readRoots reads the calls of every space that an event names: a call without
// an event is found by its space, one without either by nobody.
func (m *image) readRoots(ctx context.Context, s txn.Store) error {
	for space := range m.Pending {
		for after, more := "", true; more; {
			var page []call.Call
			err := txn.View(ctx, s, func(tx store.Tx) (err error) {
				page, err = tx.Calls(call.Query{Space: space, After: after, Limit: 100})
				return err
			})
			if err != nil {
				return err
			}
			for _, c := range page {
				m.Calls[c.ID], after = c, c.ID
			}
			more = len(page) > 0
		}
	}
	return nil
}

func (m *image) readBelow(ctx context.Context, s txn.Store) error {
	for space := range m.Pending {
		if err := m.readDecisions(ctx, s, space); err != nil {
			return err
		}
	}
	for id := range m.Calls {
		err := txn.View(ctx, s, func(tx store.Tx) error {
			as, err := tx.Attempts(id)
			if len(as) > 0 {
				m.Attempts[id] = as
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *image) readDecisions(ctx context.Context, s txn.Store, space string) error {
	for after, more := "", true; more; {
		var page []decision.Decision
		err := txn.View(ctx, s, func(tx store.Tx) (err error) {
			if m.Pending[space], err = tx.Pending(space, 0); err != nil {
				return err
			}
			if m.Queue[space], err = tx.QueueCounts(space); err != nil {
				return err
			}
			page, err = tx.Decisions(decision.Query{Space: space, After: after, Limit: 100})
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range page {
			m.Decisions[d.ID], after = d, d.ID
		}
		more = len(page) > 0
	}
	return nil
}
