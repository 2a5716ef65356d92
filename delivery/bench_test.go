package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// counting is a channel at which everything arrives at once, and that counts.
type counting struct{ n, dead atomic.Int64 }

func (*counting) Check(delivery.Target) error { return nil }

func (c *counting) Send(_ context.Context, m delivery.Message) delivery.Outcome {
	if m.Target.Name == "dead" {
		c.dead.Add(1)
		return delivery.Outcome{Result: delivery.Failed, Message: "dead"}
	}
	c.n.Add(1)
	return delivery.Outcome{Result: delivery.Arrived}
}

// BenchmarkCommitAndDeliver has 16 producers that append to 16 streams each, one event
// a transaction, and ends once every event has arrived at every target and that is
// written down.
func BenchmarkCommitAndDeliver(b *testing.B) {
	for _, bench := range []struct {
		name    string
		targets []delivery.Adding
	}{
		{"none", nil},
		{"unordered", []delivery.Adding{{Unordered: true}}},
		{"ordered", []delivery.Adding{{}}},
		{"both", []delivery.Adding{{Unordered: true}, {}}},
		{"100", hundred("")},
		{"100, one dead", hundred("dead")},
	} {
		b.Run(bench.name, func(b *testing.B) { benchmarkDeliver(b, bench.targets) })
	}
}

// hundred are targets that each hear of a hundredth: of the events of one type of output.
func hundred(last string) (as []delivery.Adding) {
	for i := range 100 {
		as = append(as, delivery.Adding{Unordered: i%2 == 0, Events: []string{fmt.Sprint("output:", i)}})
	}
	as[99].Name = last
	return as
}

const producers, streamsEach = 16, 16

func benchmarkDeliver(b *testing.B, targets []delivery.Adding) {
	ctx := b.Context()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "placet.db"), &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	sink := &counting{}
	channels := delivery.Channels{delivery.KindWebhook: sink}
	desk := delivery.Desk{Store: s, Space: event.MainSpace, Channels: channels}
	wanted, dead := int64(0), int64(0)
	for i, a := range targets {
		a.Type, a.URL = delivery.KindWebhook, "https://example.com/"
		if a.Events == nil {
			a.Events = []string{"output:all"}
		}
		if _, err := desk.Add(ctx, "", "ana", a, nil); err != nil {
			b.Fatal(err)
		}
		if each := int64(b.N); len(targets) < 100 {
			wanted += each
		} else if n := (each + 99 - int64(i)) / 100; a.Name == "dead" {
			dead += n
		} else {
			wanted += n
		}
	}
	var streams [producers][streamsEach]string
	for i := range streams {
		for j := range streams[i] {
			streams[i][j] = benchRoot(b, ctx, s)
		}
	}
	dispatching, stop := context.WithCancel(ctx)
	d := &delivery.Dispatcher{Store: s, Channels: channels, Log: slog.New(slog.DiscardHandler)}
	var loop sync.WaitGroup
	loop.Go(func() { d.Loop(dispatching) })
	b.ResetTimer()
	cpu := usedTime()
	took := produce(ctx, b, s, &streams, len(targets) == 100)
	produced := b.Elapsed()
	for sink.n.Load() < wanted && !b.Failed() {
		time.Sleep(time.Millisecond)
	}
	stop()
	loop.Wait()
	b.StopTimer()
	report := func(what string, n float64) { b.ReportMetric(n, what) }
	report("deliveries/s", float64(wanted)/b.Elapsed().Seconds())
	report("events/s", float64(b.N)/b.Elapsed().Seconds())
	report("commits/s", float64(b.N)/produced.Seconds())
	report("cpu-µs/op", float64((usedTime()-cpu).Microseconds())/float64(b.N))
	slices.Sort(took)
	report("p50-µs", float64(took[len(took)/2].Microseconds()))
	report("p99-µs", float64(took[len(took)*99/100].Microseconds()))
}

func produce(ctx context.Context, b *testing.B, s *store.Store, streams *[producers][streamsEach]string, spread bool) (took []time.Duration) {
	var n atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var mine []time.Duration
			for i := n.Add(1) - 1; i < int64(b.N); i = n.Add(1) - 1 {
				name := "all"
				if spread {
					name = fmt.Sprint(i % 100)
				}
				stream := streams[p][i%streamsEach]
				start := time.Now()
				if err := txn.Update(ctx, s, func(tx store.Tx) error {
					return tx.Append(stream, event.New(event.JobOutput, stream[4:], "job", map[string]any{"type": name, "n": i}))
				}); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	wg.Wait()
	return took
}

func benchRoot(b *testing.B, ctx context.Context, s *store.Store) string {
	b.Helper()
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Home: "/home/a", Spec: job.Spec{Shell: "true"}, Status: job.Queued, Paused: true, ExitCode: -1, CreatedAt: time.Now(), Epoch: 1, Version: 1}
	if err := txn.Update(ctx, s, func(tx store.Tx) error {
		return tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})}})
	}); err != nil {
		b.Fatal(err)
	}
	return j.Stream()
}

// usedTime is what this process has used; on a shared machine it says more than the clock.
func usedTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
