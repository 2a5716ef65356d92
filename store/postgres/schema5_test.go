package postgres

import (
	"context"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// asks has a job of its own ask a question, of a kind as no question has it: a kind may be
// of any length.
func asks(s *store.Store, jobID, questionID, kind string) error {
	return txn.Update(context.Background(), s, func(tx store.Tx) error {
		j := job.Job{ID: jobID, Space: event.MainSpace, Home: "/a", Spec: job.Spec{Shell: "true"}, Status: job.Queued, ExitCode: -1, CreatedAt: tx.Now(), Epoch: 1, Version: 1}
		if err := tx.InsertJob(job.Change{Next: j, Events: []event.Event{event.New(event.JobQueued, jobID, "tester", map[string]string{"job_id": jobID})}}); err != nil {
			return err
		}
		d := decision.Decision{
			ID: questionID, Space: event.MainSpace, Type: decision.Question, Owner: job.RefOf(jobID), N: 1, Kind: kind, Prompt: "Go on?",
			CreatedAt: tx.Now(), Status: decision.Pending, Open: true, Needs: 1, Epoch: 1,
		}
		return tx.InsertDecision(d, event.New(event.DecisionRequested, questionID, "tester", map[string]string{"question_id": questionID}))
	})
}

// ends withdraws a question.
func ends(s *store.Store, questionID string) error {
	return txn.Update(context.Background(), s, func(tx store.Tx) error {
		d, err := tx.LockDecision(questionID)
		if err != nil {
			return err
		}
		over := d
		over.Status, over.Open, over.SettledAt = decision.Withdrawn, false, tx.Now()
		return tx.PutDecision(d, decision.Change{Next: over})
	})
}

// What a store of schema 4 has is counted and listed from the moment at which it is opened;
// and its old program may go on: what it asks and decides is counted and listed too.
func TestSchema4GoesOn(t *testing.T) {
	t.Parallel()
	url, long := pgtest.Schema(t), string(make20k())
	old := openWith(t, url, upTo(t, 4))
	for _, of := range [][3]string{{"job_a", "dec_a", "k"}, {"job_b", "dec_b", long}, {"job_c", "dec_c", "k"}, {"job_d", "dec_d", long}} {
		if err := asks(old, of[0], of[1], of[2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := ends(old, "dec_a"); err != nil {
		t.Fatal(err)
	}
	s := openWith(t, url, upTo(t, 5))
	if err := asks(old, "job_e", "dec_e", "k"); err != nil {
		t.Errorf("the old program does not ask: %v", err)
	}
	if err := ends(old, "dec_d"); err != nil {
		t.Errorf("the old program does not decide: %v", err)
	}
	var ds []decision.Decision
	var cs []decision.QueueCount
	if err := txn.View(context.Background(), s, func(tx store.Tx) (err error) {
		if ds, err = tx.SettledDecisions(decision.Settled{Space: event.MainSpace}); err == nil {
			cs, err = tx.QueueCounts(event.MainSpace)
		}
		return err
	}); err != nil || len(ds) != 2 || ds[0].ID != "dec_d" || ds[1].ID != "dec_a" {
		t.Errorf("%+v, %v", ds, err)
	}
	if len(cs) != 2 || cs[0].Kind != "k" || cs[0].N != 2 || cs[1].Kind != long || cs[1].N != 1 {
		t.Errorf("%+v", cs)
	}
}

// make20k is text for which an index has no room, however it is packed.
func make20k() []byte {
	b, n := make([]byte, 20_000), uint32(1)
	for i := range b {
		n = n*1664525 + 1013904223
		b[i] = 'k' + byte(n>>24)%10
	}
	return b
}
