package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

// A question is reached by the job that asked it and by nothing else: what is another
// job's is not there, and nothing of it changes.
func TestTokenOfAnotherJob(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q := a.ask(decision.Asking{Prompt: "p", By: "bot", Timeout: time.Hour, Form: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)})
	other := a.another(func(*job.Job) {})
	theirs, err := a.op.Ask(a.ctx, "main", other.ID, decision.Asking{Prompt: "p", By: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	doors := map[string]func(jobID, id string) error{
		"resolve": func(jobID, id string) error {
			_, err := a.op.Resolve(a.ctx, jobID, id, decision.Answering{Choice: "approve", By: "ana"})
			return err
		},
		"an answer that does not fit": func(jobID, id string) error {
			_, err := a.op.Resolve(a.ctx, jobID, id, decision.Answering{Choice: "maybe", Input: []byte(`{"n":"x"}`), By: "ana"})
			return err
		},
		"withdraw": func(jobID, id string) error {
			_, err := a.bot().WithdrawQuestion(a.ctx, jobID, id, "bot", "")
			return err
		},
		"wait": func(jobID, id string) error {
			ctx, cancel := context.WithTimeout(a.ctx, patience)
			defer cancel()
			_, err := job.Wait(ctx, a.st, "main", job.Waiting{JobID: jobID, DecisionID: id, Timeout: time.Millisecond})
			return err
		},
	}
	before := a.all()
	check := func() {
		for name, try := range doors {
			for _, of := range [][2]string{
				{other.ID, q.ID}, {a.j.ID, theirs.ID}, {"job_none", q.ID}, {a.j.ID, "dec_none"}, {a.j.ID, a.j.ID}, {q.ID, q.ID},
			} {
				if err := try(of[0], of[1]); !errors.Is(err, decision.ErrNotFound) {
					t.Errorf("%s %s of job %s: %v", name, of[1], of[0], err)
				}
			}
		}
		a.unchanged(before)
	}
	check()
	a.clock.Advance(2 * time.Hour) // nor is what is overdue expired by a stranger's word
	check()
}
