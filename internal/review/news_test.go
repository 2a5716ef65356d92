package review_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// counted is a store of which it is known how often it was read, and that can become
// another one.
type counted struct {
	*store.Store
	views atomic.Int64
}

func (c *counted) View(ctx context.Context, fn func(txn.Tx) error) error {
	c.views.Add(1)
	return c.Store.View(ctx, fn)
}

func open(t *testing.T) *store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// park has a call wait, and names its approval and its stream.
func park(t *testing.T, st txn.Store, space string) (id, stream string) {
	t.Helper()
	return parkWith(t, st, space, `{}`)
}

func parkWith(t *testing.T, st txn.Store, space, args string) (id, stream string) {
	t.Helper()
	never := tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("it ran") })
	tools, err := tool.NewRegistry(tool.Tool{Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation}, Run: never})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call.NewExecutor(call.Config{Store: st, Space: space, Tools: tools, Log: slog.New(slog.DiscardHandler)}).Call(t.Context(), "refund", []byte(args))
	var p *call.PendingError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	return p.ApprovalID, "call:" + p.CallID
}

// end is where the log ends.
func end(t *testing.T, st txn.Store) event.Cursor {
	t.Helper()
	page, err := event.Read(t.Context(), st, "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return page.Cursor
}

// told is what somebody hears who follows from a place.
func told(t *testing.T, room *review.Newsroom, after event.Cursor) (ids []string, seen event.Cursor) {
	t.Helper()
	n, err := room.Read(t.Context(), review.Filter{}, after)
	if err != nil {
		t.Error(err)
	}
	for _, d := range n.Waiting {
		ids = append(ids, d.ID)
	}
	return ids, n.Seen
}

// However many follow the queue, what happens is read once; and nobody misses any of it,
// wherever their pages end.
func TestNewsForMany(t *testing.T) {
	t.Parallel()
	st := &counted{Store: open(t)}
	var places []event.Cursor
	var ids []string
	for range 4 {
		places = append(places, end(t, st))
		id, _ := park(t, st, event.MainSpace)
		ids = append(ids, id)
	}
	room := &review.Newsroom{Store: st, Space: event.MainSpace}
	_, seen := told(t, room, places[2])
	once := st.views.Load()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if got, to := told(t, room, places[2+i%2]); to != seen || !slices.Contains(got, ids[3]) {
				t.Errorf("somebody is told of %q up to %s", got, to)
			}
		})
	}
	all.Wait()
	if n := st.views.Load() - once; n > 200 { // whether it still holds
		t.Errorf("200 more who follow read the store %d times", n)
	}
	if got, _ := told(t, room, places[0]); !slices.Equal(got, ids) {
		t.Errorf("who comes from before is told of %q", got)
	}
	fresh, _ := park(t, st, event.MainSpace)
	if got, to := told(t, room, seen); !slices.Equal(got, []string{fresh}) || to == seen {
		t.Errorf("what came since is %q", got)
	}
}

// Large requests are told a few at a time: a view does not last. Nobody misses one.
func TestNewsOfLargeRequests(t *testing.T) {
	t.Parallel()
	st := open(t)
	var want, got []string
	for range 20 {
		id, _ := parkWith(t, st, event.MainSpace, `{"text":"`+strings.Repeat("x", 900_000)+`"}`)
		want = append(want, id)
	}
	room, at, reads := &review.Newsroom{Store: st, Space: event.MainSpace}, event.Cursor(""), 0
	for ; at != end(t, st); reads++ {
		ids, seen := told(t, room, at)
		if seen == at {
			t.Fatalf("it stays at %s", at)
		}
		got, at = append(got, ids...), seen
	}
	if !slices.Equal(got, want) || reads < 2 {
		t.Errorf("told of %d of %d in %d readings", len(got), len(want), reads)
	}
}

// A store that went back in time gives the same places again, to other events: who follows
// in this life is told nothing of the other.
func TestNewsOfThisLife(t *testing.T) {
	t.Parallel()
	lost, now := open(t), open(t)
	st := &counted{Store: lost}
	room := &review.Newsroom{Store: st, Space: event.MainSpace}
	park(t, lost, event.MainSpace)
	park(t, lost, event.MainSpace)
	if _, err := room.Read(t.Context(), review.Filter{}, ""); err != nil {
		t.Fatal(err)
	}
	st.Store = now
	first, _ := park(t, now, event.MainSpace)
	if got, _ := told(t, room, ""); !slices.Equal(got, []string{first}) { // the beginning is the same in both
		t.Errorf("told of %q, want %s", got, first)
	}
	place := end(t, now)
	want, _ := park(t, now, event.MainSpace)
	if got, seen := told(t, room, place); !slices.Equal(got, []string{want}) || seen != end(t, now) {
		t.Errorf("told of %q up to %s, want %s up to %s", got, seen, want, end(t, now))
	}
	if _, err := room.Read(t.Context(), review.Filter{}, end(t, lost)); !errors.Is(err, event.ErrCursor) {
		t.Errorf("a place of the other life: %v", err)
	}
}

// Who follows is woken by the own space alone, and goes on behind what was another's.
func TestFollowHoldsTheSpace(t *testing.T) {
	t.Parallel()
	st := open(t)
	_, stream := park(t, st, "other")
	if err := review.CheckStream(t.Context(), st, event.MainSpace, stream); !errors.Is(err, event.ErrNoStream) {
		t.Errorf("a stream of another space: %v", err)
	}
	if err := errors.Join(review.CheckStream(t.Context(), st, "other", stream), review.CheckStream(t.Context(), st, event.MainSpace, "")); err != nil {
		t.Error(err)
	}
	foreign := end(t, st)
	at, happened, err := review.FollowFor(t.Context(), st, event.MainSpace, "", "", time.Millisecond)
	if happened || err != nil || at != foreign {
		t.Errorf("woken: %t, goes on at %s and not at %s: %v", happened, at, foreign, err)
	}
	if _, happened, err := review.Follow(t.Context(), st, "other", "", ""); !happened || err != nil {
		t.Errorf("the other space itself: %t, %v", happened, err)
	}
	ours, _ := park(t, st, event.MainSpace)
	if at, happened, err = review.Follow(t.Context(), st, event.MainSpace, "", foreign); !happened || err != nil || at != foreign {
		t.Errorf("ours: %t at %s, %v", happened, at, err)
	}
	room := &review.Newsroom{Store: st, Space: event.MainSpace}
	if got, _ := told(t, room, ""); strings.Join(got, " ") != ours {
		t.Errorf("told of %q", got)
	}
}
