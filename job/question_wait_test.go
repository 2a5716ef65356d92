package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// A wait for a question ends with whatever becomes of it, also where that is stored
// already, and with nothing that becomes of another.
func TestWaitForAQuestion(t *testing.T) {
	t.Parallel()
	for want, settle := range map[event.Type]func(a *asker, q decision.AskedAt){
		event.DecisionResolved:  func(a *asker, q decision.AskedAt) { a.resolve(q.ID, "deny") },
		event.DecisionWithdrawn: func(a *asker, q decision.AskedAt) { a.withdraw(q.ID) },
		event.DecisionExpired:   func(a *asker, _ decision.AskedAt) { a.clock.Advance(2 * second); a.sweep(1) },
		"a late answer":         func(a *asker, q decision.AskedAt) { a.clock.Advance(2 * second); late(a, q) },
		"the job's end":         func(a *asker, _ decision.AskedAt) { a.end() },
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			other, q, third := a.asks(), a.brief(), a.asks()
			began, told := make(chan struct{}), make(chan job.Waited, 1)
			go func() {
				got, err := job.Wait(a.ctx, &looked{Store: a.st, then: func() { close(began) }}, event.MainSpace, job.Waiting{JobID: a.j.ID, DecisionID: q.ID, After: q.Cursor})
				if err != nil {
					t.Error(err)
				}
				told <- got
			}()
			<-began
			a.resolve(other.ID, "approve")
			a.withdraw(third.ID)
			settle(a, q)
			es := a.of(q.ID)
			ended := es[len(es)-1]
			check := func(what string, got job.Waited) {
				if got.Result != job.GotEvent || got.Event.ID != ended.ID || got.Event.Subject != q.ID || got.Cursor != event.CursorOf(ended) {
					t.Errorf("%s: %s %s about %s", what, got.Result, got.Event.Type, got.Event.Subject)
				}
			}
			check("waiting", <-told)
			for what, w := range map[string]job.Waiting{
				"stored, from the question":      {After: q.Cursor},
				"stored, from the first event":   {},
				"stored, beside what never came": {Types: []string{"failed"}},
			} {
				w.JobID, w.DecisionID = a.j.ID, q.ID
				got, err := job.Wait(a.ctx, a.st, event.MainSpace, w)
				if err != nil {
					t.Error(err)
				}
				check(what, got)
			}
			if strings.HasPrefix(string(want), "decision_") && ended.Type != want {
				t.Errorf("it ended with %s", ended.Type)
			}
		})
	}
}

// Who waits for another job's question, or for what is none, is told that it is not there.
func TestWaitForAnothersQuestion(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q := a.asks()
	other := a.another(func(*job.Job) {})
	foreign := a.another(func(j *job.Job) { j.Space = "other" })
	for name, w := range map[string]job.Waiting{
		"another job's":        {JobID: other.ID, DecisionID: q.ID},
		"beside types":         {JobID: other.ID, DecisionID: q.ID, Types: []string{"failed"}},
		"no such question":     {JobID: a.j.ID, DecisionID: "dec_none"},
		"no such job":          {JobID: "job_none", DecisionID: q.ID},
		"another space's job":  {JobID: foreign.ID, Types: []string{"failed"}},
		"of another space's":   {JobID: foreign.ID, DecisionID: q.ID},
		"a job for a question": {JobID: a.j.ID, DecisionID: a.j.ID},
		"a question for a job": {JobID: q.ID, DecisionID: q.ID},
		"a question of no job": {DecisionID: q.ID},
		"an id in capitals":    {JobID: a.j.ID, DecisionID: "DEC_" + q.ID[4:]},
	} {
		ctx, cancel := context.WithTimeout(a.ctx, patience)
		w.Timeout = time.Millisecond // it would end as timeout, and must not begin
		if got, err := job.Wait(ctx, a.st, event.MainSpace, w); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		cancel()
	}
}

// still is a store in which nothing happens any more: it holds one job and its question.
type still struct {
	a *asker
	q decision.Decision
}

type stillTx struct {
	job.Tx
	still
}

func (s *still) View(_ context.Context, fn func(txn.Tx) error) error { return fn(stillTx{still: *s}) }

func (*still) Update(context.Context, func(txn.Tx) error) error { panic("a wait writes nothing") }

func (*still) Watch(...string) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

func (tx stillTx) Job(string) (job.Job, error) { return tx.a.j, nil }

func (tx stillTx) Decision(string) (decision.Decision, error) { return tx.q, nil }

func (tx stillTx) Head(string) (event.Head, error) { return tx.a.j.Head, nil }

func (stillTx) Epoch() int64 { return 1 }

func (tx stillTx) LastPos() (int64, error) { return tx.a.j.Head.Seq, nil }

func (tx stillTx) Events(event.Query) ([]event.Event, error) { return nil, nil }

// A wait that says nothing else ends after an hour, and none is longer than a day.
func TestWaitUsually(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	s := &still{a, a.asks().Decision}
	for given, want := range map[time.Duration]time.Duration{0: time.Hour, time.Millisecond: time.Millisecond, 24 * time.Hour: 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got, err := job.Wait(t.Context(), s, event.MainSpace, job.Waiting{JobID: a.j.ID, DecisionID: s.q.ID, Timeout: given})
			if took := time.Since(began); err != nil || got.Result != job.GotTimeout || took != want {
				t.Errorf("a wait of %s ended after %s as %s, %v", given, took, got.Result, err)
			}
			synctest.Wait()
		})
	}
	for _, wrong := range []time.Duration{-1, 24*time.Hour + 1} {
		if _, err := job.Wait(a.ctx, s, event.MainSpace, job.Waiting{JobID: a.j.ID, DecisionID: s.q.ID, Timeout: wrong}); !errors.Is(err, job.ErrUsage) {
			t.Errorf("a wait of %s: %v", wrong, err)
		}
	}
}
