package run

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/txn"
)

// Object is a run as every door writes it, and as an agent's process reads it (spec
// 4.4). Absent values are left out.
type Object struct {
	RunID           string          `json:"run_id"`
	Status          Status          `json:"status"`
	Reason          Reason          `json:"reason,omitempty"`
	ReasonDetail    string          `json:"reason_detail,omitempty"`
	Goal            string          `json:"goal"`
	Agent           string          `json:"agent,omitempty" doc:"what makes its decisions: a name in the configuration, or a program"`
	Flow            string          `json:"flow,omitempty" doc:"the flow that it carries out, with its version"`
	Limits          Limits          `json:"limits"`
	StepCount       int64           `json:"step_count"`
	Usage           Usage           `json:"usage" doc:"of the model, as charged"`
	Result          json.RawMessage `json:"result,omitempty"`
	ActiveMS        int64           `json:"active_ms"`
	CreatedAt       string          `json:"created_at"`
	FinishedAt      string          `json:"finished_at,omitempty"`
	PendingApproval string          `json:"pending_approval,omitempty"`
	Steps           []StepObject    `json:"steps,omitempty"` // only of a run that is shown with them
}

// StepObject is a step as every door writes it, and as an agent's process reads it.
type StepObject struct {
	StepID      string             `json:"step_id"`
	Index       int64              `json:"index"`
	Status      StepStatus         `json:"status"`
	Tool        string             `json:"tool,omitempty"`
	Args        json.RawMessage    `json:"args,omitempty"`
	Ruling      *Ruling            `json:"ruling,omitempty"`
	Observation *ObservationObject `json:"observation,omitempty"`
	Result      json.RawMessage    `json:"result,omitempty"`
	CallID      string             `json:"call_id,omitempty"`
	ApprovalID  string             `json:"approval_id,omitempty"`
	StartedAt   string             `json:"started_at"`
	FinishedAt  string             `json:"finished_at,omitempty"`
}

// ObservationObject is what the agent is told of a step.
type ObservationObject struct {
	Kind    ObservationKind `json:"kind"`
	Message string          `json:"message,omitempty"`
}

// Object is the run as every door writes it at a time, without its steps.
func (r Run) Object(now time.Time) Object {
	o := Object{
		RunID: r.ID, Status: r.Status, Reason: r.Reason, ReasonDetail: r.Detail, Goal: r.Goal, Agent: r.Agent.title(), Flow: r.Flow.title(),
		Limits: r.Limits, StepCount: r.StepCount, Usage: r.Usage,
		Result: document(r.Result), ActiveMS: r.ActiveAt(now).Milliseconds(), CreatedAt: txn.Stamp(r.CreatedAt), FinishedAt: txn.Stamp(r.FinishedAt),
	}
	if r.Status == Waiting {
		o.PendingApproval = r.ApprovalID
	}
	return o
}

// title is the agent in a word. Its arguments are not told: they may hold a secret.
func (a AgentRef) title() string {
	if a.Name == "" && len(a.Argv) > 0 {
		return a.Argv[0]
	}
	return a.Name
}

func (f FlowRef) title() string { return strings.TrimSpace(f.Name + " " + f.Version) }

// Object is the step as every door writes it.
func (s Step) Object() StepObject {
	o := StepObject{
		StepID: s.ID, Index: s.Index, Status: s.Status, Tool: s.Tool, Args: document(s.Args), Result: document(s.Result),
		CallID: s.CallID, ApprovalID: s.ApprovalID, StartedAt: txn.Stamp(s.StartedAt), FinishedAt: txn.Stamp(s.FinishedAt),
	}
	if s.Ruling.Outcome != "" {
		o.Ruling = &s.Ruling
	}
	if s.Observation != "" {
		o.Observation = &ObservationObject{s.Observation, s.Message}
	}
	return o
}

// document is JSON as it is written inside an object. What an agent gave and is none
// is written as the text that it is.
func document(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	if canon.Valid([]byte(s)) == nil {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a string always encodes
	return b
}
