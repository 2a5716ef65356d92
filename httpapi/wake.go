package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// WakeTargets is a page of targets, newest first.
type WakeTargets struct {
	WakeTargets []delivery.Object `json:"wake_targets"`
	Next        string            `json:"next,omitempty"`
}

// Waking is what a target is made of, and what it hears of: a job, a run, or every one.
type Waking struct {
	delivery.Adding
	JobID string `json:"job_id,omitempty" doc:"the one job it hears of"`
	RunID string `json:"run_id,omitempty" doc:"the one run it hears of; without either it hears of all"`
}

// Rotating is a webhook's new secret.
type Rotating struct {
	Secret string `json:"secret,omitempty" doc:"whsec_ and base64; one is made where it is left out"`
	EndOld bool   `json:"end_old,omitempty" doc:"do it although the secret before the present one still signs: it ends at once"`
}

type wakeIn struct{ Body Waking }

type wakeJobIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body delivery.Adding
}

type rotateIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body *Rotating
}

type listTargetsIn struct {
	Page
	JobID  string `query:"job_id" maxLength:"200"`
	RunID  string `query:"run_id" maxLength:"200"`
	Prefix string `query:"prefix" maxLength:"200" doc:"those whose id begins so"`
}

const wakeShape = `{"type":"webhook","url":"https://example.com/hook","events":["completed"]}`

func (s *Server) registerWakes() {
	get, post := http.MethodGet, http.MethodPost
	add(s, route{method: get, path: "/v1/wake-targets", id: "listWakeTargets", summary: "Who is told of events; an agent sees those it added", jobs: true}, s.listTargets)
	add(s, route{
		method: post, path: "/v1/wake-targets", id: "addWakeTarget", status: http.StatusCreated, scopes: agentsAndOps, jobs: true,
		summary: "Have somebody told of events; a webhook's secret is told this once", shape: wakeShape,
	}, func(ctx context.Context, c caller, in *wakeIn) (*body[delivery.Object], error) {
		return s.addTarget(ctx, c, in.Body)
	})
	add(s, route{
		method: post, path: "/v1/jobs/{id}/wake-targets", id: "addJobWakeTarget", status: http.StatusCreated, scopes: agentsAndOps, jobs: true,
		summary: "Have somebody told of a job's events; a webhook's secret is told this once", shape: wakeShape,
	}, func(ctx context.Context, c caller, in *wakeJobIn) (*body[delivery.Object], error) {
		return s.addTarget(ctx, c, Waking{Adding: in.Body, JobID: in.ID})
	})
	add(s, route{method: get, path: "/v1/wake-targets/{id}", id: "getWakeTarget", summary: "One target", jobs: true},
		func(ctx context.Context, c caller, in *idIn) (*body[delivery.Object], error) {
			t, err := s.target(ctx, c, in.ID)
			return answer(c.targetObject(t), err)
		})
	add(s, route{method: http.MethodDelete, path: "/v1/wake-targets/{id}", id: "removeWakeTarget", scopes: agentsAndOps, jobs: true, summary: "Tell somebody no more; what was not sent is dropped"},
		s.changeTarget(delivery.Desk.Remove))
	add(s, route{method: post, path: "/v1/wake-targets/{id}/enable", id: "enableWakeTarget", scopes: agentsAndOps, jobs: true, summary: "Put a target in use again that was disabled"},
		s.changeTarget(delivery.Desk.Enable))
	add(s, route{
		method: post, path: "/v1/wake-targets/{id}/rotate", id: "rotateWakeTarget", scopes: agentsAndOps, jobs: true,
		summary: "Give a webhook a new secret; both sign for a day", shape: `{"secret":"whsec_…"}, or nothing`,
	}, s.rotateTarget)
}

// desk is what this server does with targets and deliveries.
func (s *Server) desk() delivery.Desk {
	return delivery.Desk{Store: s.c.Store, Space: s.c.Space, Channels: s.c.Channels, Observer: s.c.Observer}
}

func (c caller) seesTarget(t delivery.Target) bool {
	if c.JobID != "" {
		return t.Stream == job.RefOf(c.JobID).Stream() && c.added(t)
	}
	return c.reads() || c.added(t)
}

// added reports whether the target is of the caller's own principal.
func (c caller) added(t delivery.Target) bool { return t.Principal != "" && t.Principal == c.Principal }

// owns reports whether the caller may change a target, and may know where it leads and
// what it answers: that, and an address, may hold a secret.
func (c caller) owns(t delivery.Target) bool { return c.manages() || c.added(t) }

// targetObject is a target as the caller sees it.
func (c caller) targetObject(t delivery.Target) delivery.Object {
	o := t.Object()
	if c.owns(t) {
		return o
	}
	if o.Disabled != "" {
		o.Disabled = "Who added it sees why."
	}
	if u, err := url.Parse(o.URL); err == nil && o.URL != "" {
		o.URL = u.Scheme + "://" + u.Host + "/…"
	}
	if len(o.Command) > 1 {
		o.Command = []string{o.Command[0], "…"}
	}
	return o
}

// target is one that the caller sees.
func (s *Server) target(ctx context.Context, c caller, id string) (delivery.Target, error) {
	t, err := s.desk().Target(ctx, id)
	if err == nil && !c.seesTarget(t) {
		err = hidden("target", id)
	}
	return t, err
}

// ownTarget is one that the caller may change: of its own, or as who manages.
func (s *Server) ownTarget(ctx context.Context, c caller, id string) (delivery.Target, error) {
	t, err := s.target(ctx, c, id)
	if err == nil {
		err = c.mustOwn(t)
	}
	return t, err
}

func (c caller) mustOwn(t delivery.Target) error {
	if c.owns(t) {
		return nil
	}
	return ErrScope.Say("Target %s is another's.", t.ID).Hint("An operator may do that.")
}

func (s *Server) addTarget(ctx context.Context, c caller, b Waking) (*body[delivery.Object], error) {
	stream, stays, err := s.rootFor(ctx, c, b.JobID, b.RunID)
	if err != nil {
		return nil, err
	}
	t, err := s.desk().Add(ctx, stream, c.Principal, b.Adding, stays)
	return answer(withSecret(t), err)
}

// withSecret is a target in the answer that makes it, or gives it a new secret. No other
// answer tells one.
func withSecret(t delivery.Target) delivery.Object {
	o := t.Object()
	if t.Secret != nil {
		o.Secret = delivery.FormatSecret(t.Secret)
	}
	return o
}

// rootFor is the stream of what a target is to hear of, as far as the caller sees it and
// may have it told, and what is asked once more where the target is written.
func (s *Server) rootFor(ctx context.Context, c caller, jobID, runID string) (stream string, stays func(txn.Tx) error, err error) {
	switch {
	case jobID != "" && runID != "":
		return "", nil, ErrMalformed.Say("body: there are both job_id and run_id.").Hint("Name one of them, or neither to hear of all.")
	case jobID != "":
		if err := s.maySeeJob(ctx, c, jobID); err != nil {
			return "", nil, err
		}
		return job.RefOf(jobID).Stream(), func(tx txn.Tx) error { return job.Stays(tx.(job.Tx), s.c.Space, jobID) }, nil
	case c.JobID != "":
		return "", nil, ErrScope.Say("The token of job %s is good for that job only.", c.JobID).Hint("Name the job: job_id.")
	case runID != "":
		if _, _, err := s.readRun(ctx, c, runID); err != nil {
			return "", nil, err
		}
		return runStream(runID), func(tx txn.Tx) error { return run.Stays(tx.(run.Tx), s.c.Space, runID) }, nil
	case !c.manages():
		return "", nil, ErrScope.Say("A token with scope %s may not have itself told of everything.", c.Scope).
			Hint("Name a job or a run of yours, or ask an %s.", token.Operator)
	}
	return "", nil, nil
}

func (s *Server) changeTarget(how func(delivery.Desk, context.Context, string) (delivery.Target, error)) func(context.Context, caller, *idIn) (*body[delivery.Object], error) {
	return func(ctx context.Context, c caller, in *idIn) (*body[delivery.Object], error) {
		if _, err := s.ownTarget(ctx, c, in.ID); err != nil {
			return nil, err
		}
		t, err := how(s.desk(), ctx, in.ID)
		return answer(c.targetObject(t), err)
	}
}

func (s *Server) rotateTarget(ctx context.Context, c caller, in *rotateIn) (*body[delivery.Object], error) {
	if _, err := s.ownTarget(ctx, c, in.ID); err != nil {
		return nil, err
	}
	r := Rotating{}
	if in.Body != nil {
		r = *in.Body
	}
	t, err := s.desk().Rotate(ctx, in.ID, r.Secret, r.EndOld)
	return answer(withSecret(t), err)
}

func (s *Server) listTargets(ctx context.Context, c caller, in *listTargetsIn) (*body[WakeTargets], error) {
	q := delivery.TargetQuery{Space: s.c.Space, Prefix: in.Prefix}
	q.Stream = streamOf(in.JobID, in.RunID)
	if !c.reads() && c.JobID == "" {
		q.Principal = c.Principal
	}
	if err := c.behind(in.After, "target", id.Target, func(id string) error { _, err := s.desk().Target(ctx, id); return err }); err != nil {
		return nil, err
	}
	ts, next, err := listing[delivery.Target]{
		read: func(after string, limit int) (ts []delivery.Target, err error) {
			q.After, q.Limit = after, limit
			err = txn.View(ctx, s.c.Store, func(tx delivery.Tx) error {
				ts, err = tx.Targets(q)
				return err
			})
			return ts, err
		},
		id:   func(t delivery.Target) string { return t.ID },
		sees: c.seesTarget,
	}.page(in.After, in.Limit)
	return answer(WakeTargets{objects(ts, c.targetObject), next}, err)
}

func runStream(id string) string { return decision.Ref{Kind: decision.OwnerRun, ID: id}.Stream() }

// streamOf is the stream of a job or a run; empty for neither.
func streamOf(jobID, runID string) string {
	switch {
	case jobID != "":
		return job.RefOf(jobID).Stream()
	case runID != "":
		return runStream(runID)
	}
	return ""
}
