package postgres

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
)

const (
	newRowsMax = 4096
	newRowsSQL = `SELECT seq, stream FROM event WHERE seq > ? ORDER BY seq LIMIT 4097`
	lateSQL    = `SELECT seq, stream FROM event WHERE seq = ANY (CAST(string_to_array(?, ',') AS bigint[]))`
	lastRowSQL = `SELECT (SELECT coalesce(max(seq), 0) FROM event), pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmax(pg_current_snapshot())`
	xminSQL    = `SELECT pg_snapshot_xmin(pg_current_snapshot())`

	// gapLife is longer than a transaction can take from drawing a number to its commit.
	gapLife = 2 * updateLimit
	gapsMax = 10_000
)

// watcher wakes those who wait for news of a stream. What others commit it is told by
// them; that may be lost, so every second it looks which events have come. Numbers are
// drawn before the commit: one that is missing may come yet, and is looked for again
// until its transaction cannot be under way any more.
type watcher struct {
	e     *engine
	wakes store.Wakes
	kick  chan struct{} // somebody came
	quit  chan struct{}
	done  chan struct{}

	// Of the goroutine alone.
	last  int64               // up to here everything has come or is a gap
	gaps  map[int64]time.Time // numbers that have not come, and since when
	idle  bool                // nobody watched: it begins anew
	old   int64               // transactions before this one may have drawn numbers before it began; 0: none
	since time.Time           // it began
}

func newWatcher(e *engine) *watcher {
	return &watcher{e: e, kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), gaps: map[int64]time.Time{}, idle: true}
}

func (w *watcher) watch(streams []string) (<-chan struct{}, func()) {
	woken, stop, alone := w.wakes.Watch(streams)
	if alone {
		store.Hint(w.kick)
	}
	return woken, stop
}

func (w *watcher) stop() {
	close(w.quit)
	<-w.done
}

func (w *watcher) loop() {
	defer close(w.done)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-w.kick:
			if !w.idle {
				continue
			}
		case <-tick.C:
		}
		if !w.wakes.Busy() || w.e.o.Hooks.Blind {
			w.idle = true
			continue
		}
		if err := w.look(); err != nil {
			w.e.o.Logger.Debug("looking for other processes' events failed", "store", w.e.where.String(), "error", err)
			w.wakes.WakeAll() // they look for themselves, and are told why that fails
		}
	}
}

// look reads which events have come, and wakes those who wait for their streams.
func (w *watcher) look() error {
	ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
	defer cancel()
	c, err := w.e.take(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	if w.idle {
		return w.begin(c)
	}
	if err := w.olders(c); err != nil {
		return err
	}
	streams := map[string]struct{}{}
	if err := w.late(c, streams); err != nil {
		return err
	}
	many, err := w.new(c, streams)
	if err != nil {
		return err
	}
	if many || len(w.gaps) > gapsMax {
		return w.begin(c)
	}
	w.wakes.Wake(slices.Collect(maps.Keys(streams))...)
	w.wakes.WakeDeliveries()
	return nil
}

// ask runs one statement outside of a transaction of ours.
func (w *watcher) ask(c *conn, sql string, args []any, each func(sqlrows.Row) error) error {
	if c.pooled {
		if err := c.send(request{sql: `BEGIN READ ONLY`}, nil); err != nil {
			return err
		}
		if err := c.send(request{sql: poolerSQL}, w.e.settings(c)); err != nil {
			return err
		}
	}
	if err := c.runFor(pollEvery+answerLimit, sql, args, each); err != nil || !c.pooled {
		return err
	}
	return c.run(commitSQL, nil, nil)
}

// begin sets out from now, and notes what is under way: whoever came before looks for
// himself.
func (w *watcher) begin(c *conn) error {
	err := w.ask(c, lastRowSQL, nil, func(r sqlrows.Row) error {
		w.last, w.old, w.since = max(r.Int(0)-newRowsMax/2, 0), 0, time.Now()
		if r.Int(1) < r.Int(2) {
			w.old = r.Int(2)
		}
		return nil
	})
	if err != nil {
		return err
	}
	clear(w.gaps)
	_, err = w.new(c, map[string]struct{}{})
	w.idle = err != nil
	w.wakes.WakeAll()
	return err
}

// olders wakes everybody until those transactions have ended that were under way when it
// began: their numbers may lie further back than was looked.
func (w *watcher) olders(c *conn) error {
	if w.old == 0 {
		return nil
	}
	oldest := int64(0)
	if err := w.ask(c, xminSQL, nil, func(r sqlrows.Row) error { oldest = r.Int(0); return nil }); err != nil {
		return err
	}
	if oldest >= w.old || time.Since(w.since) > gapLife {
		w.old = 0
	}
	w.wakes.WakeAll()
	return nil
}

// late finds those of the gaps that have come.
func (w *watcher) late(c *conn, streams map[string]struct{}) error {
	if len(w.gaps) == 0 {
		return nil
	}
	var list strings.Builder
	for seq, since := range w.gaps {
		if time.Since(since) > gapLife {
			delete(w.gaps, seq)
		}
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		list.WriteString(strconv.FormatInt(seq, 10))
	}
	return w.ask(c, lateSQL, []any{list.String()}, func(r sqlrows.Row) error {
		delete(w.gaps, r.Int(0))
		streams[r.Str(1)] = struct{}{}
		return nil
	})
}

func (w *watcher) new(c *conn, streams map[string]struct{}) (many bool, err error) {
	rows, now := 0, time.Now()
	err = w.ask(c, newRowsSQL, []any{w.last}, func(r sqlrows.Row) error {
		rows++
		for seq := w.last + 1; seq < r.Int(0) && len(w.gaps) <= gapsMax; seq++ {
			w.gaps[seq] = now
		}
		w.last = r.Int(0)
		streams[r.Str(1)] = struct{}{}
		return nil
	})
	return rows > newRowsMax, err
}
