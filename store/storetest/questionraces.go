package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// questionRaces have two handles, as two processes have them, at one question.
func questionRaces(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"two answers":               twoAnswers,
		"one answer twice":          oneAnswerTwice,
		"answer against withdrawal": answerAgainstWithdrawal,
		"answer against expiry":     answerAgainstExpiry,
		"asking against the end":    askingAgainstTheEnd,
		"answer against the end":    answerAgainstTheEnd,
		"asking twice with one key": askingTwiceWithOneKey,
		"two sweepers":              twoSweepersOfQuestions,
	})
}

// tally counts how often each side came first, for whoever reads the log.
type tally map[string]int

func (n tally) log(w *world) {
	w.Helper()
	w.Logf("came first: %v", map[string]int(n))
}

// desks are operators over two handles, and a job that asks.
func (w *world) desks() (ops [2]decision.Operator, j job.Job) {
	w.Helper()
	return [2]decision.Operator{{Store: w.s}, {Store: w.open(Options{})}}, w.insertJob(queuedJob())
}

func (w *world) asks(j job.Job, timeout time.Duration) decision.AskedAt {
	w.Helper()
	q, err := decision.Operator{Store: w.s}.Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}, Timeout: timeout, By: "bot"})
	if err != nil {
		w.Fatal(err)
	}
	return q
}

// became lists what the log tells of one question since it was asked.
func (w *world) became(q decision.AskedAt) (ts []event.Type) {
	w.Helper()
	for _, e := range w.events(event.Query{Stream: q.Owner.Stream(), Subject: q.ID}) {
		ts = append(ts, e.Type)
	}
	return ts[1:]
}

// settled fails unless the question came to one end, whose event is the only one, and
// the job's counters say so.
func (w *world) settled(q decision.AskedAt, want decision.Status, pending, all int64) {
	w.Helper()
	if d := w.decision(q.ID); d.Status != want || d.Open {
		w.Errorf("question %s is %s (open: %t), want %s", q.ID, d.Status, d.Open, want)
	}
	if got := w.became(q); len(got) != 1 || got[0] != event.Type("decision_"+want) {
		w.Errorf("question %s is %s, and its log says %v", q.ID, want, got)
	}
	if j := w.job(q.Owner.ID); j.Pending != pending || j.Questions != all {
		w.Errorf("%d of %d questions wait, want %d of %d", j.Pending, j.Questions, pending, all)
	}
}

// twoAnswers: of two choices at one moment one stands, in one event, and whoever gave
// the other is told which.
func twoAnswers(w *world) {
	ops, j := w.desks()
	first := tally{}
	defer first.log(w)
	for round := range int64(rounds(200)) {
		q := w.asks(j, 0)
		var errs [2]error
		choices, names := [2]string{"yes", "no"}, [2]string{"Ana", "Bo"}
		together(2, func(i int) {
			_, errs[i] = ops[i].Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: choices[i], By: names[i]})
		})
		won := 0
		if errs[0] != nil {
			won = 1
		}
		first[names[won]]++
		st, _ := decision.StandingOf(errs[1-won])
		if errs[won] != nil || !errors.Is(errs[1-won], decision.ErrChoiceConflict) || string(st.Choice) != choices[won] || st.By != names[won] {
			w.Errorf("round %d: told %v and %v", round, errs[0], errs[1])
		}
		if d := w.decision(q.ID); string(d.Choice) != choices[won] || d.DecidedBy != names[won] {
			w.Errorf("round %d: %s by %s is stored, and %s won", round, d.Choice, d.DecidedBy, names[won])
		}
		w.settled(q, decision.Resolved, 0, round+1)
	}
	CheckInvariants(w.T, w.s)
}

// oneAnswerTwice: the same choice at one moment is one answer, and nobody is refused.
func oneAnswerTwice(w *world) {
	ops, j := w.desks()
	for round := range int64(rounds(50)) {
		q := w.asks(j, 0)
		var got [4]decision.Decision
		together(len(got), func(i int) {
			var err error
			if got[i], err = ops[i%2].Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "yes", By: fmt.Sprint("reviewer ", i)}); err != nil {
				w.Error(err)
			}
		})
		for _, d := range got {
			w.same(w.decision(q.ID), d)
		}
		w.settled(q, decision.Resolved, 0, round+1)
	}
	CheckInvariants(w.T, w.s)
}

func answerAgainstWithdrawal(w *world) {
	ops, j := w.desks()
	first := tally{}
	defer first.log(w)
	for round := range int64(rounds(200)) {
		q := w.asks(j, 0)
		var answered, withdrawn error
		together(2, func(i int) {
			if op := ops[(int64(i)+round)%2]; i == 0 {
				_, answered = op.Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "yes", By: "Ana"})
			} else {
				_, withdrawn = op.WithdrawQuestion(w.ctx, j.ID, q.ID, "bot", "")
			}
		})
		switch {
		case answered == nil:
			if st, _ := decision.StandingOf(withdrawn); !errors.Is(withdrawn, decision.ErrNotPending) || st.Choice != "yes" {
				w.Errorf("round %d: the withdrawal was told %v", round, withdrawn)
			}
			first["answer"]++
			w.settled(q, decision.Resolved, 0, round+1)
		case withdrawn != nil || !errors.Is(answered, decision.ErrWithdrawn):
			w.Errorf("round %d: told %v and %v", round, answered, withdrawn)
		default:
			first["withdrawal"]++
			w.settled(q, decision.Withdrawn, 0, round+1)
		}
	}
	CheckInvariants(w.T, w.s)
}

// answerAgainstExpiry: an answer at the very deadline meets a sweep for which it has
// passed. Whoever has the lock first wins.
func answerAgainstExpiry(w *world) {
	ops, j := w.desks()
	first := tally{}
	defer first.log(w)
	for round := range int64(rounds(200)) {
		q := w.asks(j, time.Hour)
		var answered, swept error
		n := 0
		together(2, func(i int) {
			op := ops[(int64(i)+round)%2]
			if i == 0 {
				op.Now = func() time.Time { return q.ExpiresAt } // the instant itself is in time
				_, answered = op.Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "yes", By: "Ana"})
				return
			}
			op.Now = func() time.Time { return q.ExpiresAt.Add(time.Microsecond) }
			n, swept = op.ExpireDue(w.ctx, 10)
		})
		if swept != nil || n > 1 {
			w.Errorf("round %d: the sweep expired %d, %v", round, n, swept)
		}
		switch {
		case answered == nil && n == 0:
			first["answer"]++
			w.settled(q, decision.Resolved, 0, round+1)
		case errors.Is(answered, decision.ErrExpired) && n == 1:
			first["sweep"]++
			w.settled(q, decision.Expired, 0, round+1)
		default:
			w.Errorf("round %d: the answer was told %v, and %d were expired", round, answered, n)
		}
	}
	CheckInvariants(w.T, w.s)
}

// askingAgainstTheEnd: a job that ends leaves no question behind, however late it was
// asked, and its counters are right.
func askingAgainstTheEnd(w *world) {
	ops, _ := w.desks()
	first := tally{}
	defer first.log(w)
	for round := range rounds(200) {
		j := queuedJob()
		j.Paused = false
		j = w.insertJob(j)
		var told [3]error
		together(len(told), func(i int) {
			if op := ops[(i+round)%2]; i > 0 {
				_, told[i] = op.Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?", By: "bot"})
			} else {
				told[0] = endOf(w, op.Store, j)
			}
		})
		asked := int64(0)
		for i, err := range told {
			switch {
			case i > 0 && err == nil:
				asked++
			case i == 0 && err != nil, i > 0 && !errors.Is(err, decision.ErrRunState):
				w.Errorf("round %d: %d was told %v", round, i, err)
			}
		}
		first[fmt.Sprint(asked, " asked")]++
		ds := w.questions(decision.Query{Space: j.Space, JobID: j.ID})
		for _, d := range ds {
			if d.Status != decision.Withdrawn || d.Open {
				w.Errorf("round %d: it left a question that is %s", round, d.Status)
			}
		}
		if now := w.job(j.ID); now.Status != job.Cancelled || now.Pending != 0 || now.Questions != asked || int64(len(ds)) != asked {
			w.Errorf("round %d: %s with %d pending of %d, %d rows; %d were asked", round, now.Status, now.Pending, now.Questions, len(ds), asked)
		}
	}
	CheckInvariants(w.T, w.s)
}

// endOf ends a job that is queued, as its supervisor does.
func endOf(w *world, s txn.Store, j job.Job) error {
	return txn.Update(w.ctx, s, func(tx store.Tx) error { return job.Owner{Tx: tx, ID: j.ID}.Cancel("ana", "", tx.Now) })
}

// answerAgainstTheEnd: an answer that comes while the job ends is stored or refused;
// none is acknowledged and missing (case 012).
func answerAgainstTheEnd(w *world) {
	ops, _ := w.desks()
	first := tally{}
	defer first.log(w)
	for round := range rounds(100) {
		j := w.insertJob(queuedJob())
		q := w.asks(j, 0)
		var answered, ended error
		together(2, func(i int) {
			if op := ops[(i+round)%2]; i == 0 {
				_, answered = op.Resolve(w.ctx, j.ID, q.ID, decision.Answering{Choice: "yes", By: "Ana"})
			} else {
				ended = endOf(w, op.Store, j)
			}
		})
		want := decision.Resolved
		if answered != nil {
			want = decision.Withdrawn
		}
		if ended != nil || answered != nil && !errors.Is(answered, decision.ErrWithdrawn) {
			w.Errorf("round %d: told %v and %v", round, answered, ended)
		}
		first[string(want)]++
		w.settled(q, want, 0, 1)
	}
	CheckInvariants(w.T, w.s)
}

// askingTwiceWithOneKey: of repeats at one moment one asks, and all are answered with
// that one and its cursor.
func askingTwiceWithOneKey(w *world) {
	ops, j := w.desks()
	for round := range int64(rounds(50)) {
		var got [4]decision.AskedAt
		together(len(got), func(i int) {
			var err error
			if got[i], err = ops[i%2].Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?", IdempotencyKey: fmt.Sprint("key ", round)}); err != nil {
				w.Error(err)
			}
		})
		for _, q := range got {
			w.same(got[0], q)
		}
		if now := w.job(j.ID); now.Questions != round+1 || got[0].N != round+1 {
			w.Errorf("round %d: number %d of %d", round, got[0].N, now.Questions)
		}
		w.settle(got[0].ID, decision.Withdraw{By: "bot", MayOwn: true, ByRuntime: true})
		w.write(func(tx store.Tx) error {
			if _, err := tx.Job(j.ID); err != nil { // the lock before the clock
				return err
			}
			return job.Owner{Tx: tx, ID: j.ID}.Settled(got[0].Decision, tx.Now())
		})
	}
	CheckInvariants(w.T, w.s)
}

// twoSweepersOfQuestions: an overdue question expires once, and one of the sweeps says so.
func twoSweepersOfQuestions(w *world) {
	ops, j := w.desks()
	for round := range int64(rounds(200)) {
		q := w.asks(j, time.Second)
		var n atomic.Int64
		together(2, func(i int) {
			op := ops[i]
			op.Now = func() time.Time { return q.ExpiresAt.Add(time.Microsecond) }
			k, err := op.ExpireDue(w.ctx, 10)
			if err != nil {
				w.Error(err)
			}
			n.Add(int64(k))
		})
		w.same(int64(1), n.Load())
		w.settled(q, decision.Expired, 0, round+1)
	}
	CheckInvariants(w.T, w.s)
}
