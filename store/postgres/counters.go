package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	// Whoever shares the lock may be about to add; what others wrote before they held it alone is seen.
	shareNameSQL = `SELECT pg_advisory_xact_lock_shared(?)`
	addWithinSQL = `INSERT INTO counter(space, name, slot, n) SELECT ?1, ?2, ?3, ?4
		WHERE (SELECT coalesce(sum(n), 0) FROM counter WHERE space = ?1 AND name = ?2) <= CAST(?5 AS bigint)
		ON CONFLICT (space, name, slot) DO UPDATE SET n = counter.n + excluded.n`
	// A slot may fall below zero, their sum may not.
	subtractSQL = `INSERT INTO counter(space, name, slot, n) SELECT ?1, ?2, ?3, ?4
		WHERE (SELECT coalesce(sum(n), 0) FROM counter WHERE space = ?1 AND name = ?2) + CAST(?4 AS bigint) >= 0
		ON CONFLICT (space, name, slot) DO UPDATE SET n = counter.n + excluded.n`
)

// Count is how large a counter is. A transaction that writes holds it against limit, and
// does so where it writes: while there is room for all who may count up at this moment they
// share a lock, and each looks once more before it adds; it is told 0 and no figure then. Who
// finds that little room is run again and goes by the figure, alone, as everybody does for a
// limit that is low, and for none at all.
func (h *handle) Count(space, name string, limit int64) (n int64, err error) {
	if !h.writes {
		return h.stored(space, name)
	}
	if err := h.open(); err != nil {
		return 0, h.told(err)
	}
	added, key := h.added(space, name), counterKey{space, name}
	if room := limit - h.c.max*roomEach; room > 0 && added < roomEach && !h.exact && !h.e.isNear() {
		if h.rooms == nil {
			h.rooms = map[counterKey]int64{}
		}
		h.rooms[key] = room
		return added, nil
	}
	delete(h.rooms, key)
	if err := h.LockName(key.lock()); err != nil {
		return 0, err
	}
	n, err = h.stored(space, name)
	return n + added, err
}

type counterKey struct{ space, name string }

func (k counterKey) lock() string { return "counter\x00" + k.space + "\x00" + k.name }

// errNear: a counter is so near its limit that those who count up go one after the other.
var errNear = errors.New("a counter is near its limit")

// isNear reports that some counter was near its limit lately.
func (e *engine) isNear() bool { return time.Now().UnixNano() < e.nearUntil.Load() }

func (e *engine) near() { e.nearUntil.Store(time.Now().Add(nearFor).UnixNano()) }

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

// writeAdds writes what was added, in an order in which no two wait for each other: locks
// first, then the rows.
func (h *handle) writeAdds() error {
	slices.SortFunc(h.adds, func(a, b add) int { return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.name, b.name)) })
	var writes []sqlrows.Write
	for len(h.adds) > 0 {
		key := counterKey{h.adds[0].space, h.adds[0].name}
		n := h.added(key.space, key.name)
		h.adds = slices.DeleteFunc(h.adds, func(b add) bool { return b.space == key.space && b.name == key.name })
		if n == 0 {
			continue
		}
		room, bounded := h.rooms[key]
		if n > 0 && bounded {
			if err := h.send(request{sql: shareNameSQL}, h.nameKey(key.lock())); err != nil {
				return err
			}
			if n > roomEach {
				room = -1 // it is not for many
			}
		}
		writes = append(writes, h.addition(key, n, room, bounded))
	}
	for _, w := range writes {
		if err := h.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// addition adds n to a counter, of which nothing may be left below zero, nor added beyond
// room.
func (h *handle) addition(key counterKey, n, room int64, bounded bool) sqlrows.Write {
	w := sqlrows.Write{SQL: addSQL, Args: []any{key.space, key.name, h.c.slot, n}}
	switch {
	case n < 0:
		w.SQL, w.Lost = subtractSQL, func() error {
			return fmt.Errorf("the counter %s of space %s would fall below zero", key.name, key.space)
		}
	case bounded:
		w.SQL, w.Args, w.Lost = addWithinSQL, append(w.Args, room), func() error { return errNear }
	}
	return w
}
