package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Approvals is a page of approvals, newest first.
type Approvals struct {
	Approvals []decision.Object `json:"approvals"`
	Next      string            `json:"next,omitempty" doc:"after=… of the next page; absent on the last one"`
}

// Deciding is a reviewer's answer.
type Deciding struct {
	Approved   bool            `json:"approved"`
	Digest     string          `json:"digest" minLength:"1" doc:"of the approval, as it was shown"`
	By         string          `json:"by,omitempty" doc:"a label; the principal's name where it is left out"`
	Note       string          `json:"note,omitempty"`
	EditedArgs json.RawMessage `json:"edited_args,omitempty" doc:"arguments to run instead; of calls only"`
}

// Decided is an approval after its decision, with where its call stands.
type Decided struct {
	decision.Object
	CallStatus call.Status `json:"call_status,omitempty"`
}

const decideShape = `{"approved":true,"digest":"sha256-placet1:…"} with, if you like, by, note and edited_args`

type listApprovalsIn struct {
	Page
	Status string `query:"status" enum:"pending,approved,rejected,expired,withdrawn,superseded,consumed,all" default:"pending"`
}

type idIn struct {
	ID string `path:"id" maxLength:"200"`
}

type decideIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Deciding
}

func (s *Server) registerApprovals() {
	add(s, route{method: http.MethodGet, path: "/v1/approvals", id: "listApprovals", summary: "Approvals, newest first; an agent sees what it asked for"},
		s.listApprovals)
	add(s, route{method: http.MethodGet, path: "/v1/approvals/{id}", id: "getApproval", summary: "One approval"},
		func(ctx context.Context, c caller, in *idIn) (*body[decision.Object], error) {
			d, err := s.readApproval(ctx, c, in.ID)
			return answer(approvalObject(d), err)
		})
	add(s, route{
		method: http.MethodPost, path: "/v1/approvals/{id}/decide", id: "decide", scopes: reviewers, shape: decideShape,
		summary: "Say yes or no to exactly what was shown. It answers once that is committed; what was approved then runs by itself where the daemon may",
	}, s.decide)
	add(s, route{
		method: http.MethodPost, path: "/v1/approvals/{id}/withdraw", id: "withdraw", scopes: agentsAndOps, shape: noteShape,
		summary: "Take a pending request of a call back",
	}, func(ctx context.Context, c caller, in *byIn) (*body[decision.Object], error) {
		if _, err := s.readApproval(ctx, c, in.ID); err != nil {
			return nil, err
		}
		d, err := s.withdraw(ctx, c, in.ID, in.Body.orNone())
		return answer(approvalObject(d), err)
	})
}

func (c caller) seesApproval(d decision.Decision) bool {
	return c.reads() || d.RequestedBy != "" && d.RequestedBy == c.Principal
}

func (s *Server) readApproval(ctx context.Context, c caller, id string) (d decision.Decision, err error) {
	err = txn.View(ctx, s.c.Store, func(tx decision.Tx) error {
		d, err = tx.Decision(id)
		if errors.Is(err, decision.ErrNotFound) || err == nil && (d.Space != s.c.Space || d.Type != decision.Approval || !c.seesApproval(d)) {
			err = hidden("approval", id)
		}
		return err
	})
	return d, err
}

// approvalObject is an approval with its secrets hidden, from whoever asks.
func approvalObject(d decision.Decision) decision.Object {
	o := d.Object()
	m := review.Mask(d)
	o.Reason, o.Note = m.Text(o.Reason), m.Text(o.Note)
	o.Args, o.EditedArgs = hide(m.JSON, o.Args), hide(m.JSON, o.EditedArgs)
	o.Capability, o.Presentation = hide(m.Scrub, o.Capability), hide(m.Scrub, o.Presentation)
	if o.Metadata != nil {
		shown := make(map[string]string, len(o.Metadata))
		for k, v := range o.Metadata {
			shown[k] = m.Text(v)
			if display.SecretName(k) {
				shown[k] = display.Masked
			}
		}
		o.Metadata = shown
	}
	return o
}

func (s *Server) listApprovals(ctx context.Context, c caller, in *listApprovalsIn) (*body[Approvals], error) {
	q := decision.Query{Space: s.c.Space, Type: decision.Approval, Status: decision.Status(in.Status), Open: in.Status == string(decision.Pending)}
	if in.Status == "all" {
		q.Status = ""
	}
	list := Approvals{}
	err := txn.View(ctx, s.c.Store, func(tx decision.Tx) error {
		ds, next, err := s.decisions(tx, q, in.Page, c, c.seesApproval)
		list = Approvals{Approvals: objects(ds, approvalObject), Next: next}
		return err
	})
	return answer(list, err)
}

// decisions is a page of those that the caller sees.
func (s *Server) decisions(tx decision.Tx, q decision.Query, p Page, c caller, sees func(decision.Decision) bool) ([]decision.Decision, string, error) {
	prefix := id.Approval
	if q.Type == decision.Question {
		prefix = id.Question
	}
	err := c.behind(p.After, string(q.Type), prefix, func(id string) error {
		d, err := tx.Decision(id)
		if err == nil && (d.Space != q.Space || d.Type != q.Type) {
			err = hidden(string(q.Type), id)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return listing[decision.Decision]{
		read: func(after string, limit int) ([]decision.Decision, error) {
			q.After, q.Limit = after, limit
			return tx.Decisions(q)
		},
		id:   func(d decision.Decision) string { return d.ID },
		sees: sees,
	}.page(p.After, p.Limit)
}

// decide answers once the decision is committed, before anything runs.
func (s *Server) decide(ctx context.Context, c caller, in *decideIn) (*body[Decided], error) {
	if _, err := s.readApproval(ctx, c, in.ID); err != nil {
		return nil, err
	}
	b := in.Body
	a := decision.Answer{Approved: b.Approved, By: c.byOr(b.By), Note: b.Note, EditedArgs: b.EditedArgs, Shown: b.Digest}
	d, err := s.operator(c).Decide(ctx, in.ID, a)
	if err != nil && errors.Is(err, decision.ErrNotPending) {
		stands, rerr := s.readApproval(ctx, c, in.ID)
		if rerr != nil || !repeats(stands, a) {
			return nil, err
		}
		d, err = stands, nil
	}
	if err != nil {
		return nil, err
	}
	out := Decided{Object: approvalObject(d)}
	if d.Owner.Kind == decision.OwnerCall {
		err = txn.View(ctx, s.c.Store, func(tx call.Tx) error {
			k, err := tx.Call(d.Owner.ID)
			out.CallStatus = k.Status
			return err
		})
	}
	return answer(out, err)
}

// repeats reports whether an answer says again what stands: the same yes or no, the
// same edits, to the same digest, whoever sends it.
func repeats(d decision.Decision, a decision.Answer) bool {
	said := d.Choice == decision.ChoiceApprove
	if d.Choice == "" || said != a.Approved || d.Digest != a.Shown || (a.EditedArgs == nil) != (d.EditedArgs == nil) {
		return false
	}
	if a.EditedArgs == nil {
		return true
	}
	edited, err := request.ArgsDigest(a.EditedArgs)
	return err == nil && edited == d.EditedDigest
}
