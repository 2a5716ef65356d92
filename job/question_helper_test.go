package job_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/txn"
)

// asker is a job that can ask and is never launched, in a store with a clock of its own.
type asker struct {
	*testing.T
	ctx   context.Context
	clock *placettest.Clock
	path  string
	st    *store.Store
	op    decision.Operator
	j     job.Job
}

func askingJob(t *testing.T) *asker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), whole)
	t.Cleanup(cancel)
	a := &asker{T: t, ctx: ctx, clock: &placettest.Clock{}, path: filepath.Join(t.TempDir(), "placet.db")}
	a.st = a.open()
	a.op = decision.Operator{Store: a.st, Principal: "user:ana"}
	a.j = a.another(func(*job.Job) {})
	return a
}

// open is one more handle on the store, as another process has it.
func (a *asker) open() *store.Store {
	a.Helper()
	return placettest.OpenFile(a.T, a.path, &sqlite.Options{Now: a.clock.Now, Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
}

// another is one more job, as change makes it.
func (a *asker) another(change func(*job.Job)) job.Job {
	a.Helper()
	j := job.Job{ID: id.New(id.Job), Space: event.MainSpace, Home: "/home", Spec: job.Spec{Shell: "true"}}
	ch, err := j.Step(job.Create{}, a.clock.Now())
	if err != nil {
		a.Fatal(err)
	}
	ch.Next.Paused = true
	change(&ch.Next)
	if err := txn.Update(a.ctx, a.st, func(tx job.Tx) error { return tx.InsertJob(ch) }); err != nil {
		a.Fatal(err)
	}
	return a.job(ch.Next.ID)
}

func (a *asker) ask(q decision.Asking) decision.AskedAt {
	a.Helper()
	got, err := a.op.Ask(a.ctx, event.MainSpace, a.j.ID, q)
	if err != nil {
		a.Fatal(err)
	}
	return got
}

// asks asks something simple.
func (a *asker) asks() decision.AskedAt {
	a.Helper()
	return a.ask(decision.Asking{Prompt: "Go on?", By: "bot"})
}

func (a *asker) resolve(id, choice string) decision.Decision {
	a.Helper()
	d, err := a.op.Resolve(a.ctx, a.j.ID, id, decision.Answering{Choice: choice, By: "ana"})
	if err != nil {
		a.Fatal(err)
	}
	return d
}

// withdraw takes a question back, as the one who asked.
func (a *asker) withdraw(id string) decision.Decision {
	a.Helper()
	d, err := a.bot().WithdrawQuestion(a.ctx, a.j.ID, id, "bot", "")
	if err != nil {
		a.Fatal(err)
	}
	return d
}

func (a *asker) bot() decision.Operator {
	op := a.op
	op.Principal = "bot"
	return op
}

// end ends the job, with all that waits of it.
func (a *asker) end() {
	a.Helper()
	a.endOf(a.j.ID)
}

func (a *asker) endOf(id string) {
	a.Helper()
	if err := a.cancel(id); err != nil {
		a.Fatal(err)
	}
}

// cancel is what ends a job that was never launched.
func (a *asker) cancel(id string) error {
	return txn.Update(a.ctx, a.st, func(tx job.Tx) error { return job.Owner{Tx: tx, ID: id}.Cancel("ana", "", tx.Now) })
}

func (a *asker) view(fn func(tx job.Tx) error) {
	a.Helper()
	if err := txn.View(a.ctx, a.st, fn); err != nil {
		a.Fatal(err)
	}
}

func (a *asker) job(id string) (j job.Job) {
	a.Helper()
	a.view(func(tx job.Tx) (err error) {
		j, err = tx.Job(id)
		return err
	})
	return j
}

func (a *asker) decision(id string) (d decision.Decision) {
	a.Helper()
	a.view(func(tx job.Tx) (err error) {
		d, err = tx.Decision(id)
		return err
	})
	return d
}

func (a *asker) stands(id string, want decision.Status) {
	a.Helper()
	if d := a.decision(id); d.Status != want || d.Open != (want == decision.Pending) {
		a.Errorf("question %s is %s, open %t; want %s", id, d.Status, d.Open, want)
	}
}

// counts compares the job's counters: what waits, and all there were.
func (a *asker) counts(pending, all int64) {
	a.Helper()
	if j := a.job(a.j.ID); j.Pending != pending || j.Questions != all {
		a.Errorf("%d questions wait of %d; want %d of %d", j.Pending, j.Questions, pending, all)
	}
}

func (a *asker) events(jobID string) (es []event.Event) {
	a.Helper()
	a.view(func(tx job.Tx) (err error) {
		es, err = tx.Events(event.Query{Stream: job.RefOf(jobID).Stream(), Limit: 1000})
		return err
	})
	return es
}

// of lists the events about one question.
func (a *asker) of(id string) (es []event.Event) {
	a.Helper()
	for _, e := range a.events(a.j.ID) {
		if e.Subject == id {
			es = append(es, e)
		}
	}
	return es
}

// everything is all that a question's transaction could have written.
type everything struct {
	Jobs      []job.Job
	Decisions []decision.Decision
	Events    []event.Event
	Votes     []string
}

func (a *asker) all() (all everything) {
	a.Helper()
	a.view(func(tx job.Tx) (err error) {
		all = everything{}
		if all.Jobs, err = tx.Jobs(job.Query{Space: event.MainSpace, Limit: 500}); err != nil {
			return err
		}
		if all.Decisions, err = tx.Decisions(decision.Query{Space: event.MainSpace, Limit: 500}); err != nil {
			return err
		}
		all.Events, err = tx.Events(event.Query{Limit: 1000})
		return err
	})
	all.Votes = a.votes()
	return all
}

func (a *asker) unchanged(before everything) {
	a.Helper()
	if diff := cmp.Diff(before, a.all()); diff != "" {
		a.Errorf("something was written (-before +now)\n%s", diff)
	}
}

// votes are the rows that no port reads.
func (a *asker) votes() (vs []string) {
	a.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: a.path}).String()+"?_pragma=busy_timeout(20000)&_pragma=query_only(1)")
	if err != nil {
		a.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(a.ctx, `SELECT decision_id, principal, by, choice, CAST(coalesce(input, '') AS TEXT), note, at FROM vote ORDER BY at, decision_id`)
	if err != nil {
		a.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var of, principal, by, choice, input, note string
		var at int64
		if err := rows.Scan(&of, &principal, &by, &choice, &input, &note, &at); err != nil {
			a.Fatal(err)
		}
		vs = append(vs, vote(of, principal, by, choice, input, note, time.UnixMicro(at)))
	}
	if err := rows.Err(); err != nil {
		a.Fatal(err)
	}
	return vs
}

// vote is how votes writes one.
func vote(of, principal, by, choice, input, note string, at time.Time) string {
	return fmt.Sprintf("%s: %s as %s says %s %s (%q) at %d", of, by, principal, choice, input, note, at.UnixMicro())
}
