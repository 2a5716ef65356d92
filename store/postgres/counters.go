package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/placet-dev/placet/store/sqlrows"
)

// add is a change of a counter that a closure wants. It is written with the rest, last
// of all, so that its lock is held for as short as can be.
type add struct {
	space, name string
	n           int64
}

const (
	countSQL = `SELECT CAST(coalesce(sum(n), 0) AS bigint) FROM counter WHERE space = ? AND name = ?`
	addSQL   = `INSERT INTO counter(space, name, slot, n) VALUES (?, ?, ?, ?)
		ON CONFLICT (space, name, slot) DO UPDATE SET n = counter.n + excluded.n`
	// A slot may fall below zero, their sum may not.
	subtractSQL = `INSERT INTO counter(space, name, slot, n) SELECT ?1, ?2, ?3, ?4
		WHERE (SELECT coalesce(sum(n), 0) FROM counter WHERE space = ?1 AND name = ?2) + CAST(?4 AS bigint) >= 0
		ON CONFLICT (space, name, slot) DO UPDATE SET n = counter.n + excluded.n`
)

// Count reads a counter. A transaction that writes holds it against limit: far below
// it, others that count up at this moment change nothing, however many they are; near
// it, and where there is no limit, one goes after the other.
func (h *handle) Count(space, name string, limit int64) (n int64, err error) {
	if h.writes && limit > 0 {
		if n, ok := h.e.counts.far(space, name, limit); ok {
			return n + h.added(space, name), nil
		}
	}
	if n, err = h.stored(space, name); err != nil || !h.writes || limit > 0 && n+h.c.max < limit {
		h.e.counts.saw(space, name, n, err)
		return n + h.added(space, name), err
	}
	if err := h.LockName("counter\x00" + space + "\x00" + name); err != nil {
		return 0, err
	}
	n, err = h.stored(space, name)
	return n + h.added(space, name), err
}

// counts remember for a moment how large counters were.
type counts struct {
	mu   sync.Mutex
	seen map[[2]string]counted
}

type counted struct {
	n  int64
	at time.Time
}

// far reports that a counter is so far below its limit that it cannot have come near it
// since it was read.
func (c *counts) far(space, name string, limit int64) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.seen[[2]string{space, name}]
	return was.n, ok && limit >= farLimit && was.n < limit/2 && time.Since(was.at) < farAge
}

func (c *counts) saw(space, name string, n int64, err error) {
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) > farKept {
		c.seen = map[[2]string]counted{}
	}
	c.seen[[2]string{space, name}] = counted{n, time.Now()}
}

func (h *handle) stored(space, name string) (n int64, err error) {
	err = h.Query(countSQL, []any{space, name}, func(r sqlrows.Row) error { n = r.Int(0); return nil })
	return n, err
}

func (h *handle) added(space, name string) (n int64) {
	for _, a := range h.adds {
		if a.space == space && a.name == name {
			n += a.n
		}
	}
	return n
}

// Add notes what is written at the end.
func (h *handle) Add(space, name string, n int64) error {
	if err := h.ready(); err != nil {
		return err
	}
	if !h.writes {
		return errors.New("a view cannot change a counter")
	}
	h.adds = append(h.adds, add{space, name, n})
	return nil
}

// writeAdds writes what was added, in an order in which no two wait for each other.
func (h *handle) writeAdds() error {
	slices.SortFunc(h.adds, func(a, b add) int { return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.name, b.name)) })
	for len(h.adds) > 0 {
		a := h.adds[0]
		n := h.added(a.space, a.name)
		h.adds = slices.DeleteFunc(h.adds, func(b add) bool { return b.space == a.space && b.name == a.name })
		if n == 0 {
			continue
		}
		w := sqlrows.Write{SQL: addSQL, Args: []any{a.space, a.name, h.c.slot, n}}
		if n < 0 {
			w.SQL, w.Lost = subtractSQL, func() error {
				return fmt.Errorf("the counter %s of space %s would fall below zero", a.name, a.space)
			}
		}
		if err := h.Write(w); err != nil {
			return err
		}
	}
	return nil
}
