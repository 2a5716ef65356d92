package httpapi

import (
	"context"
	stdjson "encoding/json"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
)

// A front end that is written against decision.Approver speaks to a daemon with a
// Client. Two things are the daemon's own: the same answer again is no error, and by is
// the principal's name where it is left empty.
var _ decision.Approver = (*Client)(nil)

// Pending lists pending approvals, newest first. limit is 1 to 500; 0 means 50.
func (c *Client) Pending(ctx context.Context, limit int) ([]decision.Shown, error) {
	l, err := c.Approvals(ctx, "", "", limit)
	var list []decision.Shown
	for _, o := range l.Approvals {
		list = append(list, shownOf(o))
	}
	return list, err
}

// Show reads one approval. It has what the daemon shows (spec 4.3): its request is put
// together from the tool's name and the arguments, secrets masked, so that the digest
// cannot be made from it again. Overdue goes by this machine's clock.
func (c *Client) Show(ctx context.Context, approvalID string) (decision.Shown, error) {
	o, err := c.GetApproval(ctx, approvalID)
	if err != nil {
		return decision.Shown{}, err
	}
	return shownOf(o), nil
}

// ApproveShown says yes to exactly what was shown. A run id that is not empty has to be
// the approval's.
func (c *Client) ApproveShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return c.decideShown(ctx, runID, approvalID, Deciding{Approved: true, Digest: shown, By: by, Note: note})
}

// RejectShown says no to exactly what was shown. A run id that is not empty has to be
// the approval's.
func (c *Client) RejectShown(ctx context.Context, runID, approvalID, shown, by, note string) error {
	return c.decideShown(ctx, runID, approvalID, Deciding{Digest: shown, By: by, Note: note})
}

func (c *Client) decideShown(ctx context.Context, runID, approvalID string, d Deciding) error {
	if runID != "" { // whose an approval is never changes
		o, err := c.GetApproval(ctx, approvalID)
		if err != nil {
			return err
		}
		if o.RunID != runID {
			return decision.ErrNotFound.Say("Run %s has no approval %s.", runID, approvalID)
		}
	}
	_, err := c.Decide(ctx, approvalID, d)
	return err
}

// Cancel ends a run.
func (c *Client) Cancel(ctx context.Context, runID, by, note string) error {
	_, err := c.CancelRun(ctx, runID, Note{By: by, Note: note})
	return err
}

func shownOf(o decision.Object) decision.Shown {
	d := decision.Decision{
		ID: o.ID, Type: decision.Approval, Owner: ownerOf(o), Kind: o.Kind, Capability: o.Capability, Presentation: o.Presentation,
		Request: requestOf(o), Digest: o.Digest, ArgsDigest: o.ArgsDigest, Reason: o.Reason,
		RunID: o.RunID, CallID: o.CallID, StepID: o.StepID, Tool: o.Tool, Metadata: o.Metadata,
		CreatedAt: timeOf(o.CreatedAt), ExpiresAt: timeOf(o.ExpiresAt), Status: o.Status, Choice: o.Choice,
		DecidedBy: o.DecidedBy, DecidedPrincipal: o.DecidedPrincipal, DecidedAt: timeOf(o.DecidedAt), Note: o.Note,
		EditedArgs: o.EditedArgs, EditedDigest: o.EditedDigest, EffectiveDigest: o.EffectiveDigest,
		GrantExpiresAt: timeOf(o.GrantExpiresAt), ConsumedAt: timeOf(o.ConsumedAt), Verified: o.Verified != nil && *o.Verified,
	}
	return decision.Shown{Decision: d, Overdue: d.Overdue(time.Now())}
}

// ownerOf is what waits: the run of a step or of a flow's node, or a call.
func ownerOf(o decision.Object) decision.Ref {
	if o.StepID != "" || o.CallID == "" {
		return decision.Ref{Kind: decision.OwnerRun, ID: o.RunID}
	}
	return decision.Ref{Kind: decision.OwnerCall, ID: o.CallID}
}

// requestOf is empty for a flow's node, which calls nothing.
func requestOf(o decision.Object) []byte {
	if o.Tool == "" {
		return nil
	}
	spec, err := stdjson.Marshal(map[string]string{"name": o.Tool})
	if err != nil {
		return nil
	}
	b, err := request.Request{RunID: o.RunID, CallID: o.CallID, StepID: o.StepID, Args: o.Args}.JSONWith(spec)
	if err != nil {
		return nil
	}
	return b
}

// timeOf reads a time as every door writes it; none is the zero time.
func timeOf(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}
