package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// relay registers one by name on a stream.
func (w *world) relay(stream, name string, types ...event.Type) delivery.Target {
	w.Helper()
	a := delivery.Adding{Name: name, RetryDelaySeconds: 0.001}
	for _, t := range append([]event.Type{event.JobPaused}, types...) {
		a.Events = append(a.Events, string(t))
	}
	t, err := w.desk.Register(w.ctx, stream, "agent:ana", a, nil)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) poll(t delivery.Target, want int) []delivery.Polled {
	w.Helper()
	got, err := w.desk.Poll(w.ctx, delivery.Polling{TargetID: t.ID, Holder: "agent", Lease: time.Minute})
	if err != nil || len(got) != want {
		w.Fatalf("polled %d, want %d: %v", len(got), want, err)
	}
	return got
}

// Who registers again by its name goes on with its target and what it has not
// acknowledged, with the events that it asks for now. Another's name is another target.
func TestRegisterAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	first := w.relay(s, "mine")
	w.tell(s, event.JobPaused, 2)
	again := w.relay(s, "mine", event.JobUnpaused)
	if again.ID != first.ID || again.Version != first.Version+1 || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("%+v %+v", first, again)
	}
	got := w.poll(again, 1)
	w.tell(s, event.JobUnpaused, 1)
	if n := len(w.list(delivery.Query{TargetID: first.ID})); n != 3 || got[0].Delivery.StreamSeq != 2 {
		t.Errorf("%d are there, the first %+v", n, got)
	}
	other, err := w.desk.Register(w.ctx, s, "agent:bo", delivery.Adding{Name: "mine"}, nil)
	if err != nil || other.ID == first.ID {
		t.Errorf("another's: %+v %v", other, err)
	}
	if everywhere := w.relay("", "mine"); everywhere.ID == first.ID {
		t.Error("the same on every root")
	}
	if nameless := w.relay(s, ""); nameless.ID == w.relay(s, "").ID {
		t.Error("one without a name was found again")
	}
	if _, err := w.desk.Remove(w.ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	if anew := w.relay(s, "mine"); anew.ID == first.ID {
		t.Error("one that was removed was found again")
	}
}

// looked is a store that tells once somebody has looked into it.
type looked struct {
	*store.Store
	once chan struct{}
}

func (l looked) View(ctx context.Context, fn func(txn.Tx) error) error {
	err := l.Store.View(ctx, fn)
	select {
	case l.once <- struct{}{}:
	default:
	}
	return err
}

// Who polls and finds nothing is woken by the next event, from this handle or another;
// an empty answer is no error, and a removed target ends the wait.
func TestPollWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.open()
	s := w.root()
	target := w.relay(s, "mine")
	w.poll(target, 0)
	l := looked{w.s, make(chan struct{}, 1)}
	desk := w.deskOn(w.s)
	desk.Store = l
	waiting := delivery.Polling{TargetID: target.ID, Wait: delivery.MaxPollWait}
	for _, from := range []*store.Store{w.s, other} {
		type answer struct {
			got []delivery.Polled
			err error
		}
		answers := make(chan answer, 1)
		go func() {
			got, err := desk.Poll(w.ctx, waiting)
			answers <- answer{got, err}
		}()
		<-l.once // from here on only a wake brings it back
		if err := txn.Update(w.ctx, from, func(tx store.Tx) error {
			return tx.Append(s, event.New(event.JobPaused, s[4:], "tester", map[string]string{}))
		}); err != nil {
			t.Fatal(err)
		}
		a := <-answers
		if a.err != nil || len(a.got) != 1 {
			t.Fatalf("%+v %v", a.got, a.err)
		}
		if _, err := w.desk.Acknowledge(w.ctx, a.got[0].Delivery.ID, a.got[0].LeaseToken); err != nil {
			t.Fatal(err)
		}
		select {
		case <-l.once: // what it found, and claimed
		default:
		}
	}
	ends := make(chan error, 1)
	go func() {
		_, err := desk.Poll(w.ctx, waiting)
		ends <- err
	}()
	<-l.once
	if _, err := w.desk.Remove(w.ctx, target.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-ends; !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("the wait for a removed target ended with %v", err)
	}
	ctx, stop := context.WithCancelCause(w.ctx)
	stop(errBroken)
	if _, err := w.desk.Poll(ctx, delivery.Polling{TargetID: w.relay(s, "").ID, Wait: time.Minute}); err == nil {
		t.Error("a wait that was ended has an answer")
	}
}

// all is everything that deliveries have in a store.
type all struct {
	Deliveries []delivery.Delivery
	Attempts   map[string][]delivery.Attempt
	Events     []event.Event
}

func (w *world) look() (a all) {
	w.Helper()
	a = all{Deliveries: w.every(), Attempts: map[string][]delivery.Attempt{}}
	for _, d := range a.Deliveries {
		a.Attempts[d.ID] = w.attempts(d.ID)
	}
	if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) {
		a.Events, err = tx.Events(event.Query{Limit: 1000})
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return a
}

// changesNothing answers with every token that does not count, in both ways.
func (w *world) changesNothing(what, deliveryID string, tokens ...string) {
	w.Helper()
	before := w.look()
	for _, token := range tokens {
		for name, answer := range map[string]func(context.Context, string, string) (delivery.Delivery, error){"acknowledge": w.desk.Acknowledge, "give back": w.desk.GiveBack} {
			if _, err := answer(w.ctx, deliveryID, token); !errors.Is(err, delivery.ErrLeaseLost) {
				w.Errorf("%s: %s with %q: %v", what, name, token, err)
			}
		}
	}
	if diff := cmp.Diff(before, w.look()); diff != "" {
		w.Errorf("%s: (-before +after)\n%s", what, diff)
	}
}

// Only the token under which a delivery is held answers for it, and only while it is.
// Whatever else is tried changes nothing at all.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s, s2 := w.root(), w.root()
	target := w.relay("", "mine")
	w.tell(s, event.JobPaused, 2)
	w.tell(s2, event.JobPaused, 1)
	got := w.poll(target, 2)
	a, b := got[0], got[1]
	last := map[bool]string{true: "A", false: "_"}[strings.HasSuffix(a.LeaseToken, "_")]
	forged := a.LeaseToken[:len(a.LeaseToken)-1] + last
	w.changesNothing("held", a.Delivery.ID, "", "x", forged, a.LeaseToken+"A", a.LeaseToken[1:], b.LeaseToken)
	back, err := w.desk.GiveBack(w.ctx, a.Delivery.ID, a.LeaseToken)
	if err != nil || back.Status != delivery.Pending || back.Attempts != 0 {
		t.Fatalf("%+v %v", back, err)
	}
	w.changesNothing("given back", a.Delivery.ID, a.LeaseToken, b.LeaseToken, "")
	again := w.poll(target, 1)[0]
	if again.Delivery.ID != a.Delivery.ID || again.LeaseToken == a.LeaseToken || string(again.Body) != string(a.Body) {
		t.Errorf("%+v after %+v", again, a)
	}
	w.changesNothing("fetched again", a.Delivery.ID, a.LeaseToken)
	for range 2 { // again is fine
		if d, err := w.desk.Acknowledge(w.ctx, a.Delivery.ID, again.LeaseToken); err != nil || d.Status != delivery.Delivered || d.Attempts != 1 {
			t.Errorf("%+v %v", d, err)
		}
	}
	before := w.look()
	if _, err := w.desk.GiveBack(w.ctx, a.Delivery.ID, again.LeaseToken); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("given back after it arrived: %v", err)
	}
	if diff := cmp.Diff(before, w.look()); diff != "" {
		t.Error(diff)
	}
	w.changesNothing("delivered", a.Delivery.ID, a.LeaseToken, b.LeaseToken, "")
	w.later(2 * time.Minute)
	w.changesNothing("its lease is over", b.Delivery.ID, b.LeaseToken)
	if n, err := w.desk.Sweep(w.ctx); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	w.changesNothing("reclaimed", b.Delivery.ID, b.LeaseToken)
	w.later(time.Minute)
	lost := w.poll(target, 2)
	for _, p := range lost {
		if p.Delivery.ID == b.Delivery.ID {
			w.changesNothing("reclaimed, and fetched again", b.Delivery.ID, b.LeaseToken)
		}
		if _, err := w.desk.Acknowledge(w.ctx, p.Delivery.ID, p.LeaseToken); err != nil {
			t.Error(err)
		}
	}
	if as := w.attempts(b.Delivery.ID); len(as) != 2 || as[0].Outcome != delivery.Reclaimed || as[1].Owner != "agent" {
		t.Errorf("%+v", as)
	}
	if _, err := w.desk.Acknowledge(w.ctx, "dlv_none", b.LeaseToken); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("no such delivery: %v", err)
	}
}

// Where all that was due came to nothing, a poll goes on to what is due behind it.
func TestPollPassesOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	target := w.relay(s, "mine", event.DecisionRequested)
	for i := range 30 {
		w.resolve(w.ask(s, i))
	}
	w.tell(s, event.JobPaused, 1)
	if got := w.poll(target, 1)[0]; got.Delivery.EventType != event.JobPaused {
		t.Errorf("%+v", got)
	}
}

// What is pushed is not polled, what is polled is not pushed, and another space's is not
// there.
func TestPollRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s := w.root()
	hook, mine := w.add(s), w.relay(s, "mine")
	w.tell(s, event.JobPaused, 1)
	other := w.desk
	other.Space = "other"
	for name, c := range map[string]struct {
		desk delivery.Desk
		p    delivery.Polling
		want error
	}{
		"pushed":      {w.desk, delivery.Polling{TargetID: hook.ID}, delivery.ErrState},
		"nobody":      {w.desk, delivery.Polling{TargetID: "tgt_none"}, delivery.ErrNotFound},
		"other space": {other, delivery.Polling{TargetID: mine.ID}, delivery.ErrNotFound},
		"limit":       {w.desk, delivery.Polling{TargetID: mine.ID, Limit: delivery.MaxPoll + 1}, delivery.ErrUsage},
		"lease":       {w.desk, delivery.Polling{TargetID: mine.ID, Lease: delivery.MaxPollLease + 1}, delivery.ErrUsage},
		"wait":        {w.desk, delivery.Polling{TargetID: mine.ID, Wait: -1}, delivery.ErrUsage},
	} {
		if got, err := c.desk.Poll(w.ctx, c.p); !errors.Is(err, c.want) || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	got := w.poll(mine, 1)[0]
	if _, err := other.Acknowledge(w.ctx, got.Delivery.ID, got.LeaseToken); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("answered in another space: %v", err)
	}
	w.dispatch(w.s)
	w.until(1)
	w.becomes(w.one(hook.ID).ID, delivery.Delivered)
	if _, err := w.desk.Acknowledge(w.ctx, w.one(hook.ID).ID, got.LeaseToken); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("a pushed one was answered: %v", err)
	}
	if d := w.one(mine.ID); d.Fence != 1 || d.Status != delivery.Dispatching {
		t.Errorf("%+v", d)
	}
	for _, m := range w.sink.all() {
		if m.Target.ID == mine.ID {
			t.Errorf("pushed to who polls: %s", fmt.Sprint(m))
		}
	}
}
