package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlrows"
	"github.com/placet-dev/placet/txn"
)

func TestViewIsOneMoment(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	err := b.view(context.Background(), func(h *handle) error {
		count := func() (n int64) {
			if err := h.Query(countNotesSQL, nil, func(r sqlrows.Row) error { n = r.Int(0); return nil }); err != nil {
				t.Error(err)
			}
			return n
		}
		before := count()
		b.mustWrite("b")
		if after := count(); before != 1 || after != 1 {
			t.Errorf("one view saw %d and %d notes", before, after)
		}
		return nil
	})
	if err != nil || !b.has("b") {
		t.Errorf("told %v", err)
	}
}

func TestViewCannotWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	err := b.view(context.Background(), func(h *handle) error {
		if h.writable() {
			t.Error("a view calls itself writable")
		}
		if _, err := h.Exec(insertEventSQL, 1, "s", nil); err == nil {
			t.Error("exec worked")
		}
		if _, err := h.nextSeq(); err == nil {
			t.Error("nextSeq worked")
		}
		return h.Query(`INSERT INTO junk VALUES (1) RETURNING i`, nil, func(sqlrows.Row) error { return nil })
	})
	if err == nil || b.number(`SELECT count(*) FROM junk`) != 0 {
		t.Errorf("a view wrote, and was told %v", err)
	}
}

func TestViewEnds(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	look := func(h *handle) error { return h.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil }) }

	ctx, cancel := context.WithCancel(context.Background())
	err := b.view(ctx, func(h *handle) error { cancel(); return look(h) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	if err := b.view(ctx, look); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	err = b.view(context.Background(), func(h *handle) error {
		h.ends = time.Now().Add(-time.Millisecond) // its second is over
		return look(h)
	})
	if !errors.Is(err, store.ErrLong) || !strings.Contains(err.Error(), "second") {
		t.Errorf("after its time: %v", err)
	}
	err = b.view(context.Background(), func(h *handle) error {
		h.ends = time.Now().Add(20 * time.Millisecond)
		const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`
		return h.Query(endless, nil, func(sqlrows.Row) error { return nil })
	})
	if !errors.Is(err, store.ErrLong) {
		t.Errorf("an endless result: %v", err)
	}
	own := errors.New("own")
	err = b.view(context.Background(), func(h *handle) error {
		return h.Query(`SELECT 1`, nil, func(sqlrows.Row) error { return own })
	})
	if err != own {
		t.Errorf("its own error came back as %v", err)
	}
	if err := b.view(context.Background(), look); err != nil {
		t.Errorf("the next view: %v", err)
	}
}

// A closure that reads runs on the connection's goroutine, and ends its caller as if it
// had run there.
func TestViewPanics(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Readers: 1})
	for range 3 {
		func() {
			defer func() {
				if p := recover(); p != "mine" {
					t.Errorf("its caller recovered %v", p)
				}
			}()
			_ = b.view(context.Background(), func(h *handle) error {
				return h.Query(`SELECT 1`, nil, func(sqlrows.Row) error { panic("mine") })
			})
			t.Error("the view returned")
		}()
	}
	for range 3 {
		returned, ended := false, make(chan struct{})
		go func() {
			defer close(ended)
			_ = b.view(context.Background(), func(h *handle) error {
				return h.Query(`SELECT 1`, nil, func(sqlrows.Row) error { runtime.Goexit(); return nil })
			})
			returned = true
		}()
		<-ended
		if returned {
			t.Error("the view of a goroutine that ended returned")
		}
	}
	if b.has("a") { // its connection came back
		t.Error("a row out of nowhere")
	}
}

// Nothing that a test sees tells a statement that is prepared again from one that is
// not, except its time.
func TestLimitsAreBoundWithoutPreparing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../sqlrows/*.go")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "LIMIT ?") {
			t.Errorf("%s has LIMIT ?; SQLite prepares such a statement again whenever it is bound: see pageSize", f)
		}
	}
}

func TestViewWaitsForAConnection(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Readers: 1})
	err := b.view(context.Background(), func(h *handle) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		return b.view(ctx, func(h *handle) error { return nil })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("told %v", err)
	}
}

// The log stays small although there is never a moment without a read, and
// nobody waits for long.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	rows, wide, limit := 200, 256<<10, int64(walLimit)
	if raceEnabled {
		rows, limit = 60, 4<<20
	}
	b.writer.maxLog = limit
	stop := make(chan struct{})
	var reads atomic.Int64
	var wg sync.WaitGroup
	for i := range b.o.Readers {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 3 * foldWait / time.Duration(b.o.Readers)) // overlapping
			for ctx := context.Background(); ; reads.Add(1) {
				select {
				case <-stop:
					return
				default:
				}
				err := b.view(ctx, func(h *handle) error {
					time.Sleep(3 * foldWait) // long enough that SQLite's own wait for it is in vain
					return h.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil })
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var most int64
	for i := range rows {
		err := b.update(context.Background(), func(h *handle) error {
			seq, err := h.nextSeq()
			if err != nil {
				return err
			}
			if _, err := h.Exec(insertEventSQL, seq, "run:1", make([]byte, wide)); err != nil {
				return err
			}
			_, err = h.Exec(insertNoteSQL, fmt.Sprint(i), seq, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, b.file.logSize())
	}
	close(stop)
	wg.Wait()
	t.Logf("%d MiB written, %d reads, the log was %d MiB at most", rows*wide>>20, reads.Load(), most>>20)
	if most > 2*limit || most < limit/2 {
		t.Errorf("the log grew to %d bytes, its limit is %d", most, limit)
	}
	b.sound()
}

// A read that is stuck keeps the log, and nothing else.
func TestStuckReadDoesNotStopTheWriter(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Hooks: &Hooks{Slow: time.Hour}})
	b.writer.maxLog = 1
	b.mustWrite("a")
	free, held, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = b.view(context.Background(), func(h *handle) error {
			err := h.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil })
			close(held)
			<-free
			return err
		})
	}()
	<-held
	for i := range 2 * foldLook {
		b.mustWrite(fmt.Sprint(i))
	}
	close(free)
	<-done
	if !b.has("0") {
		t.Error("the gate stayed shut")
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx := context.Background()
		if err := g.enter(ctx); err != nil {
			t.Fatal(err)
		}
		if g.shut(time.Second) {
			t.Error("it was empty with a read inside")
		}
		g.open()
		go func() { time.Sleep(time.Second / 2); g.leave() }()
		if !g.shut(time.Second) {
			t.Error("it did not wait for the read")
		}
		late, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := g.enter(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("entering a shut gate: %v", err)
		}
		entered := make(chan error)
		go func() { entered <- g.enter(ctx) }()
		synctest.Wait()
		g.open()
		if err := <-entered; err != nil {
			t.Error(err)
		}
		g.leave()
	})
}

// Rule 8: the store's time never goes back, whatever the clock does.
func TestClock(t *testing.T) {
	t.Parallel()
	var wall atomic.Int64
	wall.Store(1_000_000)
	o := Options{Now: func() time.Time { return time.UnixMicro(wall.Load()).Add(999 * time.Nanosecond) }}
	b := setup(t, o)
	now := func(run func(context.Context, func(*handle) error) error) (at time.Time) {
		err := run(context.Background(), func(h *handle) error {
			at = h.Now()
			if wall.Add(5); !h.Now().Equal(at) {
				t.Error("the time moved inside a closure")
			}
			if h.writable() {
				return write(h, fmt.Sprint("at-", wall.Load()))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if at.Location() != time.UTC || at.Nanosecond()%1000 != 0 {
			t.Errorf("%v is not in whole microseconds of UTC", at)
		}
		return at
	}
	first := now(b.update)
	if first.UnixMicro() != 1_000_000 {
		t.Errorf("the first time is %v", first)
	}
	wall.Store(500)
	for _, run := range []func(context.Context, func(*handle) error) error{b.update, b.view} {
		if at := now(run); at.Before(first) {
			t.Errorf("after %v came %v", first, at)
		}
	}
	// Another process's clock runs ahead: from its commit on, so does ours.
	ahead := reopen(t, b.path, Options{Now: func() time.Time { return time.UnixMicro(9_000_000) }})
	ahead.mustWrite("ahead")
	if at := now(b.view); at.UnixMicro() < 9_000_000 {
		t.Errorf("a view sees a commit of 9 s and calls it %v", at)
	}
	b.shut()
	again := reopen(t, b.path, o)
	if at := now(again.update); at.UnixMicro() < 9_000_000 {
		t.Errorf("a new process begins at %v", at)
	}
}

// While the wall clock is behind, time goes on, slower, and meets it again.
func TestClockCatchesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &clock{}
		start := time.Now()
		at := func() time.Duration { now, _ := c.read(); return time.UnixMicro(now).Sub(start) }
		c.saw(start.Add(40 * time.Second).UnixMicro())
		for _, tt := range []struct{ sleep, want time.Duration }{
			{0, 40 * time.Second},
			{20 * time.Second, 50 * time.Second},
			{20 * time.Second, 60 * time.Second},
			{40 * time.Second, 80 * time.Second},
			{time.Second, 81 * time.Second},
		} {
			time.Sleep(tt.sleep)
			if got := at(); got != tt.want {
				t.Errorf("after %v more it is %v, want %v", tt.sleep, got, tt.want)
			}
		}
	})
}

// One commit under a clock far ahead must not stop all expiry: the store is not
// written until the clock is right, or somebody says that it is.
func TestCommitFarAhead(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Logger: slog.New(slog.DiscardHandler)})
	b.mustWrite("a")
	ahead := reopen(t, b.path, Options{Now: func() time.Time { return time.Now().Add(90 * 24 * time.Hour) }})
	ahead.mustWrite("b")
	ahead.shut()
	err := b.write("c")
	if !errors.Is(err, txn.ErrNotCommitted) || !strings.Contains(err.Error(), "2160h0m0s ahead") || !strings.Contains(err.Error(), b.path) {
		t.Errorf("an update was told %v", err)
	}
	if !b.has("b") {
		t.Error("it cannot be read")
	}
	if err := testAdmin(t, b.path).accept(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.mustWrite("c")
	if epoch, _, _ := b.life(); epoch != 2 {
		t.Errorf("epoch %d", epoch)
	}
	err = b.view(context.Background(), func(h *handle) error {
		if d := time.Until(h.Now()); d > time.Minute {
			t.Errorf("its time is %v ahead", d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := testAdmin(t, b.path).accept(context.Background()); err == nil {
		t.Error("there was nothing more to accept")
	}
}

// Case 052: the clock is read once the lock is held, not while it is awaited.
func TestClockIsReadAfterTheLock(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	release := b.plug()
	at := make(chan time.Time, 1)
	go func() {
		_ = b.update(context.Background(), func(h *handle) error { at <- h.Now(); return nil })
	}()
	eventually(t, func() bool { return b.queued() == 1 })
	released := time.Now().Truncate(time.Microsecond)
	release()
	if got := <-at; got.Before(released) {
		t.Errorf("it calls itself %v, and began after %v", got, released)
	}
}

func TestSlowClosure(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Hooks: &Hooks{Slow: time.Millisecond}})
	slow := func(*handle) error { time.Sleep(60 * time.Millisecond); return nil }
	if err := errors.Join(b.update(context.Background(), slow), b.view(context.Background(), slow)); err != nil {
		t.Error(err)
	}
	for _, w := range []string{"only write transaction stays open", "writes=true", "writes=false", b.path} {
		if !strings.Contains(b.log.String(), w) {
			t.Errorf("the log does not say %q:\n%s", w, b.log.String())
		}
	}
	strict := setup(t, Options{Hooks: &Hooks{Slow: 50 * time.Millisecond, SlowPanics: true}})
	for name, run := range map[string]func(context.Context, func(*handle) error) error{"Update": strict.update, "View": strict.view} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a slow %s did not panic", name)
				}
			}()
			_ = run(context.Background(), slow)
		}()
	}
	strict.mustWrite("a")
}

func TestNestedIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Hooks: &Hooks{Strict: true}})
	nothing := func(*handle) error { return nil }
	for name, outer := range map[string]func(context.Context, func(*handle) error) error{"Update": b.update, "View": b.view} {
		err := outer(context.Background(), func(h *handle) error {
			for _, inner := range []func(context.Context, func(*handle) error) error{b.update, b.view} {
				if err := inner(context.Background(), nothing); !errors.Is(err, store.ErrNested) {
					t.Errorf("inside %s: %v", name, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	b.mustWrite("a") // the mark is taken off again
}

func TestClose(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.mustWrite("a")
	woken, stop := b.watch("run:1")
	release := b.plug()
	queued, closed := make(chan error), make(chan error)
	go func() { queued <- b.write("queued") }()
	eventually(t, func() bool { return b.queued() == 1 })
	go func() { closed <- b.close() }()
	eventually(t, b.writer.queue.isClosed)
	if err := b.write("late"); !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("while it closes: %v", err)
	}
	release()
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := b.close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	queuedErr := <-queued // it had not begun, or it was in the last batch
	if err := b.write("after"); !errors.Is(err, txn.ErrNotCommitted) {
		t.Errorf("after it: %v", err)
	}
	if err := b.view(context.Background(), func(*handle) error { return nil }); err == nil {
		t.Error("a view works after it")
	}
	stop()
	select {
	case <-woken:
	default:
	}
	for _, ext := range []string{"-wal", "-shm"} {
		if _, err := os.Lstat(b.path + ext); err == nil {
			t.Errorf("placet.db%s stays behind", ext)
		}
	}
	again := reopen(t, b.path, Options{})
	if again.has("queued") != (queuedErr == nil) || again.has("late") || again.has("after") {
		t.Errorf("the queued one was told %v", queuedErr)
	}
}

func TestCloseWaitsForViews(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	closed := make(chan error, 1)
	err := b.view(context.Background(), func(h *handle) error {
		go func() { closed <- b.close() }()
		<-b.readers.quit
		select {
		case <-closed:
			t.Error("it closed under a view")
		default:
		}
		return h.Query(countNotesSQL, nil, func(sqlrows.Row) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
