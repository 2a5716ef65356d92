package run

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// kindNode is the kind of a flow's approval: no tool stands behind it.
const kindNode = "flow_approval"

// askNode makes a flow's run wait for a person's yes to one of its nodes. The policy
// is not asked: that a person has to agree is the flow's own word.
func (s *session) askNode(ctx context.Context, p Proposal) error {
	err := s.write(ctx, func(w *writing) error {
		d, err := s.e.nodeApproval(w, p)
		if err != nil {
			return err
		}
		if err := w.tell(); err != nil {
			return err
		}
		if err := decision.Ask(w.tx, d, call.DefaultMaxPending); err != nil {
			return err
		}
		return w.step(Pause{Hold: w.hold, Approval: d})
	})
	switch {
	case errors.Is(err, request.ErrUnencodable), errors.Is(err, decision.ErrTooManyPending):
		return s.write(ctx, func(w *writing) error { return w.step(internal(w, err)) })
	}
	return err
}

// nodeApproval is the approval of a flow's node (spec 1.2).
func (e *engine) nodeApproval(w *writing, p Proposal) (decision.Decision, error) {
	r := w.run
	req, err := request.Request{RunID: r.ID, Flow: r.Flow.Name, Version: r.Flow.Version, Node: p.Node, Args: p.Args}.JSON()
	if err != nil {
		return decision.Decision{}, err
	}
	shown := p.Presentation
	if len(shown) == 0 {
		if shown, err = plainNode(p); err != nil {
			return decision.Decision{}, request.ErrUnencodable.Because(err)
		}
	}
	d := decision.Decision{Kind: kindNode, Presentation: shown, Request: req, Reason: txn.AsText(p.Text), RunID: r.ID, Node: p.Node, Metadata: r.Metadata}
	if d.ArgsDigest, err = request.ArgsDigest(p.Args); err != nil {
		return d, err
	}
	if d.Digest, err = d.Binding(); err != nil {
		return d, err
	}
	return e.openNode(w, d), nil
}

// openNode is what d asks for as a new question of the run.
func (e *engine) openNode(w *writing, d decision.Decision) decision.Decision {
	r := w.run
	n := decision.Decision{
		ID: e.conf.NewID(id.Approval), Space: r.Space, Type: decision.Approval, Owner: r.Ref(), N: r.ApprovalN + 1,
		Kind: d.Kind, Presentation: d.Presentation, Request: d.Request, Digest: d.Digest, ArgsDigest: d.ArgsDigest,
		Reason: d.Reason, ForbidEdits: true, RunID: d.RunID, Node: d.Node, RequestedBy: r.Principal, Metadata: d.Metadata,
		GrantTTL: decision.Shorter(e.conf.GrantTTL, r.Limits.GrantTTL), Status: decision.Pending, Open: true, Needs: 1,
		CreatedAt: w.now, Epoch: w.tx.Epoch(),
	}
	if ttl := decision.Shorter(e.conf.ApprovalTTL, r.Limits.ApprovalTTL); ttl > 0 {
		n.ExpiresAt = w.now.Add(ttl)
	}
	return n
}

// askNodeAnew replaces a yes of an earlier life of the store: what follows the node may
// already have been done after the backup was taken (design §4, rule 9).
func (e *engine) askNodeAnew(ctx context.Context, p paused) (*session, Run, error) {
	return e.stillWaiting(ctx, p, func(w *writing) error {
		ch, err := p.on.Step(decision.Supersede{}, w.now)
		if err != nil {
			return err
		}
		if err := w.tx.PutDecision(p.on, ch); err != nil {
			return err
		}
		d := e.openNode(w, p.on)
		d.Reason = strings.TrimSpace("The store was restored to " + w.tx.RestoredTo().UTC().Format(time.RFC3339) +
			"; this may have been agreed to, and what follows may have been done, after that. " + d.Reason)
		if err := decision.Ask(w.tx, d, call.DefaultMaxPending); err != nil {
			return err
		}
		return w.step(Pause{Approval: d})
	})
}

func plainNode(p Proposal) ([]byte, error) {
	b, err := canon.AppendString([]byte(`{"node":`), p.Node)
	if err != nil {
		return nil, err
	}
	return append(append(append(b, `,"args":`...), p.Args...), '}'), nil
}

// resumeNode goes on with a flow's approval.
func (e *engine) resumeNode(ctx context.Context, p paused) (*session, Run, error) {
	if err := p.on.SoundGrant(); err != nil {
		return nil, p.run, err
	}
	if p.on.Epoch < p.epoch {
		return e.askNodeAnew(ctx, p)
	}
	s, r, err := e.resumeInto(ctx, p, func(s *session, w *writing) error {
		if err := w.spendNode(p.on); err != nil {
			return err
		}
		if err := w.step(Observe{Hold: w.hold, Kind: ToolResult}); err != nil {
			return err
		}
		return s.next(ctx, w)
	})
	if errors.Is(err, ErrApprovalExpired) { // since it was looked at
		return e.expire(ctx, p)
	}
	return s, r, err
}

// spendNode spends the yes to a flow's approval, if it is still what was looked at:
// PutDecision holds all of it against the row.
func (w *writing) spendNode(d decision.Decision) error {
	if d.Epoch < w.tx.Epoch() {
		return decision.Moved("The life of the store")
	}
	ch, err := d.Step(decision.Consume{Attempt: 1}, w.now)
	if err == nil {
		err = ch.Refuse
	}
	if err != nil {
		return err
	}
	return w.tx.PutDecision(d, ch)
}
