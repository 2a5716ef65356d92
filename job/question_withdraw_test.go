package job_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

// A withdrawal in the store: the row, the counters and the event change, and nothing
// else; once more changes nothing.
func TestWithdrawQuestion(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q, other := a.asks(), a.asks()
	before, at := a.all(), a.clock.Advance(second)
	got := a.withdraw(q.ID)

	want := q.Decision
	want.Status, want.Open, want.SettledAt, want.Version = decision.Withdrawn, false, at, q.Version+1
	want.WithdrawnBy, want.WithdrawnPrincipal = "bot", "bot"
	if diff := cmp.Diff(want, a.decision(q.ID)); diff != "" {
		t.Errorf("the row (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer (-want +got)\n%s", diff)
	}
	a.counts(1, 2)
	after := a.all()
	if n := len(before.Events); len(after.Events) != n+1 || after.Events[n].Type != event.DecisionWithdrawn || after.Events[n].Actor != "bot" || after.Events[n].Subject != q.ID {
		t.Errorf("events behind it: %+v", after.Events[n:])
	}
	if len(after.Votes) != 0 {
		t.Errorf("votes: %v", after.Votes)
	}
	a.stands(other.ID, decision.Pending)
	for range 2 {
		if again := a.withdraw(q.ID); !again.Same(got) {
			t.Errorf("once more: %+v", again)
		}
	}
	a.unchanged(after)
}

// Who asked takes back; another principal may not, unless it may do so for others.
func TestWhoWithdraws(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	first, second := a.asks(), a.asks()
	before := a.all()
	other := a.op
	if _, err := other.WithdrawQuestion(a.ctx, a.j.ID, first.ID, "ana", ""); !errors.Is(err, decision.ErrForbidden) {
		t.Errorf("another principal: %v", err)
	}
	a.unchanged(before)
	other.MayOwn = true
	if _, err := other.WithdrawQuestion(a.ctx, a.j.ID, first.ID, "ana", ""); err != nil {
		t.Errorf("for others: %v", err)
	}
	if _, err := (decision.Operator{Store: a.st}).WithdrawQuestion(a.ctx, "", second.ID, "whoever", ""); err != nil { // nobody was proved, and any job is meant
		t.Errorf("no principal: %v", err)
	}
	a.counts(0, 2)
}

// What is settled stays; whoever wants it back is told how it stands.
func TestWithdrawWhatIsSettled(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	answered, ended := a.asks(), a.asks()
	a.resolve(answered.ID, "deny")
	before := a.all()
	_, err := a.bot().WithdrawQuestion(a.ctx, a.j.ID, answered.ID, "bot", "")
	if st, ok := decision.StandingOf(err); !errors.Is(err, decision.ErrNotPending) || !ok || st.Choice != "deny" || st.Status != decision.Resolved {
		t.Errorf("an answered one: %v", err)
	}
	a.unchanged(before)
	a.end()
	before = a.all()
	if d := a.withdraw(ended.ID); d.Status != decision.Withdrawn { // by the end: that is what was wanted
		t.Errorf("behind the end: %s", d.Status)
	}
	a.unchanged(before)
	if _, err := a.op.Resolve(a.ctx, a.j.ID, ended.ID, decision.Answering{Choice: "approve", By: "ana"}); !errors.Is(err, decision.ErrWithdrawn) {
		t.Errorf("an answer behind the end: %v", err)
	}
	a.unchanged(before)
}

// A job that ends leaves nothing pending: in the transaction of its end, by system.
func TestEndWithdrawsQuestions(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	answered, overdue, waits := a.asks(), a.brief(), a.asks()
	a.resolve(answered.ID, "approve")
	at := a.clock.Advance(2 * second)
	a.end()
	for _, q := range []decision.AskedAt{overdue, waits} {
		d := a.decision(q.ID)
		want := q.Decision
		want.Status, want.Open, want.SettledAt, want.Version, want.Note = decision.Withdrawn, false, at, q.Version+1, d.Note
		want.WithdrawnBy = event.System
		if diff := cmp.Diff(want, d); diff != "" || d.Note == "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if es := a.of(q.ID); types(es) != "decision_requested decision_withdrawn" || es[1].Actor != event.System {
			t.Errorf("events: %s", types(es))
		}
	}
	a.stands(answered.ID, decision.Resolved)
	a.counts(0, 3)
	es := a.events(a.j.ID)
	if got := types(es); got != "queued decision_requested decision_requested decision_requested decision_resolved decision_withdrawn decision_withdrawn cancelled" {
		t.Errorf("events: %s", got)
	}
	a.sweep(0)
}
