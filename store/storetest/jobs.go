package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
)

func jobs(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back": jobReadBack,
		"texts":     jobTexts,
		"guard":     jobGuard,
		"keys":      jobKeys,
		"lists":     jobLists,
		"questions": jobQuestions,
		"end":       jobEnd,
		"clean":     jobClean,
		"counts":    jobCounts,
		"unseen":    jobUnseen,
	})
}

// queuedJob is a job that waits to be launched, with every field that one can have.
func queuedJob() job.Job {
	return job.Job{
		ID: id.New(id.Job), Space: event.MainSpace, Home: "/home/a",
		Spec: job.Spec{
			Command: []string{"train", "--epochs", "40"}, Cwd: "/tmp", Env: map[string]string{"A": "b=c"}, SecretEnv: []string{"KEY"},
			Name: "training", Tags: []string{"gpu", "é"}, Timeout: time.Hour, Trigger: job.Trigger{JobID: "job_0", Status: job.Completed},
		},
		Secrets: map[string]string{"KEY": "s"}, Principal: "agent:ana", IdempotencyKey: id.New("key_"), Request: "digest",
		Status: job.Queued, Paused: true, ExitCode: -1, CreatedAt: moment(0), Epoch: 1, Version: 1,
	}
}

// runningJob is one whose command has begun.
func runningJob() job.Job {
	j := queuedJob()
	j.Status, j.Paused, j.Secrets, j.Launches, j.Claim, j.Launcher, j.Began = job.Running, false, nil, 1, "claim", "launcher", moment(1)
	j.Runner, j.StartedAt, j.Progress, j.Outputs, j.Offset = "runner", moment(2), []byte(`{"n": 1}`), 3, 99
	j.StopBy, j.StopAt, j.KillAfter, j.Dropped, j.Pending, j.Questions = "ana", moment(3), time.Second, true, 1, 2
	return j
}

func endedJob() job.Job {
	j := runningJob()
	j.Status, j.ExitCode, j.Signal, j.Failure, j.EndedAt, j.Pending = job.Failed, 1, "SIGKILL", "why", moment(4), 0
	return j
}

func (w *world) insertJob(j job.Job) job.Job {
	w.Helper()
	e := event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})
	w.write(func(tx store.Tx) error { return tx.InsertJob(job.Change{Next: j, Events: []event.Event{e}}) })
	return w.job(j.ID)
}

func (w *world) job(id string) job.Job {
	w.Helper()
	return read(w, func(tx store.Tx) (job.Job, error) { return tx.Job(id) })
}

func jobReadBack(w *world) {
	all := []job.Job{queuedJob(), runningJob(), endedJob(), {
		ID: id.New(id.Job), Space: "other", Spec: job.Spec{Shell: "true"}, Status: job.Queued, CreatedAt: moment(0), Version: 1,
	}}
	cleaned := endedJob()
	cleaned.CleanedAt = moment(5)
	whole(w, append([]job.Job{cleaned, {Head: event.Head{Seq: 1}}}, all...)...)
	whole(w, all[0].Spec, all[3].Spec)
	for _, j := range all {
		got := w.insertJob(j)
		w.same(int64(1), got.Head.Seq)
		j.Head = got.Head
		w.same(j, got)
		next := got.Clone()
		next.Failure, next.ExitCode = "changed", 7
		w.write(func(tx store.Tx) error { return tx.PutJob(got, job.Change{Next: next}) })
		next.Version++
		w.same(next, w.job(j.ID))
	}
	w.verify()
	if _, err := try(w, func(tx store.Tx) (job.Job, error) { return tx.Job("job_none") }); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("no such job: %v", err)
	}
}

func jobTexts(w *world) {
	for _, s := range hard {
		j := endedJob()
		j.Space, j.Home, j.Principal, j.Failure, j.Spec.Name, j.Spec.Shell = s, s, s, s, s, s
		j.Spec.Tags = []string{s}
		got := w.insertJob(j)
		j.Head = got.Head
		w.same(j, got)
		js := read(w, func(tx store.Tx) ([]job.Job, error) {
			return tx.Jobs(job.Query{Space: s, Name: s, Tag: s})
		})
		w.same([]job.Job{got}, js)
	}
}

// jobGuard: whoever judged on another state, or of another launch, writes nothing.
func jobGuard(w *world) {
	j := w.insertJob(runningJob())
	for name, change := range map[string]func(*job.Job){
		"version": func(j *job.Job) { j.Version++ }, "status": func(j *job.Job) { j.Status = job.Launching }, "claim": func(j *job.Job) { j.Claim = "other" },
	} {
		prev := j.Clone()
		change(&prev)
		next := j.Clone()
		next.Failure = name
		w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutJob(prev, job.Change{Next: next}) })
	}
}

func jobKeys(w *world) {
	j := w.insertJob(queuedJob())
	again := queuedJob()
	again.IdempotencyKey = j.IdempotencyKey
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.InsertJob(job.Change{Next: again}) })
	again.Principal = "another"
	w.insertJob(again)
	got := read(w, func(tx store.Tx) (job.Job, error) { return tx.JobByKey(j.Space, j.Principal, j.IdempotencyKey) })
	w.same(j, got)
	if _, err := try(w, func(tx store.Tx) (job.Job, error) { return tx.JobByKey("other", j.Principal, j.IdempotencyKey) }); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("in another space: %v", err)
	}
}

func jobLists(w *world) {
	queued := queuedJob()
	queued.Principal = "agent:bo"
	queued = w.insertJob(queued)
	running, ended := w.insertJob(runningJob()), w.insertJob(endedJob())
	foreign := queuedJob()
	foreign.Space, foreign.Home = "other", "/home/b"
	foreign = w.insertJob(foreign)
	for name, tt := range map[string]struct {
		q    job.Query
		want []job.Job
	}{
		"all":            {job.Query{}, []job.Job{ended, running, queued}},
		"by status":      {job.Query{Status: job.Failed}, []job.Job{ended}},
		"active":         {job.Query{Active: true}, []job.Job{running, queued}},
		"asking":         {job.Query{Asking: true}, []job.Job{running}},
		"by principal":   {job.Query{Principal: "agent:bo"}, []job.Job{queued}},
		"of a principal": {job.Query{Principal: "agent:ana", Status: job.Failed}, []job.Job{ended}},
		"by tag":         {job.Query{Tag: "gpu", Limit: 1}, []job.Job{ended}},
		"no such tag":    {job.Query{Tag: "gp"}, nil},
		"ended before":   {job.Query{EndedBefore: moment(5)}, []job.Job{ended}},
		"the end itself": {job.Query{EndedBefore: moment(4)}, nil},
		"a page":         {job.Query{After: ended.ID, Limit: 1}, []job.Job{running}},
		"by prefix":      {job.Query{Prefix: queued.ID}, []job.Job{queued}},
		"another space":  {job.Query{Space: "other"}, []job.Job{foreign}},
	} {
		if tt.q.Space == "" {
			tt.q.Space = event.MainSpace
		}
		js := read(w, func(tx store.Tx) ([]job.Job, error) { return tx.Jobs(tt.q) })
		w.Log(name)
		w.same(tt.want, js)
	}
	active := read(w, func(tx store.Tx) ([]job.Job, error) { return tx.ActiveJobs("/home/a", "", 1) })
	w.same([]job.Job{queued}, active)
	active = read(w, func(tx store.Tx) ([]job.Job, error) { return tx.ActiveJobs("/home/a", queued.ID, 9) })
	w.same([]job.Job{running}, active)
}

// jobQuestions: the job's counters change with its questions, and a limit holds also
// for those who ask at one moment.
func jobQuestions(w *world) {
	j := queuedJob()
	j.Pending, j.Questions = decision.MaxPendingOfJob-3, decision.MaxPendingOfJob-3
	j = w.insertJob(j)
	op := decision.Operator{Store: w.s, Principal: "ana"}
	errs := make([]error, 12)
	together(len(errs), func(i int) {
		_, errs[i] = op.Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?"})
	})
	asked := 0
	for _, err := range errs {
		if err == nil {
			asked++
		} else if !errors.Is(err, decision.ErrTooManyPending) {
			w.Error(err)
		}
	}
	now := w.job(j.ID)
	if asked != 3 || now.Pending != decision.MaxPendingOfJob || now.Questions != now.Pending {
		w.Errorf("%d asked; pending %d, in all %d", asked, now.Pending, now.Questions)
	}
	w.verify()
}

// jobEnd: asking against the end leaves no question behind on a job that has ended.
func jobEnd(w *world) {
	for range rounds(30) {
		j := queuedJob()
		j.Paused = false
		j = w.insertJob(j)
		op := decision.Operator{Store: w.s, Principal: "ana"}
		together(4, func(i int) {
			if i > 0 {
				if _, err := op.Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?"}); err != nil && !errors.Is(err, decision.ErrRunState) {
					w.Error(err)
				}
				return
			}
			err := w.update(func(tx store.Tx) error { return job.Owner{Tx: tx, ID: j.ID}.Cancel("ana", "", tx.Now) })
			if err != nil {
				w.Error(err)
			}
		})
		now := w.job(j.ID)
		pending := read(w, func(tx store.Tx) ([]decision.Decision, error) {
			return tx.Decisions(decision.Query{Space: j.Space, JobID: j.ID, Status: decision.Pending})
		})
		if now.Status != job.Cancelled || now.Pending != 0 || len(pending) != 0 {
			w.Fatalf("%s with %d pending, %d rows", now.Status, now.Pending, len(pending))
		}
	}
	w.verify()
}

// jobUnseen: what belongs to a job that was marked is not read any more, before a row of
// it is deleted; its tokens go with it.
func jobUnseen(w *world) {
	j, other := queuedJob(), queuedJob()
	op := decision.Operator{Store: w.s, Principal: "ana"}
	asked := map[string]string{}
	for _, j := range []job.Job{j, other} {
		w.insertJob(j)
		d, err := op.Ask(w.ctx, j.Space, j.ID, decision.Asking{Prompt: "Go on?", IdempotencyKey: "k"})
		if err != nil {
			w.Fatal(err)
		}
		asked[j.ID] = d.ID
		w.write(func(tx store.Tx) error {
			_, _, err := token.Issue(tx, token.New{Space: j.Space, Scope: token.Agent, Name: j.ID, JobID: j.ID})
			return err
		})
		w.write(func(tx store.Tx) error { return job.Owner{Tx: tx, ID: j.ID}.Cancel("ana", "", tx.Now) })
	}
	w.write(func(tx store.Tx) error {
		now, err := tx.Job(j.ID)
		if err != nil {
			return err
		}
		return tx.CleanJob(now, "ana")
	})
	err := w.view(func(tx store.Tx) error {
		if _, err := tx.Decision(asked[j.ID]); !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("the question: %v", err)
		}
		if _, err := tx.DecisionByKey(j.Ref(), "k"); !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("the question by its key: %v", err)
		}
		for _, q := range []decision.Query{{Space: j.Space}, {Space: j.Space, JobID: j.ID}} {
			ds, err := tx.Decisions(q)
			for _, d := range ds {
				if err != nil || d.Owner.ID == j.ID {
					w.Errorf("%+v lists %s, %v", q, d.ID, err)
				}
			}
		}
		for _, q := range []event.Query{{Limit: 1000}, {Stream: j.Stream()}} {
			es, err := tx.Events(q)
			for _, e := range es {
				if err != nil || e.Stream == j.Stream() {
					w.Errorf("%+v lists %s, %v", q, e.ID, err)
				}
			}
		}
		if d, err := tx.Decision(asked[other.ID]); err != nil || d.Status != decision.Withdrawn {
			w.Errorf("the question of another job: %+v, %v", d, err)
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
	if _, err := op.Resolve(w.ctx, j.ID, asked[j.ID], decision.Answering{Choice: "approve", By: "ana"}); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("an answer: %v", err)
	}
	w.verify()
	w.write(func(tx store.Tx) error {
		_, err := tx.DeleteJob(j.ID, 100)
		return err
	})
	for id, want := range map[string]int{j.ID: 0, other.ID: 1} {
		ts := read(w, func(tx store.Tx) ([]token.Token, error) { return tx.Tokens(token.Query{Space: j.Space, JobID: id}) })
		if len(ts) != want || want == 1 && ts[0].RevokedAt.IsZero() {
			w.Errorf("%d tokens: %+v", len(ts), ts)
		}
	}
	w.verify()
}

func jobClean(w *world) {
	j, other := w.insertJob(endedJob()), w.insertJob(endedJob())
	for i := range 7 {
		w.append(j.Stream(), note(string(rune('a'+i))))
	}
	j = w.job(j.ID)
	w.write(func(tx store.Tx) error { return tx.CleanJob(j, "ana") })
	if _, err := try(w, func(tx store.Tx) (job.Job, error) { return tx.Job(j.ID) }); !errors.Is(err, decision.ErrNotFound) {
		w.Errorf("it is still seen: %v", err)
	}
	w.refused(decision.ErrNotFound, func(tx store.Tx) error {
		now, err := tx.Job(j.ID)
		if err != nil {
			return err
		}
		return tx.CleanJob(now, "bo")
	})
	left := read(w, func(tx store.Tx) ([]job.Job, error) { return tx.CleanedJobs(j.Home, "", 10) })
	if len(left) != 1 || left[0].ID != j.ID {
		w.Errorf("%d are being deleted", len(left))
	}
	w.verify()
	total, parts := 0, 0
	for n := 3; n == 3; parts++ {
		w.write(func(tx store.Tx) (err error) {
			n, err = tx.DeleteJob(j.ID, 3)
			return err
		})
		total += n
		w.verify()
	}
	w.same(9, total) // eight events and the job
	w.same(4, parts)
	w.write(func(tx store.Tx) error { // one that is not marked stays
		_, err := tx.DeleteJob(other.ID, 100)
		return err
	})
	w.same(other, w.job(other.ID))
	w.same(1, len(w.events(event.Query{Stream: other.Stream()})))
	head := read(w, func(tx store.Tx) (event.Head, error) {
		h, found, err := tx.Tombstone(j.Stream())
		if !found {
			w.Error("there is no tombstone")
		}
		return h, err
	})
	w.same(j.Head, head)
}

// jobCounts: what is being cleaned up, and other spaces, count for nothing.
func jobCounts(w *world) {
	counts := func() job.Counts {
		w.Helper()
		return read(w, func(tx store.Tx) (job.Counts, error) { return tx.CountJobs("main") })
	}
	w.same(job.Counts{ByStatus: map[job.Status]int64{}}, counts())
	asking := runningJob()
	asking.Pending, asking.Questions = 3, 4
	for _, j := range []job.Job{queuedJob(), queuedJob(), runningJob(), asking, endedJob()} {
		w.insertJob(j)
	}
	foreign := runningJob()
	foreign.Space = "other"
	w.insertJob(foreign)
	cleaned := w.insertJob(endedJob())
	w.same(job.Counts{ByStatus: map[job.Status]int64{job.Queued: 2, job.Running: 2, job.Failed: 2}, Asked: 4}, counts())
	w.write(func(tx store.Tx) error { return tx.CleanJob(cleaned, "ana") })
	w.same(job.Counts{ByStatus: map[job.Status]int64{job.Queued: 2, job.Running: 2, job.Failed: 1}, Asked: 4}, counts())
}
