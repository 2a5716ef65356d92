package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/txn"
)

// follower reads what a screen shows, and waits for what happens to it. One reading or one
// wait is under way at a time: nothing is heard of one that was begun before.
type follower struct {
	app    *app
	gen    int
	cancel context.CancelFunc
	away   time.Time // since when nothing can be read; zero: it can
}

// followedMsg says that something has happened.
type followedMsg struct {
	of  *follower
	gen int
	err error
}

// anew ends what was under way, and begins something else.
func (f *follower) anew() (context.Context, int) {
	f.stop()
	ctx, cancel := context.WithCancel(f.app.ctx)
	f.cancel = cancel
	return ctx, f.gen
}

func (f *follower) stop() {
	f.gen++
	if f.cancel != nil {
		f.cancel()
	}
}

// end is for a screen that is left.
func (f *follower) end() {
	f.stop()
	f.there()
}

func (f *follower) wait(stream string, after event.Cursor) tea.Cmd {
	ctx, gen := f.anew()
	return func() tea.Msg {
		return followedMsg{f, gen, untilNews(ctx, f.app.Store, f.app.Space, stream, after)}
	}
}

// untilNews returns once something has happened in a stream of a space behind a cursor.
func untilNews(ctx context.Context, s txn.Store, space, stream string, after event.Cursor) error {
	if err := review.CheckStream(ctx, s, space, stream); err != nil {
		return err
	}
	for {
		at, happened, err := review.Follow(ctx, s, space, stream, after)
		if happened || err != nil {
			return err
		}
		after = at
	}
}

func (f *follower) heard(m followedMsg, load func() tea.Cmd) tea.Cmd {
	if m.err == nil || errors.Is(m.err, event.ErrCursor) || errors.Is(m.err, event.ErrNoStream) {
		return load()
	}
	return f.lost(m.err, load)
}

// A reading that fails is tried again: a server may start anew, and a machine be busy. It is
// given up, and with it the inbox, once a screen could not be read for long.
const (
	retryAfter = time.Second
	longAway   = 30 * time.Second
)

// retryMsg says that a reading that failed is made again now, unless another was begun since.
type retryMsg struct {
	of    *follower
	gen   int
	again func() tea.Cmd
}

// lost is for a reading that failed. What was not asked any more did not, and a store that
// was closed under the inbox does not come back.
func (f *follower) lost(err error, again func() tea.Cmd) tea.Cmd {
	now := f.app.Now()
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, txn.ErrClosed), !f.away.IsZero() && now.Sub(f.away) > longAway:
		return f.app.fail(err)
	case f.away.IsZero():
		f.away = now
		f.app.away++
	}
	return f.app.After(retryAfter, retryMsg{f, f.gen, again})
}

// there notes that something was read.
func (f *follower) there() {
	if !f.away.IsZero() {
		f.away = time.Time{}
		f.app.away--
	}
}
