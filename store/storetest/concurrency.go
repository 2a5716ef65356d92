package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func concurrency(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"32 deciders":            manyDeciders,
		"two workers":            twoWorkers,
		"expiry against yes":     expiryAgainstYes,
		"withdrawal against yes": withdrawalAgainstYes,
		"loss against outcome":   lossAgainstOutcome,
		"two sweepers":           twoSweepers,
		"one key":                oneKeyTwice,
		"one external id":        oneExternalID,
		"limit of pending":       limitOfPending,
		"guard at its limit":     guardAtItsLimit,
		"many writers":           manyWriters,
		"cancelled callers":      cancelledCallers,
		"a caller panics":        oneCallerPanics,
		"late under a lock":      lateUnderALock,
		"patience under a lock":  patienceUnderALock,
		"close under a lock":     closeUnderALock,
		"opened at one time":     openedTogether,
		"turns":                  takeTurns,
		"a crowd that waits":     crowdThatWaits,
	})
}

// two are engines over two handles on one store.
func (w *world) two(change func(*call.Config)) [2]*shop {
	w.Helper()
	return [2]*shop{w.openShop(w.s, change), w.openShop(w.open(Options{}), change)}
}

// manyDeciders: of 32 answers at one moment, from two processes, one stands, and
// all others are told which. No database's own word reaches a caller (case 085).
func manyDeciders(w *world) {
	shops := w.two(nil)
	for range rounds(200) {
		a := shops[0].mustPark(refund)
		var won atomic.Pointer[string]
		var losers [32]error
		together(32, func(i int) {
			op, by := shops[i%2].op, fmt.Sprint("reviewer ", i)
			answer := decision.Answer{Approved: i%3 > 0, By: by, Shown: a.Digest}
			op.Principal = by
			_, err := op.Decide(w.ctx, a.ApprovalID, answer)
			if losers[i] = err; err == nil && !won.CompareAndSwap(nil, &by) {
				w.Errorf("%s won, and so did %s", by, *won.Load())
			}
		})
		if won.Load() == nil {
			w.Fatalf("nobody won: %v", losers[0])
		}
		for i, err := range losers {
			if standing, _ := decision.StandingOf(err); err != nil && (!errors.Is(err, decision.ErrNotPending) || standing.By != *won.Load()) {
				w.Errorf("reviewer %d, beaten by %s: %v", i, *won.Load(), err)
			}
		}
		w.same(*won.Load(), w.decision(a.ApprovalID).DecidedBy)
	}
	CheckInvariants(w.T, w.s)
}

// twoWorkers: of eight that resume one grant at one moment, one runs the tool.
func twoWorkers(w *world) {
	shops := w.two(nil)
	for range rounds(60) {
		a := shops[0].mustGrant(refund)
		var ran atomic.Int32
		together(8, func(i int) {
			res, err := shops[i%2].Resume(w.ctx, a.ApprovalID, nil)
			switch {
			case err == nil && res.Status == call.Succeeded:
				ran.Add(1)
			case err == nil || !errors.Is(err, call.ErrAlreadyDecided) && !errors.Is(err, call.ErrRunState):
				w.Errorf("worker %d: %s, %v", i, res.Status, err)
			}
		})
		if n := shops[0].ran.times(a.CallID) + shops[1].ran.times(a.CallID); n != 1 || ran.Load() != 1 {
			w.Errorf("the tool ran %d times, and %d were told so", n, ran.Load())
		}
	}
	CheckInvariants(w.T, w.s)
}

// expiryAgainstYes: a sweep that sees the deadline passed meets people for whom
// it has not. One side wins, and the call agrees with it.
func expiryAgainstYes(w *world) {
	shops := w.two(func(c *call.Config) { c.ApprovalTTL = time.Hour })
	for range rounds(60) {
		a := shops[0].mustPark(refund)
		var yes, gone atomic.Int32
		together(8, func(i int) {
			op := shops[i%2].op
			var err error
			if i%4 == 0 {
				op.Now = func() time.Time { return a.ExpiresAt.Add(time.Microsecond) }
				if _, err = op.Expire(w.ctx, a.ApprovalID); err == nil {
					gone.Add(1)
				}
			} else {
				op.Now = func() time.Time { return a.ExpiresAt } // the instant itself is in time
				if err = op.Approve(w.ctx, a.RunID, a.ApprovalID, "Ana", ""); err == nil {
					yes.Add(1)
				}
			}
			if err != nil && !errors.Is(err, decision.ErrNotPending) {
				w.Errorf("%d: %v", i, err)
			}
		})
		switch {
		case yes.Load() == 1 && gone.Load() == 0:
			w.stands(a.CallID, call.Pending, decision.Approved)
		case yes.Load() == 0 && gone.Load() == 1:
			w.stands(a.CallID, call.Expired, decision.Expired)
		default:
			w.Errorf("%d said yes and %d expired it", yes.Load(), gone.Load())
		}
	}
	CheckInvariants(w.T, w.s)
}

func withdrawalAgainstYes(w *world) {
	shops := w.two(nil)
	for range rounds(60) {
		a := shops[0].mustPark(refund)
		var won atomic.Int32
		together(6, func(i int) {
			var err error
			switch op := shops[i%2].op; i % 3 {
			case 0:
				op.Principal = "" // who asked, as far as is known
				_, err = op.Withdraw(w.ctx, a.ApprovalID, "agent", "")
			case 1:
				err = op.Approve(w.ctx, "", a.ApprovalID, "Ana", "")
			case 2:
				err = op.Reject(w.ctx, "", a.ApprovalID, "Bo", "")
			}
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, decision.ErrNotPending) {
				w.Errorf("%d: %v", i, err)
			}
		})
		w.same(int32(1), won.Load())
	}
	CheckInvariants(w.T, w.s)
}

// lossAgainstOutcome: an attempt looks lost, and its process reports at that very
// moment (case 070). Whoever comes second sees what the first wrote, and an
// outcome that is stored stays.
func lossAgainstOutcome(w *world) {
	sweepers := w.two(nil)
	for range rounds(40) {
		a := sweepers[0].mustGrant(refund)
		if err := sweepers[0].die(w.ctx, w.s, a, call.RecoverByPerson, time.Microsecond); err != nil {
			w.Fatal(err)
		}
		held := w.attempt(a.CallID, 1)
		var told error
		together(3, func(i int) {
			if i > 0 {
				if _, err := sweepers[i-1].Sweep(w.ctx, 100); err != nil {
					w.Errorf("sweep: %v", err)
				}
				return
			}
			told = txn.Update(w.ctx, w.s, func(tx store.Tx) error { return report(tx, held) })
		})
		if told == nil {
			w.stands(a.CallID, call.Succeeded, decision.Consumed)
			continue
		}
		if !errors.Is(told, decision.ErrMoved) {
			w.Errorf("the process was told %v", told)
		}
		w.stands(a.CallID, call.Unknown, decision.Consumed, decision.Pending)
	}
	CheckInvariants(w.T, w.s)
}

// report writes a success as the process does that ran the attempt, if the
// attempt is still as that process left it.
func report(tx store.Tx, held call.Attempt) error {
	c, err := tx.Call(held.CallID)
	if err != nil {
		return err
	}
	out := call.Outcome{Status: call.Succeeded, Result: []byte(`1`)}
	ch, err := c.Step(call.End{Fence: held.Fence, Epoch: held.Epoch, Outcome: out}, tx.Now())
	if err != nil {
		return err
	}
	done := held
	done.Outcome, done.EndedAt, done.Late = call.Succeeded, tx.Now(), ch.Late
	if err := tx.PutAttempt(held, done); err != nil {
		return err
	}
	return tx.PutCall(c, ch.Next, ch.Events...)
}

// twoSweepers share the work: each lost attempt and each overdue approval is
// looked after once.
func twoSweepers(w *world) {
	sweepers := w.two(nil)
	brief := w.openShop(w.s, func(c *call.Config) { c.ApprovalTTL = time.Microsecond })
	const each = 20
	for range each {
		w.until(brief.mustPark(refund).ExpiresAt)
		if a := sweepers[0].mustGrant(refund); sweepers[0].die(w.ctx, w.s, a, call.RecoverByPerson, time.Microsecond) != nil {
			w.Fatal("no attempt was made")
		}
	}
	var swept atomic.Int64
	together(6, func(i int) {
		n, err := sweepers[i%2].Sweep(w.ctx, 1000)
		if err != nil {
			w.Errorf("sweep: %v", err)
		}
		swept.Add(int64(n))
	})
	w.same(int64(2*each), swept.Load())
	CheckInvariants(w.T, w.s)
}

// until waits for the store's clock to be past an instant.
func (w *world) until(at time.Time) {
	w.Helper()
	for {
		now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
		if now.After(at) {
			return
		}
		timer := time.NewTimer(at.Sub(now))
		select {
		case <-timer.C:
		case <-w.ctx.Done():
			w.Fatalf("the store's clock does not reach %s", at)
		}
	}
}

// oneKeyTwice: of requests with one idempotency key, at one moment, one makes a
// call, and the others are answered with that one (case 179).
func oneKeyTwice(w *world) {
	shops := w.two(nil)
	for round := range rounds(60) {
		var ids [6]string
		together(len(ids), func(i int) {
			a, err := shops[i%2].parkCall(w.ctx, refund, call.WithIdempotencyKey("calls", fmt.Sprint("key ", round)))
			if err != nil {
				w.Errorf("%d: %v", i, err)
				return
			}
			ids[i] = a.CallID
		})
		for _, id := range ids {
			w.same(ids[0], id)
		}
	}
	w.same(rounds(60), len(w.look().Calls))
	CheckInvariants(w.T, w.s)
}

// oneExternalID: the same for the ids that a caller chose.
func oneExternalID(w *world) {
	shops := w.two(nil)
	for round := range rounds(60) {
		var ids [6]string
		together(len(ids), func(i int) {
			_, err := shops[i%2].RunCall(w.ctx, "run of tests", fmt.Sprint("order ", round), refund, []byte(`{}`))
			a, err := pending(err)
			if err != nil {
				w.Errorf("%d: %v", i, err)
				return
			}
			ids[i] = a.CallID
		})
		for _, id := range ids {
			w.same(ids[0], id)
		}
	}
	w.same(rounds(60), len(w.look().Calls))
	CheckInvariants(w.T, w.s)
}

// limitOfPending: at the limit, of many that ask at one moment exactly as many
// are parked as there is room for.
func limitOfPending(w *world) {
	const limit = 10
	other := w.open(Options{})
	shops := [2]*shop{}
	for i, s := range []*store.Store{w.s, other} {
		shops[i] = w.openShop(s, func(c *call.Config) {
			port := call.Deferred(s)
			port.MaxPending = limit
			c.Approval = port
		})
	}
	for range rounds(10) {
		var parked atomic.Int64
		before := read(w, func(tx store.Tx) (int64, error) { return tx.Pending(event.MainSpace, 0) })
		together(limit*2, func(i int) {
			_, err := shops[i%2].parkCall(w.ctx, refund)
			switch {
			case err == nil:
				parked.Add(1)
			case !errors.Is(err, decision.ErrTooManyPending):
				w.Errorf("%d: %v", i, err)
			}
		})
		w.same(int64(limit), before+parked.Load())
		for _, d := range read(w, func(tx store.Tx) ([]decision.Decision, error) {
			return tx.Decisions(decision.Query{Space: event.MainSpace, Status: decision.Pending, Limit: 5})
		}) {
			if err := shops[0].op.Reject(w.ctx, "", d.ID, "Bo", ""); err != nil {
				w.Error(err)
			}
		}
	}
	CheckInvariants(w.T, w.s)
}

// guardAtItsLimit: of many starts at one moment, as many happen as the guard lets.
func guardAtItsLimit(w *world) {
	shops := w.two(func(c *call.Config) { c.Guards = call.Guards{CallsPerRun: 3, Cost: 100} })
	for round := range rounds(20) {
		run := fmt.Sprint("run ", round)
		var ran, refused atomic.Int64
		together(8, func(i int) {
			res, err := shops[i%2].Call(w.ctx, jot, []byte(`{}`), call.InRun(run))
			switch {
			case err != nil:
				w.Errorf("%d: %v", i, err)
			case res.Status == call.Succeeded:
				ran.Add(1)
			case res.Kind == call.KindGuardRefused:
				refused.Add(1)
			default:
				w.Errorf("%d: %s %s", i, res.Status, res.Kind)
			}
		})
		w.same([]int64{3, 5}, []int64{ran.Load(), refused.Load()})
		w.same(int64(6), w.guard(call.Guard{Space: event.MainSpace, Name: "cost", RunID: run}).N)
	}
	CheckInvariants(w.T, w.s)
}

// manyWriters: whatever is committed from wherever is all there, with dense
// numbers, and no closure that failed left a gap.
func manyWriters(w *world) {
	other := w.with(w.open(Options{}))
	c := w.insertCall(parkedCall())
	var appended atomic.Int64
	no := errors.New("no")
	together(16, func(i int) {
		v := []*world{w, other}[i%2]
		for n := range rounds(40) {
			err := v.update(func(tx store.Tx) error {
				if err := tx.Append(c.Stream(), note(fmt.Sprint(i)), note(fmt.Sprint(n))); err != nil {
					return err
				}
				if n%5 == 0 {
					return no
				}
				return nil
			})
			if err == nil {
				appended.Add(2)
			} else if err != no {
				w.Errorf("writer %d: %v", i, err)
			}
		}
	})
	es := w.look().Events
	w.same(appended.Load()+1, int64(len(es)))
	w.same(int64(len(es)), es[len(es)-1].Pos)
	w.same(len(es), w.verify().Events)
}

// cancelledCallers: a caller that gives up harms nobody who shares a commit with
// it, and what it was told is true.
func cancelledCallers(w *world) {
	other := w.with(w.open(Options{}))
	for range rounds(10) {
		const n = 24
		var cs [n]call.Call
		var told [n]error
		ctxs, cancels := [n]context.Context{}, [n]context.CancelFunc{}
		for i := range n {
			cs[i] = parkedCall()
			ctxs[i], cancels[i] = context.WithCancel(w.ctx)
		}
		together(n, func(i int) {
			if i%4 == 3 { // gives up at any moment, or before its turn comes
				cancels[i-1]()
			}
			told[i] = txn.Update(ctxs[i], []*world{w, other}[i%2].s, func(tx store.Tx) error {
				if i%4 == 1 {
					cancels[i]() // too late: it counts all the same
				}
				return park(tx, cs[i], pendingDecision(cs[i]))
			})
		})
		for i := range n {
			cancels[i]()
			_, err := try(w, func(tx store.Tx) (call.Call, error) { return tx.Call(cs[i].ID) })
			switch {
			case told[i] == nil && err != nil:
				w.Errorf("caller %d was told nil: %v", i, err)
			case told[i] != nil && err == nil:
				w.Errorf("caller %d was told %v, and it is there", i, told[i])
			case told[i] != nil && (i%4 != 2 || !errors.Is(told[i], txn.ErrNotCommitted) || !errors.Is(told[i], context.Canceled)):
				w.Errorf("caller %d: %v", i, told[i])
			}
		}
	}
	w.verify()
}

// oneCallerPanics: nor does one whose closure panics or ends its goroutine.
func oneCallerPanics(w *world) {
	for range rounds(10) {
		const n = 16
		var cs [n]call.Call
		var told [n]error
		for i := range n {
			cs[i] = parkedCall()
		}
		together(n, func(i int) {
			defer func() {
				if p := recover(); p != nil && i%8 != 3 {
					w.Errorf("caller %d got another's panic: %v", i, p)
				}
			}()
			told[i] = w.update(func(tx store.Tx) error {
				if err := park(tx, cs[i], pendingDecision(cs[i])); err != nil {
					return err
				}
				if i%8 == 3 {
					panic("mine")
				}
				return nil
			})
		})
		for i := range n {
			_, err := try(w, func(tx store.Tx) (call.Call, error) { return tx.Call(cs[i].ID) })
			if there := err == nil; there != (i%8 != 3) || told[i] != nil {
				w.Errorf("caller %d was told %v, its call is there: %t", i, told[i], there)
			}
		}
	}
	w.verify()
}

// hold keeps the write lock of a root from everybody else until release is called.
func (w *world) hold(c string) (release func()) {
	w.Helper()
	holder := w.with(w.open(Options{Once: true}))
	held, let, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := holder.update(func(tx store.Tx) error {
			_, err := tx.Call(c)
			close(held)
			<-let
			return err
		})
		if err != nil {
			w.Errorf("holding the lock: %v", err)
		}
	}()
	w.await("the lock", held)
	return sync.OnceFunc(func() { close(let); <-ended })
}

// lateUnderALock: an answer waits for the lock while its deadline passes (case
// 052). The clock that counts is read when the lock is held.
func lateUnderALock(w *world) {
	p := w.openShop(w.s, func(c *call.Config) { c.ApprovalTTL = 50 * time.Millisecond })
	for _, own := range []bool{true, false} { // an engine's own clock, the store's
		a := p.mustPark(refund)
		release := w.hold(a.CallID)
		var released atomic.Bool
		op := p.op
		if own {
			op.Now = func() time.Time {
				if !released.Load() {
					return a.ExpiresAt // read too early: in time
				}
				return a.ExpiresAt.Add(time.Microsecond)
			}
		}
		told := make(chan error, 1)
		go func() { told <- op.ApproveShown(w.ctx, a.RunID, a.ApprovalID, a.Digest, "Ana", "") }()
		w.until(a.ExpiresAt)
		released.Store(true)
		release()
		if err := <-told; !errors.Is(err, decision.ErrApprovalExpired) {
			w.Errorf("own clock: %t: told %v", own, err)
		}
		w.stands(a.CallID, call.Expired, decision.Expired)
	}
	CheckInvariants(w.T, w.s)
}

// patienceUnderALock: a wait for the lock ends with its context (case 089), or
// with the busy time-out, and nothing was written then.
func patienceUnderALock(w *world) {
	c := w.insertCall(parkedCall())
	busy := w.with(w.open(Options{Busy: 50 * time.Millisecond}))
	release := w.hold(c.ID)
	defer release()
	write := func(tx store.Tx) error {
		if _, err := tx.Call(c.ID); err != nil {
			return err
		}
		return tx.Append(c.Stream(), note("x"))
	}
	ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := txn.Update(ctx, w.s, write); !errors.Is(err, txn.ErrNotCommitted) || !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("with a deadline: %v", err)
	}
	if err := busy.update(write); !errors.Is(err, txn.ErrBusy) || !errors.Is(err, txn.ErrNotCommitted) {
		w.Errorf("with a short patience: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		w.Errorf("both waits took %s", took)
	}
	w.same(1, len(w.events(event.Query{}))) // reads do not wait at all
	release()
	w.write(write)
	w.same(2, len(w.events(event.Query{})))
}

// closeUnderALock: closing a store does not wait for a lock that others hold.
func closeUnderALock(w *world) {
	c := w.insertCall(parkedCall())
	v := w.with(w.open(Options{}))
	release := w.hold(c.ID)
	defer release()
	told := make(chan error, 1)
	go func() { told <- v.update(func(tx store.Tx) error { return tx.Append(c.Stream(), note("x")) }) }()
	began := time.Now()
	v.close()
	if took := time.Since(began); took > 5*time.Second {
		w.Errorf("closing took %s", took)
	}
	if err := <-told; !errors.Is(err, txn.ErrNotCommitted) {
		w.Errorf("the one who waited was told %v", err)
	}
	release()
	w.same(1, len(w.events(event.Query{})))
}

// openedTogether: a store that is opened by many at one moment is created once,
// and all of them can use it (case 166).
func openedTogether(w *world) {
	for range rounds(5) {
		place := w.b.New(w.T)
		together(8, func(i int) {
			v := w.with(place.Open(w.T, Options{}))
			if err := v.update(park1); err != nil {
				w.Errorf("opener %d: %v", i, err)
			}
		})
		v := w.with(place.Open(w.T, Options{}))
		w.same(8, len(v.look().Calls))
		v.verify()
	}
}

// takeTurns: a busy process does not keep another one from writing.
func takeTurns(w *world) {
	c := w.insertCall(parkedCall())
	quiet := w.with(w.open(Options{}))
	busy := w.with(w.open(Options{}))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					busy.write(park1)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	for n := range 30 {
		if err := txn.Update(ctx, quiet.s, func(tx store.Tx) error { return tx.Append(c.Stream(), note("x")) }); err != nil {
			w.Errorf("write %d beside a busy process: %v", n, err)
			break
		}
	}
	close(done)
	wg.Wait()
}

// crowdThatWaits: many who wait for an event keep nobody from working (case 163),
// and one event wakes them all.
func crowdThatWaits(w *world) {
	c := w.insertCall(parkedCall())
	head := read(w, func(tx store.Tx) (event.Head, error) { return tx.Head(c.Stream()) })
	var woken, reading sync.WaitGroup
	for i := range rounds(200) {
		woken.Add(1)
		reading.Add(1)
		waiting := event.Waiting{Stream: c.Stream(), After: event.CursorAt(head), Subject: "for all"}
		if i%2 == 0 {
			waiting.Stream, waiting.After = "", ""
		}
		go func() {
			defer woken.Done()
			got, err := event.Wait(w.ctx, &counted{Store: w.s, viewed: reading.Done}, waiting)
			if err != nil || got.Event.Subject != "for all" {
				w.Errorf("waiter %d: %q, %v", i, got.Event.Subject, err)
			}
		}()
	}
	reading.Wait() // each has looked once, and waits
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	for range 10 {
		if err := txn.Update(ctx, w.s, park1); err != nil {
			w.Errorf("write beside the crowd: %v", err)
		}
		if err := txn.View(ctx, w.s, func(tx store.Tx) error { _, err := tx.Calls(call.Query{Space: "main"}); return err }); err != nil {
			w.Errorf("read beside the crowd: %v", err)
		}
	}
	w.append(c.Stream(), note("for all"))
	woken.Wait()
}

// counted tells once that a view has ended.
type counted struct {
	*store.Store
	once   sync.Once
	viewed func()
}

func (c *counted) View(ctx context.Context, fn func(txn.Tx) error) error {
	defer c.once.Do(c.viewed)
	return c.Store.View(ctx, fn)
}
