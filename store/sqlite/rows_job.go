package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
)

const (
	jobColumns = `id, space, home, name, spec, secrets, principal, idempotency_key, request, status, paused, launches, claim, launcher,
		began_at, runner, stop_by, stop_at, kill_after, exit_code, signal, failure, progress, outputs, dropped, event_offset, pending, questions,
		created_at, started_at, ended_at, cleaned_at, epoch, version, head_seq, head`
	insertJobSQL = `INSERT INTO job(` + jobColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	insertTombstoneSQL = `INSERT INTO tombstone(stream, space, head_seq, head, at, by) VALUES (?, ?, ?, ?, ?, ?)`
	tombstoneSQL       = `SELECT head_seq, head FROM tombstone WHERE stream = ?`
)

var (
	selectJobs     = `SELECT ` + selected(jobColumns) + ` FROM job`
	jobSQL         = selectJobs + ` WHERE id = ? AND cleaned_at IS NULL`
	jobByKeySQL    = selectJobs + ` WHERE space = ? AND principal = ? AND idempotency_key = ? AND cleaned_at IS NULL`
	activeJobsSQL  = selectJobs + ` WHERE home = ? AND ended_at IS NULL AND id > ? ORDER BY id LIMIT +?`
	cleanedJobsSQL = selectJobs + ` WHERE home = ? AND cleaned_at IS NOT NULL AND id > ? ORDER BY id LIMIT +?`
)

const (
	countJobsSQL  = `SELECT status, count(*) FROM job WHERE space = ? AND cleaned_at IS NULL GROUP BY status`
	countAskedSQL = `SELECT coalesce(sum(pending), 0) FROM job WHERE space = ? AND pending > 0`
)

func (x rows) CountJobs(space string) (job.Counts, error) {
	n := job.Counts{ByStatus: map[job.Status]int64{}}
	err := x.h.query(countJobsSQL, []any{space}, func(r row) error {
		n.ByStatus[job.Status(r.str(0))] = r.int(1)
		return nil
	})
	if err != nil {
		return n, err
	}
	_, err = x.h.queryRow(countAskedSQL, []any{space}, func(r row) error {
		n.Asked = r.int(0)
		return nil
	})
	return n, err
}

func (x rows) Job(id string) (job.Job, error) {
	return x.job("There is no job "+id+".", jobSQL, id)
}

func (x rows) JobByKey(space, principal, key string) (job.Job, error) {
	return x.job("The key is not in use.", jobByKeySQL, space, principal, key)
}

func (x rows) job(missing, sql string, args ...any) (j job.Job, err error) {
	found, err := x.h.queryRow(sql, args, func(r row) (err error) {
		j, err = scanJob(r)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("%s", missing)
	}
	return j, err
}

// Jobs lists newest first: ids sort by time.
func (x rows) Jobs(q job.Query) ([]job.Job, error) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`cleaned_at IS NULL`)
	w.and(`status = ?`, string(q.Status), q.Status != "")
	if q.Active {
		w.and(`ended_at IS NULL`)
	}
	if q.Asking {
		w.and(`pending > 0`)
	}
	w.and(`principal = ?`, q.Principal, q.Principal != "")
	w.and(`ended_at < ?`, q.EndedBefore, !q.EndedBefore.IsZero())
	w.and(`name = ?`, q.Name, q.Name != "")
	w.and(`EXISTS (SELECT 1 FROM json_each(CAST(spec AS TEXT), '$.tags') WHERE value = ?)`, q.Tag, q.Tag != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.jobs(selectJobs+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x rows) ActiveJobs(home, after string, limit int) ([]job.Job, error) {
	return x.jobs(activeJobsSQL, home, after, pageSize(limit, 100, 1000))
}

func (x rows) CleanedJobs(home, after string, limit int) ([]job.Job, error) {
	return x.jobs(cleanedJobsSQL, home, after, pageSize(limit, 100, 1000))
}

func (x rows) jobs(sql string, args ...any) ([]job.Job, error) {
	var js []job.Job
	err := x.h.query(sql, args, func(r row) error {
		j, err := scanJob(r)
		js = append(js, j)
		return err
	})
	return js, err
}

func scanJob(r row) (j job.Job, err error) {
	j = job.Job{
		ID: r.str(0), Space: r.str(1), Home: r.str(2), Principal: r.str(6), IdempotencyKey: r.str(7), Request: r.str(8),
		Status: job.Status(r.str(9)), Paused: r.bool(10), Launches: r.int(11), Claim: r.str(12), Launcher: r.str(13), Began: r.time(14),
		Runner: r.str(15), StopBy: r.str(16), StopAt: r.time(17), KillAfter: time.Duration(r.int(18)) * time.Microsecond,
		ExitCode: int(r.int(19)), Signal: r.str(20), Failure: r.str(21), Progress: r.bytes(22), Outputs: r.int(23), Dropped: r.bool(24),
		Offset: r.int(25), Pending: r.int(26), Questions: r.int(27), CreatedAt: r.time(28), StartedAt: r.time(29), EndedAt: r.time(30),
		CleanedAt: r.time(31), Epoch: r.int(32), Version: r.int(33),
	}
	j.Head = event.Head{Stream: j.Stream(), Seq: r.int(34), Hash: r.bytes(35)}
	if err := json.Unmarshal(r.bytes(4), &j.Spec); err != nil {
		return j, fmt.Errorf("the spec of job %s cannot be read as stored: %w", j.ID, err)
	}
	j.Secrets, err = scanMetadata(r.bytes(5))
	return j, err
}

func (x rows) InsertJob(j job.Job) error {
	spec, err := json.Marshal(j.Spec)
	if err != nil {
		return err
	}
	secrets, err := metadataJSON(j.Secrets)
	if err != nil {
		return err
	}
	_, err = x.h.exec(insertJobSQL, j.ID, j.Space, j.Home, j.Spec.Name, spec, secrets, j.Principal, text(j.IdempotencyKey), j.Request, string(j.Status),
		j.Paused, j.Launches, j.Claim, j.Launcher, j.Began, j.Runner, j.StopBy, j.StopAt, micros(j.KillAfter), int64(j.ExitCode), j.Signal, j.Failure,
		j.Progress, j.Outputs, j.Dropped, j.Offset, j.Pending, j.Questions, j.CreatedAt, j.StartedAt, j.EndedAt, j.CleanedAt, j.Epoch, j.Version, j.Head.Seq, j.Head.Hash)
	if isUnique(err) {
		err = decision.ErrMoved.Say("The idempotency key was used in the meantime; nothing was written.")
	}
	return err
}

func (x rows) UpdateJob(prev, j job.Job) (bool, error) {
	u := newUpdate(`job`)
	if prev.Secrets != nil && j.Secrets == nil { // they are only ever taken away
		u.set(`secrets`, nil)
	}
	u.text(`idempotency_key`, prev.IdempotencyKey, j.IdempotencyKey)
	u.str(`status`, string(prev.Status), string(j.Status))
	u.bool(`paused`, prev.Paused, j.Paused)
	u.int(`launches`, prev.Launches, j.Launches)
	u.str(`claim`, prev.Claim, j.Claim)
	u.str(`launcher`, prev.Launcher, j.Launcher)
	u.time(`began_at`, prev.Began, j.Began)
	u.str(`runner`, prev.Runner, j.Runner)
	u.str(`stop_by`, prev.StopBy, j.StopBy)
	u.time(`stop_at`, prev.StopAt, j.StopAt)
	u.int(`kill_after`, micros(prev.KillAfter), micros(j.KillAfter))
	u.int(`exit_code`, int64(prev.ExitCode), int64(j.ExitCode))
	u.str(`signal`, prev.Signal, j.Signal)
	u.str(`failure`, prev.Failure, j.Failure)
	u.bytes(`progress`, prev.Progress, j.Progress)
	u.int(`outputs`, prev.Outputs, j.Outputs)
	u.bool(`dropped`, prev.Dropped, j.Dropped)
	u.int(`event_offset`, prev.Offset, j.Offset)
	u.int(`pending`, prev.Pending, j.Pending)
	u.int(`questions`, prev.Questions, j.Questions)
	u.time(`started_at`, prev.StartedAt, j.StartedAt)
	u.time(`ended_at`, prev.EndedAt, j.EndedAt)
	u.int(`epoch`, prev.Epoch, j.Epoch)
	u.time(`cleaned_at`, prev.CleanedAt, j.CleanedAt)
	u.set(`head_seq`, j.Head.Seq) // prev may show the head of events that are not in the row yet
	u.set(`head`, j.Head.Hash)
	u.where(`id = ? AND version = ? AND status = ? AND claim = ?`, prev.ID, prev.Version, string(prev.Status), prev.Claim)
	return u.run(x)
}

func (x rows) InsertTombstone(h event.Head, space, by string) error {
	_, err := x.h.exec(insertTombstoneSQL, h.Stream, space, h.Seq, h.Hash, x.Now(), by)
	return err
}

func (x rows) Tombstone(stream string) (h event.Head, found bool, err error) {
	found, err = x.h.queryRow(tombstoneSQL, []any{stream}, func(r row) error {
		h = event.Head{Stream: stream, Seq: r.int(0), Hash: r.bytes(1)}
		return nil
	})
	return h, found, err
}

// What belongs to a job, in the order in which it can go: with its first events what was
// told of them.
var deleteOfJobSQL = []string{
	`DELETE FROM delivery_attempt WHERE (delivery_id, n) IN (SELECT a.delivery_id, a.n FROM delivery_attempt AS a
		JOIN delivery AS d ON d.id = a.delivery_id WHERE d.seq IN (` + firstOfJob + `) LIMIT +?2)`,
	`DELETE FROM delivery WHERE rowid IN (SELECT d.rowid FROM delivery AS d WHERE d.seq IN (` + firstOfJob + `) LIMIT +?2)`,
	`DELETE FROM event WHERE seq IN (` + firstOfJob + `)`,
	`DELETE FROM wake_target WHERE rowid IN (SELECT t.rowid FROM wake_target AS t JOIN job ON t.stream = 'job:' || job.id AND t.stream > ''
		WHERE job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM vote WHERE (decision_id, principal) IN (SELECT v.decision_id, v.principal FROM vote AS v
		JOIN decision AS d ON d.id = v.decision_id JOIN job ON d.owner_id = job.id
		WHERE d.owner_kind = 'job' AND job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM decision WHERE rowid IN (SELECT d.rowid FROM decision AS d JOIN job ON d.owner_id = job.id
		WHERE d.owner_kind = 'job' AND job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM token WHERE id IN (SELECT t.id FROM token AS t JOIN job ON t.job_id = job.id
		WHERE job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM job WHERE rowid IN (SELECT rowid FROM job WHERE id = ? AND cleaned_at IS NOT NULL LIMIT +?)`,
}

// firstOfJob are the events that go first. As many are left to be deleted as there are
// of these at most, so that an event goes only once all that was told of it has.
const firstOfJob = `SELECT e.seq FROM job JOIN event AS e ON e.stream = 'job:' || job.id
	WHERE job.id = ?1 AND job.cleaned_at IS NOT NULL ORDER BY e.stream_seq LIMIT +?2`

func (x rows) DeleteJob(id string, limit int) (n int, err error) {
	for _, sql := range deleteOfJobSQL {
		if n >= limit {
			return n, nil
		}
		k, err := x.h.exec(sql, id, limit-n)
		if err != nil {
			return n, err
		}
		n += int(k)
	}
	return n, nil
}
