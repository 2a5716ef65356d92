package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/placet-dev/placet/event"
)

// StartJob starts a command that goes on without its client.
func (c *Client) StartJob(ctx context.Context, b Starting) (j Job, err error) {
	return j, c.Do(ctx, http.MethodPost, at("jobs"), b, &j)
}

// Jobs lists jobs: newest first, or by attention those that need a person first.
func (c *Client) Jobs(ctx context.Context, byAttention bool, status, after string, limit int) (l Jobs, err error) {
	view := ""
	if byAttention {
		view = "attention"
	}
	return l, c.Do(ctx, http.MethodGet, query(at("jobs"), "view", view, "status", status, "after", after, "limit", number(limit)), nil, &l)
}

// GetJob reads a job.
func (c *Client) GetJob(ctx context.Context, id string) (j Job, err error) {
	return j, c.Do(ctx, http.MethodGet, at("jobs", id), nil, &j)
}

// JobEvents reads a page of a job's events.
func (c *Client) JobEvents(ctx context.Context, id string, after event.Cursor, limit int) (l Events, err error) {
	return l, c.Do(ctx, http.MethodGet, query(at("jobs", id, "events"), "after", string(after), "limit", number(limit)), nil, &l)
}

// TailJob reads a piece of a job's output from an offset.
func (c *Client) TailJob(ctx context.Context, id, stream string, offset int64, follow bool) (t Tail, err error) {
	f := ""
	if follow {
		f = "true"
	}
	return t, c.Do(ctx, http.MethodGet, query(at("jobs", id, "tail"), "stream", stream, "offset", strconv.FormatInt(offset, 10), "follow", f), nil, &t)
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

// Questions lists questions, newest first.
func (c *Client) Questions(ctx context.Context, jobID, status, after string, limit int) (l Questions, err error) {
	return l, c.Do(ctx, http.MethodGet, query(at("decisions"), "job_id", jobID, "status", status, "after", after, "limit", number(limit)), nil, &l)
}

// GetQuestion reads a question.
func (c *Client) GetQuestion(ctx context.Context, id string) (q Question, err error) {
	return q, c.Do(ctx, http.MethodGet, at("decisions", id), nil, &q)
}

// WaitForQuestion waits until a question is settled.
func (c *Client) WaitForQuestion(ctx context.Context, id string, wait time.Duration) (got Waited, err error) {
	return got, c.Do(ctx, http.MethodGet, query(at("decisions", id, "wait"), "wait", wait.String()), nil, &got)
}
