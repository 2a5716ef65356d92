package sqlite

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/store/sqlrows"
)

// holding is a closure that holds its only note back; half makes it fail behind that.
func (b *bundle) holding(id string, half error, runs *int) *call {
	var h *handle
	held := false
	return &call{
		ctx: context.Background(),
		fn: func(now *handle) error {
			*runs++
			h, held = now, true
			return nil
		},
		write: func(bool) error {
			if !held {
				return nil
			}
			held = false
			if err := write(h, id); err != nil {
				return err
			}
			return half
		},
	}
}

// What is held back needs no savepoint, and is one closure's all the same.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	var seen []string
	b := setup(t, Options{Hooks: &Hooks{BeforeStatement: func(_ int, sql string) error {
		seen = append(seen, sql)
		return nil
	}}})
	var runs [2]int
	seen = nil
	errs := b.togetherCalls(b.holding("a", nil, &runs[0]), b.holding("b", nil, &runs[1]))
	if errs[0] != nil || errs[1] != nil || !b.has("a") || !b.has("b") || runs != [2]int{1, 1} {
		t.Errorf("told %v after %v runs", errs, runs)
	}
	saves := 0
	for _, sql := range seen {
		if sql == savepointSQL {
			saves++
		}
	}
	if saves != 1 { // of the closure that holds the writer up
		t.Errorf("%d savepoints, want 1", saves)
	}
	b.sound()
}

// One that fails when some of it is written takes the batch with it: each is run
// again by itself, and only that one is told.
func TestHeldBackFailsHalfway(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxWork = time.Minute
	own := errors.New("own")
	var runs [3]int
	errs := b.togetherCalls(b.holding("a", nil, &runs[0]), b.holding("b", own, &runs[1]), b.holding("c", nil, &runs[2]))
	if !slices.Equal(errs, []error{nil, own, nil}) {
		t.Errorf("told %v", errs)
	}
	if runs != [3]int{2, 2, 1} {
		t.Errorf("ran %v times", runs) // the third had not begun when the batch was given up
	}
	if !b.has("a") || b.has("b") || !b.has("c") {
		t.Error("what is there does not agree")
	}
	b.sound()
}

// A caller who left before its turn is not among those that are run again.
func TestHeldBackFailsBesideALeaver(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxWork = time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	own := errors.New("own")
	var runs [2]int
	leaves := b.holding("a", nil, &runs[0])
	leaves.ctx = ctx
	fails := b.holding("b", own, &runs[1])
	hold := fails.fn
	fails.fn = func(h *handle) error { cancel(); return hold(h) }
	errs := b.togetherCalls(fails, leaves)
	if !errors.Is(errs[0], own) || !errors.Is(errs[1], context.Canceled) || runs != [2]int{0, 2} || b.has("a") {
		t.Errorf("told %v after %v runs", errs, runs)
	}
	b.sound()
}

// A statement of the closure's own comes after what it held back before, and can
// be taken back together with that.
func TestHeldBackBeforeAStatement(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxWork = time.Minute
	own := errors.New("own")
	runs, found := 0, false
	k := b.holding("a", nil, &runs)
	hold := k.fn
	k.fn = func(h *handle) error {
		_ = hold(h)
		err := h.Query(`SELECT 1 FROM note WHERE id = 'a'`, nil, func(sqlrows.Row) error { found = true; return nil })
		return errors.Join(err, own)
	}
	others := 0
	errs := b.togetherCalls(b.holding("x", nil, &others), k, b.holding("y", nil, &others))
	if errs[0] != nil || !errors.Is(errs[1], own) || errs[2] != nil || !found {
		t.Errorf("told %v; it found what it had written: %v", errs, found)
	}
	if b.has("a") || !b.has("x") || !b.has("y") || others != 2 {
		t.Error("what is there does not agree")
	}
	b.sound()
}
