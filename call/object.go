package call

import (
	"encoding/json"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/txn"
)

// Object is a call as every door writes it (spec 4.4). Absent values are left out.
type Object struct {
	CallID     string          `json:"call_id"`
	ExternalID string          `json:"external_id,omitempty"`
	RunID      string          `json:"run_id"`
	Tool       string          `json:"tool"`
	Status     Status          `json:"status"`
	ApprovalID string          `json:"approval_id,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Kind       Kind            `json:"kind,omitempty"`
	Message    string          `json:"message,omitempty"`
	Attempts   []AttemptObject `json:"attempts"`
	CreatedAt  string          `json:"created_at"`
	EndedAt    string          `json:"ended_at,omitempty"`
	// Stuck says why the daemon does not carry out what is approved, and what to do; the
	// door that knows the daemon's tools fills it in.
	Stuck string `json:"stuck,omitempty" doc:"why the daemon does not carry out what is approved, and what to do"`
}

// AttemptObject is an attempt as every door writes it.
type AttemptObject struct {
	Attempt         int64           `json:"attempt"`
	Fence           int64           `json:"fence"`
	EffectiveDigest string          `json:"effective_digest,omitempty"`
	EditedArgs      json.RawMessage `json:"edited_args,omitempty" doc:"what ran instead of the call's arguments"`
	StartedAt       string          `json:"started_at"`
	EndedAt         string          `json:"ended_at,omitempty"`
	Outcome         Status          `json:"outcome,omitempty"`
	Late            bool            `json:"late"`
}

// Object is the call as every door writes it, with its attempts.
func (c Call) Object(as []Attempt) Object {
	o := Object{
		CallID: c.ID, ExternalID: c.ExternalID, RunID: c.RunID, Tool: c.Tool, Status: c.Status, ApprovalID: c.ApprovalID,
		Args: document(c.Args), Result: document(c.Result), Kind: c.Kind, Message: c.Message,
		Attempts: []AttemptObject{}, CreatedAt: txn.Stamp(c.CreatedAt), EndedAt: txn.Stamp(c.EndedAt),
	}
	for _, a := range as {
		o.Attempts = append(o.Attempts, AttemptObject{
			Attempt: a.N, Fence: a.Fence, EffectiveDigest: a.EffectiveDigest, EditedArgs: document(a.Args),
			StartedAt: txn.Stamp(a.StartedAt), EndedAt: txn.Stamp(a.EndedAt), Outcome: a.Outcome, Late: a.Late,
		})
	}
	return o
}

// document is stored JSON; what was altered so that it is none is left out.
func document(b []byte) json.RawMessage {
	if len(b) == 0 || canon.Valid(b) != nil {
		return nil
	}
	return b
}
