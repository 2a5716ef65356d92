package sqlite

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/store/sqlrows"
)

func BenchmarkUpdate1(b *testing.B)   { benchmarkUpdate(b, 1) }
func BenchmarkUpdate16(b *testing.B)  { benchmarkUpdate(b, 16) }
func BenchmarkUpdate256(b *testing.B) { benchmarkUpdate(b, 256) }

// benchmarkUpdate commits a two-row transaction from so many callers at once.
func benchmarkUpdate(b *testing.B, callers int) {
	e, err := openEngine(context.Background(), filepath.Join(b.TempDir(), "bench.db"), Options{Logger: slog.New(slog.DiscardHandler)}, testMigrations())
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for range callers {
		wg.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				id := strconv.FormatInt(i, 10)
				if err := e.update(context.Background(), func(h *handle) error { return write(h, id) }); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/op")
	if err := e.close(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N)/float64(e.writer.batches), "calls/batch")
}

// cpuTime is what this process has used; on a shared machine it says more than the clock.
func cpuTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func BenchmarkView(b *testing.B) {
	e, err := openEngine(context.Background(), filepath.Join(b.TempDir(), "bench.db"), Options{Logger: slog.New(slog.DiscardHandler)}, testMigrations())
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	b.ReportAllocs()
	for b.Loop() {
		err := e.view(context.Background(), func(h *handle) error {
			_, err := h.queryRow(findNoteSQL, []any{"x"}, func(sqlrows.Row) error { return nil })
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
