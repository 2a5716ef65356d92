package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/job"
)

// StartJob starts a command that goes on without its client.
func (c *Client) StartJob(ctx context.Context, b Starting) (j Job, err error) {
	return j, c.Do(ctx, http.MethodPost, at("jobs"), b, &j)
}

// JobQuery selects jobs, newest first. Only the limit counts with ByAttention.
type JobQuery struct {
	Status      job.Status // empty: all
	Name        string     // empty: all
	Tag         string     // empty: all
	Prefix      string     // of the id; empty: all
	ByAttention bool       // those that need a person first, in one page
	After       string     // id of the last one seen
	Limit       int        // 1 to 500. Default: 50.
}

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, q JobQuery) (l Jobs, err error) {
	view := ""
	if q.ByAttention {
		view = "attention"
	}
	path := query(at("jobs"), "view", view, "status", string(q.Status), "name", q.Name, "tag", q.Tag, "prefix", q.Prefix,
		"after", q.After, "limit", number(q.Limit))
	return l, c.Do(ctx, http.MethodGet, path, nil, &l)
}

// GetJob reads a job.
func (c *Client) GetJob(ctx context.Context, id string) (j Job, err error) {
	return j, c.Do(ctx, http.MethodGet, at("jobs", id), nil, &j)
}

// JobEvents reads a page of a job's events.
func (c *Client) JobEvents(ctx context.Context, id string, after event.Cursor, limit int) (l Events, err error) {
	return l, c.Do(ctx, http.MethodGet, query(at("jobs", id, "events"), "after", string(after), "limit", number(limit)), nil, &l)
}

// TailJob reads a piece of a job's output: go on from its Next.
func (c *Client) TailJob(ctx context.Context, id string, q job.Tailing) (t Tail, err error) {
	return t, c.Do(ctx, http.MethodGet, tailPath(id, q), nil, &t)
}

func tailPath(id string, q job.Tailing) string {
	follow := ""
	if q.Follow {
		follow = "true"
	}
	return query(at("jobs", id, "tail"), "stream", string(q.Stream), "offset", strconv.FormatInt(q.Offset, 10),
		"max_bytes", number(q.MaxBytes), "follow", follow)
}

// Homes lists the daemons' homes that share the store.
func (c *Client) Homes(ctx context.Context) (l Homes, err error) {
	return l, c.Do(ctx, http.MethodGet, at("homes"), nil, &l)
}

// WaitForJob waits for an event of a job.
func (c *Client) WaitForJob(ctx context.Context, id string, w Waiting) (got Waited, err error) {
	return got, c.Do(ctx, http.MethodPost, at("jobs", id, "wait"), w, &got)
}

// StopJob ends a job and all that it started.
func (c *Client) StopJob(ctx context.Context, id string, s Stopping) (j Job, err error) {
	return j, c.Do(ctx, http.MethodPost, at("jobs", id, "stop"), s, &j)
}

// PauseJob keeps a queued job from starting.
func (c *Client) PauseJob(ctx context.Context, id, by string) (j Job, err error) {
	return j, c.Do(ctx, http.MethodPost, at("jobs", id, "pause"), By{by}, &j)
}

// ResumeJob lets a paused job start.
func (c *Client) ResumeJob(ctx context.Context, id, by string) (j Job, err error) {
	return j, c.Do(ctx, http.MethodPost, at("jobs", id, "resume"), By{by}, &j)
}

// Input is what a job is sent: as text where it is text, else in base64.
func Input(data []byte, eof bool) Sending {
	if utf8.Valid(data) {
		return Sending{Text: string(data), EOF: eof}
	}
	return Sending{Data: data, EOF: eof}
}

// SendToJob writes to a job's standard input.
func (c *Client) SendToJob(ctx context.Context, id string, s Sending) error {
	return c.Do(ctx, http.MethodPost, at("jobs", id, "send"), s, nil)
}

// CleanJobs deletes jobs that ended long ago.
func (c *Client) CleanJobs(ctx context.Context, b Cleaning) (gone Cleaned, err error) {
	return gone, c.Do(ctx, http.MethodPost, at("jobs", "cleanup"), b, &gone)
}

// Ask asks people something for a job.
func (c *Client) Ask(ctx context.Context, jobID string, a Asking) (q Question, err error) {
	return q, c.Do(ctx, http.MethodPost, at("jobs", jobID, "decision"), a, &q)
}

// Resolve answers a question.
func (c *Client) Resolve(ctx context.Context, jobID, decisionID string, r Resolving) (q Question, err error) {
	return q, c.Do(ctx, http.MethodPost, at("jobs", jobID, "decision", decisionID, "resolve"), r, &q)
}

// WithdrawQuestion takes a question back.
func (c *Client) WithdrawQuestion(ctx context.Context, jobID, decisionID string, n Note) (q Question, err error) {
	return q, c.Do(ctx, http.MethodPost, at("jobs", jobID, "decision", decisionID, "withdraw"), n, &q)
}

// QuestionQuery selects questions, newest first.
type QuestionQuery struct {
	JobID  string          // empty: of all jobs
	Status decision.Status // empty: all
	Prefix string          // of the id; empty: all
	After  string          // id of the last one seen
	Limit  int             // 1 to 500. Default: 50.
}

// Questions lists questions.
func (c *Client) Questions(ctx context.Context, q QuestionQuery) (l Questions, err error) {
	path := query(at("decisions"), "job_id", q.JobID, "status", string(q.Status), "prefix", q.Prefix, "after", q.After, "limit", number(q.Limit))
	return l, c.Do(ctx, http.MethodGet, path, nil, &l)
}

// GetQuestion reads a question.
func (c *Client) GetQuestion(ctx context.Context, id string) (q Question, err error) {
	return q, c.Do(ctx, http.MethodGet, at("decisions", id), nil, &q)
}

// WaitForQuestion waits until a question is settled, for at most so long. It looks
// behind a cursor, such as that of the asking; empty: at all that happened.
func (c *Client) WaitForQuestion(ctx context.Context, id string, after event.Cursor, wait time.Duration) (got Waited, err error) {
	path := query(at("decisions", id, "wait"), "wait", wait.String(), "after", string(after))
	return got, c.Do(ctx, http.MethodGet, path, nil, &got)
}
