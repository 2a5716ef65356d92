package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"
)

func awaits(t *testing.T, who string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s was not woken", who)
	}
}

func quiet(t *testing.T, who string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
		t.Errorf("%s was woken", who)
	default:
	}
}

// settle waits for the wake that tells the first newcomer to look, and takes
// what the others got of it.
func (b *bundle) settle(first <-chan struct{}, others ...<-chan struct{}) {
	b.t.Helper()
	awaits(b.t, "a newcomer", first)
	b.watcher.wakes.Busy() // it waits until all are woken
	for _, ch := range others {
		select {
		case <-ch:
		default:
		}
	}
}

func (b *bundle) writeTo(id, stream string) {
	b.t.Helper()
	err := b.update(context.Background(), func(h *handle) error { return writeTo(h, id, stream) })
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestWatchOwnCommits(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	one, stopOne := b.watch("run:1", "run:2")
	two, stopTwo := b.watch("run:2")
	all, stopAll := b.watch()
	defer stopAll()
	b.settle(one, two, all)
	b.writeTo("a", "run:1")
	awaits(t, "run:1", one)
	awaits(t, "all", all)
	quiet(t, "run:2", two)
	b.writeTo("b", "run:2")
	b.writeTo("c", "run:2") // two hints are one
	awaits(t, "run:1 and 2", one)
	awaits(t, "run:2", two)
	awaits(t, "all", all)
	stopTwo()
	stopTwo()
	stopOne()
	b.writeTo("d", "run:2")
	awaits(t, "all", all)
	quiet(t, "who stopped", two)
	quiet(t, "who stopped", one)
}

// Nobody is told of what was not committed.
func TestNoWakeWithoutCommit(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	ch, stop := b.watch("run:1")
	defer stop()
	b.settle(ch)
	own := errors.New("own")
	err := b.update(context.Background(), func(h *handle) error { return errors.Join(writeTo(h, "a", "run:1"), own) })
	if !errors.Is(err, own) {
		t.Error(err)
	}
	b.writeTo("b", "run:2")
	quiet(t, "run:1", ch)
}

// Another process's commits are found, and by their streams.
func TestWatchOtherProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	other := reopen(t, b.path, Options{})
	one, stopOne := b.watch("run:1")
	defer stopOne()
	all, stopAll := b.watch()
	defer stopAll()
	b.settle(one, all)
	began := time.Now()
	other.writeTo("a", "run:1")
	awaits(t, "run:1", one)
	awaits(t, "all", all)
	t.Logf("after %v", time.Since(began))
	other.writeTo("b", "run:2")
	awaits(t, "all", all)
	quiet(t, "run:1", one)
	// Theirs in front of our own, in one look.
	other.writeTo("c", "run:1")
	b.writeTo("d", "run:3")
	awaits(t, "run:1", one)
}

// Case 092: whoever comes late or sleeps through is woken once to look.
func TestWatchAfterARest(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	other := reopen(t, b.path, Options{})
	_, stop := b.watch("run:1")
	stop()
	for i := range 3 {
		other.writeTo(string(rune('a'+i)), "run:1")
	}
	ch, stop := b.watch("run:1")
	defer stop()
	awaits(t, "run:1", ch)
	other.writeTo("z", "run:1")
	awaits(t, "run:1", ch)
}

// More events than are worth reading wake everybody.
func TestWatchManyEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	other := reopen(t, b.path, Options{})
	ch, stop := b.watch("run:last")
	defer stop()
	b.settle(ch)
	n := newRowsMax + 100
	err := other.update(context.Background(), func(h *handle) error {
		for i := range n {
			stream := "run:other"
			if i == n-1 {
				stream = "run:last"
			}
			if err := writeTo(h, time.Duration(i).String(), stream); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	awaits(t, "run:last", ch)
}
