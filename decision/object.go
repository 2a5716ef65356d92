package decision

import (
	"encoding/json"

	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Object is an approval as every door writes it (spec 4.3). Absent values are left out.
type Object struct {
	ID               string            `json:"id"`
	Kind             string            `json:"kind"`
	Status           Status            `json:"status"`
	Closed           bool              `json:"closed,omitempty" doc:"what waited on it has ended: it stays as it is and can not be decided"`
	Choice           Choice            `json:"choice,omitempty"`
	Tool             string            `json:"tool,omitempty"`
	Args             json.RawMessage   `json:"args,omitempty"`
	ArgsDigest       string            `json:"args_digest,omitempty"`
	Digest           string            `json:"digest"`
	Capability       json.RawMessage   `json:"capability,omitempty"`
	Presentation     json.RawMessage   `json:"presentation,omitempty"`
	Reason           string            `json:"reason,omitempty"`
	RunID            string            `json:"run_id,omitempty"`
	StepID           string            `json:"step_id,omitempty"`
	CallID           string            `json:"call_id,omitempty"`
	CreatedAt        string            `json:"created_at"`
	ExpiresAt        string            `json:"expires_at,omitempty"`
	GrantExpiresAt   string            `json:"grant_expires_at,omitempty"`
	DecidedBy        string            `json:"decided_by,omitempty"`
	DecidedPrincipal string            `json:"decided_principal,omitempty"`
	DecidedAt        string            `json:"decided_at,omitempty"`
	Note             string            `json:"note,omitempty"`
	EditedArgs       json.RawMessage   `json:"edited_args,omitempty"`
	EditedDigest     string            `json:"edited_digest,omitempty"`
	EffectiveDigest  string            `json:"effective_digest,omitempty"`
	Verified         *bool             `json:"verified,omitempty"`
	WithdrawnBy      string            `json:"withdrawn_by,omitempty"`
	WithdrawnAt      string            `json:"withdrawn_at,omitempty"`
	ConsumedAt       string            `json:"consumed_at,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
}

// Object is the approval as every door writes it. One whose request was altered so
// that it cannot be read is written without arguments.
func (d Decision) Object() Object {
	o := Object{
		ID: d.ID, Kind: d.Kind, Status: d.Status, Closed: d.closed(), Choice: d.Choice, Tool: d.Tool, ArgsDigest: d.ArgsDigest, Digest: d.Digest,
		Reason: d.Reason, RunID: d.RunID, StepID: d.StepID, CallID: d.CallID,
		CreatedAt: txn.Stamp(d.CreatedAt), ExpiresAt: txn.Stamp(d.ExpiresAt), GrantExpiresAt: txn.Stamp(d.GrantExpiresAt),
		DecidedBy: d.DecidedBy, DecidedPrincipal: d.DecidedPrincipal, DecidedAt: txn.Stamp(d.DecidedAt), Note: d.Note, WithdrawnBy: d.WithdrawnBy,
		EditedDigest: d.EditedDigest, EffectiveDigest: d.EffectiveDigest, ConsumedAt: txn.Stamp(d.ConsumedAt), Metadata: d.Metadata,
		Capability: document(d.Capability), Presentation: document(d.Presentation), EditedArgs: document(d.EditedArgs),
	}
	if req, err := request.Decode(d.Request); err == nil {
		o.Args = document(req.Args)
	}
	if d.DecidedBy != "" {
		o.Verified = &d.Verified
	}
	if d.Status == Withdrawn { // a yes that was taken back keeps the time of the yes
		o.WithdrawnAt = txn.Stamp(d.SettledAt)
	}
	return o
}

// document is stored JSON; what was altered so that it is none is left out.
func document(b []byte) json.RawMessage {
	if !json.Valid(b) {
		return nil
	}
	return b
}
