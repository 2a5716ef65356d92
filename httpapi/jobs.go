package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Job is a job as every door writes it (spec 3.5). Values of secrets are never in it.
type Job struct {
	JobID            string          `json:"job_id"`
	Name             string          `json:"name,omitempty"`
	Status           job.Status      `json:"status"`
	Paused           bool            `json:"paused"`
	Command          []string        `json:"command,omitempty"`
	Shell            string          `json:"shell,omitempty" doc:"the command, where it is a line for the shell"`
	Cwd              string          `json:"cwd,omitempty"`
	Tags             []string        `json:"tags,omitempty"`
	TimeoutSeconds   int64           `json:"timeout_seconds,omitempty"`
	Principal        string          `json:"principal,omitempty"`
	CreatedAt        string          `json:"created_at"`
	StartedAt        string          `json:"started_at,omitempty"`
	EndedAt          string          `json:"ended_at,omitempty"`
	ExitCode         *int            `json:"exit_code,omitempty"`
	FailureReason    string          `json:"failure_reason,omitempty"`
	Progress         json.RawMessage `json:"progress,omitempty"`
	PendingDecisions int64           `json:"pending_decisions"`
	Trigger          *job.Trigger    `json:"trigger,omitempty"`
	// HomeID and Host say where a job is that is not looked after by the daemon that was
	// asked.
	HomeID string `json:"home_id,omitempty" doc:"of the home it belongs to, where that is not the asked daemon's"`
	Host   string `json:"host,omitempty" doc:"the machine of that home"`
	// WakeTargets are those it was started with, in the answer to starting it.
	WakeTargets []delivery.Object `json:"wake_targets,omitempty" doc:"those it was started with, in the answer to that: their secrets are told this once"`
}

// jobObject is a job as the caller sees it.
func (c caller) jobObject(j job.Job) Job {
	o := JobObject(j)
	if o.Progress != nil && !c.brought(j.Principal) {
		o.Progress = (&display.Mask{}).JSON(o.Progress)
	}
	return o
}

// JobObject is a job as every door writes it, with all that it printed.
func JobObject(j job.Job) Job {
	o := Job{
		JobID: j.ID, Name: j.Spec.Name, Status: j.Status, Paused: j.Paused, Command: j.Spec.Command, Shell: j.Spec.Shell, Cwd: j.Spec.Cwd,
		Tags: j.Spec.Tags, TimeoutSeconds: int64(j.Spec.Timeout / time.Second), Principal: j.Principal,
		CreatedAt: txn.Stamp(j.CreatedAt), StartedAt: txn.Stamp(j.StartedAt), EndedAt: txn.Stamp(j.EndedAt),
		FailureReason: j.Failure, PendingDecisions: j.Pending,
	}
	if json.Valid(j.Progress) {
		o.Progress = j.Progress
	}
	if j.Status.Terminal() && j.ExitCode >= 0 && !j.StartedAt.IsZero() {
		o.ExitCode = &j.ExitCode
	}
	if j.Spec.Trigger.JobID != "" {
		o.Trigger = &j.Spec.Trigger
	}
	return o
}

// Jobs is a list of jobs.
type Jobs struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

// Starting is what a job is made of.
type Starting struct {
	Command        json.RawMessage   `json:"command" doc:"a list of program and arguments, or one line for the shell"`
	Cwd            string            `json:"cwd,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	SecretEnv      []string          `json:"secret_env,omitempty" doc:"names in env whose values are masked and never shown"`
	Name           string            `json:"name,omitempty"`
	Tags           []string          `json:"tags,omitempty"`
	TimeoutSeconds int64             `json:"timeout_seconds,omitempty" minimum:"1" maximum:"315360000"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Trigger        *job.Trigger      `json:"trigger,omitempty"`
	WakeTargets    []delivery.Adding `json:"wake_targets,omitempty" maxItems:"20" doc:"who is told of its events"`
}

func (b Starting) check() error {
	_, err := b.spec()
	return err
}

func (b Starting) spec() (job.Spec, error) {
	s := job.Spec{Cwd: b.Cwd, Env: b.Env, SecretEnv: b.SecretEnv, Name: b.Name, Tags: b.Tags, Timeout: time.Duration(b.TimeoutSeconds) * time.Second}
	if b.Trigger != nil {
		s.Trigger = *b.Trigger
	}
	if json.Unmarshal(b.Command, &s.Shell) == nil && s.Shell != "" {
		return s, nil
	}
	if err := decode(b.Command, &s.Command); err != nil || len(s.Command) == 0 {
		return s, ErrMalformed.Say("body.command: expected a list of texts, or one text for the shell.")
	}
	return s, nil
}

type startIn struct{ Body Starting }

type listJobsIn struct {
	Page
	Status string `query:"status" enum:"queued,launching,running,completed,failed,timeout,cancelled,orphaned"`
	Name   string `query:"name" maxLength:"200"`
	Tag    string `query:"tag" maxLength:"200"`
	Prefix string `query:"prefix" maxLength:"200" doc:"those whose id begins so"`
	View   string `query:"view" enum:"newest,attention" default:"newest" doc:"attention: those that need a person first, in one page"`
}

type jobEventsIn struct {
	ID    string `path:"id" maxLength:"200"`
	After string `query:"after" maxLength:"100" doc:"a cursor"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// Events is a page of a stream, oldest first.
type Events struct {
	Events []event.Object `json:"events"`
	Cursor event.Cursor   `json:"cursor" doc:"where to go on from"`
}

type tailIn struct {
	ID       string `path:"id" maxLength:"200"`
	Stream   string `query:"stream" enum:"stdout,stderr" default:"stdout"`
	Offset   int64  `query:"offset" minimum:"0"`
	MaxBytes int    `query:"max_bytes" minimum:"1" maximum:"1048576" default:"65536"`
	Follow   bool   `query:"follow" doc:"wait for more where there is none yet"`
}

// Tail is a piece of a job's output.
type Tail struct {
	Data []byte `json:"data" doc:"the bytes, in base64"`
	Next int64  `json:"next" doc:"offset to go on from"`
	End  bool   `json:"end" doc:"the job has ended and there is no more"`
	Size int64  `json:"size" doc:"bytes that this stream has now"`
}

// Waiting is what to wait for. types or decision_id is required.
type Waiting struct {
	Types          []string     `json:"types,omitempty" doc:"lifecycle types, and output:NAME"`
	DecisionID     string       `json:"decision_id,omitempty"`
	After          event.Cursor `json:"after,omitempty"`
	TimeoutSeconds int64        `json:"timeout_seconds,omitempty" minimum:"1" maximum:"86400"`
	ReturnProgress bool         `json:"return_progress,omitempty"`
}

// Waited is how a wait ended.
type Waited struct {
	Result job.Result    `json:"result"`
	Event  *event.Object `json:"event,omitempty"`
	Cursor event.Cursor  `json:"cursor"`
}

type waitIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Waiting
}

// Stopping is how a job is stopped.
type Stopping struct {
	By               string `json:"by,omitempty"`
	KillAfterSeconds int64  `json:"kill_after_seconds,omitempty" minimum:"1" maximum:"3600"`
}

type stopIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body *Stopping
}

// By is who does something.
type By struct {
	By string `json:"by,omitempty"`
}

type pauseIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body *By
}

// Sending is what a job is given on its standard input: text, or bytes that need not
// be text.
type Sending struct {
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty" doc:"instead of text: any bytes, in base64"`
	EOF  bool   `json:"eof,omitempty" doc:"close it afterwards"`
}

func (b Sending) bytes() ([]byte, error) {
	switch {
	case b.Data == nil:
		return []byte(b.Text), nil
	case b.Text == "":
		return b.Data, nil
	}
	return nil, ErrMalformed.Say("body: there are both text and data.").Hint("Send one of them.")
}

type sendIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Sending
}

// Cleaning says which jobs go.
type Cleaning struct {
	OlderThanSeconds int64 `json:"older_than_seconds" minimum:"0" maximum:"315360000"`
	DryRun           bool  `json:"dry_run,omitempty"`
}

type cleanIn struct{ Body Cleaning }

// Cleaned is which jobs went, or would.
type Cleaned struct {
	JobIDs []string `json:"job_ids"`
	DryRun bool     `json:"dry_run"`
}

var (
	errNoJobs    = fault.Sentinel(fault.Unavailable, "no_jobs", "Jobs are not looked after here.")
	agentsAndOps = []token.Scope{token.Agent, token.Operator}
)

func (s *Server) registerJobs() {
	get, post := http.MethodGet, http.MethodPost
	add(s, route{
		method: post, path: "/v1/jobs", id: "startJob", status: http.StatusCreated, scopes: agents, summary: "Start a command that goes on without its client",
		shape: `{"command":["make","train"]}`,
	}, s.startJob)
	add(s, route{method: get, path: "/v1/jobs", id: "listJobs", summary: "Jobs; an agent sees those it started"}, s.listJobs)
	add(s, route{method: get, path: "/v1/jobs/{id}", id: "getJob", summary: "One job", jobs: true},
		func(ctx context.Context, c caller, in *idIn) (*body[Job], error) {
			j, err := s.readJob(ctx, c, in.ID)
			return s.jobAnswer(ctx, c, j, err)
		})
	add(s, route{method: get, path: "/v1/jobs/{id}/events", id: "jobEvents", summary: "A page of a job's events, oldest first", jobs: true}, s.jobEvents)
	add(s, route{method: get, path: "/v1/jobs/{id}/tail", id: "tailJob", summary: "A piece of a job's output", jobs: true, files: true}, s.tailJob)
	add(s, route{
		method: post, path: "/v1/jobs/{id}/wait", id: "waitForJob", summary: "Wait for an event of a job", jobs: true,
		shape: `{"types":["completed"]} or {"decision_id":"dec_…"}`,
	}, s.waitForJob)
	add(s, route{method: post, path: "/v1/jobs/{id}/stop", id: "stopJob", summary: "End a job and all that it started", scopes: agentsAndOps, shape: `{"by":"ana"}, or nothing`},
		s.stopJob)
	for _, p := range []struct {
		word, summary string
		do            func(*job.Supervisor, context.Context, string, string) (job.Job, error)
	}{
		{"pause", "Keep a queued job from starting", (*job.Supervisor).Pause},
		{"resume", "Let a paused job start", (*job.Supervisor).Resume},
	} {
		add(s, route{method: post, path: "/v1/jobs/{id}/" + p.word, id: p.word + "Job", summary: p.summary, scopes: agentsAndOps, shape: `{"by":"ana"}, or nothing`},
			func(ctx context.Context, c caller, in *pauseIn) (*body[Job], error) {
				if _, err := s.readJob(ctx, c, in.ID); err != nil {
					return nil, err
				}
				by := By{}
				if in.Body != nil {
					by = *in.Body
				}
				j, err := p.do(s.c.Jobs, ctx, in.ID, c.byOr(by.By))
				return s.jobAnswer(ctx, c, j, err)
			})
	}
	add(s, route{method: post, path: "/v1/jobs/{id}/send", id: "sendToJob", summary: "Write to a job's standard input", scopes: agentsAndOps, files: true, shape: `{"text":"yes\n","eof":true}`},
		func(ctx context.Context, c caller, in *sendIn) (*body[state], error) {
			if _, err := s.readJob(ctx, c, in.ID); err != nil {
				return nil, err
			}
			data, err := in.Body.bytes()
			if err != nil {
				return nil, err
			}
			err = s.c.Jobs.Send(ctx, in.ID, data, in.Body.EOF)
			if errors.Is(err, job.ErrElsewhere) {
				return passOn[state](ctx, s, err, http.MethodPost, at("jobs", in.ID, "send"), in.Body)
			}
			return answer(state{OK: true}, err)
		})
	add(s, route{method: post, path: "/v1/jobs/cleanup", id: "cleanJobs", summary: "Delete jobs that ended long ago", scopes: operators, shape: `{"older_than_seconds":604800,"dry_run":true}`},
		s.cleanJobs)
}

// readJob is a job that the caller sees.
func (s *Server) readJob(ctx context.Context, c caller, id string) (job.Job, error) {
	if s.c.Jobs == nil {
		return job.Job{}, errNoJobs
	}
	j, err := s.c.Jobs.Get(ctx, id)
	if err == nil && (j.Space != s.c.Space || !c.seesJob(j)) {
		return job.Job{}, hidden("job", id)
	}
	return j, err
}

// maySeeJob is readJob for whoever needs no more than to know that the caller sees it.
func (s *Server) maySeeJob(ctx context.Context, c caller, id string) error {
	if s.c.Jobs == nil {
		return errNoJobs
	}
	return txn.View(ctx, s.c.Store, func(tx job.Tx) error {
		j, err := tx.Job(id)
		if err == nil && (j.Space != s.c.Space || !c.seesJob(j)) {
			err = hidden("job", id)
		}
		return err
	})
}

func (c caller) seesJob(j job.Job) bool {
	if c.JobID != "" {
		return c.JobID == j.ID
	}
	return c.reads() || j.Principal != "" && j.Principal == c.Principal
}

func (s *Server) startJob(ctx context.Context, c caller, in *startIn) (*body[Job], error) {
	if s.c.Jobs == nil {
		return nil, errNoJobs
	}
	spec, err := in.Body.spec()
	if err != nil {
		return nil, err
	}
	j, targets, err := s.c.Jobs.StartWaking(ctx, job.Starting{
		Spec: spec, IdempotencyKey: in.Body.IdempotencyKey, Principal: c.Principal, OwnTrigger: !c.reads(), WakeTargets: in.Body.WakeTargets,
	})
	o := c.jobObject(j)
	for _, t := range targets {
		o.WakeTargets = append(o.WakeTargets, withSecret(t))
	}
	return answer(o, err)
}

func (s *Server) listJobs(ctx context.Context, c caller, in *listJobsIn) (*body[Jobs], error) {
	if s.c.Jobs == nil {
		return nil, errNoJobs
	}
	q := job.Query{Status: job.Status(in.Status), Name: in.Name, Tag: in.Tag, Prefix: in.Prefix}
	if !c.reads() {
		q.Principal = c.Principal
	}
	if in.View == "attention" {
		return s.jobsByAttention(ctx, c, q, in.Page)
	}
	if err := s.behindJob(ctx, c, in.After); err != nil {
		return nil, err
	}
	js, next, err := listing[job.Job]{
		read: func(after string, limit int) ([]job.Job, error) {
			q.After, q.Limit = after, limit
			return s.c.Jobs.List(ctx, q)
		},
		id:   func(j job.Job) string { return j.ID },
		sees: c.seesJob,
	}.page(in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	os, err := s.jobObjects(ctx, c, js...)
	return answer(Jobs{os, next}, err)
}

func (s *Server) jobsByAttention(ctx context.Context, c caller, q job.Query, p Page) (*body[Jobs], error) {
	if p.After != "" {
		return nil, ErrMalformed.Say("query.after: view=attention is one page.").Hint("Leave after out, or list the newest.")
	}
	q.Limit = p.Limit
	js, err := s.c.Jobs.View(ctx, q)
	if err != nil {
		return nil, err
	}
	os, err := s.jobObjects(ctx, c, js...)
	return answer(Jobs{Jobs: os}, err)
}

// behindJob takes also a job that was cleaned up since: a list goes on behind it.
func (s *Server) behindJob(ctx context.Context, c caller, after string) error {
	return c.behind(after, "job", id.Job, func(id string) error {
		return txn.View(ctx, s.c.Store, func(tx job.Tx) error {
			j, err := tx.Job(id)
			if errors.Is(err, job.ErrNotFound) {
				_, cleaned, terr := tx.Tombstone(job.RefOf(id).Stream())
				if cleaned || terr != nil {
					return terr
				}
			}
			if err == nil && j.Space != s.c.Space {
				err = hidden("job", id)
			}
			return err
		})
	})
}

func (s *Server) jobEvents(ctx context.Context, c caller, in *jobEventsIn) (*body[Events], error) {
	j, err := s.readJob(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	page, err := event.Read(ctx, s.c.Store, j.Stream(), event.Cursor(in.After), in.Limit)
	list, view := Events{Events: make([]event.Object, len(page.Events)), Cursor: page.Cursor}, s.eventsFor(c)
	for i, e := range page.Events {
		if err == nil {
			list.Events[i], err = view.object(ctx, e, event.CursorOf(e))
		}
	}
	return answer(list, err)
}

func (s *Server) tailJob(ctx context.Context, c caller, in *tailIn) (*body[Tail], error) {
	if _, err := s.readJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	ctx, stop := s.waiting(ctx)
	defer stop()
	if in.Follow {
		defer s.metrics.waits()()
	}
	q := job.Tailing{Stream: job.Stream(in.Stream), Offset: in.Offset, MaxBytes: in.MaxBytes, Follow: in.Follow}
	t, err := s.c.Jobs.Tail(ctx, in.ID, q)
	if errors.Is(err, job.ErrElsewhere) {
		out, err := s.passOnTail(ctx, err, in.ID, q)
		if err = because(ctx, err); err == nil {
			err = s.stillGood(ctx)
		}
		return out, err
	}
	if err = because(ctx, err); err == nil {
		err = s.stillGood(ctx)
	}
	if t.Data == nil {
		t.Data = []byte{}
	}
	return answer(Tail{t.Data, t.Next, t.End, t.Size}, err)
}

func (s *Server) waitForJob(ctx context.Context, c caller, in *waitIn) (*body[Waited], error) {
	if err := s.maySeeJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	return s.waitFor(ctx, c, in.Body.of(in.ID))
}

func (b *Waiting) of(jobID string) *job.Waiting {
	return &job.Waiting{
		JobID: jobID, Types: b.Types, DecisionID: b.DecisionID, After: b.After, Timeout: time.Duration(b.TimeoutSeconds) * time.Second, Progress: b.ReturnProgress,
	}
}

func (s *Server) waitFor(ctx context.Context, c caller, w *job.Waiting) (*body[Waited], error) {
	waits, stop := s.waiting(ctx)
	defer stop()
	defer s.metrics.waits()()
	got, err := job.WaitApart(waits, s.c.Store, s.c.Space, *w)
	if err = because(waits, err); err == nil && got.Result != job.GotShutdown {
		err = s.stillGood(waits)
	}
	return s.waited(ctx, c, got, err)
}

// waited is the answer to a wait.
//
//go:noinline as it would lie on the stacks of all who wait
func (s *Server) waited(ctx context.Context, c caller, got *job.Waited, err error) (*body[Waited], error) {
	out := Waited{Result: got.Result, Cursor: got.Cursor}
	if err == nil && (got.Result == job.GotEvent || got.Result == job.GotProgress) {
		var o event.Object
		o, err = s.eventsFor(c).object(ctx, got.Event, got.Cursor)
		out.Event = &o
	}
	return answer(out, err)
}

func (s *Server) stopJob(ctx context.Context, c caller, in *stopIn) (*body[Job], error) {
	if _, err := s.readJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	b := Stopping{}
	if in.Body != nil {
		b = *in.Body
	}
	ctx, stop := s.waiting(ctx)
	defer stop()
	j, err := s.c.Jobs.Stop(ctx, in.ID, c.byOr(b.By), time.Duration(b.KillAfterSeconds)*time.Second)
	return s.jobAnswer(ctx, c, j, because(ctx, err))
}

func (s *Server) cleanJobs(ctx context.Context, c caller, in *cleanIn) (*body[Cleaned], error) {
	if s.c.Jobs == nil {
		return nil, errNoJobs
	}
	gone, err := s.c.Jobs.Clean(ctx, job.Cleaning{OlderThan: time.Duration(in.Body.OlderThanSeconds) * time.Second, By: c.Principal, DryRun: in.Body.DryRun})
	if gone == nil {
		gone = []string{}
	}
	return answer(Cleaned{gone, in.Body.DryRun}, err)
}

// jobIsOn refuses the token of a job that has ended: [token.ErrUnauthenticated].
func (s *Server) jobIsOn(ctx context.Context, c caller) error {
	var j job.Job
	err := txn.View(ctx, s.c.Store, func(tx job.Tx) (err error) {
		j, err = tx.Job(c.JobID)
		return err
	})
	if errors.Is(err, job.ErrNotFound) || err == nil && j.Status.Terminal() {
		return token.ErrUnauthenticated
	}
	return err
}
