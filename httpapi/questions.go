package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// Question is a question as every door writes it (spec 3.5).
type Question struct {
	DecisionID  string          `json:"decision_id"`
	JobID       string          `json:"job_id"`
	Prompt      string          `json:"prompt"`
	Options     []string        `json:"options"`
	Form        json.RawMessage `json:"form,omitempty"`
	Status      decision.Status `json:"status"`
	RequestedBy string          `json:"requested_by,omitempty" doc:"the principal that asked"`
	Choice      decision.Choice `json:"choice,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	By          string          `json:"by,omitempty" doc:"who answered it or took it back"`
	Principal   string          `json:"principal,omitempty"`
	Note        string          `json:"note,omitempty"`
	CreatedAt   string          `json:"created_at"`
	ExpiresAt   string          `json:"expires_at,omitempty"`
	ResolvedAt  string          `json:"resolved_at,omitempty" doc:"when it was answered or taken back"`
	Digest      string          `json:"digest,omitempty" doc:"of prompt, options and form: an answer that names it is bound to them"`
	Cursor      event.Cursor    `json:"cursor,omitempty" doc:"where to wait from; in the answer to asking"`
}

// QuestionObject is a question as every door writes it, with all that was filled in.
func QuestionObject(d decision.Decision) Question {
	q := Question{
		DecisionID: d.ID, JobID: d.Owner.ID, Digest: d.Digest, Prompt: d.Prompt, Options: d.Options, Status: d.Status, RequestedBy: d.RequestedBy, Choice: d.Choice,
		By: d.DecidedBy, Principal: d.DecidedPrincipal, Note: d.Note,
		CreatedAt: txn.Stamp(d.CreatedAt), ExpiresAt: txn.Stamp(d.ExpiresAt), ResolvedAt: txn.Stamp(d.DecidedAt),
	}
	if d.Status == decision.Withdrawn {
		q.By, q.Principal, q.ResolvedAt = d.WithdrawnBy, d.WithdrawnPrincipal, txn.Stamp(d.SettledAt)
	}
	if json.Valid(d.Form) {
		q.Form = d.Form
	}
	if json.Valid(d.Input) {
		q.Input = d.Input
	}
	return q
}

// questionFor is a question as the caller sees it: the answer to a form is whole for who
// asked for it.
func (s *Server) questionFor(tx job.Tx, c caller, d decision.Decision) (Question, error) {
	q := QuestionObject(d)
	if d.Form == nil {
		return q, nil
	}
	own, err := s.askedFor(tx, c, d)
	if err != nil || own {
		return q, err
	}
	m := review.Mask(d)
	q.Form, q.Input, q.Note = hide(m.Schema, q.Form), hide(m.JSON, q.Input), m.Text(q.Note)
	return q, nil
}

// answerQuestion is the answer with a question, or why there is none.
func (s *Server) answerQuestion(ctx context.Context, c caller, d decision.Decision, err error) (*body[Question], error) {
	if err != nil {
		return nil, err
	}
	var q Question
	err = txn.View(ctx, s.c.Store, func(tx job.Tx) (err error) {
		q, err = s.questionFor(tx, c, d)
		return err
	})
	return answer(q, err)
}

// Questions is a page of questions, newest first.
type Questions struct {
	Decisions []Question `json:"decisions"`
	Next      string     `json:"next,omitempty"`
}

// Asking is what a job asks of people.
type Asking struct {
	Prompt         string          `json:"prompt"`
	Options        []string        `json:"options,omitempty" doc:"approve and deny where they are left out"`
	TimeoutSeconds int64           `json:"timeout_seconds,omitempty" minimum:"1" maximum:"315360000"`
	Form           json.RawMessage `json:"form,omitempty" doc:"a flat JSON Schema of what else is asked for"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

type askIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Asking
}

// Resolving is an answer to a question.
type Resolving struct {
	Choice string          `json:"choice" doc:"exactly one of the options, character for character"`
	Input  json.RawMessage `json:"input,omitempty" doc:"what the form asks for"`
	By     string          `json:"by,omitempty"`
	Note   string          `json:"note,omitempty"`
	Digest string          `json:"digest,omitempty" doc:"of the question, as it was shown: an answer to another one is refused"`
}

type resolveIn struct {
	ID    string `path:"id" maxLength:"200"`
	Token string `path:"token" maxLength:"200" doc:"the question's id"`
	Body  Resolving
}

type withdrawQuestionIn struct {
	ID    string `path:"id" maxLength:"200"`
	Token string `path:"token" maxLength:"200"`
	Body  *Note
}

type listQuestionsIn struct {
	Page
	JobID  string `query:"job_id" maxLength:"200"`
	Prefix string `query:"prefix" maxLength:"200" doc:"those whose id begins so"`
	Status string `query:"status" enum:"pending,resolved,withdrawn,expired,all" default:"all"`
}

type waitQuestionIn struct {
	ID    string `path:"id" maxLength:"200"`
	Wait  string `query:"wait" maxLength:"20" doc:"at most 1h: 30s"`
	After string `query:"after" maxLength:"100" doc:"a cursor"`
}

func (s *Server) registerQuestions() {
	post := http.MethodPost
	add(s, route{
		method: post, path: "/v1/jobs/{id}/decision", id: "ask", status: http.StatusCreated, scopes: agents, jobs: true,
		summary: "Ask people something for a job", shape: `{"prompt":"Continue past epoch 40?","options":["yes","no"]}`,
	}, s.ask)
	add(s, route{
		method: post, path: "/v1/jobs/{id}/decision/{token}/resolve", id: "resolve", scopes: reviewers,
		summary: "Answer a question; the same answer again is fine", shape: `{"choice":"yes"}`,
	}, s.resolve)
	add(s, route{
		method: post, path: "/v1/jobs/{id}/decision/{token}/withdraw", id: "withdrawQuestion", scopes: agentsAndOps, jobs: true,
		summary: "Take a question back", shape: noteShape,
	}, s.withdrawQuestion)
	add(s, route{method: http.MethodGet, path: "/v1/decisions", id: "listQuestions", summary: "Questions, newest first", jobs: true}, s.listQuestions)
	add(s, route{method: http.MethodGet, path: "/v1/decisions/{id}", id: "getQuestion", summary: "One question", jobs: true},
		func(ctx context.Context, c caller, in *idIn) (*body[Question], error) {
			d, err := s.readQuestion(ctx, c, in.ID)
			return s.answerQuestion(ctx, c, d, err)
		})
	add(s, route{method: http.MethodGet, path: "/v1/decisions/{id}/wait", id: "waitForQuestion", summary: "Wait until a question is settled", jobs: true}, s.waitForQuestion)
}

func (s *Server) ask(ctx context.Context, c caller, in *askIn) (*body[Question], error) {
	if _, err := s.readJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	b := in.Body
	got, err := s.operator(c).Ask(ctx, s.c.Space, in.ID, decision.Asking{
		Prompt: b.Prompt, Options: b.Options, Timeout: time.Duration(b.TimeoutSeconds) * time.Second, Form: b.Form, IdempotencyKey: b.IdempotencyKey, By: c.Principal,
	})
	q, err := s.answerQuestion(ctx, c, got.Decision, err)
	if err == nil {
		q.Body.Cursor = got.Cursor
	}
	return q, err
}

func (s *Server) resolve(ctx context.Context, c caller, in *resolveIn) (*body[Question], error) {
	if _, err := s.readJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	b := in.Body
	d, err := s.operator(c).Resolve(ctx, in.ID, in.Token, decision.Answering{Choice: b.Choice, Input: b.Input, By: c.byOr(b.By), Note: b.Note, Shown: b.Digest})
	return s.answerQuestion(ctx, c, d, err)
}

func (s *Server) withdrawQuestion(ctx context.Context, c caller, in *withdrawQuestionIn) (*body[Question], error) {
	if _, err := s.readJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	n := in.Body.orNone()
	op := s.operator(c)
	op.MayOwn = c.manages()
	d, err := op.WithdrawQuestion(ctx, in.ID, in.Token, c.byOr(n.By), n.Note)
	return s.answerQuestion(ctx, c, d, err)
}

// seesQuestion lets an agent see those of its jobs and those it asked.
func (s *Server) seesQuestion(tx job.Tx, c caller, d decision.Decision) bool {
	if c.JobID != "" {
		return d.Owner.ID == c.JobID
	}
	if c.reads() || d.RequestedBy != "" && d.RequestedBy == c.Principal {
		return true
	}
	j, err := tx.Job(d.Owner.ID)
	return err == nil && c.seesJob(j)
}

func (s *Server) readQuestion(ctx context.Context, c caller, id string) (d decision.Decision, err error) {
	err = txn.View(ctx, s.c.Store, func(tx job.Tx) error {
		d, err = s.question(tx, c, id)
		return err
	})
	return d, err
}

// question is one that the caller sees.
func (s *Server) question(tx job.Tx, c caller, id string) (decision.Decision, error) {
	d, err := tx.Decision(id)
	if errors.Is(err, decision.ErrNotFound) || err == nil && (d.Space != s.c.Space || d.Type != decision.Question || !s.seesQuestion(tx, c, d)) {
		err = hidden("question", id)
	}
	return d, err
}

func (s *Server) listQuestions(ctx context.Context, c caller, in *listQuestionsIn) (*body[Questions], error) {
	q := decision.Query{Space: s.c.Space, Type: decision.Question, JobID: in.JobID, Status: decision.Status(in.Status), Prefix: in.Prefix}
	if in.Status == "all" {
		q.Status = ""
	}
	list := Questions{}
	err := txn.View(ctx, s.c.Store, func(tx job.Tx) error {
		ds, next, err := s.decisions(tx, q, in.Page, c, func(d decision.Decision) bool { return s.seesQuestion(tx, c, d) })
		list = Questions{Decisions: make([]Question, len(ds)), Next: next}
		for i, d := range ds {
			if err == nil {
				list.Decisions[i], err = s.questionFor(tx, c, d)
			}
		}
		return err
	})
	return answer(list, err)
}

func (s *Server) waitForQuestion(ctx context.Context, c caller, in *waitQuestionIn) (*body[Waited], error) {
	until, err := deadline(in.Wait)
	if err != nil {
		return nil, err
	}
	w := &job.Waiting{DecisionID: in.ID, After: event.Cursor(in.After)}
	if in.Wait != "" {
		w.Timeout = max(time.Until(until), time.Millisecond)
	}
	if w.JobID, err = s.askingJob(ctx, c, in.ID); err != nil {
		return nil, err
	}
	return s.waitFor(ctx, c, w)
}

// askingJob is the job of a question that the caller sees.
func (s *Server) askingJob(ctx context.Context, c caller, id string) (jobID string, err error) {
	err = txn.View(ctx, s.c.Store, func(tx job.Tx) error {
		d, err := s.question(tx, c, id)
		jobID = d.Owner.ID
		return err
	})
	return jobID, err
}
