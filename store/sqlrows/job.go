package sqlrows

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
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
	selectJobs     = `SELECT ` + Selected(jobColumns) + ` FROM job`
	jobSQL         = selectJobs + ` WHERE id = ? AND cleaned_at IS NULL`
	jobByKeySQL    = selectJobs + ` WHERE space = ? AND principal = ? AND idempotency_key = ? AND cleaned_at IS NULL`
	activeJobsSQL  = selectJobs + ` WHERE home = ? AND ended_at IS NULL AND id > ? ORDER BY id LIMIT +?`
	cleanedJobsSQL = selectJobs + ` WHERE home = ? AND cleaned_at IS NOT NULL AND id > ? ORDER BY id LIMIT +?`
)

const (
	countJobsSQL  = `SELECT status, count(*) FROM job WHERE space = ? AND cleaned_at IS NULL GROUP BY status`
	countAskedSQL = `SELECT CAST(coalesce(sum(pending), 0) AS bigint) FROM job WHERE space = ? AND pending > 0`
)

func (x Rows) CountJobs(space string) (job.Counts, error) {
	n := job.Counts{ByStatus: map[job.Status]int64{}}
	err := x.Query(countJobsSQL, []any{space}, func(r Row) error {
		n.ByStatus[job.Status(r.Str(0))] = r.Int(1)
		return nil
	})
	if err != nil {
		return n, err
	}
	_, err = x.queryRow(countAskedSQL, []any{space}, func(r Row) error {
		n.Asked = r.Int(0)
		return nil
	})
	return n, err
}

func (x Rows) Job(id string) (job.Job, error) {
	return x.job("There is no job "+id+".", jobSQL, id)
}

func (x Rows) JobByKey(space, principal, key string) (job.Job, error) {
	return x.job("The key is not in use.", jobByKeySQL, space, principal, key)
}

func (x Rows) job(missing, sql string, args ...any) (j job.Job, err error) {
	found, err := x.queryRow(x.locking(sql), args, func(r Row) (err error) {
		j, err = scanJob(r)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("%s", missing)
	}
	return j, err
}

// Jobs lists newest first: ids sort by time.
func (x Rows) Jobs(q job.Query) ([]job.Job, error) {
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
	w.and(x.Dialect().HasTag, q.Tag, q.Tag != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.jobs(selectJobs+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x Rows) ActiveJobs(home, after string, limit int) ([]job.Job, error) {
	return x.jobs(activeJobsSQL, home, after, pageSize(limit, 100, 1000))
}

func (x Rows) CleanedJobs(home, after string, limit int) ([]job.Job, error) {
	return x.jobs(cleanedJobsSQL, home, after, pageSize(limit, 100, 1000))
}

func (x Rows) jobs(sql string, args ...any) ([]job.Job, error) {
	var js []job.Job
	err := x.Query(sql, args, func(r Row) error {
		j, err := scanJob(r)
		js = append(js, j)
		return err
	})
	return js, err
}

func scanJob(r Row) (j job.Job, err error) {
	j = job.Job{
		ID: r.Str(0), Space: r.Str(1), Home: r.Str(2), Principal: r.Str(6), IdempotencyKey: r.Str(7), Request: r.Str(8),
		Status: job.Status(r.Str(9)), Paused: r.Bool(10), Launches: r.Int(11), Claim: r.Str(12), Launcher: r.Str(13), Began: r.Time(14),
		Runner: r.Str(15), StopBy: r.Str(16), StopAt: r.Time(17), KillAfter: time.Duration(r.Int(18)) * time.Microsecond,
		ExitCode: int(r.Int(19)), Signal: r.Str(20), Failure: r.Str(21), Progress: r.Bytes(22), Outputs: r.Int(23), Dropped: r.Bool(24),
		Offset: r.Int(25), Pending: r.Int(26), Questions: r.Int(27), CreatedAt: r.Time(28), StartedAt: r.Time(29), EndedAt: r.Time(30),
		CleanedAt: r.Time(31), Epoch: r.Int(32), Version: r.Int(33),
	}
	j.Head = event.Head{Stream: j.Stream(), Seq: r.Int(34), Hash: r.Bytes(35)}
	if err := json.Unmarshal(r.Bytes(4), &j.Spec); err != nil {
		return j, fmt.Errorf("the spec of job %s cannot be read as stored: %w", j.ID, err)
	}
	j.Secrets, err = scanMetadata(r.Bytes(5))
	return j, err
}

func (x Rows) InsertJob(j job.Job) error {
	spec, err := json.Marshal(j.Spec)
	if err != nil {
		return err
	}
	secrets, err := metadataJSON(j.Secrets)
	if err != nil {
		return err
	}
	return x.Write(Write{SQL: insertJobSQL, Taken: takenKey, Args: []any{
		j.ID, j.Space, j.Home, j.Spec.Name, spec, secrets, j.Principal, text(j.IdempotencyKey), j.Request, string(j.Status),
		j.Paused, j.Launches, j.Claim, j.Launcher, j.Began, j.Runner, j.StopBy, j.StopAt, micros(j.KillAfter), int64(j.ExitCode), j.Signal, j.Failure,
		j.Progress, j.Outputs, j.Dropped, j.Offset, j.Pending, j.Questions, j.CreatedAt, j.StartedAt, j.EndedAt, j.CleanedAt, j.Epoch, j.Version, j.Head.Seq, j.Head.Hash,
	}})
}

func takenKey() error {
	return decision.ErrMoved.Say("The idempotency key was used in the meantime; nothing was written.")
}

func (x Rows) UpdateJob(prev, j job.Job) error {
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
	return u.run(x, func() error { return store.MovedJob(prev) })
}

func (x Rows) InsertTombstone(h event.Head, space, by string) error {
	return x.write(insertTombstoneSQL, h.Stream, space, h.Seq, h.Hash, x.Now(), by)
}

func (x Rows) Tombstone(stream string) (h event.Head, found bool, err error) {
	found, err = x.queryRow(tombstoneSQL, []any{stream}, func(r Row) error {
		h = event.Head{Stream: stream, Seq: r.Int(0), Hash: r.Bytes(1)}
		return nil
	})
	return h, found, err
}

// What belongs to a job, in the order in which it can go: with its first events what was
// told of them.
var deleteOfJobSQL = []string{
	`DELETE FROM delivery_attempt WHERE (delivery_id, n) IN (SELECT a.delivery_id, a.n FROM delivery_attempt AS a
		JOIN delivery AS d ON d.id = a.delivery_id WHERE d.seq IN (` + firstOfJob + `) LIMIT +?2)`,
	`DELETE FROM delivery WHERE id IN (SELECT d.id FROM delivery AS d WHERE d.seq IN (` + firstOfJob + `) LIMIT +?2)`,
	`DELETE FROM event WHERE seq IN (` + firstOfJob + `)`,
	`DELETE FROM wake_target WHERE id IN (SELECT t.id FROM wake_target AS t JOIN job ON t.stream = 'job:' || job.id AND t.stream > ''
		WHERE job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM vote WHERE (decision_id, principal) IN (SELECT v.decision_id, v.principal FROM vote AS v
		JOIN decision AS d ON d.id = v.decision_id JOIN job ON d.owner_id = job.id
		WHERE d.owner_kind = 'job' AND job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM decision WHERE id IN (SELECT d.id FROM decision AS d JOIN job ON d.owner_id = job.id
		WHERE d.owner_kind = 'job' AND job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM token WHERE id IN (SELECT t.id FROM token AS t JOIN job ON t.job_id = job.id
		WHERE job.id = ? AND job.cleaned_at IS NOT NULL LIMIT +?)`,
	`DELETE FROM job WHERE id IN (SELECT id FROM job WHERE id = ? AND cleaned_at IS NOT NULL LIMIT +?)`,
}

// firstOfJob are the events that go first. As many are left to be deleted as there are
// of these at most, so that an event goes only once all that was told of it has.
const firstOfJob = `SELECT e.seq FROM job JOIN event AS e ON e.stream = 'job:' || job.id
	WHERE job.id = ?1 AND job.cleaned_at IS NOT NULL ORDER BY e.stream_seq LIMIT +?2`

func (x Rows) DeleteJob(id string, limit int) (n int, err error) {
	for _, sql := range deleteOfJobSQL {
		if n >= limit {
			return n, nil
		}
		k, err := x.Exec(sql, id, limit-n)
		if err != nil {
			return n, err
		}
		n += int(k)
	}
	return n, nil
}
