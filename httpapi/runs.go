package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// Runs is a page of runs, newest first.
type Runs struct {
	Runs []run.Object `json:"runs"`
	Next string       `json:"next,omitempty" doc:"after=… of the next page; absent on the last one"`
}

type listRunsIn struct {
	Page
	Status string `query:"status" enum:"RUNNING,WAITING_FOR_APPROVAL,COMPLETED,FAILED,CANCELLED,all" default:"all"`
	Prefix string `query:"prefix" maxLength:"200" doc:"those whose id begins so"`
}

type getRunIn struct {
	ID         string `path:"id" maxLength:"200"`
	StepsAfter int64  `query:"steps_after" minimum:"0" doc:"only the steps behind the one of this index"`
	StepsLimit int    `query:"steps_limit" minimum:"1" maximum:"1000" doc:"at most so many steps; left out: all"`
}

type runOut struct {
	Status int
	Body   run.Object
}

func (s *Server) registerRuns() {
	add(s, route{method: http.MethodGet, path: "/v1/runs", id: "listRuns", summary: "Runs, newest first; an agent sees those it started"}, s.listRuns)
	add(s, route{method: http.MethodGet, path: "/v1/runs/{id}", id: "getRun", summary: "One run with its steps"},
		func(ctx context.Context, c caller, in *getRunIn) (*body[run.Object], error) {
			o, err := s.showRun(ctx, c, in)
			return answer(o, err)
		})
	add(s, route{
		method: http.MethodPost, path: "/v1/runs/{id}/cancel", id: "cancelRun", summary: "End a run that has not ended", scopes: operators, shape: noteShape,
	}, func(ctx context.Context, c caller, in *byIn) (*body[run.Object], error) {
		n := in.Body.orNone()
		if _, _, err := s.readRun(ctx, c, in.ID); err != nil {
			return nil, err
		}
		if err := s.operator(c).Cancel(ctx, in.ID, c.byOr(n.By), n.Note); err != nil {
			return nil, err
		}
		o, err := s.showRun(ctx, c, &getRunIn{ID: in.ID})
		return answer(o, err)
	})
	add(s, route{
		method: http.MethodPost, path: "/v1/runs/{id}/resume", id: "resumeRun", status: http.StatusAccepted, scopes: operators,
		summary: "Let the daemon go on with a run that was approved, lost or given back",
	}, s.resumeRun)
}

func (c caller) seesRun(r run.Run) bool {
	return c.reads() || r.Principal != "" && r.Principal == c.Principal
}

func (s *Server) readRun(ctx context.Context, c caller, id string) (r run.Run, now time.Time, err error) {
	err = txn.View(ctx, s.c.Store, func(tx run.Tx) error {
		now = tx.Now()
		r, err = s.run(tx, c, id)
		return err
	})
	return r, now, err
}

// run is one that the caller sees.
func (s *Server) run(tx run.Tx, c caller, id string) (run.Run, error) {
	r, err := tx.Run(id)
	if err == nil && (r.Space != s.c.Space || !c.seesRun(r)) {
		err = hidden("run", id)
	}
	return r, err
}

// showRun is a run with its steps. What is secret is found in all of them, also where
// some are shown.
func (s *Server) showRun(ctx context.Context, c caller, in *getRunIn) (run.Object, error) {
	r, now, err := s.readRun(ctx, c, in.ID)
	if err != nil {
		return run.Object{}, err
	}
	steps, err := s.steps(ctx, in.ID)
	if err != nil {
		return run.Object{}, err
	}
	o := r.Object(now)
	o.Steps = objects(in.of(steps), run.Step.Object)
	return o, s.hideRun(ctx, c, r, steps, &o)
}

// of are the steps that were asked for, of all.
func (in *getRunIn) of(steps []run.Step) []run.Step {
	from := slices.IndexFunc(steps, func(st run.Step) bool { return st.Index > in.StepsAfter })
	if from < 0 {
		return nil
	}
	steps = steps[from:]
	if in.StepsLimit > 0 && len(steps) > in.StepsLimit {
		steps = steps[:in.StepsLimit]
	}
	return steps
}

// stepsShown is how many steps of a run are read at once.
const stepsShown = 1000

// steps are all of a run's.
func (s *Server) steps(ctx context.Context, id string) (all []run.Step, err error) {
	for after := int64(0); ; {
		var page []run.Step
		err := txn.View(ctx, s.c.Store, func(tx run.Tx) (err error) {
			page, err = tx.Steps(id, after, stepsShown)
			return err
		})
		if all = append(all, page...); err != nil || len(page) < stepsShown {
			return all, err
		}
		after = page[len(page)-1].Index
	}
}

// looksThrough is how many steps of a run are looked at for the secrets in them where
// none is shown. Of a longer run whose secrets are hidden, a list shows neither goal nor
// result.
const looksThrough = 500

// briefRun is a run without its steps, as a list has it.
func (s *Server) briefRun(ctx context.Context, c caller, r run.Run, now time.Time) (run.Object, error) {
	o := r.Object(now)
	if c.brought(r.Principal) {
		return o, nil
	}
	var steps []run.Step
	err := txn.View(ctx, s.c.Store, func(tx run.Tx) (err error) {
		steps, err = tx.Steps(r.ID, 0, looksThrough)
		return err
	})
	if err != nil {
		return o, err
	}
	if r.StepCount > looksThrough {
		o.Goal, o.ReasonDetail, o.Result = display.Masked, "", nil
	}
	return o, s.hideRun(ctx, c, r, steps, &o)
}

// hideRun hides what is secret in these steps from whoever did not start the run.
func (s *Server) hideRun(ctx context.Context, c caller, r run.Run, steps []run.Step, o *run.Object) error {
	if c.brought(r.Principal) {
		return nil
	}
	m, err := s.runMask(ctx, steps)
	if err == nil {
		maskRun(o, m)
	}
	return err
}

func (s *Server) listRuns(ctx context.Context, c caller, in *listRunsIn) (*body[Runs], error) {
	q := run.Query{Space: s.c.Space, Status: run.Status(in.Status), Prefix: in.Prefix}
	if in.Status == "all" {
		q.Status = ""
	}
	var rs []run.Run
	var next string
	var now time.Time
	err := txn.View(ctx, s.c.Store, func(tx run.Tx) error {
		err := c.behind(in.After, "run", id.Run, func(id string) error {
			r, err := tx.Run(id)
			if err == nil && r.Space != s.c.Space {
				err = hidden("run", id)
			}
			return err
		})
		if err != nil {
			return err
		}
		now = tx.Now()
		rs, next, err = listing[run.Run]{
			read: func(after string, limit int) ([]run.Run, error) {
				q.After, q.Limit = after, limit
				return tx.Runs(q)
			},
			id:   func(r run.Run) string { return r.ID },
			sees: c.seesRun,
		}.page(in.After, in.Limit)
		return err
	})
	list := Runs{Runs: make([]run.Object, len(rs)), Next: next}
	for i, r := range rs {
		if err == nil {
			list.Runs[i], err = s.briefRun(ctx, c, r, now)
		}
	}
	return answer(list, err)
}

// resumeRun lets the daemon go on with a run, and answers once that has begun.
func (s *Server) resumeRun(ctx context.Context, c caller, in *idIn) (*runOut, error) {
	r, now, err := s.readRun(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	if s.c.Continue == nil {
		return nil, errNoRuns
	}
	if err := s.mayGoOn(ctx, c, r, now); err != nil {
		return nil, err
	}
	if err := s.c.Continue(ctx, r); err != nil {
		return nil, err
	}
	if r, now, err = s.readRun(ctx, c, in.ID); err != nil {
		return nil, err
	}
	o, err := s.briefRun(ctx, c, r, now)
	if err != nil {
		return nil, err
	}
	return &runOut{http.StatusAccepted, o}, nil
}

// mayGoOn refuses, in this door's words, what nobody can go on with as it stands. Where
// it moves after that, who takes the run's lease sees it.
func (s *Server) mayGoOn(ctx context.Context, c caller, r run.Run, now time.Time) error {
	if r.Status == run.Running && now.Before(r.LeaseUntil) {
		return run.ErrRunLeased.Say("Run %s is worked on by %s.", r.ID, r.LeaseOwner)
	}
	if r.Status != run.Waiting {
		return nil
	}
	on, err := s.readApproval(ctx, c, r.ApprovalID)
	if err != nil {
		return err
	}
	waits := run.ErrRunState.Say("Run %s waits for approval %s, which is %s.", r.ID, r.ApprovalID, on.Status)
	switch on.Status {
	case decision.Approved, decision.Withdrawn, decision.Superseded: // of the latter two the outcome became known
		return nil
	case decision.Pending:
		return waits.Hint("Decide it first: POST /v1/approvals/%s/decide.", r.ApprovalID)
	}
	return waits
}
