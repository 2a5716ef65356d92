package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

// together runs the closures in one batch, in order, and returns what each of
// their callers was told. A closure that panics or exits leaves errLeft.
func (b *bundle) together(fns ...func(*handle) error) []error {
	b.t.Helper()
	ctxs := make([]context.Context, len(fns))
	for i := range ctxs {
		ctxs[i] = context.Background()
	}
	return b.togetherWith(ctxs, fns...)
}

var errLeft = errors.New("the caller left")

func (b *bundle) togetherWith(ctxs []context.Context, fns ...func(*handle) error) []error {
	b.t.Helper()
	ks := make([]*call, len(fns))
	for i, fn := range fns {
		ks[i] = &call{ctx: ctxs[i], fn: fn}
	}
	return b.togetherCalls(ks...)
}

func (b *bundle) togetherCalls(ks ...*call) []error {
	b.t.Helper()
	release := b.plug()
	errs := make([]error, len(ks))
	var wg sync.WaitGroup
	for i, k := range ks {
		before := b.queued()
		errs[i] = errLeft
		wg.Go(func() {
			defer func() { _ = recover() }()
			errs[i] = b.run(k)
		})
		eventually(b.t, func() bool { return b.queued() > before || k.ctx.Err() != nil })
	}
	release()
	wg.Wait()
	return errs
}

// plug holds the writer inside a closure that writes nothing until release is
// called; what is queued meanwhile follows in the same batch.
func (b *bundle) plug() (release func()) {
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(done)
		defer once.Do(func() { close(held) }) // it may have been refused
		_ = b.update(context.Background(), func(*handle) error {
			once.Do(func() { close(held) })
			<-free
			return nil
		})
	}()
	<-held
	return func() {
		close(free)
		<-done
	}
}

func (b *bundle) queued() int {
	q := &b.writer.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.in)
}

// eventually waits for what another goroutine is about to do, which signals nothing.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it did not happen within five minutes")
		}
	}
}

func noteWriter(id string) func(*handle) error {
	return func(h *handle) error { return write(h, id) }
}

func TestManyWriters(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Hooks: &Hooks{Strict: true}})
	const callers = 32
	each := 100
	if raceEnabled {
		each = 20
	}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := b.write(fmt.Sprintf("%d-%d", c, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := b.number(countNotesSQL), int64(callers*each); got != want {
		t.Errorf("%d notes are there, %d were acknowledged", got, want)
	}
	b.sound()
}

// What becomes of one closure of three is nobody else's business.
func TestOneOfThree(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	tests := []struct {
		name string
		fn   func(*handle) error
		want error
	}{
		{"OwnError", func(h *handle) error { return errors.Join(write(h, "b"), own) }, own},
		{"Panic", func(h *handle) error { panic(write(h, "b")) }, errLeft},
		{"Goexit", func(h *handle) error { _ = write(h, "b"); runtime.Goexit(); return nil }, errLeft},
		{"Constraint", func(h *handle) error { return errors.Join(write(h, "b"), write(h, "forbidden")) }, errConstraint},
		{"NoSuchTable", func(h *handle) error {
			_, err := h.Exec(`INSERT INTO nothing VALUES (1)`)
			return errors.Join(write(h, "b"), err)
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.writer.maxWork = time.Minute
			errs := b.together(noteWriter("a"), tt.fn, noteWriter("c"))
			if errs[0] != nil || errs[2] != nil {
				t.Errorf("its neighbours were told %v and %v", errs[0], errs[2])
			}
			if tt.want == nil && errs[1] == nil || !errors.Is(errs[1], tt.want) && tt.want != nil {
				t.Errorf("it was told %v, want %v", errs[1], tt.want)
			}
			if errors.Is(errs[1], txn.ErrNotCommitted) {
				t.Errorf("its own error %v looks like the store's", errs[1])
			}
			if !b.has("a") || b.has("b") || !b.has("c") {
				t.Error("what it wrote stayed, or its neighbours' went")
			}
			b.mustWrite("d")
			b.sound() // the event number that it drew was drawn again
		})
	}
}

func TestPanicReachesItsCaller(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("the caller recovered %v", p)
		}
		b.mustWrite("after")
		b.sound()
	}()
	_ = b.update(context.Background(), func(h *handle) error { _ = write(h, "x"); panic("mine") })
}

func TestCallerLeavesBeforeItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxWork = time.Minute
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	release := b.plug()
	ran := false
	told := make(chan error)
	go func() {
		told <- b.update(ctx, func(*handle) error { ran = true; return nil })
	}()
	eventually(t, func() bool { return b.queued() == 1 })
	cancel(why)
	if err := <-told; !errors.Is(err, txn.ErrNotCommitted) || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("told %v", err)
	}
	release()
	b.mustWrite("a")
	if ran {
		t.Error("its closure ran although it was told that nothing began")
	}
	if err := b.update(ctx, noteWriter("b")); !errors.Is(err, context.Canceled) || b.has("b") {
		t.Errorf("with an ended context it was told %v", err)
	}
}

// A caller that is cancelled in the middle of its closure still gets the outcome.
func TestCallerIsCancelledInItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.writer.maxWork = time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	bg := context.Background()
	errs := b.togetherWith([]context.Context{bg, ctx, bg}, noteWriter("a"), func(h *handle) error {
		cancel()
		return write(h, "b")
	}, noteWriter("c"))
	for i, id := range []string{"a", "b", "c"} {
		if errs[i] != nil || !b.has(id) {
			t.Errorf("%s was told %v", id, errs[i])
		}
	}
	b.sound()
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	var begins int
	b := setup(t, Options{Hooks: &Hooks{BeforeStatement: func(_ int, sql string) error {
		if sql == beginSQL {
			begins++
		}
		return nil
	}}})
	b.writer.maxWork = time.Minute
	fns := make([]func(*handle) error, batchCalls+10)
	for i := range fns {
		fns[i] = noteWriter(fmt.Sprint(i))
	}
	for i, err := range b.together(fns...) {
		if err != nil {
			t.Errorf("%d was told %v", i, err)
		}
	}
	if begins != 2 {
		t.Errorf("%d closures took %d transactions, want 2", len(fns)+1, begins)
	}
	b.sound()
}

func TestNothingWrittenTouchesNoMeta(t *testing.T) {
	t.Parallel()
	var updates int
	b := setup(t, Options{Hooks: &Hooks{BeforeStatement: func(_ int, sql string) error {
		if sql == writeMetaSQL {
			updates++
		}
		return nil
	}}})
	err := b.update(context.Background(), func(h *handle) error {
		if _, err := h.Exec(`UPDATE note SET body = NULL WHERE id = 'nobody'`); err != nil {
			return err
		}
		_, err := h.queryRow(countNotesSQL, nil, func(sqlrows.Row) error { return nil })
		return err
	})
	if err != nil || updates != 0 {
		t.Errorf("told %v after %d updates of meta", err, updates)
	}
	b.mustWrite("a")
	if updates != 1 {
		t.Errorf("a write updated meta %d times", updates)
	}
}

func TestHandleIsVoidAfterItsClosure(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var kept *handle
	keep := func(h *handle) error { kept = h; return nil }
	for name, run := range map[string]func(context.Context, func(*handle) error) error{"Update": b.update, "View": b.view} {
		if err := run(context.Background(), keep); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Exec(insertNoteSQL, "x", 1, nil); !errors.Is(err, store.ErrOver) {
			t.Errorf("%s: exec said %v", name, err)
		}
		if err := kept.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil }); !errors.Is(err, store.ErrOver) {
			t.Errorf("%s: query said %v", name, err)
		}
		if _, err := kept.nextSeq(); !errors.Is(err, store.ErrOver) {
			t.Errorf("%s: nextSeq said %v", name, err)
		}
	}
}

func TestEveryClosureTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Hooks: &Hooks{Twice: true}})
	b.writer.maxWork = time.Minute
	runs := 0
	errs := b.together(noteWriter("a"), func(h *handle) error { runs++; return write(h, "b") }, noteWriter("c"))
	if err := errors.Join(errs...); err != nil || runs != 2 {
		t.Errorf("told %v after %d runs", err, runs)
	}
	looks := 0
	if err := b.view(context.Background(), func(h *handle) error { looks++; return nil }); err != nil || looks != 2 {
		t.Errorf("a view was told %v after %d runs", err, looks)
	}
	b.sound()
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	tests := []struct {
		name   string
		sql    string
		args   []any
		unique bool
	}{
		{"Unique", insertNoteSQL, []any{"a", 1, nil}, true},
		{"PrimaryKey", insertEventSQL, []any{1, "s", nil}, true},
		{"Check", insertNoteSQL, []any{"forbidden", 1, nil}, false},
		{"ForeignKey", insertNoteSQL, []any{"b", 99, nil}, false},
		{"NotNull", insertEventSQL, []any{9, nil, nil}, false},
		{"Strict", insertEventSQL, []any{9, []byte("s"), nil}, false},
	}
	for _, tt := range tests {
		err := b.update(context.Background(), func(h *handle) error { _, err := h.Exec(tt.sql, tt.args...); return err })
		if !isConstraint(err) || !errors.Is(err, errConstraint) || isUnique(err) != tt.unique {
			t.Errorf("%s: %v is constraint %v, unique %v", tt.name, err, isConstraint(err), isUnique(err))
		}
	}
	b.sound()
}
