package run

import "github.com/placet-dev/placet/event"

func (r Run) actor() string {
	if r.Principal == "" {
		return event.System
	}
	return r.Principal
}

func (r Run) event(t event.Type, actor string, payload any) event.Event {
	return event.New(t, r.ID, actor, payload)
}

func (r Run) stepEvent(t event.Type, actor string, payload any) event.Event {
	return event.New(t, r.Current.ID, actor, payload)
}

type createdPayload struct {
	RunID   string `json:"run_id"`
	Flow    string `json:"flow,omitempty"`
	Version string `json:"version,omitempty"`
}

type startedPayload struct {
	RunID string `json:"run_id"`
	Owner string `json:"owner,omitempty"`
}

type resumedPayload struct {
	RunID      string `json:"run_id"`
	Owner      string `json:"owner,omitempty"`
	ApprovalID string `json:"approval_id,omitempty"`
}

type takenPayload struct {
	RunID string `json:"run_id"`
	Owner string `json:"owner,omitempty"`
	From  string `json:"from,omitempty"`
}

type finishedPayload struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

type stepPayload struct {
	StepID     string `json:"step_id"`
	Index      int64  `json:"index,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Tool       string `json:"tool,omitempty"`
	ArgsDigest string `json:"args_digest,omitempty"`
	Node       string `json:"node,omitempty"`
}

type policyPayload struct {
	StepID  string `json:"step_id"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

type limitPayload struct {
	Limit string `json:"limit"`
	Value string `json:"value"`
	Max   string `json:"max"`
}

type loopPayload struct {
	Tool       string `json:"tool"`
	ArgsDigest string `json:"args_digest"`
	Repeats    int64  `json:"repeats"`
}
