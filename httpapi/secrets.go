package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/txn"
)

// A secret that somebody brought is shown to them and to nobody else. An agent sees
// nothing but what it or its jobs brought; others see that with its secrets masked,
// unless it is their own. Approvals are shown to people, so they are masked for all; and
// so is everything in pages, which others may look at over somebody's shoulder.

// hide masks a document, if there is one.
func hide(how func([]byte) []byte, doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 {
		return nil
	}
	return how(doc)
}

// askedFor reports whether a question was asked by the caller or for a job of its own:
// then the answer is what it asked for.
func (s *Server) askedFor(tx job.Tx, c caller, d decision.Decision) (bool, error) {
	if c.brought(d.RequestedBy) {
		return true, nil
	}
	j, err := tx.Job(d.Owner.ID)
	if errors.Is(err, job.ErrNotFound) {
		return false, nil
	}
	return err == nil && c.brought(j.Principal), err
}

// brought reports whether what this principal brought is the caller's own, and shown to
// it as it is.
func (c caller) brought(principal string) bool {
	return !c.reads() || !c.onPage && principal != "" && principal == c.Principal
}

// teachTool adds what the tool of that name marks as secret, where it is there.
func (s *Server) teachTool(m *display.Mask, name string) {
	if t, err := s.c.Tools.Lookup(name); err == nil {
		m.Teach(t.InputSchema)
	}
}

// hiding is the mask of a call, made once it is needed. Many may read one call.
type hiding struct {
	mu   sync.Mutex
	mask *display.Mask
}

func (s *Server) callMask(ctx context.Context, k *wholeCall) (*display.Mask, error) {
	k.hiding.mu.Lock()
	defer k.hiding.mu.Unlock()
	if k.hiding.mask != nil {
		return k.hiding.mask, nil
	}
	var ds []decision.Decision
	err := txn.View(ctx, s.c.Store, func(tx call.Tx) (err error) {
		ds, err = approvalsOf(tx, k.Call)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := &display.Mask{}
	s.teachTool(m, k.Tool)
	for _, d := range ds {
		review.Teach(m, d)
	}
	m.Learn(k.Args)
	for _, a := range k.attempts {
		m.Learn(a.Args)
	}
	k.hiding.mask = m
	return m, nil
}

// approvalsOf are those of a call; of one below a run's step the latest, as the run owns
// them.
func approvalsOf(tx call.Tx, k call.Call) ([]decision.Decision, error) {
	if !k.Hosted() {
		return tx.Decisions(decision.Query{Space: k.Space, CallID: k.ID, Limit: 500})
	}
	if k.ApprovalID == "" {
		return nil, nil
	}
	d, err := tx.Decision(k.ApprovalID)
	if errors.Is(err, decision.ErrNotFound) {
		return nil, nil
	}
	return []decision.Decision{d}, err
}

// runMask knows the secrets in these steps of a run, and what their tools mark as one.
func (s *Server) runMask(ctx context.Context, steps []run.Step) (*display.Mask, error) {
	m := &display.Mask{}
	taught := map[string]bool{}
	for _, st := range steps {
		if !taught[st.Tool] {
			taught[st.Tool] = true
			s.teachTool(m, st.Tool)
		}
	}
	err := txn.View(ctx, s.c.Store, func(tx run.Tx) error {
		for _, st := range steps {
			if st.ApprovalID == "" {
				continue
			}
			d, err := tx.Decision(st.ApprovalID)
			switch {
			case err == nil:
				review.Teach(m, d)
			case !errors.Is(err, decision.ErrNotFound):
				return err
			}
		}
		return nil
	})
	for _, st := range steps {
		m.Learn([]byte(st.Args))
	}
	return m, err
}

// maskRun hides the secrets in a run that is shown to others.
func maskRun(o *run.Object, m *display.Mask) {
	o.Goal, o.ReasonDetail, o.Result = m.Text(o.Goal), m.Text(o.ReasonDetail), hide(m.Scrub, o.Result)
	for i := range o.Steps {
		st := &o.Steps[i]
		st.Args, st.Result = hide(m.JSON, st.Args), hide(m.Scrub, st.Result)
		if st.Observation != nil {
			st.Observation.Message = m.Text(st.Observation.Message)
		}
		if st.Ruling != nil {
			st.Ruling.Reason = m.Text(st.Ruling.Reason)
		}
	}
}

// withoutSecrets hides the secrets in what a refusal says of the decision that stands:
// its note and input, as they are hidden where the decision is shown.
func (s *Server) withoutSecrets(ctx context.Context, c caller, refused error) error {
	standing, ok := decision.StandingOf(refused)
	if !ok || standing.Note == "" && standing.Input == nil {
		return refused
	}
	err := txn.View(ctx, s.c.Store, func(tx job.Tx) error {
		d, err := tx.Decision(standing.ApprovalID + standing.DecisionID) // one of them
		if err != nil {
			return err
		}
		if d.Type == decision.Approval {
			standing.Note = review.Mask(d).Text(d.Note)
			return nil
		}
		own, err := s.askedFor(tx, c, d)
		if err == nil && !own {
			m := review.Mask(d)
			standing.Note, standing.Input = m.Text(d.Note), hide(m.JSON, standing.Input)
		}
		return err
	})
	if err != nil {
		standing.Note, standing.Input = "", nil // what cannot be looked at is not told
	}
	return fault.From(refused).With(standing)
}

// rootOf is the noun and the id of a stream's root.
func rootOf(stream string) (noun, id string) {
	noun, id, _ = strings.Cut(stream, ":")
	return noun, id
}
