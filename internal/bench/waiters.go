package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

const (
	waitersAtOnce = 10_000
	waiterBytes   = 2 << 10
	answeredIn    = 500 * time.Millisecond
)

// waiters measures many waits in one process: for one question, and each for its own.
func waiters(ctx context.Context, b *bench) error {
	b.title("waiters: %d in one process (targets: under %d bytes each, no processor time while nothing happens, all answered within %s of one event)",
		waitersAtOnce, waiterBytes, answeredIn)
	for _, jobs := range []int{1, waitersAtOnce} {
		if err := b.waitersOf(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) waitersOf(ctx context.Context, jobs int) error {
	st, err := sqlite.Open(ctx, b.path(fmt.Sprintf("waiters-%d.db", jobs)), &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer st.Close()
	ids, err := queue(ctx, st, jobs)
	if err != nil {
		return err
	}
	before := held()
	var answered sync.WaitGroup
	answered.Add(waitersAtOnce)
	for i := range waitersAtOnce {
		w := job.Waiting{JobID: ids[i%jobs], Types: []string{"cancelled"}}
		if _, err := job.Await(ctx, st, event.MainSpace, w, func(job.Waited, error) { answered.Done() }); err != nil {
			return err
		}
	}
	each := float64(held()-before) / waitersAtOnce
	idle, err := b.idling()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cancel(ctx, st, ids); err != nil {
		return err
	}
	committed := time.Since(began)
	answered.Wait()
	b.line("%5d jobs: %4.0f bytes a waiter; %s of processor time in %s of waiting; ended in %s, the last answered %s after the first commit began",
		jobs, each, idle.Round(10*time.Microsecond), b.idle(), committed.Round(100*time.Microsecond), time.Since(began).Round(100*time.Microsecond))
	return nil
}

// queue makes jobs that wait for a job of another home, so that nothing launches them.
func queue(ctx context.Context, st *store.Store, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = id.New(id.Job)
		err := txn.Update(ctx, st, func(tx job.Tx) error {
			j := job.Job{ID: ids[i], Space: event.MainSpace, Home: "/none", Spec: job.Spec{Shell: "true"}}
			ch, err := j.Step(job.Create{}, tx.Now())
			if err != nil {
				return err
			}
			return tx.InsertJob(ch)
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// cancel ends the jobs, many in one commit.
func cancel(ctx context.Context, st *store.Store, ids []string) error {
	const atOnce = 256
	errs := make(chan error, atOnce)
	for k := range atOnce {
		go func() {
			var failed error
			for i := k; i < len(ids); i += atOnce {
				err := txn.Update(ctx, st, func(tx job.Tx) error {
					var own decision.Owner = job.Owner{Tx: tx, ID: ids[i]}
					return own.Cancel("bench", "", tx.Now)
				})
				if err != nil {
					failed = err
				}
			}
			errs <- failed
		}()
	}
	var failed error
	for range atOnce {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

// held is what this process holds, stacks included.
func held() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// idle is how long nothing happens while processor time is looked at.
func (b *bench) idle() time.Duration { return 2 * b.slice }

// idling is the processor time of a while in which nothing happens.
func (b *bench) idling() (time.Duration, error) {
	var from, to unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &from); err != nil {
		return 0, err
	}
	time.Sleep(b.idle())
	if err := unix.Getrusage(unix.RUSAGE_SELF, &to); err != nil {
		return 0, err
	}
	return time.Duration(to.Utime.Nano() - from.Utime.Nano() + to.Stime.Nano() - from.Stime.Nano()), nil
}
