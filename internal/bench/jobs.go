package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store/sqlite"
)

const (
	printingJobs   = 50
	printedEvents  = 10_000
	printedBytes   = 200
	askedMeanwhile = 100
	askedIn        = 50 * time.Millisecond
	printWord      = "print-events" // this program as a job's command
)

// jobs measures many jobs that print while questions are asked and answered.
func jobs(ctx context.Context, b *bench) error {
	b.title("jobs: %d print %d events of %d bytes each while %d questions are asked and answered (targets: nothing lost, p99 under %s)",
		printingJobs, printedEvents, printedBytes, askedMeanwhile, askedIn)
	st, err := sqlite.Open(ctx, b.path("jobs.db"), &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer st.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s := job.NewSupervisor(job.Config{Store: st, Dir: filepath.Join(b.dir, "jobs"), Program: []string{self}})
	looping, stop := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() { _ = s.Loop(looping) })
	defer func() {
		stop()
		loop.Wait()
	}()
	began := time.Now()
	var ids []string
	for range printingJobs {
		j, err := s.Start(ctx, job.Starting{Spec: job.Spec{Command: []string{self, printWord}, Cwd: b.dir}})
		if err != nil {
			return err
		}
		ids = append(ids, j.ID)
	}
	took, err := questions(ctx, decision.Operator{Store: st}, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.Send(ctx, id, nil, true); err != nil {
			return err
		}
		if _, err := s.Wait(ctx, job.Waiting{JobID: id, Types: []string{"completed"}}); err != nil {
			return err
		}
		if j, err := s.Get(ctx, id); err != nil || j.Outputs != printedEvents {
			return fmt.Errorf("job %s is %s with %d events: %w", id, j.Status, j.Outputs, err)
		}
	}
	all := time.Since(began)
	b.line("%.0f events/s, all there after %s; asked and answered: median %s, p99 %s", printingJobs*printedEvents/all.Seconds(),
		all.Round(100*time.Millisecond), micro(took[len(took)/2]), micro(took[len(took)*99/100-1]))
	return nil
}

// questions asks the jobs in turn, answers and waits for each answer. It returns how
// long each took, the shortest first.
func questions(ctx context.Context, op decision.Operator, ids []string) ([]time.Duration, error) {
	var took []time.Duration
	for i := range askedMeanwhile {
		id := ids[i%len(ids)]
		began := time.Now()
		q, err := op.Ask(ctx, event.MainSpace, id, decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}})
		if err != nil {
			return nil, err
		}
		if _, err := op.Resolve(ctx, id, q.ID, decision.Answering{Choice: "yes", By: "bench"}); err != nil {
			return nil, err
		}
		got, err := job.Wait(ctx, op.Store, event.MainSpace, job.Waiting{JobID: id, DecisionID: q.ID, After: q.Cursor})
		if err != nil || got.Event.Type != event.DecisionResolved {
			return nil, fmt.Errorf("the answer came as %s: %w", got.Result, err)
		}
		took = append(took, time.Since(began))
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(took)
	return took, nil
}

// printEvents is this program as a job's command.
func printEvents() {
	const head, tail = `AGENT_EVENT {"type":"metric","data":"`, `"}`
	pad := strings.Repeat("x", printedBytes-len(head)-len(tail))
	for range printedEvents {
		fmt.Println(head + pad + tail)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // questions are asked as long as it runs
}
