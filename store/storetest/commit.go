package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func commit(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"together":              commitTogether,
		"not at all":            commitNotAtAll,
		"the closure's error":   commitOwnError,
		"panic":                 commitPanic,
		"goexit":                commitGoexit,
		"twice":                 commitTwice,
		"swallowed failure":     commitSwallowed,
		"nested":                commitNested,
		"after the end":         commitAfterEnd,
		"a view writes nothing": viewWritesNothing,
		"a view stands still":   viewStandsStill,
		"a view ends":           viewEnds,
		"durable":               commitDurable,
		"cancelled before":      commitCancelledBefore,
		"cancelled inside":      commitCancelledInside,
		"closed":                commitClosed,
		"failed commit":         commitFailed,
		"unknown":               commitUnknown,
		"the clock":             clockOnlyGrows,
	})
}

// park is all that one transaction writes when a call is parked: the root, the
// approval, their events and the counter.
func park(tx store.Tx, c call.Call, d decision.Decision) error {
	if err := tx.InsertCall(c, born(c)); err != nil {
		return err
	}
	if err := tx.InsertDecision(d, asked(d)); err != nil {
		return err
	}
	if err := tx.InsertAttempt(oneAttempt(c)); err != nil {
		return err
	}
	return tx.PutGuard(call.Guard{Space: c.Space, Name: "cost", RunID: c.RunID, N: 1})
}

func commitTogether(w *world) {
	c := parkedCall()
	d := pendingDecision(c)
	w.write(func(tx store.Tx) error { return park(tx, c, d) })
	for _, s := range []*store.Store{w.s, w.open(Options{})} { // at once, for every handle
		v := w.with(s)
		m := v.look()
		w.same([]int{1, 1, 1, 2, 1}, []int{len(m.Calls), len(m.Decisions), len(m.Attempts), len(m.Events), int(m.Pending["main"])})
		w.same(int64(1), v.guard(call.Guard{Space: "main", Name: "cost", RunID: c.RunID}).N)
		w.same(2, v.verify().Events)
	}
}

// commitNotAtAll ends a closure after each of its writes: nothing is left, and
// the numbers it drew are drawn again.
func commitNotAtAll(w *world) {
	enough := errors.New("enough")
	var before image
	for n := range 5 {
		before = w.look()
		c := parkedCall()
		d := pendingDecision(c)
		steps := []func(tx store.Tx) error{
			func(tx store.Tx) error { return tx.InsertCall(c, born(c)) },
			func(tx store.Tx) error { return tx.InsertDecision(d, asked(d)) },
			func(tx store.Tx) error { return tx.InsertAttempt(oneAttempt(c)) },
			func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) },
			func(tx store.Tx) error { _, err := tx.Events(event.Query{}); return err }, // writes what was held back
		}
		err := w.update(func(tx store.Tx) error {
			for _, step := range steps[:n+1] {
				if err := step(tx); err != nil {
					return err
				}
			}
			return enough
		})
		if err != enough {
			w.Errorf("after %d writes: %v", n+1, err)
		}
		w.same(before, w.look())
	}
	w.write(func(tx store.Tx) error { c := parkedCall(); return park(tx, c, pendingDecision(c)) })
	w.same(int64(1), w.events(event.Query{})[0].Pos)
}

// commitOwnError: a closure's error is handed back as it is, whatever it is.
func commitOwnError(w *world) {
	for _, own := range []error{
		io.EOF, fmt.Errorf("wrapped: %w", io.EOF), txn.ErrUnknown, txn.ErrNotCommitted, decision.ErrMoved, context.Canceled, context.DeadlineExceeded,
	} {
		before := w.look()
		if err := w.update(func(tx store.Tx) error { _ = park1(tx); return own }); err != own {
			w.Errorf("got %v, want %v as it is", err, own)
		}
		w.same(before, w.look())
		if err := w.view(func(store.Tx) error { return own }); err != own {
			w.Errorf("a view: got %v, want %v as it is", err, own)
		}
	}
}

func park1(tx store.Tx) error {
	c := parkedCall()
	return park(tx, c, pendingDecision(c))
}

// commitPanic: a panic is its caller's, and everybody else goes on.
func commitPanic(w *world) {
	before := w.look()
	for name, run := range map[string]func(func(store.Tx) error) error{"update": w.update, "view": w.view} {
		func() {
			defer func() {
				if p := recover(); p != io.EOF {
					w.Errorf("%s: recovered %v", name, p)
				}
			}()
			_ = run(func(tx store.Tx) error { _ = park1(tx); panic(io.EOF) })
			w.Errorf("%s returned", name)
		}()
		w.same(before, w.look())
	}
	w.write(park1)
}

func commitGoexit(w *world) {
	before := w.look()
	for name, run := range map[string]func(func(store.Tx) error) error{"update": w.update, "view": w.view} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = run(func(tx store.Tx) error { _ = park1(tx); runtime.Goexit(); return nil })
			w.Errorf("%s returned", name)
		}()
		w.await(name, ended)
		w.same(before, w.look())
	}
	w.write(park1)
}

// commitTwice: a closure that is run again finds nothing of its first run.
func commitTwice(w *world) {
	w.skipWithout(w.b.Twice, "that closures run twice")
	runs := 0
	c := parkedCall()
	w.write(func(tx store.Tx) error {
		runs++
		if len(tx.Appended()) != 0 {
			return errors.New("the events of the first run are still there")
		}
		return park(tx, c, pendingDecision(c))
	})
	m := w.look()
	w.same([]int{2, 1, 2, 1}, []int{runs, len(m.Calls), len(m.Events), int(m.Pending["main"])})
	runs = 0
	if err := w.view(func(store.Tx) error { runs++; return nil }); err != nil || runs != 2 {
		w.Errorf("a view ran %d times: %v", runs, err)
	}
}

// commitSwallowed: once a write failed, the transaction cannot be committed, even
// by a closure that overlooks the error. Else half of a change would be kept on
// one backend, and nothing on another.
func commitSwallowed(w *world) {
	c := w.insertCall(parkedCall())
	d := w.insertDecision(pendingDecision(c))
	staleCall, staleDecision := c, d
	staleCall.Version += 9
	staleDecision.Version++
	taken := parkedCall()
	taken.RunID = c.RunID
	key := w.oneKey()
	w.putKey(key)
	attempt := w.insertAttempt(oneAttempt(c))
	staleAttempt := attempt
	staleAttempt.Fence++
	for name, fails := range map[string]func(tx store.Tx) error{
		"stale call":       func(tx store.Tx) error { return tx.PutCall(staleCall, c, note("loser")) },
		"stale decision":   func(tx store.Tx) error { return tx.PutDecision(staleDecision, yes(d)) },
		"stale attempt":    func(tx store.Tx) error { return tx.PutAttempt(staleAttempt, attempt) },
		"taken id":         func(tx store.Tx) error { return tx.InsertCall(taken, born(taken)) },
		"taken key":        func(tx store.Tx) error { return tx.PutIdempotent(key) },
		"taken number":     func(tx store.Tx) error { return tx.InsertDecision(pendingDecision(c), note("loser")) },
		"taken attempt":    func(tx store.Tx) error { return tx.InsertAttempt(oneAttempt(c)) },
		"no such stream":   func(tx store.Tx) error { return tx.Append("call:call_none", note("loser")) },
		"impossible guard": func(tx store.Tx) error { return tx.(counting).Add("main", "none", -1) },
	} {
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error {
			if err := tx.Append(c.Stream(), note("before")); err != nil {
				return err
			}
			_ = fails(tx) // it may be held back, and fail when the closure has returned
			return nil
		})
	}
}

func commitNested(w *world) {
	w.skipWithout(w.b.Strict, "that nested transactions are refused")
	for name, run := range map[string]func(func(store.Tx) error) error{"update": w.update, "view": w.view} {
		for _, inner := range []func(context.Context, func(txn.Tx) error) error{w.s.Update, w.s.View} {
			ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second) // it would wait for itself
			err := run(func(store.Tx) error { return inner(ctx, func(txn.Tx) error { return nil }) })
			if !errors.Is(err, txn.ErrNotCommitted) || errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("inside an %s: %v", name, err)
			}
			cancel()
		}
	}
}

// commitAfterEnd: a Tx that was kept is void.
func commitAfterEnd(w *world) {
	var kept store.Tx
	w.write(func(tx store.Tx) error { kept = tx; return nil })
	before := w.look()
	c := parkedCall()
	for name, f := range map[string]func() error{
		"read":   func() error { _, err := kept.Call(c.ID); return err },
		"insert": func() error { return kept.InsertCall(c, born(c)) },
		"list":   func() error { _, err := kept.Decisions(decision.Query{Space: "main"}); return err },
	} {
		if err := f(); err == nil || errors.Is(err, decision.ErrNotFound) {
			w.Errorf("%s after the end: %v", name, err)
		}
	}
	if err := w.view(func(tx store.Tx) error { kept = tx; return nil }); err != nil {
		w.Fatal(err)
	}
	if _, err := kept.Call(c.ID); err == nil || errors.Is(err, decision.ErrNotFound) {
		w.Errorf("read after the end of a view: %v", err)
	}
	w.same(before, w.look())
}

func viewWritesNothing(w *world) {
	c := w.insertCall(parkedCall())
	before := w.look()
	for name, f := range map[string]func(tx store.Tx) error{
		"insert": park1,
		"append": func(tx store.Tx) error { return tx.Append(c.Stream(), note("x")) },
		"put":    func(tx store.Tx) error { return tx.PutCall(c, c) },
		"guard":  func(tx store.Tx) error { return tx.PutGuard(call.Guard{Space: "main", Name: "cost"}) },
	} {
		if err := w.view(f); err == nil {
			w.Errorf("%s in a view: no error", name)
		}
	}
	w.same(before, w.look())
}

// viewStandsStill: what one view reads is of one moment.
func viewStandsStill(w *world) {
	c := w.insertCall(parkedCall())
	other := w.with(w.open(Options{}))
	var first, second int
	err := w.view(func(tx store.Tx) error {
		es, err := tx.Events(event.Query{})
		if err != nil {
			return err
		}
		first = len(es)
		wrote := make(chan struct{})
		go func() { defer close(wrote); other.append(c.Stream(), note("meanwhile")) }()
		w.await("a write beside a view", wrote)
		es, err = tx.Events(event.Query{})
		second = len(es)
		return err
	})
	if err != nil || first != second {
		w.Errorf("one view saw %d events, then %d: %v", first, second, err)
	}
}

// viewEnds: a view that goes on for longer than a second is told so, and keeps
// neither the log from being cut nor others from reading.
func viewEnds(w *world) {
	v := w.with(w.open(Options{Once: true}))
	err := v.view(func(tx store.Tx) error {
		timer := time.NewTimer(1100 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		_, err := tx.Call("call_none")
		return err
	})
	if err == nil || errors.Is(err, decision.ErrNotFound) {
		w.Errorf("a read after more than a second: %v", err)
	}
	w.same(0, len(v.look().Calls))
}

// commitDurable: what was acknowledged is there for who opens the store anew.
func commitDurable(w *world) {
	w.write(park1)
	before := w.look()
	w.reopen()
	w.same(before, w.look())
	w.write(park1)
	w.same(4, w.verify().Events)
}

func commitCancelledBefore(w *world) {
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(w.ctx)
	cancel(cause)
	past, stop := context.WithDeadline(w.ctx, time.Now().Add(-time.Second))
	defer stop()
	before := w.look()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{ctx, context.Canceled}, {ctx, cause}, {past, context.DeadlineExceeded}} {
		ran := false
		err := txn.Update(c.ctx, w.s, func(tx store.Tx) error { ran = true; return park1(tx) })
		if ran || !errors.Is(err, txn.ErrNotCommitted) || !errors.Is(err, c.want) {
			w.Errorf("ran: %t, %v, want an error matching %v", ran, err, c.want)
		}
		err = txn.View(c.ctx, w.s, func(store.Tx) error { ran = true; return nil })
		if ran || !errors.Is(err, c.want) {
			w.Errorf("view ran: %t, %v", ran, err)
		}
	}
	w.same(before, w.look())
}

// commitCancelledInside: once a closure has begun, its context does not count.
func commitCancelledInside(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	err := txn.Update(ctx, w.s, func(tx store.Tx) error {
		cancel()
		return park1(tx)
	})
	if err != nil {
		w.Errorf("got %v", err)
	}
	w.reopen()
	w.same(1, len(w.look().Calls))
}

func commitClosed(w *world) {
	w.write(park1)
	w.close()
	w.close() // twice is fine
	if err := w.update(park1); !errors.Is(err, txn.ErrNotCommitted) {
		w.Errorf("an update of a closed store: %v", err)
	}
	if err := w.view(func(store.Tx) error { return nil }); err == nil {
		w.Error("a view of a closed store: no error")
	}
	w.s = w.open(Options{})
	w.same(1, len(w.look().Calls))
}

// commitFailed breaks each statement of one transaction in each way: it is
// committed and told so, or it is not and the error says so.
func commitFailed(w *world) {
	w.eachBlow(func(blow Blow) {
		for n := 1; ; n += thorough {
			f := &faults{}
			v := w.with(w.open(Options{Once: true, Before: f.before}))
			v.write(park1) // what a handle does once is done
			before := v.look()
			f.arm(n, func() Blow { return blow })
			err := v.update(park1)
			struck := f.disarm()
			if err != nil && !errors.Is(err, txn.ErrNotCommitted) {
				w.Errorf("%s at statement %d: %v", blow, n, err)
			}
			v.s.Close()
			after := w.look()
			if err != nil {
				w.same(before, after)
			} else {
				w.same(len(before.Calls)+1, len(after.Calls))
			}
			if !struck {
				return
			}
		}
	}, Fail, Sever)
}

// eachBlow runs f for those blows that the backend declares.
func (w *world) eachBlow(f func(Blow), blows ...Blow) {
	w.Helper()
	n := 0
	for _, blow := range w.b.Blows {
		for _, want := range blows {
			if blow == want {
				f(blow)
				n++
			}
		}
	}
	w.skipWithout(n > 0, fmt.Sprint("blows: ", blows))
}

// commitUnknown: where the answer to COMMIT is lost, the caller is told exactly
// that, and who opens the store finds all of it or nothing.
func commitUnknown(w *world) {
	w.eachBlow(func(blow Blow) {
		f := &faults{only: isCommit}
		v := w.with(w.open(Options{Once: true, Before: f.before}))
		before := v.look()
		f.arm(1, func() Blow { return blow })
		err := v.update(park1)
		if !f.disarm() || !errors.Is(err, txn.ErrUnknown) {
			w.Fatalf("got %v", err)
		}
		v.s.Close()
		w.reopen()
		after := w.look()
		if n := len(after.Calls) - len(before.Calls); n != 0 && (n != 1 || len(after.Events) != len(before.Events)+2) {
			w.Errorf("half of it is there: %d calls, %d events", n, len(after.Events)-len(before.Events))
		}
		w.write(park1)
	}, Lose)
}

// clockOnlyGrows: no handle is given a time before a commit that it has seen,
// also where the machine's clock is set back.
func clockOnlyGrows(w *world) {
	w.skipWithout(w.b.Clock, "a clock of the test's")
	now := moment(0)
	v := w.with(w.open(Options{Now: func() time.Time { return now }}))
	c := v.insertCall(parkedCall())
	late := v.events(event.Query{})[0].At
	now = now.Add(-time.Hour)
	e := v.append(c.Stream(), note("x"))[0]
	other := w.with(w.open(Options{Now: func() time.Time { return now }}))
	f := other.append(c.Stream(), note("y"))[0]
	seen := read(other, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	for _, at := range []time.Time{e.At, f.At, seen} {
		if at.Before(late) {
			w.Errorf("the clock went from %s to %s", late, at)
		}
	}
}
