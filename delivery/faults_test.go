package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// strike fails one statement of a handle.
type strike struct {
	left atomic.Int64
	err  error
	done atomic.Bool
}

func (s *strike) hooks() *sqlite.Hooks {
	return &sqlite.Hooks{BeforeStatement: func(int, string) error {
		if s.left.Add(-1) == 0 {
			s.done.Store(true)
			return s.err
		}
		return nil
	}}
}

// Whichever statement of a dispatcher fails, and however: what was told arrives, once,
// and so does what others are told meanwhile.
func TestEveryStatementFails(t *testing.T) {
	t.Parallel()
	for _, how := range []error{txn.ErrNotCommitted.Because(errBroken), errBroken} {
		for n := int64(1); n <= 40; n += 3 {
			t.Run(fmt.Sprintf("%d %t", n, how == errBroken), func(t *testing.T) {
				t.Parallel()
				w := setup(t)
				a, b := w.root(), w.root()
				w.add(a)
				w.add(b)
				s := &strike{err: how}
				struck := w.open(s.hooks())
				w.tell(a, event.JobPaused, 2)
				w.tell(b, event.JobPaused, 2)
				s.left.Store(n)
				_, stop := w.dispatch(struck)
				if w.oneOf(4) < 4 { // a claim whose commit cannot be told is not sent: its lease has to end
					w.later(time.Hour)
				}
				w.allDelivered(4)
				stop()
				w.eachOnce(4)
				if !s.done.Load() && n < 30 {
					t.Errorf("no statement was struck")
				}
			})
		}
	}
}

// oneOf waits until so many are over, or the first of them will not be before its lease ends.
func (w *world) oneOf(n int) int {
	w.Helper()
	for {
		over, held := 0, 0
		for _, d := range w.every() {
			if !d.Status.Open() {
				over++
			} else if d.Status == delivery.Dispatching {
				held++
			}
		}
		if over == n || over+held == n && held > 0 && w.quiet() {
			return over
		}
		select {
		case <-w.ctx.Done():
			w.Fatalf("%d of %d are over", over, n)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *world) quiet() bool {
	w.sink.mu.Lock()
	defer w.sink.mu.Unlock()
	for _, n := range w.sink.now {
		if n > 0 {
			return false
		}
	}
	return true
}

// eachOnce wants each delivery to have come once.
func (w *world) eachOnce(n int) {
	w.Helper()
	times := map[string]int{}
	for _, m := range w.sink.all() {
		times[m.DeliveryID]++
	}
	for id, k := range times {
		if k > 1 {
			w.Errorf("%s came %d times: %+v", id, k, w.attempts(id))
		}
	}
	if len(times) != n {
		w.Errorf("%d of %d came", len(times), n)
	}
}

// unreadable is a store in which one target's record cannot be read.
type unreadable struct {
	txn.Store
	id   string
	left atomic.Int64 // times until it can be read again
}

type unreadableTx struct {
	store.Tx
	of *unreadable
}

func (t unreadableTx) Target(id string) (delivery.Target, error) {
	if id == t.of.id && t.of.left.Add(-1) >= 0 {
		return delivery.Target{}, errBroken
	}
	return t.Tx.Target(id)
}

func (u *unreadable) Update(ctx context.Context, fn func(txn.Tx) error) error {
	return u.Store.Update(ctx, func(tx txn.Tx) error { return fn(unreadableTx{tx.(store.Tx), u}) })
}

func (u *unreadable) View(ctx context.Context, fn func(txn.Tx) error) error {
	return u.Store.View(ctx, func(tx txn.Tx) error { return fn(unreadableTx{tx.(store.Tx), u}) })
}

// A target whose record cannot be read keeps no other back, however often it is looked
// at, and not what is lost either.
func TestUnreadableTarget(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	bad, good, later := w.add(s), w.add(s), w.add(s)
	u := &unreadable{Store: w.s, id: bad.ID}
	u.left.Store(1 << 40)
	w.tell(s, event.JobPaused, 3)
	w.lose(bad) // a lost claim of it
	w.dispatch(w.s, func(d *delivery.Dispatcher) { d.Store = u })
	w.until(6)
	for _, to := range []delivery.Target{good, later} {
		for _, d := range w.list(delivery.Query{TargetID: to.ID}) {
			w.becomes(d.ID, delivery.Delivered)
		}
	}
	ds := w.list(delivery.Query{TargetID: bad.ID})
	w.becomes(ds[len(ds)-1].ID, delivery.Retrying)
}

// lose claims the first of a target's as a process does that is lost then.
func (w *world) lose(to delivery.Target) delivery.Delivery {
	w.Helper()
	ds := w.list(delivery.Query{TargetID: to.ID})
	return w.claimed(to, ds[len(ds)-1])
}

// claimed is d, claimed by a process that is lost then.
func (w *world) claimed(to delivery.Target, d delivery.Delivery) delivery.Delivery {
	w.Helper()
	w.write(func(tx store.Tx) error {
		ch, err := d.Step(delivery.Claim{Target: to, Owner: "lost", Lease: time.Microsecond}, tx.Now())
		if err != nil {
			return err
		}
		_, err = tx.PutDelivery(d, ch)
		return err
	})
	w.later(time.Millisecond)
	return d
}

// slow is a store whose answer to one update comes so late that its caller may not act
// on it.
type slow struct {
	*store.Store
	by    time.Duration
	times atomic.Int64
}

func (s *slow) Update(ctx context.Context, fn func(txn.Tx) error) error {
	start := time.Now()
	err := s.Store.Update(ctx, fn)
	if s.times.Add(-1) >= 0 {
		for time.Since(start) < s.by {
			select {
			case <-ctx.Done():
			case <-time.After(s.by - time.Since(start)):
			}
		}
	}
	return err
}

// An attempt may go on for half of its lease at most, counted from before the claim. One
// whose claim took longer to write is not made, and costs nothing.
func TestLeaseRule(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.TimeoutSeconds = 0.1 })
	var ends time.Time
	var held delivery.Delivery
	w.sink.then(func(ctx context.Context, m delivery.Message) delivery.Outcome {
		ends, _ = ctx.Deadline()
		if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) { held, err = tx.Delivery(m.DeliveryID); return err }); err != nil {
			t.Error(err)
		}
		return delivery.Outcome{Result: delivery.Arrived}
	})
	w.tell(s, event.JobPaused, 1)
	late := &slow{Store: w.s, by: 150 * time.Millisecond}
	late.times.Store(1)
	_, stop := w.dispatch(w.s, func(d *delivery.Dispatcher) { d.Store = late })
	d := w.becomes(w.one(target.ID).ID, delivery.Delivered)
	stop()
	as := w.attempts(d.ID)
	if len(as) != 2 || as[0].Outcome != delivery.Released || d.Attempts != 1 || len(w.sink.all()) != 1 {
		t.Errorf("%+v: %+v", d, as)
	}
	lease := held.LeaseUntil.Sub(as[1].StartedAt)
	if allowed := as[1].StartedAt.Add(lease / 2); lease <= 2*target.Timeout || ends.After(allowed) || ends.After(as[1].StartedAt.Add(target.Timeout+time.Microsecond)) {
		t.Errorf("begun %s with a lease of %s, it may go on until %s", as[1].StartedAt, lease, ends)
	}
}

// An attempt that ends in time is written down when the dispatcher stops. One that does
// not is cut off, and tried again by the next.
func TestStop(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	quick := w.add(s, func(a *delivery.Adding) { a.Name = "quick" })
	hangs := w.add(s, func(a *delivery.Adding) { a.Name = "hangs" })
	stopping, cut := make(chan struct{}), make(chan struct{})
	w.sink.then(func(ctx context.Context, m delivery.Message) delivery.Outcome {
		switch {
		case m.Attempt > 1:
		case m.Target.Name == "quick":
			<-stopping
		default:
			<-ctx.Done()
			close(cut)
			return delivery.Outcome{Result: delivery.Failed, Message: "cut"}
		}
		return delivery.Outcome{Result: delivery.Arrived}
	})
	_, stop := w.dispatch(w.s, func(d *delivery.Dispatcher) { d.Drain = 50 * time.Millisecond })
	w.tell(s, event.JobPaused, 1)
	w.until(2)
	close(stopping)
	stop()
	<-cut
	if d := w.one(quick.ID); d.Status != delivery.Delivered {
		t.Errorf("what ended in time is %s", d.Status)
	}
	d := w.one(hangs.ID)
	if as := w.attempts(d.ID); d.Status != delivery.Dispatching || as[0].Outcome != "" {
		t.Errorf("nothing is known of it: %+v %+v", d, as)
	}
	w.later(time.Hour)
	w.dispatch(w.open())
	d = w.becomes(d.ID, delivery.Delivered)
	if as := w.attempts(d.ID); len(as) != 2 || as[0].Outcome != delivery.Reclaimed || d.Attempts != 1 {
		t.Errorf("%+v", as)
	}
}

// heard is a log that signals what it is given.
type heard struct {
	slog.Handler
	lines chan string
}

func newHeard() *heard { return &heard{slog.DiscardHandler, make(chan string, 1000)} }

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }

func (h *heard) Handle(_ context.Context, r slog.Record) error {
	select {
	case h.lines <- r.Message:
	default:
	}
	return nil
}

// A store that is closed under a dispatcher is no reason to spin, or to hang.
func TestStoreClosed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.open()
	log := newHeard()
	rounds := atomic.Int64{}
	_, stop := w.dispatch(s, func(d *delivery.Dispatcher) { d.Log, d.Alive = slog.New(log), func() { rounds.Add(1) } })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-log.lines
	before := rounds.Load()
	<-log.lines
	<-log.lines
	<-log.lines
	if n := rounds.Load() - before; n > 20 {
		t.Errorf("%d rounds for nothing", n)
	}
	stop()
}

// From a store that went back in time nothing is sent until somebody accepts that.
func TestStoreWentBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	w.add(s)
	w.tell(s, event.JobPaused, 1)
	closed := func() {
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed()
	old, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	w.s = w.open()
	w.tell(s, event.JobPaused, 1)
	closed()
	if err := os.WriteFile(w.path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	w.s = w.open()
	log := newHeard()
	_, stop := w.dispatch(w.s, func(d *delivery.Dispatcher) { d.Log = slog.New(log) })
	<-log.lines // it has tried, and
	<-log.lines // again
	stop()
	if got := w.sink.all(); len(got) > 0 {
		t.Errorf("sent: %+v", got)
	}
	closed()
	if err := sqlite.AcceptRestore(w.ctx, w.path); err != nil {
		t.Fatal(err)
	}
	w.s = w.open()
	w.dispatch(w.s)
	w.allDelivered(1)
}

// A channel that panics fails that attempt and no other.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s)
	w.sink.then(func(_ context.Context, m delivery.Message) delivery.Outcome {
		if m.Attempt == 1 {
			panic("boom")
		}
		return delivery.Outcome{Result: delivery.Arrived}
	})
	w.dispatch(w.s)
	w.tell(s, event.JobPaused, 1)
	d := w.becomes(w.one(target.ID).ID, delivery.Delivered)
	if as := w.attempts(d.ID); len(as) != 2 || as[0].Outcome != delivery.AttemptOutcome(delivery.Failed) {
		t.Errorf("%+v", as)
	}
}

// What a process has no way to reach waits for one that has, and holds nobody up.
func TestNoChannel(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	hook := w.add(s)
	command := &sink{news: make(chan struct{}, 1), now: map[string]int{}}
	both := delivery.Channels{delivery.KindWebhook: w.sink, delivery.KindCommand: command}
	desk := w.desk
	desk.Channels = both
	program, err := desk.Add(w.ctx, s, "ana", delivery.Adding{Type: delivery.KindCommand, Command: []string{"x"}, Events: []string{string(event.JobPaused)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.dispatch(w.s)
	w.tell(s, event.JobPaused, 2)
	for _, d := range w.list(delivery.Query{TargetID: hook.ID}) {
		w.becomes(d.ID, delivery.Delivered)
	}
	for _, d := range w.list(delivery.Query{TargetID: program.ID}) {
		if d.Fence > 0 {
			t.Errorf("%+v", d)
		}
	}
	w.dispatch(w.open(), func(d *delivery.Dispatcher) { d.Channels = both })
	w.allDelivered(4)
	if n := len(command.all()); n != 2 {
		t.Errorf("%d came to the program", n)
	}
}

// A receiver that is gone: its target is disabled with the reason, all that waits for it
// is dead, what comes after is not matched; put in use again, what is dead is tried again
// by hand.
func TestGone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s)
	w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
		return delivery.Outcome{Result: delivery.Gone, Status: 410, Message: "It answered 410."}
	})
	w.tell(s, event.JobPaused, 200)
	w.dispatch(w.s)
	for _, d := range w.settled(200) {
		if d.Status != delivery.Dead {
			t.Errorf("%+v", d)
		}
	}
	if n := len(w.sink.all()); n != 1 {
		t.Errorf("sent %d times", n)
	}
	to, err := w.desk.Target(w.ctx, target.ID)
	if err != nil || to.InUse() || to.Disabled != "It answered 410." {
		t.Errorf("%+v %v", to, err)
	}
	w.tell(s, event.JobPaused, 1)
	all := w.settled(200)
	if _, err := w.desk.Retry(w.ctx, all[0].ID, "ana"); !errors.Is(err, delivery.ErrState) {
		t.Errorf("tried again although nobody is there: %v", err)
	}
	if _, err := w.desk.Enable(w.ctx, target.ID); err != nil {
		t.Fatal(err)
	}
	w.sink.then(nil)
	if _, err := w.desk.Retry(w.ctx, all[0].ID, "ana"); err != nil {
		t.Fatal(err)
	}
	w.becomes(all[0].ID, delivery.Delivered)
	w.tell(s, event.JobPaused, 1)
	w.becomes(w.list(delivery.Query{TargetID: target.ID, Limit: 1})[0].ID, delivery.Delivered)
}

// What waits for a target that is removed is dropped, and its stream tells.
func TestRemoved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s)
	held, hold := make(chan struct{}), make(chan struct{})
	w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
		close(held)
		<-hold
		return delivery.Outcome{Result: delivery.Failed, Message: "no"}
	})
	w.tell(s, event.JobPaused, 150)
	w.dispatch(w.s)
	<-held
	if _, err := w.desk.Remove(w.ctx, target.ID); err != nil {
		t.Fatal(err)
	}
	close(hold) // it failed, and is not tried again
	for _, d := range w.settled(150) {
		if d.Status != delivery.Dropped || len(w.eventsOf(s, d.ID)) != 1 {
			t.Errorf("%+v", d)
		}
	}
	if _, err := w.desk.Remove(w.ctx, target.ID); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	if n := len(w.sink.all()); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// What asks for something that is settled before it is sent is dropped: where it is due,
// when it is looked at, and where it waits for another, by the sweep.
func TestSettledIsDropped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	w.add(s, func(a *delivery.Adding) { a.Events = []string{string(event.DecisionRequested)} })
	first, second, third := w.ask(s, 1), w.ask(s, 2), w.ask(s, 3)
	w.resolve(second)
	w.resolve(first)
	w.dispatch(w.s)
	subjects := map[string]delivery.Status{}
	for _, d := range w.settled(3) {
		subjects[d.Subject] = d.Status
		if d.Status == delivery.Dropped && len(w.eventsOf(s, d.ID)) != 1 {
			t.Errorf("nothing tells of %+v", d)
		}
	}
	if subjects[first.ID] != delivery.Dropped || subjects[second.ID] != delivery.Dropped || subjects[third.ID] != delivery.Delivered {
		t.Errorf("%v", subjects)
	}
}

// What has not arrived in its time is dead, with what went wrong last; it is listed, and
// tried again by hand, out of its order, with its attempts and time anew.
func TestTooOld(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.MaxAgeSeconds = 60 })
	w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
		return delivery.Outcome{Result: delivery.Failed, Message: "not now", RetryAfter: time.Hour}
	})
	w.dispatch(w.s)
	w.tell(s, event.JobPaused, 1)
	d := w.becomes(w.one(target.ID).ID, delivery.Retrying)
	if wait := d.Due.Sub(d.CreatedAt); wait < time.Minute || wait > 3*time.Minute {
		t.Errorf("due after %s", wait) // no later than the delivery may live
	}
	w.later(2 * time.Minute)
	d = w.becomes(d.ID, delivery.Dead)
	if d.Message != "It did not arrive in its time. not now" {
		t.Errorf("%q", d.Message)
	}
	if dead := w.list(delivery.Query{Status: delivery.Dead}); len(dead) != 1 || dead[0].ID != d.ID {
		t.Errorf("%+v", dead)
	}
	w.sink.then(nil)
	if d, err := w.desk.Retry(w.ctx, d.ID, "ana"); err != nil || d.GivesUpAt.Before(w.now()) {
		t.Errorf("%+v %v", d, err)
	}
	w.becomes(d.ID, delivery.Delivered)
}

// A dispatcher wakes when the next try is due, although nothing else happens, and works
// through a target's rows without waiting between them.
func TestWakesInTime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.RetryDelaySeconds = 0.03; a.MaxAttempts = 5 })
	w.sink.then(func(_ context.Context, m delivery.Message) delivery.Outcome {
		if m.Attempt < 4 {
			return delivery.Outcome{Result: delivery.Failed, Message: "no"}
		}
		return delivery.Outcome{Result: delivery.Arrived}
	})
	var rounds atomic.Int64
	w.dispatch(w.s, func(d *delivery.Dispatcher) {
		d.Alive = func() { rounds.Add(1) }
		d.LookEvery(time.Hour)
	})
	w.tell(s, event.JobPaused, 1)
	d := w.becomes(w.one(target.ID).ID, delivery.Delivered)
	as := w.attempts(d.ID)
	for i := range as[1:] {
		wait := as[i+1].StartedAt.Sub(as[i].EndedAt)
		t.Logf("attempt %d came after %s", i+2, wait)
		if least := 24 * time.Millisecond << i; wait < least {
			t.Errorf("attempt %d came after %s, before its time", i+2, wait)
		}
	}
	if n := rounds.Load(); n > 200 {
		t.Errorf("%d rounds for four attempts", n)
	}
}

// Nobody waits for a target that hangs: not for one with a long queue, not for forty
// with many streams each.
func TestNobodyWaitsForOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const hanging, streams, healthy, queue = 40, 8, 20, 10_000 / thorough
	release := make(chan struct{})
	var once sync.Once
	free := func() { once.Do(func() { close(release) }) }
	t.Cleanup(free)
	var came sync.WaitGroup
	came.Add(healthy * streams)
	w.sink.then(func(ctx context.Context, m delivery.Message) delivery.Outcome {
		if m.Target.Name == "healthy" {
			came.Done()
			return delivery.Outcome{Result: delivery.Arrived}
		}
		select {
		case <-release:
			return delivery.Outcome{Result: delivery.Arrived}
		case <-ctx.Done():
			return delivery.Outcome{Result: delivery.Failed, Message: "it took too long"}
		}
	})
	roots := make([]string, streams)
	for i := range roots {
		roots[i] = w.root()
	}
	named := func(name string) func(*delivery.Adding) {
		return func(a *delivery.Adding) { a.Name, a.TimeoutSeconds = name, 60 }
	}
	long := w.root()
	w.add(long, named("long"), func(a *delivery.Adding) { a.Unordered = true })
	for done := 0; done < queue; done += 500 {
		w.write(func(tx store.Tx) error {
			for range 500 {
				if err := tx.Append(long, event.New(event.JobPaused, long[4:], "tester", map[string]string{})); err != nil {
					return err
				}
			}
			return nil
		})
	}
	d, _ := w.dispatch(w.s)
	for range hanging {
		w.add("", named("hangs"))
	}
	for _, s := range roots {
		w.tell(s, event.JobPaused, 1)
	}
	w.until(hanging + 1) // they hang
	for range healthy {
		w.add("", named("healthy"))
	}
	for _, s := range roots {
		w.tell(s, event.JobPaused, 1)
	}
	done := make(chan struct{})
	go func() { came.Wait(); close(done) }()
	select {
	case <-done:
	case <-w.ctx.Done():
		t.Fatal("the healthy wait for those that hang")
	}
	if n := d.AtWork(); n < hanging || n > delivery.DefaultAtOnce {
		t.Errorf("%d are at work", n)
	}
	names := map[string]int{}
	for _, m := range w.sink.all() {
		names[m.Target.Name]++
	}
	if names["long"] > delivery.DefaultPerTarget {
		t.Errorf("%d attempts at once for one target", names["long"])
	}
	t.Log(names)
	free()
}

// With little room and many targets that have much to do, each gets its turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	var targets []delivery.Target
	for range 6 {
		targets = append(targets, w.add(s, func(a *delivery.Adding) { a.Unordered = true }))
	}
	const each = 200
	w.write(func(tx store.Tx) error {
		for range each {
			if err := tx.Append(s, event.New(event.JobPaused, s[4:], "tester", map[string]string{})); err != nil {
				return err
			}
		}
		return nil
	})
	w.dispatch(w.s, func(d *delivery.Dispatcher) { d.AtOnce, d.PerTarget = 64, 32 })
	w.allDelivered(each * len(targets))
	first := map[string]int{} // when the first of each came
	for i, m := range w.sink.all() {
		if _, ok := first[m.Target.ID]; !ok {
			first[m.Target.ID] = i
		}
	}
	var at []int
	for _, i := range first {
		at = append(at, i)
	}
	if last := slices.Max(at); len(first) != len(targets) || last > each*len(targets)/2 {
		t.Errorf("the last target's first came as number %d: %v", last, first)
	}
}

// What is known of a target that fails is kept while something is sent to it, and for as
// long as its next try may be away; not for ever, since it may be there no more.
func TestFailingIsForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.RetryDelaySeconds = 3600 })
	goOn := make(chan struct{})
	w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
		<-goOn
		return delivery.Outcome{Result: delivery.Failed, Message: "It is down."}
	})
	d, stop := w.dispatch(w.s)
	w.tell(s, event.JobPaused, 1)
	w.until(1)
	if n := d.Forget(0); n != 1 {
		t.Errorf("while something is sent to it: %d known", n)
	}
	close(goOn)
	w.becomes(w.one(target.ID).ID, delivery.Retrying)
	stop()
	if n := d.Forget(time.Hour); n != 1 {
		t.Errorf("right after: %d known", n)
	}
	if n := d.Forget(0); n != 0 {
		t.Errorf("when it was long ago: %d known", n)
	}
}

// stuck is a store in which some deliveries cannot be changed.
type stuck struct {
	txn.Store
	ids map[string]bool
}

type stuckTx struct {
	store.Tx
	of *stuck
}

func (t stuckTx) PutDelivery(d delivery.Delivery, ch delivery.Change) (bool, error) {
	if t.of.ids[d.ID] {
		return false, errBroken
	}
	return t.Tx.PutDelivery(d, ch)
}

func (s *stuck) Update(ctx context.Context, fn func(txn.Tx) error) error {
	return s.Store.Update(ctx, func(tx txn.Tx) error { return fn(stuckTx{tx.(store.Tx), s}) })
}

// However many deliveries cannot be changed, none of the others waits behind them: not
// what was lost, not what is of a removed target, not what is settled or too old.
func TestStuckKeepNobodyBack(t *testing.T) {
	t.Parallel()
	const held, free = 230, 3
	for name, ready := range map[string]func(w *world, s string, target delivery.Target){
		"lost": func(w *world, _ string, target delivery.Target) {
			for _, d := range w.every() {
				w.claimed(target, d)
			}
		},
		"removed": func(w *world, _ string, target delivery.Target) {
			if _, err := w.desk.Remove(w.ctx, target.ID); err != nil {
				w.Fatal(err)
			}
		},
		"too old": func(w *world, _ string, _ delivery.Target) { w.later(delivery.DefaultMaxAge + time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			s := w.root()
			target := w.add(s, func(a *delivery.Adding) { a.Unordered = true })
			w.write(func(tx store.Tx) error {
				for range held + free {
					if err := tx.Append(s, event.New(event.JobPaused, s[4:], "tester", struct{}{})); err != nil {
						return err
					}
				}
				return nil
			})
			st := &stuck{Store: w.s, ids: map[string]bool{}}
			for i, d := range w.every() { // the oldest come first in every look, and the newest in none
				if i < held/2 || i >= held/2+free {
					st.ids[d.ID] = true
				}
			}
			ready(w, s, target)
			desk := w.desk
			desk.Store = st
			if n, err := desk.Sweep(w.ctx); n != free || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "dlv_") {
				t.Errorf("%d, %v", n, err)
			}
			if n, err := desk.Sweep(w.ctx); n != 0 || !errors.Is(err, errBroken) {
				t.Errorf("again: %d, %v", n, err)
			}
		})
	}
}

// stale is a store in which what is looked up stood before it went back in time.
type stale struct {
	txn.Store
	found []delivery.Delivery
}

type staleTx struct {
	store.Tx
	of *stale
}

func (t staleTx) OfRemoved(int, int) ([]delivery.Delivery, error)        { return t.of.found, nil }
func (t staleTx) AskingSettled(string, int) ([]delivery.Delivery, error) { return t.of.found, nil }

func (s *stale) View(ctx context.Context, fn func(txn.Tx) error) error {
	return s.Store.View(ctx, func(tx txn.Tx) error { return fn(staleTx{tx.(store.Tx), s}) })
}

// What was looked up is judged again in the transaction that writes: nothing is dropped
// that somebody needs.
func TestDropIsJudgedAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s, func(a *delivery.Adding) { a.Events = []string{string(event.DecisionRequested)} })
	w.ask(s, 1)
	desk := w.desk
	desk.Store = &stale{w.s, w.every()}
	if n, err := desk.Sweep(w.ctx); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if d := w.one(target.ID); d.Status != delivery.Pending {
		t.Errorf("it is %s: %s", d.Status, d.Message)
	}
}

// anotherLife is a store that has gone back in time after each look.
type anotherLife struct{ *store.Store }

type anotherLifeTx struct{ store.Tx }

func (t anotherLifeTx) Epoch() int64 { return t.Tx.Epoch() + 1 }

func (s anotherLife) View(ctx context.Context, fn func(txn.Tx) error) error {
	return s.Store.View(ctx, func(tx txn.Tx) error { return fn(anotherLifeTx{tx.(store.Tx)}) })
}

// What was read in another life of the store is not claimed, let alone sent.
func TestLookOfAnotherLife(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.add(s)
	w.tell(s, event.JobPaused, 1)
	rounds := make(chan struct{})
	d, stop := w.dispatch(w.s, func(d *delivery.Dispatcher) {
		d.Store = anotherLife{w.s}
		d.LookEvery(time.Millisecond)
		d.Alive = func() {
			select {
			case rounds <- struct{}{}:
			case <-w.ctx.Done():
			}
		}
	})
	for range 3 {
		<-rounds
	}
	go func() {
		for range rounds {
		}
	}()
	stop()
	close(rounds)
	if n := d.AtWork(); n > 0 || len(w.sink.all()) > 0 || w.one(target.ID).Status != delivery.Pending {
		t.Errorf("%d at work, sent %+v, %+v", n, w.sink.all(), w.one(target.ID))
	}
}
