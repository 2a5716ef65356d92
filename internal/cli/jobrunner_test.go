package cli_test

import (
	"testing"

	"github.com/placet-dev/placet/job"
)

// The program itself is the runner of jobs, and does nothing where it is called by hand.
func TestJobRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := job.NewSupervisor(job.Config{Store: w.store, Dir: t.TempDir(), Program: []string{"placet"}})
	j, err := s.Start(t.Context(), job.Starting{Spec: job.Spec{Shell: "echo hello", Cwd: w.dir}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Wait(t.Context(), job.Waiting{JobID: j.ID, Types: []string{"completed"}})
	if err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v, %v", got, err)
	}
	tail, err := s.Tail(t.Context(), j.ID, job.Tailing{})
	if err != nil || string(tail.Data) != "hello\n" {
		t.Errorf("%q, %v", tail.Data, err)
	}
	for _, args := range [][]string{{job.RunnerCommand}, {job.RunnerCommand, t.TempDir()}} {
		if _, _, code := w.run(args...); code == 0 {
			t.Errorf("placet %q was content", args)
		}
	}
}
