package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

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

// Dispatchers over two handles of one store never send one delivery at a time twice, and
// never lose one, whatever becomes of the attempts.
func TestManyDispatchers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			const rounds = 200 / thorough
			w := setup(t)
			stores := []*store.Store{w.s, w.open()}
			streams := []string{w.root(), w.root()}
			w.add("")
			w.add(streams[0], func(a *delivery.Adding) { a.Unordered = true })
			var mu sync.Mutex
			calls := 0
			w.sink.then(func(context.Context, delivery.Message) delivery.Outcome {
				mu.Lock()
				defer mu.Unlock()
				switch calls++; {
				case calls%5 == 1:
					return delivery.Outcome{Result: delivery.NotSent, Message: "not now"}
				case calls%7 == 1:
					return delivery.Outcome{Result: delivery.Failed, Message: "no"}
				}
				return delivery.Outcome{Result: delivery.Arrived}
			})
			for i := range n {
				w.dispatch(stores[i%2])
			}
			for range rounds {
				together(2, func(i int) {
					if err := txn.Update(w.ctx, stores[i], func(tx store.Tx) error {
						return tx.Append(streams[i], event.New(event.JobPaused, streams[i][4:], "tester", map[string]string{}))
					}); err != nil {
						t.Error(err)
					}
				})
			}
			all := w.allDelivered(3 * rounds)
			w.sink.mu.Lock()
			defer w.sink.mu.Unlock()
			if len(w.sink.twice) > 0 {
				t.Errorf("sent twice at a time: %v", w.sink.twice)
			}
			sends := map[string]int{}
			for _, m := range w.sink.got {
				sends[m.DeliveryID]++
			}
			for _, d := range all {
				if as := w.attempts(d.ID); len(as) != sends[d.ID] {
					t.Errorf("%s was sent %d times; %+v", d.ID, sends[d.ID], as)
				}
			}
		})
	}
}

// every reads all deliveries, the oldest first.
func (w *world) every() (all []delivery.Delivery) {
	w.Helper()
	for after := ""; ; {
		page := w.list(delivery.Query{Limit: 500, After: after})
		if all = append(all, page...); len(page) == 0 {
			slices.Reverse(all)
			return all
		}
		after = page[len(page)-1].ID
	}
}

// settled waits until none is open, and wants n in all.
func (w *world) settled(n int) []delivery.Delivery {
	w.Helper()
	for {
		all := w.every()
		open := slices.IndexFunc(all, func(d delivery.Delivery) bool { return d.Status.Open() })
		if len(all) == n && open < 0 {
			return all
		}
		select {
		case <-w.ctx.Done():
			w.Fatalf("%d of %d are there; open: %+v", len(all), n, all[max(open, 0)])
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *world) allDelivered(n int) []delivery.Delivery {
	w.Helper()
	all := w.settled(n)
	for _, d := range all {
		if d.Status != delivery.Delivered {
			w.Errorf("%+v", d)
		}
	}
	return all
}

// Events, failures, refusals, releases and retries by hand, at random, over two handles:
// in the end each has arrived or is dead as the answers say, with the attempts that the
// receiver saw, and in the order of its lane.
func TestHistory(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := setup(t)
	stores := []*store.Store{w.s, w.open()}
	streams := []string{w.root(), w.root(), w.root()}
	most := int64(3)
	ordered := w.add("", func(a *delivery.Adding) { a.MaxAttempts, a.RetryDelaySeconds = most, 0.001 })
	w.add(streams[0], func(a *delivery.Adding) { a.MaxAttempts, a.RetryDelaySeconds = most, 0.001 })
	w.add("", func(a *delivery.Adding) { a.Unordered, a.MaxAttempts, a.RetryDelaySeconds = true, most, 0.001 })
	h := newHistory(seed)
	w.sink.then(h.answer)
	w.dispatch(stores[0])
	w.dispatch(stores[1])
	wanted, retried := 0, map[string]int64{}
	for range 300 / thorough {
		i := rnd.IntN(len(streams))
		w.tell(streams[i], event.JobPaused, 1)
		if wanted += 2; i == 0 {
			wanted++
		}
		if dead := w.list(delivery.Query{Status: delivery.Dead, Limit: 1}); rnd.IntN(4) == 0 && len(dead) > 0 {
			if d, err := w.desk.Retry(w.ctx, dead[0].ID, "ana"); err == nil {
				retried[d.ID] = d.Attempts
			}
		}
	}
	for _, d := range w.settled(wanted) {
		h.check(w, d, most, retried)
	}
	h.inOrder(w, ordered.ID, retried)
}

// history is what a receiver answered, by delivery.
type history struct {
	mu  sync.Mutex
	rnd *rand.Rand
	of  map[string][]delivery.Result
	at  map[string][]int64 // places at which first attempts came, by lane
}

func newHistory(seed uint64) *history {
	return &history{rnd: rand.New(rand.NewPCG(seed, 1)), of: map[string][]delivery.Result{}, at: map[string][]int64{}}
}

func (h *history) answer(_ context.Context, m delivery.Message) delivery.Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := []delivery.Result{delivery.Arrived, delivery.Arrived, delivery.Failed, delivery.Failed, delivery.Refused, delivery.NotSent}[h.rnd.IntN(6)]
	h.of[m.DeliveryID] = append(h.of[m.DeliveryID], r)
	var e struct {
		Data struct {
			Stream string `json:"stream"`
			Seq    int64  `json:"stream_seq"`
		}
	}
	mustDecode(m.Body, &e)
	lane := m.Target.ID + e.Data.Stream
	h.at[lane] = append(h.at[lane], e.Data.Seq)
	return delivery.Outcome{Result: r, Message: "said " + string(r)}
}

func (h *history) check(w *world, d delivery.Delivery, most int64, retried map[string]int64) {
	w.Helper()
	h.mu.Lock()
	said := h.of[d.ID]
	h.mu.Unlock()
	as := w.attempts(d.ID)
	want := []delivery.AttemptOutcome{}
	spent := int64(0)
	for _, r := range said {
		if r == delivery.NotSent {
			want = append(want, delivery.Released)
			continue
		}
		spent++
		want = append(want, delivery.AttemptOutcome(r))
	}
	got := []delivery.AttemptOutcome{}
	for _, a := range as {
		got = append(got, a.Outcome)
	}
	last := delivery.AttemptOutcome("")
	if len(got) > 0 {
		last = got[len(got)-1]
	}
	arrived := d.Status == delivery.Delivered
	if !slices.Equal(want, got) || d.Attempts != spent || arrived != (last == delivery.AttemptOutcome(delivery.Arrived)) {
		w.Errorf("%s is %s after %d: the receiver said %v, stored is %v", d.ID, d.Status, d.Attempts, said, got)
	}
	if spentNow := d.Attempts - retried[d.ID]; spentNow > most || d.Status == delivery.Dead && last == delivery.AttemptOutcome(delivery.Failed) && spentNow != most {
		w.Errorf("%s is %s after %d attempts of %d", d.ID, d.Status, spentNow, most)
	}
}

// inOrder: within a lane nothing comes before what is earlier, but for what a person
// tried again.
func (h *history) inOrder(w *world, targetID string, retried map[string]int64) {
	w.Helper()
	again := map[string]bool{}
	for _, d := range w.every() {
		if _, ok := retried[d.ID]; ok {
			again[fmt.Sprint(d.TargetID, d.Stream, d.StreamSeq)] = true
		}
	}
	for lane, places := range h.at {
		if lane[:len(targetID)] != targetID {
			continue
		}
		highest := int64(0)
		for _, n := range places {
			if n < highest && !again[fmt.Sprint(lane, n)] {
				w.Errorf("%s: %d came after %d", lane, n, highest)
			}
			highest = max(highest, n)
		}
	}
}

// What has ended twice, or late, ends once: an attempt whose lease was over when its
// answer came changes nothing any more.
func TestLateOutcome(t *testing.T) {
	t.Parallel()
	for _, late := range []delivery.Result{delivery.Failed, delivery.Arrived, delivery.Gone, delivery.NotSent} {
		t.Run(string(late), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			s := w.root()
			target := w.add(s)
			hold, arrived := make(chan struct{}), make(chan struct{})
			w.sink.then(func(_ context.Context, m delivery.Message) delivery.Outcome {
				if m.Attempt > 1 {
					return delivery.Outcome{Result: delivery.Arrived, Status: 204}
				}
				close(arrived)
				<-hold // it does not mind its context
				return delivery.Outcome{Result: late, Message: "late"}
			})
			_, stop := w.dispatch(w.s)
			w.tell(s, event.JobPaused, 1)
			<-arrived
			w.later(time.Hour)
			w.dispatch(w.open())
			d := w.becomes(w.one(target.ID).ID, delivery.Delivered)
			as := w.attempts(d.ID)
			if len(as) != 2 || as[0].Outcome != delivery.Reclaimed || as[1].Status != 204 || d.Attempts != 1 {
				t.Errorf("%+v: %+v", d, as)
			}
			close(hold)
			stop() // which writes down what it can
			if got := w.one(target.ID); got.Version != d.Version || len(w.attempts(d.ID)) != 2 {
				t.Errorf("the late outcome changed it: %+v", got)
			}
			if to, err := w.desk.Target(w.ctx, target.ID); err != nil || !to.InUse() {
				t.Errorf("the late outcome changed the target: %+v %v", to, err)
			}
		})
	}
}

// A question that is answered while it is on its way to people: where its delivery was
// dropped it was never sent, and where it was sent, it was not dropped.
func TestResolveAgainstClaim(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.open()
	w.add("", func(a *delivery.Adding) { a.Events = []string{string(event.DecisionRequested)} })
	w.dispatch(w.s)
	w.dispatch(other)
	const rounds = 200 / thorough
	s := w.root()
	for i := range rounds {
		q := w.ask(s, i)
		w.resolve(q)
		if i%20 == 19 {
			s = w.root()
		}
	}
	dropped := map[string]bool{}
	for _, d := range w.settled(rounds) {
		switch as := w.attempts(d.ID); d.Status {
		case delivery.Dropped:
			dropped[d.ID] = true
			if len(as) > 0 {
				t.Errorf("dropped after %+v", as)
			}
			if n := len(w.eventsOf(d.Stream, d.ID)); n != 1 {
				t.Errorf("%d events tell of %s", n, d.ID)
			}
		case delivery.Delivered:
			if len(as) != 1 {
				t.Errorf("%+v", as)
			}
		default:
			t.Errorf("%+v", d)
		}
	}
	for _, m := range w.sink.all() {
		if dropped[m.DeliveryID] {
			t.Errorf("%s was sent, and dropped", m.DeliveryID)
		}
	}
	t.Logf("%d of %d were dropped", len(dropped), rounds)
}
