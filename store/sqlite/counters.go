package sqlite

import (
	"errors"
	"fmt"

	"github.com/placet-dev/placet/store/sqlrows"
)

// counter is one of the store's counters as a batch has it. It is written once, at
// the batch's end, for all closures together.
type counter struct {
	space, name string
	n           int64 // with everything that was added so far
	known       bool  // n is
	sum         int64 // of what the batch still has to add
}

// counters are those that a batch has met; they are few.
type counters struct {
	list []counter
}

// add is a change of a counter that a closure wants.
type add struct {
	space, name string
	n           int64
}

func (cs *counters) find(space, name string) *counter {
	for i := range cs.list {
		if c := &cs.list[i]; c.space == space && c.name == name {
			return c
		}
	}
	cs.list = append(cs.list, counter{space: space, name: name})
	return &cs.list[len(cs.list)-1]
}

// hold notes what h's closure added as still to be written.
func (cs *counters) hold(h *handle) {
	for _, a := range h.adds {
		cs.find(a.space, a.name).sum += a.n
	}
	h.held = true
}

// forget takes back what h's closure added.
func (cs *counters) forget(h *handle) {
	for _, a := range h.adds {
		c := cs.find(a.space, a.name)
		c.n -= a.n
		if h.held {
			c.sum -= a.n
		}
	}
	h.adds, h.held = nil, false
}

const (
	countSQL    = `SELECT n FROM counter WHERE space = ? AND name = ?`
	subtractSQL = `UPDATE counter SET n = n + ? WHERE space = ? AND name = ?`
	addSQL      = `INSERT INTO counter(space, name, n) VALUES (?, ?, ?) ON CONFLICT (space, name) DO UPDATE SET n = counter.n + excluded.n`
)

func (h *handle) stored(space, name string) (n int64, err error) {
	_, err = h.queryRow(countSQL, []any{space, name}, func(r sqlrows.Row) error {
		n = r.Int(0)
		return nil
	})
	return n, err
}

// Count reads a counter's row once for each batch.
func (h *handle) Count(space, name string, _ int64) (int64, error) {
	if err := h.ready(); err != nil {
		return 0, err
	}
	if h.b == nil {
		return h.stored(space, name)
	}
	if !h.b.find(space, name).known {
		n, err := h.stored(space, name)
		if err != nil {
			return 0, err
		}
		h.b.learn(h, space, name, n)
	}
	return h.b.find(space, name).n, nil
}

// learn takes a counter's row for what it is before all that is still to be added.
func (cs *counters) learn(h *handle, space, name string, n int64) {
	c := cs.find(space, name)
	c.n, c.known = n+c.sum, true
	for _, a := range h.adds {
		if a.space == space && a.name == name {
			c.n += a.n
		}
	}
}

// Add notes what is written at the batch's end.
func (h *handle) Add(space, name string, n int64) error {
	if err := h.ready(); err != nil {
		return err
	}
	if h.b == nil {
		return errors.New("a view cannot change a counter")
	}
	h.b.find(space, name).n += n
	h.adds = append(h.adds, add{space, name, n})
	return nil
}

// writeCounters writes what the closures have added.
func (b *batch) writeCounters() error {
	for _, c := range b.list {
		if err := b.writeCounter(c.space, c.name, c.sum); err != nil {
			return err
		}
	}
	return nil
}

// writeAdds writes what this closure has added, where that has to be known at once.
func (h *handle) writeAdds() error {
	for _, a := range h.adds {
		if err := h.settle(addSQL, h.b.writeCounter(a.space, a.name, a.n)); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) writeCounter(space, name string, n int64) error {
	if n == 0 {
		return nil
	}
	if n > 0 {
		_, err := b.exec(addSQL, space, name, n)
		return err
	}
	found, err := b.exec(subtractSQL, n, space, name) // a row that would be inserted has to satisfy n >= 0, also where it only updates
	if err == nil && found == 0 {
		err = fmt.Errorf("the counter %s of space %s would fall below zero", name, space)
	}
	return err
}
