package job_test

import (
	"errors"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

func (a *asker) refusedForRoom() {
	a.Helper()
	before := a.all()
	if _, err := a.op.Ask(a.ctx, "main", a.j.ID, decision.Asking{Prompt: "One more?"}); !errors.Is(err, decision.ErrTooManyPending) {
		a.Errorf("one more: %v", err)
	}
	a.unchanged(before)
}

// A hundred questions of a job can wait; whatever settles one makes room for one.
func TestPendingQuestionsOfAJob(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	overdue := a.brief()
	var qs []decision.AskedAt
	for range decision.MaxPendingOfJob - 1 {
		qs = append(qs, a.asks())
	}
	a.counts(100, 100)
	a.refusedForRoom()
	if q, err := a.op.Ask(a.ctx, "main", a.another(func(*job.Job) {}).ID, decision.Asking{Prompt: "Another's?"}); err != nil || q.N != 1 {
		t.Errorf("another job's: %d, %v", q.N, err)
	}
	all := int64(100)
	for name, settle := range map[string]func(){
		"an answer":    func() { a.resolve(qs[0].ID, "approve") },
		"a withdrawal": func() { a.withdraw(qs[1].ID) },
		"a sweep":      func() { a.clock.Set(overdue.ExpiresAt.Add(second)); a.sweep(1) },
	} {
		settle()
		a.counts(99, all)
		all++
		if q := a.asks(); q.N != all {
			t.Errorf("after %s it is number %d, want %d", name, q.N, all)
		}
		a.refusedForRoom()
	}
	a.resolve(qs[0].ID, "approve") // once more is no settlement
	a.withdraw(qs[1].ID)
	a.counts(100, all)
	a.refusedForRoom()
}

// A job asks ten thousand questions and no more, also where none waits.
func TestQuestionsOfAJobInAll(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	a.j = a.another(func(j *job.Job) { j.Questions = decision.MaxQuestionsOfJob - 2 })
	for n := int64(9_999); n <= 10_000; n++ {
		q := a.asks()
		if q.N != n {
			t.Errorf("number %d, want %d", q.N, n)
		}
		a.resolve(q.ID, "approve")
	}
	a.counts(0, 10_000)
	a.refusedForRoom()
}
