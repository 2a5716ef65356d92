package job_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/source"
	"github.com/placet-dev/placet/job"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const claimed = "token"

// states are jobs in every state that the machine tells apart.
func states() map[string]job.Job {
	created := job.Job{ID: "job_1", Status: job.Queued, ExitCode: -1, CreatedAt: noon, Secrets: map[string]string{"KEY": "s"}}
	paused, launching := created, created
	paused.Paused = true
	launching.Status, launching.Claim, launching.Launches, launching.Began = job.Launching, claimed, 1, noon
	running := launching
	running.Status, running.StartedAt, running.Runner, running.Secrets = job.Running, noon, "r", nil
	running.Pending, running.Questions = 1, 1
	stopping, recalled := running, launching
	stopping.StopBy, stopping.StopAt, stopping.KillAfter = "ana", noon, time.Second
	recalled.StopBy, recalled.StopAt, recalled.KillAfter = "ana", noon, time.Second
	all := map[string]job.Job{
		"": {ID: "job_1"}, "queued": created, "paused": paused, "launching": launching, "launching, to stop": recalled,
		"running": running, "running, to stop": stopping,
	}
	for _, s := range job.Statuses() {
		if s.Terminal() {
			ended := running
			ended.Status, ended.EndedAt, ended.Pending = s, noon, 0
			all[string(s)] = ended
		}
	}
	return all
}

var commands = map[string]job.Command{
	"create":        job.Create{},
	"claim":         job.Claim{Token: "new", Launcher: "l"},
	"adopt":         job.Adopt{Token: "new", Launch: 2, Note: "why", Epoch: 1},
	"claim (later)": job.Claim{Token: "new", Launcher: "l", Epoch: 1},
	"resume, later": job.Resume{By: "bo", Epoch: 1},
	"began":         job.Began{Token: claimed, Runner: "r", At: noon},
	"began (other)": job.Began{Token: "other", Runner: "r", At: noon},
	"requeue":       job.Requeue{Token: claimed},
	"end":           job.End{Token: claimed, Status: job.Completed, Began: noon, Runner: "r", At: noon},
	"end (other)":   job.End{Token: "other", Status: job.Completed},
	"orphan":        job.End{Token: claimed, Status: job.Orphaned, ExitCode: -1},
	"abandon":       job.Abandon{Failure: "why"},
	"home lost":     job.Orphan{Failure: "why"},
	"stop":          job.Stop{By: "bo", KillAfter: time.Second},
	"pause":         job.Pause{By: "bo"},
	"resume":        job.Resume{By: "bo"},
	"ask":           job.Ask{MaxPending: 2, MaxQuestions: 2},
	"answered":      job.Answered{},
	"record":        job.Record{Token: claimed, Offset: 9, Outputs: 1, Events: []event.Event{{Type: event.JobOutput}}},
	"record, other": job.Record{Token: "other", Offset: 9},
}

// same says that a command is accepted and leaves nothing to write.
const same = "same"

// table says what every command does in every state: the state and the events that
// follow, or the refusal. What is not named is refused as [job.ErrRunState].
var table = map[string]map[string]string{
	"":                   {"create": "queued: queued", "answered": same},
	"queued":             {"home lost": "orphaned: orphaned", "claim": "launching:", "adopt": "launching:", "resume, later": "queued: unpaused", "abandon": "cancelled: cancelled", "stop": "cancelled: cancelled", "pause": "queued: paused", "resume": same, "ask": "queued:", "answered": same},
	"paused":             {"home lost": "orphaned: orphaned", "adopt": "launching:", "resume, later": "queued: unpaused", "abandon": "cancelled: cancelled", "stop": "cancelled: cancelled", "pause": same, "resume": "queued: unpaused", "ask": "queued:", "answered": same},
	"launching":          {"home lost": "orphaned: orphaned", "began": "running: started", "requeue": "queued:", "end": "completed: started completed", "orphan": "orphaned: orphaned", "stop": "launching:", "ask": "launching:", "answered": same},
	"launching, to stop": {"home lost": "orphaned: orphaned", "began": "running: started", "requeue": "cancelled: cancelled", "end": "completed: started completed", "orphan": "cancelled: cancelled", "stop": same, "ask": "launching:", "answered": same},
	"running":            {"home lost": "orphaned: orphaned", "began": same, "end": "completed: completed", "orphan": "orphaned: orphaned", "stop": "running:", "ask": "running:", "answered": "running:", "record": "running: job.output"},
	"running, to stop":   {"home lost": "orphaned: orphaned", "began": same, "end": "completed: completed", "orphan": "cancelled: cancelled", "stop": same, "ask": "running:", "answered": "running:", "record": "running: job.output"},
	"completed":          {"stop": same, "answered": same},
	"failed":             {"stop": same, "answered": same},
	"timeout":            {"stop": same, "answered": same},
	"cancelled":          {"stop": same, "answered": same},
	"orphaned":           {"stop": same, "answered": same},
}

func TestEveryStateAndCommand(t *testing.T) {
	t.Parallel()
	known, err := source.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, cmd := range commands {
		listed[strings.TrimPrefix(fmt.Sprintf("%T", cmd), "job.")] = true
	}
	if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, known) {
		t.Fatalf("the table has the commands %v, the package %v", got, known)
	}
	all := states()
	if len(all) != len(table) {
		t.Fatalf("%d states, %d rows", len(all), len(table))
	}
	for name, j := range all {
		for what, cmd := range commands {
			want := table[name][what]
			ch, err := j.Step(cmd, noon)
			got := fmt.Sprintf("%s:", ch.Next.Status)
			for _, e := range ch.Events {
				got += " " + string(e.Type)
			}
			switch {
			case errors.Is(err, job.ErrRunState):
				got = ""
			case err != nil:
				got = err.Error()
			case ch.Repeated:
				got = same
			}
			if got != want {
				t.Errorf("%s in state %q: %q, want %q", what, name, got, want)
			}
			if err == nil && ch.Next.Status != "" {
				sound(t, name+", "+what, j, ch.Next)
			}
		}
	}
}

// sound holds what the store's CHECKs hold, and that the end is final.
func sound(t *testing.T, what string, was, j job.Job) {
	t.Helper()
	switch {
	case j.Status.Terminal() == j.EndedAt.IsZero(),
		j.Status.Terminal() && j.Pending > 0,
		(j.Status == job.Launching || j.Status == job.Running) && j.Claim == "",
		j.Secrets != nil && j.Status != job.Queued && j.Status != job.Launching,
		j.Paused && j.Status != job.Queued,
		was.Status.Terminal() && was.Status != j.Status:
		t.Errorf("%s: %+v", what, j)
	}
}

// A record goes on where the last one ended: the same is not taken in twice.
func TestRecordTwice(t *testing.T) {
	t.Parallel()
	j := states()["running"]
	ch, err := j.Step(job.Record{Token: claimed, Offset: 9, Outputs: 2, Progress: []byte(`{"p":1}`)}, noon)
	if err != nil || ch.Next.Outputs != 2 || string(ch.Next.Progress) != `{"p":1}` {
		t.Fatalf("%+v, %v", ch, err)
	}
	if _, err := ch.Next.Step(job.Record{Token: claimed, Offset: 9, Outputs: 2}, noon); !errors.Is(err, job.ErrRunState) {
		t.Errorf("the same again: %v", err)
	}
}

func TestAskLimits(t *testing.T) {
	t.Parallel()
	j := states()["running"]
	for name, cmd := range map[string]job.Ask{"pending": {MaxPending: 1, MaxQuestions: 9}, "in all": {MaxPending: 9, MaxQuestions: 1}} {
		if _, err := j.Step(cmd, noon); !errors.Is(err, job.ErrTooManyPending) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
