package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/placet-dev/placet/channel/webhook"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

const (
	producers       = 16
	streamsEach     = 16 // of a producer
	sinkTargets     = 100
	webhooksSent    = 1000
	deliverRate     = 10_000
	deliverCommit   = 5 * time.Millisecond
	deadCosts       = 0.95
	webhookMedian   = 5 * time.Millisecond
	webhookSlowest  = 25 * time.Millisecond
	producingFor    = 3 * time.Second
	producingRounds = 3
)

// sink is a channel at which everything arrives at once, but for what is dead.
type sink struct{ n atomic.Int64 }

func (*sink) Check(delivery.Target) error { return nil }

func (s *sink) Send(_ context.Context, m delivery.Message) delivery.Outcome {
	if m.Target.Name == "dead" {
		return delivery.Outcome{Result: delivery.Failed, Message: "dead"}
	}
	s.n.Add(1)
	return delivery.Outcome{Result: delivery.Arrived}
}

// deliverer is a store from which a dispatcher delivers.
type deliverer struct {
	*store.Store
	sink    *sink
	streams [producers][]string
	stop    func()
	put     atomic.Int64
}

func (b *bench) openDeliverer(ctx context.Context, name string, targets []delivery.Adding) (*deliverer, error) {
	st, err := sqlite.Open(ctx, b.path(name), &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	d := &deliverer{Store: st, sink: &sink{}}
	channels := delivery.Channels{delivery.KindWebhook: d.sink}
	desk := delivery.Desk{Store: st, Space: event.MainSpace, Channels: channels}
	for _, a := range targets {
		a.Type, a.URL = delivery.KindWebhook, "https://example.com/"
		if _, err := desk.Add(ctx, "", "bench", a, nil); err != nil {
			return nil, err
		}
	}
	for i := range d.streams {
		for range streamsEach {
			s, err := newStream(ctx, st)
			if err != nil {
				return nil, err
			}
			d.streams[i] = append(d.streams[i], s)
		}
	}
	dispatching, stop := context.WithCancel(ctx)
	var loop sync.WaitGroup
	out := &delivery.Dispatcher{Store: st, Channels: channels, Log: slog.New(slog.DiscardHandler)}
	loop.Go(func() { out.Loop(dispatching) })
	d.stop = func() { stop(); loop.Wait(); _ = st.Close() }
	return d, nil
}

// newStream makes a job that is never started, to whose stream is appended.
func newStream(ctx context.Context, st *store.Store) (string, error) {
	j := job.Job{
		ID: id.New(id.Job), Space: event.MainSpace, Home: "/", Spec: job.Spec{Shell: "true"}, Status: job.Queued, Paused: true, ExitCode: -1,
		CreatedAt: time.Now(), Epoch: 1, Version: 1,
	}
	return j.Stream(), txn.Update(ctx, st, func(tx store.Tx) error {
		return tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, j.ID, "bench", struct{}{})}})
	})
}

// produce lets the producers commit one event after the other for so long, and returns
// how long each commit took. word names the printed event of the n-th.
func (d *deliverer) produce(ctx context.Context, during time.Duration, word func(n int64) string) ([]time.Duration, error) {
	took, errs := make([][]time.Duration, producers), make([]error, producers)
	until := time.Now().Add(during)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := 0; time.Now().Before(until) && errs[p] == nil; i++ {
				s := d.streams[p][i%streamsEach]
				e := event.New(event.JobOutput, s[4:], "bench", map[string]string{"type": word(d.put.Add(1))})
				began := time.Now()
				errs[p] = txn.Update(ctx, d.Store, func(tx store.Tx) error { return tx.Append(s, e) })
				took[p] = append(took[p], time.Since(began))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	list := slices.Concat(took...)
	slices.Sort(list)
	return list, nil
}

// arrived waits until so many have.
func (d *deliverer) arrived(ctx context.Context, n int64) error {
	for d.sink.n.Load() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// deliveries measures what it takes to bring events to wake targets.
func deliveries(ctx context.Context, b *bench) error {
	b.title("deliveries: %d producers, one event a commit, delivered to a sink in this process (targets: %d/s, p99 of the commit under %s)",
		producers, deliverRate, deliverCommit)
	floor, err := b.floorRate(ctx)
	if err != nil {
		return err
	}
	b.line("%-13s %7.0f/s: two plain rows a transaction", "floor:", floor)
	all := func(int64) string { return "all" }
	for _, t := range []struct {
		name    string
		targets []delivery.Adding
	}{
		{"nobody hears", nil},
		{"ordered", []delivery.Adding{{Events: []string{"output:all"}}}},
		{"unordered", []delivery.Adding{{Events: []string{"output:all"}, Unordered: true}}},
	} {
		rate, took, err := b.commitAndDeliver(ctx, "deliver-"+t.name+".db", t.targets, all, int64(len(t.targets)))
		if err != nil {
			return err
		}
		b.line("%-13s %7.0f/s, %.2f of the floor; commit p50 %s, p99 %s", t.name+":", rate, rate/floor, micro(took[len(took)/2]), micro(took[len(took)*99/100]))
	}
	if err := b.oneDead(ctx); err != nil {
		return err
	}
	return b.toWebhook(ctx)
}

// floorRate is how many transactions of two plain rows as many producers commit.
func (b *bench) floorRate(ctx context.Context) (float64, error) {
	f, err := openFloor(ctx, b.path("deliver-floor.db"))
	if err != nil {
		return 0, err
	}
	defer f.world.store.Close()
	var s sample
	for range producingRounds {
		if err := s.turn(ctx, producers, producingFor/3, f.once); err != nil {
			return 0, err
		}
	}
	return s.rate(), nil
}

// commitAndDeliver is the median rate over some rounds, from the first commit to the
// last arrival.
func (b *bench) commitAndDeliver(ctx context.Context, name string, targets []delivery.Adding, word func(int64) string, each int64) (float64, []time.Duration, error) {
	d, err := b.openDeliverer(ctx, name, targets)
	if err != nil {
		return 0, nil, err
	}
	defer d.stop()
	var rates []float64
	var took []time.Duration
	for range producingRounds {
		before, began := d.put.Load(), time.Now()
		more, err := d.produce(ctx, producingFor, word)
		if err != nil {
			return 0, nil, err
		}
		if err := d.arrived(ctx, d.put.Load()*each); err != nil {
			return 0, nil, err
		}
		rates, took = append(rates, float64(d.put.Load()-before)/time.Since(began).Seconds()), append(took, more...)
	}
	slices.Sort(took)
	return median(rates), took, nil
}

// oneDead compares a hundred targets that each hear of a hundredth of the events with as
// many of which one never answers well.
func (b *bench) oneDead(ctx context.Context) error {
	word := func(n int64) string { return fmt.Sprint(n % sinkTargets) }
	var rates [2]float64
	for dead := range 2 {
		var targets []delivery.Adding
		for i := range sinkTargets {
			targets = append(targets, delivery.Adding{Events: []string{fmt.Sprint("output:", i)}})
		}
		if dead == 1 {
			targets[0].Name = "dead"
		}
		d, err := b.openDeliverer(ctx, fmt.Sprintf("hundred-%d.db", dead), targets)
		if err != nil {
			return err
		}
		var each []float64
		for range producingRounds {
			before, began := d.sink.n.Load(), time.Now()
			if _, err := d.produce(ctx, producingFor, word); err != nil {
				return err
			}
			n := d.put.Load()
			wanted := n
			if dead == 1 {
				wanted -= n / sinkTargets // what is for the one that is dead
			}
			if err := d.arrived(ctx, wanted); err != nil {
				return err
			}
			each = append(each, float64(d.sink.n.Load()-before)/time.Since(began).Seconds())
		}
		d.stop()
		rates[dead] = median(each)
	}
	healthy := float64(sinkTargets-1) / sinkTargets
	b.line("one dead among %d: the others get %.0f/s, %.3f of what they get beside a healthy one (target %.2f)", sinkTargets, rates[1], rates[1]/(rates[0]*healthy), deadCosts)
	return nil
}

// toWebhook measures from the call that commits an event to its arrival at a receiver
// on loopback, with nothing else to do.
func (b *bench) toWebhook(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	came := make(chan time.Time, 1)
	receiver := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		came <- at
	})}
	go func() { _ = receiver.Serve(l) }()
	defer receiver.Close()
	st, err := sqlite.Open(ctx, b.path("webhook.db"), &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer st.Close()
	channels := delivery.Channels{delivery.KindWebhook: webhook.New(webhook.Options{})}
	_, err = delivery.Desk{Store: st, Space: event.MainSpace, Channels: channels}.Add(ctx, "", "bench",
		delivery.Adding{Type: delivery.KindWebhook, URL: "http://" + l.Addr().String() + "/", Events: []string{"output:all"}}, nil)
	if err != nil {
		return err
	}
	s, err := newStream(ctx, st)
	if err != nil {
		return err
	}
	dispatching, stop := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() {
		(&delivery.Dispatcher{Store: st, Channels: channels, Log: slog.New(slog.DiscardHandler)}).Loop(dispatching)
	})
	defer func() { stop(); loop.Wait() }()
	var took []time.Duration
	for range webhooksSent {
		began := time.Now()
		e := event.New(event.JobOutput, s[4:], "bench", map[string]string{"type": "all"})
		if err := txn.Update(ctx, st, func(tx store.Tx) error { return tx.Append(s, e) }); err != nil {
			return err
		}
		took = append(took, (<-came).Sub(began))
		time.Sleep(2 * time.Millisecond) // idle again
	}
	slices.Sort(took)
	b.line("event to webhook received on loopback: p50 %s, p99 %s (targets %s and %s)", micro(took[len(took)/2]), micro(took[len(took)*99/100]), webhookMedian, webhookSlowest)
	return nil
}
