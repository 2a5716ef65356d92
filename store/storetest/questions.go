package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
)

func questions(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"filters":         questionFilters,
		"pages":           questionPages,
		"limits":          questionLimits,
		"keys":            questionKeys,
		"due":             questionDue,
		"impossible rows": questionImpossible,
		"with their job":  questionsGo,
	})
}

// pendingQuestion is a job's n-th question as it is asked.
func (w *world) pendingQuestion(j job.Job, n int64) decision.Decision {
	w.Helper()
	q, err := decision.Asking{Prompt: fmt.Sprint("Question ", n), Timeout: time.Hour, By: "agent:ana"}.Checked()
	if err != nil {
		w.Fatal(err)
	}
	d, err := q.Asked(id.New(id.Question), j.Space, j.Ref(), n, moment(n), 1)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// insertQuestion writes one, and what became of it.
func (w *world) insertQuestion(d decision.Decision, cmds ...decision.Command) decision.Decision {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.InsertDecision(d, d.Requested()) })
	for _, cmd := range cmds {
		w.settle(d.ID, cmd)
	}
	return w.decision(d.ID)
}

func (w *world) settle(id string, cmd decision.Command) {
	w.Helper()
	d := w.decision(id)
	at := d.CreatedAt
	if _, late := cmd.(decision.Expire); late {
		at = d.ExpiresAt.Add(time.Microsecond)
	}
	ch, err := d.Step(cmd, at)
	if err != nil {
		w.Fatal(err)
	}
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, ch) })
}

// ends are the commands by which a question comes to each of its statuses.
func ends() []decision.Command {
	return []decision.Command{
		nil, decision.Resolve{Choice: "approve", By: "Ana", Principal: "user:ana"}, decision.Withdraw{By: "agent:ana", MayOwn: true}, decision.Expire{},
	}
}

func (w *world) questions(q decision.Query) []decision.Decision {
	w.Helper()
	return read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.Decisions(q) })
}

// questionFilters lists by job and status, newest first, among approvals and what other
// spaces have.
func questionFilters(w *world) {
	c := w.insertCall(parkedCall())
	foreign := queuedJob()
	foreign.Space = "other"
	js := []job.Job{w.insertJob(queuedJob()), w.insertJob(queuedJob()), w.insertJob(foreign)}
	var all []decision.Decision
	for n := range int64(4) {
		for _, j := range js {
			var cmds []decision.Command
			if cmd := ends()[(n+int64(len(all)))%4]; cmd != nil {
				cmds = append(cmds, cmd)
			}
			all = append(all, w.insertQuestion(w.pendingQuestion(j, n+1), cmds...))
		}
		d := pendingDecision(c)
		d.N = n + 1
		all = append(all, w.insertDecision(d))
	}
	found := 0
	for _, space := range []string{event.MainSpace, "other", "none"} {
		for _, jobID := range []string{"", js[0].ID, js[1].ID, js[2].ID, c.ID, "job_none", js[0].ID[:len(js[0].ID)-1], "%"} {
			for _, status := range []decision.Status{"", decision.Pending, decision.Resolved, decision.Withdrawn, decision.Expired, decision.Approved} {
				for _, typ := range []decision.Type{decision.Question, decision.Approval} {
					for _, open := range []bool{false, true} {
						q := decision.Query{Space: space, JobID: jobID, Status: status, Type: typ, Open: open}
						want := chosen(all, q)
						found += len(want)
						w.same(want, w.questions(q))
					}
				}
			}
		}
	}
	if found < 50 { // the test itself
		w.Errorf("all of these find %d", found)
	}
}

// questionPages walks pages of seven over the questions of a job that wait, while more
// are asked and those seen are answered.
func questionPages(w *world) {
	j, other := w.insertJob(queuedJob()), w.insertJob(queuedJob())
	n, want := int64(0), []string(nil)
	add := func() string {
		n++
		w.insertQuestion(w.pendingQuestion(other, n))
		return w.insertQuestion(w.pendingQuestion(j, n)).ID
	}
	for range 25 {
		want = append([]string{add()}, want...)
	}
	var got []string
	for after := ""; ; {
		page := w.questions(decision.Query{Space: j.Space, Type: decision.Question, JobID: j.ID, Status: decision.Pending, After: after, Limit: 7})
		if len(page) == 0 {
			break
		}
		if len(page) > 7 || len(got) > len(want) {
			w.Fatalf("a page of %d after %d", len(page), len(got))
		}
		for _, d := range page {
			got, after = append(got, d.ID), d.ID
			w.settle(d.ID, ends()[1])
		}
		add()
	}
	w.same(want, got)
}

func questionLimits(w *world) {
	w.skipRace()
	j := w.insertJob(queuedJob())
	w.write(func(tx store.Tx) error {
		for n := range int64(501) {
			d := w.pendingQuestion(j, n+1)
			if err := tx.InsertDecision(d, d.Requested()); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]int{-1: 50, 0: 50, 1: 1, 499: 499, 500: 500, 501: 500, 1 << 30: 500} {
		ds := w.questions(decision.Query{Space: j.Space, Type: decision.Question, JobID: j.ID, Limit: limit})
		if len(ds) != want || ds[0].N != 501 {
			w.Errorf("limit %d: %d questions from number %d, want %d", limit, len(ds), ds[0].N, want)
		}
	}
}

// questionKeys: a key is its owner's, and is compared byte by byte.
func questionKeys(w *world) {
	j, other := w.insertJob(queuedJob()), w.insertJob(queuedJob())
	keyed := func(j job.Job, n int64, key string) decision.Decision {
		d := w.pendingQuestion(j, n)
		d.IdempotencyKey = key
		return d
	}
	first := w.insertQuestion(keyed(j, 1, "key"))
	w.insertQuestion(keyed(other, 1, "key"))
	second := w.insertQuestion(keyed(j, 2, "KEY"), ends()[1])
	w.insertQuestion(keyed(j, 3, ""))
	w.insertQuestion(keyed(j, 4, ""))
	by := func(j job.Job, key string) (decision.Decision, error) {
		return try(w, func(tx store.Tx) (decision.Decision, error) { return tx.DecisionByKey(j.Ref(), key) })
	}
	for _, want := range []decision.Decision{first, second} {
		if d, err := by(j, want.IdempotencyKey); err != nil || d.ID != want.ID {
			w.Errorf("%s, %v", d.ID, err)
		}
	}
	for _, key := range []string{"", "ke", "key ", "k%", "Key"} {
		if d, err := by(j, key); !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("the key %q finds %s, %v", key, d.ID, err)
		}
	}
	w.refused(nil, func(tx store.Tx) error { return tx.InsertDecision(keyed(j, 5, "key")) })
}

// questionDue: overdue questions are found among all that is overdue.
func questionDue(w *world) {
	j, c := w.insertJob(queuedJob()), w.insertCall(parkedCall())
	add := func(n int64, at time.Time, cmds ...decision.Command) string {
		d := w.pendingQuestion(j, n)
		d.ExpiresAt = at
		return w.insertQuestion(d, cmds...).ID
	}
	second, first := add(1, moment(99)), add(2, moment(9))
	add(3, moment(100)) // the instant itself is in time
	add(4, time.Time{})
	for n, cmd := range ends()[1:] {
		add(int64(n+5), moment(50), cmd)
	}
	d := pendingDecision(c)
	d.ExpiresAt = moment(50)
	approval := w.insertDecision(d)
	var got []string
	for _, d := range read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.Due(moment(100), 0, 10) }) {
		got = append(got, d.ID)
	}
	w.same([]string{first, approval.ID, second}, got)
}

// questionImpossible: the rows themselves refuse what no engine may write.
func questionImpossible(w *world) {
	j := w.insertJob(queuedJob())
	first := w.insertQuestion(w.pendingQuestion(j, 1))
	for name, spoil := range map[string]func(*decision.Decision){
		"same number": func(d *decision.Decision) { d.N = 1 },
		"same id":     func(d *decision.Decision) { d.ID = first.ID },
		"no number":   func(d *decision.Decision) { d.N = 0 },
	} {
		d := w.pendingQuestion(j, 2)
		spoil(&d)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertDecision(d, d.Requested()) })
	}
	answered, err := first.Step(ends()[1], moment(2))
	if err != nil {
		w.Fatal(err)
	}
	for name, spoil := range map[string]func(*decision.Decision){
		"resolved by nobody":      func(d *decision.Decision) { d.DecidedBy = "" },
		"resolved at no time":     func(d *decision.Decision) { d.DecidedAt = time.Time{} },
		"settled at no time":      func(d *decision.Decision) { d.SettledAt = time.Time{} },
		"pending with an answer":  func(d *decision.Decision) { d.Status = decision.Pending },
		"an answer of no status":  func(d *decision.Decision) { d.Status = "answered" },
		"withdrawn at no time":    func(d *decision.Decision) { *d = first; d.Status = decision.Withdrawn },
		"expired and still to do": func(d *decision.Decision) { *d = first; d.Status = decision.Expired },
	} {
		next := answered.Next
		spoil(&next)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.PutDecision(first, decision.Change{Next: next}) })
	}
}

// questionsGo: what is deleted with a job is all that is its own, votes too.
func questionsGo(w *world) {
	j, other := w.insertJob(endedJob()), w.insertJob(queuedJob())
	c := w.insertCall(parkedCall())
	for n, cmd := range ends()[1:] {
		w.insertQuestion(w.pendingQuestion(j, int64(n+1)), cmd)
	}
	stays := w.insertQuestion(w.pendingQuestion(other, 1), ends()[1])
	approval := w.insertDecision(pendingDecision(c))
	j = w.job(j.ID)
	w.write(func(tx store.Tx) error { return tx.CleanJob(j, "ana") })
	total := 0
	for n := 2; n == 2; {
		w.write(func(tx store.Tx) (err error) {
			n, err = tx.DeleteJob(j.ID, 2)
			return err
		})
		total += n
	}
	w.same(12, total) // seven events, a vote, three questions, the job
	w.same(0, len(w.questions(decision.Query{Space: j.Space, JobID: j.ID})))
	w.same([]decision.Decision{stays}, w.questions(decision.Query{Space: j.Space, Type: decision.Question}))
	w.same(approval, w.decision(approval.ID))
	w.same(3, len(w.events(event.Query{Stream: other.Stream()})))
	w.verify()
}
