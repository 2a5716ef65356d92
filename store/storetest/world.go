package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// patience bounds every wait of a test. It is long: it only ends what hangs.
const patience = 5 * time.Minute

// wholeTest bounds a test in all, however slow the machine is.
const wholeTest = 20 * time.Minute

// world is one test's own store and what it takes to use it.
type world struct {
	*testing.T
	b     Backend
	place Instance
	s     *store.Store
	ctx   context.Context
}

func setup(t *testing.T, b Backend) *world {
	t.Helper()
	place := b.New(t)
	return at(t, b, place, place.Open(t, Options{}))
}

func at(t *testing.T, b Backend, place Instance, s *store.Store) *world {
	ctx, cancel := context.WithTimeout(t.Context(), wholeTest)
	t.Cleanup(cancel)
	return &world{T: t, b: b, place: place, s: s, ctx: ctx}
}

// open opens another handle, as another process would.
func (w *world) open(o Options) *store.Store {
	w.Helper()
	return w.place.Open(w.T, o)
}

// with is the same world seen through another handle.
func (w *world) with(s *store.Store) *world {
	v := *w
	v.s = s
	return &v
}

// reopen closes the handle and opens another.
func (w *world) reopen() {
	w.Helper()
	w.close()
	w.s = w.open(Options{})
}

func (w *world) close() {
	w.Helper()
	if err := w.s.Close(); err != nil {
		w.Fatalf("close: %v", err)
	}
}

func (w *world) update(fn func(tx store.Tx) error) error { return txn.Update(w.ctx, w.s, fn) }

func (w *world) view(fn func(tx store.Tx) error) error { return txn.View(w.ctx, w.s, fn) }

// write is an update that has to be committed.
func (w *world) write(fn func(tx store.Tx) error) {
	w.Helper()
	if err := w.update(fn); err != nil {
		w.Fatalf("update: %v", err)
	}
}

// refused is an update that has to end with an error matching want (nil: any)
// and to leave nothing.
func (w *world) refused(want error, fn func(tx store.Tx) error) {
	w.Helper()
	before := w.look()
	switch err := w.update(fn); {
	case err == nil:
		w.Error("the update was committed")
	case want != nil && !errors.Is(err, want):
		w.Errorf("the update ended with %v, want an error matching %v", err, want)
	}
	w.same(before, w.look())
}

// read runs one query and returns what it found.
func read[T any](w *world, query func(tx store.Tx) (T, error)) T {
	w.Helper()
	v, err := try(w, query)
	if err != nil {
		w.Fatalf("view: %v", err)
	}
	return v
}

func try[T any](w *world, query func(tx store.Tx) (T, error)) (T, error) {
	var v T
	err := w.view(func(tx store.Tx) (err error) {
		v, err = query(tx)
		return err
	})
	return v, err
}

// same compares exactly: nil is not empty, and times are UTC.
func (w *world) same(want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got, exact); diff != "" {
		w.Errorf("(-want +got)\n%s", diff)
	}
}

// exact also saves looking at large values byte by byte.
var exact = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a == b }),
	cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }),
}

// skipWithout leaves out what the backend does not declare.
func (w *world) skipWithout(declared bool, what string) {
	w.Helper()
	if !declared {
		w.Skipf("%s does not declare %s", w.b.Name, what)
	}
}

// skipRace leaves out what is slow under the race detector and shows no race.
func (w *world) skipRace() {
	w.Helper()
	if thorough > 1 {
		w.Skip("too slow under the race detector")
	}
}

// together runs fn(0) to fn(n-1) at one moment and returns when all have ended.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// rounds is how often something is repeated, less often under the race detector.
func rounds(n int) int { return max(n/thorough, 3) }

// await waits for a signal.
func (w *world) await(what string, signal <-chan struct{}) {
	w.Helper()
	select {
	case <-signal:
	case <-w.ctx.Done():
		w.Fatalf("waiting for %s: %v", what, w.ctx.Err())
	}
}

// whole fails unless every field of the struct type is set in one of the values
// at least, so that a field which is added is covered or noticed.
func whole[T any](w *world, values ...T) {
	w.Helper()
	typ := reflect.TypeFor[T]()
	for i := range typ.NumField() {
		set := false
		for _, v := range values {
			set = set || !reflect.ValueOf(v).Field(i).IsZero()
		}
		if !set {
			w.Errorf("no example of %s sets %s", typ, typ.Field(i).Name)
		}
	}
}
