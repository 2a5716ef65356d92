package job_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

const second = time.Second

// brief asks a question that nobody answers in time.
func (a *asker) brief() decision.AskedAt {
	a.Helper()
	return a.ask(decision.Asking{Prompt: "Go on?", Timeout: second, By: "bot"})
}

func (a *asker) sweep(want int) {
	a.Helper()
	if n, err := a.op.ExpireDue(a.ctx, 100); n != want || err != nil {
		a.Errorf("%d were expired, want %d: %v", n, want, err)
	}
}

// expiredOnce fails unless the question expired, and its stream says so once.
func (a *asker) expiredOnce(id string) {
	a.Helper()
	a.stands(id, decision.Expired)
	if got := types(a.of(id)); got != "decision_requested decision_expired" {
		a.Errorf("events of %s: %s", id, got)
	}
}

func TestSweepExpiresQuestions(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	overdue, later, never, answered, taken := a.brief(), a.ask(decision.Asking{Prompt: "Later?", Timeout: 2 * second}), a.asks(), a.brief(), a.brief()
	a.resolve(answered.ID, "deny")
	a.withdraw(taken.ID)
	a.clock.Set(overdue.ExpiresAt)
	a.sweep(0) // the instant itself is in time
	a.counts(3, 5)
	at := a.clock.Advance(time.Microsecond)
	a.sweep(1)
	a.expiredOnce(overdue.ID)
	if d := a.decision(overdue.ID); !d.SettledAt.Equal(at) || d.Choice != "" || d.DecidedBy != "" || !d.DecidedAt.IsZero() {
		t.Errorf("expired as %+v", d)
	}
	a.stands(later.ID, decision.Pending)
	a.stands(never.ID, decision.Pending)
	a.stands(answered.ID, decision.Resolved)
	a.stands(taken.ID, decision.Withdrawn)
	a.counts(2, 5)
	before := a.all()
	for range 5 {
		a.sweep(0)
	}
	a.unchanged(before)
	if len(a.votes()) != 1 { // the answer's
		t.Errorf("votes: %v", a.votes())
	}
}

// However many daemons sweep, each question expires once, and one of them counts it.
func TestManySweepersExpireOnce(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	second := a.open()
	for range 10 / raceFactor {
		var ids []string
		for range 20 {
			ids = append(ids, a.brief().ID)
		}
		a.clock.Advance(2 * time.Second)
		var swept atomic.Int64
		start, all := make(chan struct{}), sync.WaitGroup{}
		for i := range 4 {
			all.Go(func() {
				<-start
				op := decision.Operator{Store: []*store.Store{a.st, second}[i%2]}
				n, err := op.ExpireDue(a.ctx, 100)
				if err != nil {
					t.Error(err)
				}
				swept.Add(int64(n))
			})
		}
		close(start)
		all.Wait()
		if int(swept.Load()) != len(ids) {
			t.Errorf("%d were counted of %d", swept.Load(), len(ids))
		}
		for _, id := range ids {
			a.expiredOnce(id)
		}
	}
	if j := a.job(a.j.ID); j.Pending != 0 {
		t.Errorf("%d questions wait", j.Pending)
	}
}

// looked is a way to the store on which something happens once a view has ended.
type looked struct {
	*store.Store
	once sync.Once
	then func()
}

func (l *looked) View(ctx context.Context, fn func(txn.Tx) error) error {
	err := l.Store.View(ctx, fn)
	l.once.Do(l.then)
	return err
}

// What a sweep has found overdue may be settled by the time it gets the lock: it leaves
// that alone, and that is no error.
func TestWhoIsBeforeTheSweepWins(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first func(a *asker, q decision.AskedAt)
		want  decision.Status
		told  string
	}{
		"an answer": {func(a *asker, q decision.AskedAt) {
			op := a.op
			op.Now = func() time.Time { return q.ExpiresAt } // it had the lock in time
			if _, err := op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"}); err != nil {
				t.Error(err)
			}
		}, decision.Resolved, "decision_requested decision_resolved"},
		"a withdrawal": {func(a *asker, q decision.AskedAt) {
			op := a.bot()
			op.Now = func() time.Time { return q.ExpiresAt }
			if _, err := op.WithdrawQuestion(a.ctx, a.j.ID, q.ID, "bot", ""); err != nil {
				t.Error(err)
			}
		}, decision.Withdrawn, "decision_requested decision_withdrawn"},
		"another sweep":  {func(a *asker, _ decision.AskedAt) { a.sweep(1) }, decision.Expired, "decision_requested decision_expired"},
		"the job's end":  {func(a *asker, _ decision.AskedAt) { a.end() }, decision.Withdrawn, "decision_requested decision_withdrawn"},
		"a late answer":  {late, decision.Expired, "decision_requested decision_expired"},
		"nobody's first": {func(*asker, decision.AskedAt) {}, decision.Expired, "decision_requested decision_expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			q := a.brief()
			a.clock.Advance(2 * second)
			want := 0
			if name == "nobody's first" {
				want = 1
			}
			sweeper := decision.Operator{Store: &looked{Store: a.st, then: func() { tt.first(a, q) }}}
			if n, err := sweeper.ExpireDue(a.ctx, 10); n != want || err != nil {
				t.Errorf("%d were expired, %v", n, err)
			}
			a.stands(q.ID, tt.want)
			if got := types(a.of(q.ID)); got != tt.told {
				t.Errorf("events: %s", got)
			}
			a.counts(0, 1)
			a.sweep(0)
		})
	}
}

// late answers a question that is overdue: it is expired there and then.
func late(a *asker, q decision.AskedAt) {
	a.Helper()
	d, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"})
	if !errors.Is(err, decision.ErrExpired) || d.Status != decision.Expired {
		a.Errorf("a late answer: %s, %v", d.Status, err)
	}
}

// Whoever comes too late ends the question there, once, and is told so; whoever comes
// then is told the same.
func TestTooLateExpires(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(a *asker, q decision.AskedAt) error{
		"resolve": func(a *asker, q decision.AskedAt) error {
			_, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"})
			return err
		},
		"not offered": func(a *asker, q decision.AskedAt) error {
			_, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "maybe", By: "ana"})
			return err
		},
		"withdraw": func(a *asker, q decision.AskedAt) error {
			_, err := a.bot().WithdrawQuestion(a.ctx, a.j.ID, q.ID, "bot", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			q := a.brief()
			a.clock.Advance(second + time.Microsecond)
			for range 3 {
				if err := try(a, q); !errors.Is(err, decision.ErrExpired) {
					t.Errorf("told %v", err)
				}
			}
			a.expiredOnce(q.ID)
			a.counts(0, 1)
			a.sweep(0)
			if es := a.of(q.ID); es[1].Actor != event.System {
				t.Errorf("expired by %s", es[1].Actor)
			}
			if vs := a.votes(); len(vs) != 0 {
				t.Errorf("votes: %v", vs)
			}
		})
	}
}

// One that is in time, has no deadline or is settled is not expired by its name either.
func TestExpireOneQuestion(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q, never, answered := a.brief(), a.asks(), a.brief()
	a.resolve(answered.ID, "approve")
	before := a.all()
	for _, id := range []string{q.ID, never.ID, answered.ID} {
		if _, err := a.op.Expire(a.ctx, id); !errors.Is(err, decision.ErrNotPending) {
			t.Errorf("%v", err)
		}
	}
	a.unchanged(before)
	a.clock.Advance(2 * second)
	if d, err := a.op.Expire(a.ctx, q.ID); err != nil || d.Status != decision.Expired {
		t.Errorf("%s, %v", d.Status, err)
	}
	a.expiredOnce(q.ID)
}
