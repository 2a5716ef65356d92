package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

const patience = 5 * time.Minute

// whole bounds a test in all, however slow the machine is: it only ends what hangs.
const whole = 20 * time.Minute

// world is one store and what delivers from it.
type world struct {
	*testing.T
	ctx  context.Context
	path string
	s    *store.Store
	sink *sink
	desk delivery.Desk
	skew *atomic.Int64 // how far the store's clock is ahead
}

func setup(t *testing.T) *world {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), whole)
	t.Cleanup(stop)
	w := &world{T: t, ctx: ctx, path: filepath.Join(t.TempDir(), "placet.db"), sink: newSink(), skew: &atomic.Int64{}}
	w.s = w.open()
	w.desk = w.deskOn(w.s)
	return w
}

// open opens the store, as another process would.
func (w *world) open(hooks ...*sqlite.Hooks) *store.Store {
	w.Helper()
	o := &sqlite.Options{Now: w.now, Logger: slog.New(slog.DiscardHandler)}
	if len(hooks) > 0 {
		o.Hooks = hooks[0]
	}
	s, err := sqlite.Open(w.ctx, w.path, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { s.Close() })
	return s
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }

// later has the store's clock go on by so much.
func (w *world) later(d time.Duration) { w.skew.Add(int64(d)) }

func (w *world) deskOn(s *store.Store) delivery.Desk {
	return delivery.Desk{Store: s, Space: event.MainSpace, Channels: delivery.Channels{delivery.KindWebhook: w.sink}}
}

// dispatch runs a dispatcher until the test ends, or stop is called.
func (w *world) dispatch(s *store.Store, change ...func(*delivery.Dispatcher)) (d *delivery.Dispatcher, stop func()) {
	w.Helper()
	d = &delivery.Dispatcher{Store: s, Channels: delivery.Channels{delivery.KindWebhook: w.sink}, Owner: "tester", Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(d)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Loop(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.Cleanup(stop)
	return d, stop
}

// root is a job to whose stream tests append.
func (w *world) root() string {
	w.Helper()
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Home: "/home/a", Spec: job.Spec{Shell: "true"}, Status: job.Queued, Paused: true, ExitCode: -1, CreatedAt: time.Now(), Epoch: 1, Version: 1}
	w.write(func(tx store.Tx) error {
		return tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})}})
	})
	return j.Stream()
}

func (w *world) write(fn func(store.Tx) error) {
	w.Helper()
	if err := txn.Update(w.ctx, w.s, fn); err != nil {
		w.Fatal(err)
	}
}

// tell appends events of a type to a stream, one transaction each.
func (w *world) tell(stream string, t event.Type, n int) {
	w.Helper()
	for i := range n {
		w.write(func(tx store.Tx) error {
			return tx.Append(stream, event.New(t, stream[4:], "tester", map[string]any{"job_id": stream[4:], "n": i}))
		})
	}
}

func (w *world) add(stream string, change ...func(*delivery.Adding)) delivery.Target {
	w.Helper()
	a := delivery.Adding{Type: delivery.KindWebhook, URL: "https://example.com/" + id.New(""), Events: []string{string(event.JobPaused), string(event.JobCompleted)}, RetryDelaySeconds: 0.01}
	for _, f := range change {
		f(&a)
	}
	t, err := w.desk.Add(w.ctx, stream, "ana", a, nil)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) list(q delivery.Query) []delivery.Delivery {
	w.Helper()
	q.Space = event.MainSpace
	var ds []delivery.Delivery
	if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) { ds, err = tx.Deliveries(q); return err }); err != nil {
		w.Fatal(err)
	}
	return ds
}

func (w *world) one(targetID string) delivery.Delivery {
	w.Helper()
	ds := w.list(delivery.Query{TargetID: targetID})
	if len(ds) != 1 {
		w.Fatalf("%d deliveries: %+v", len(ds), ds)
	}
	return ds[0]
}

func (w *world) attempts(deliveryID string) []delivery.Attempt {
	w.Helper()
	var as []delivery.Attempt
	if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) { as, err = tx.DeliveryAttempts(deliveryID); return err }); err != nil {
		w.Fatal(err)
	}
	return as
}

// becomes waits until a delivery has a status.
func (w *world) becomes(deliveryID string, s delivery.Status) delivery.Delivery {
	w.Helper()
	for {
		var d delivery.Delivery
		if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) { d, err = tx.Delivery(deliveryID); return err }); err != nil {
			w.Fatal(err)
		}
		if d.Status == s {
			return d
		}
		select {
		case <-w.ctx.Done():
			w.Fatalf("it is %s, not %s: %+v", d.Status, s, d)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sink is a channel that notes what it is given.
type sink struct {
	mu    sync.Mutex
	got   []delivery.Message
	news  chan struct{}
	how   func(ctx context.Context, m delivery.Message) delivery.Outcome
	now   map[string]int // under way, by delivery
	twice []string       // deliveries of which two were under way at a time
}

func newSink() *sink { return &sink{news: make(chan struct{}, 1), now: map[string]int{}} }

func (s *sink) Check(delivery.Target) error { return nil }

func (s *sink) Send(ctx context.Context, m delivery.Message) delivery.Outcome {
	s.mu.Lock()
	s.got = append(s.got, m)
	if s.now[m.DeliveryID]++; s.now[m.DeliveryID] > 1 {
		s.twice = append(s.twice, m.DeliveryID)
	}
	how := s.how
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	defer func() {
		s.mu.Lock()
		s.now[m.DeliveryID]--
		s.mu.Unlock()
	}()
	if how != nil {
		return how(ctx, m)
	}
	return delivery.Outcome{Result: delivery.Arrived, Status: 200}
}

func (s *sink) then(how func(context.Context, delivery.Message) delivery.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.how = how
}

func (s *sink) all() []delivery.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]delivery.Message(nil), s.got...)
}

// until waits until so many messages have come.
func (w *world) until(n int) []delivery.Message {
	w.Helper()
	for {
		if got := w.sink.all(); len(got) >= n {
			return got
		}
		select {
		case <-w.sink.news:
		case <-w.ctx.Done():
			w.Fatalf("%d of %d messages came", len(w.sink.all()), n)
		}
	}
}

func dataOf(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var e struct{ Data map[string]any }
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	return e.Data
}

var errBroken = errors.New("broken")

// ask asks something for the job of a stream, and resolve answers it.
func (w *world) ask(stream string, n int) decision.AskedAt {
	w.Helper()
	q, err := decision.Operator{Store: w.s}.Ask(w.ctx, event.MainSpace, stream[4:], decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}, IdempotencyKey: fmt.Sprint("q", n), By: "bot"})
	if err != nil {
		w.Fatal(err)
	}
	return q
}

func (w *world) resolve(q decision.AskedAt) {
	w.Helper()
	if _, err := (decision.Operator{Store: w.s}).Resolve(w.ctx, q.Owner.ID, q.ID, decision.Answering{Choice: "yes", By: "Ana"}); err != nil {
		w.Fatal(err)
	}
}

// eventsOf are those of a stream about one subject.
func (w *world) eventsOf(stream, subject string) (es []event.Event) {
	w.Helper()
	if err := txn.View(w.ctx, w.s, func(tx delivery.Tx) (err error) {
		es, err = tx.Events(event.Query{Stream: stream, Subject: subject})
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return es
}

func mustDecode(b []byte, to any) {
	if err := json.Unmarshal(b, to); err != nil {
		panic(err)
	}
}
