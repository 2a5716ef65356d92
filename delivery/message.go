package delivery

import (
	"encoding/json"
	"strings"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// cloudEvent is a message's body: CloudEvents 1.0, structured JSON.
type cloudEvent struct {
	SpecVersion     string                     `json:"specversion"`
	ID              string                     `json:"id"`
	Source          string                     `json:"source"`
	Type            string                     `json:"type"`
	Subject         string                     `json:"subject,omitempty"`
	Time            string                     `json:"time"`
	DataContentType string                     `json:"datacontenttype"`
	Data            map[string]json.RawMessage `json:"data"`
}

// shownFacts are what a message may tell of an event's payload: ids, status, digest and
// such. Everything else is read by whoever may: a message leaves the house.
var shownFacts = []string{
	"approval_id", "decision_id", "call_id", "run_id", "step_id", "job_id", "delivery_id", "status", "kind", "digest", "exit_code", "late", "expires_at",
}

// maxFact bounds one of them, in bytes.
const maxFact = 300

// Body is what is sent of an event. It is the same in every attempt, unless the event was
// redacted meanwhile.
func (d Delivery) Body(e event.Event) []byte {
	data := map[string]json.RawMessage{}
	var payload map[string]json.RawMessage
	if e.Type != event.JobOutput && json.Unmarshal(e.Payload, &payload) == nil { // what is printed names no facts
		for _, name := range shownFacts {
			if v, ok := payload[name]; ok && len(v) <= maxFact && !strings.ContainsAny(string(v[:1]), "{[") {
				data[name] = v
			}
		}
	}
	if name, ok := e.Printed(); ok && len(name) <= maxFact {
		data["output"] = fact(name)
	}
	if job, run := rootOf(e.Stream); job != "" {
		data["job_id"] = fact(job)
	} else if run != "" {
		data["run_id"] = fact(run)
	}
	data["delivery_id"], data["target_id"] = fact(d.ID), fact(d.TargetID)
	data["stream"], data["stream_seq"], data["cursor"] = fact(e.Stream), fact(e.StreamSeq), fact(event.CursorOf(e))
	data["type"] = fact(e.Type)
	b, err := json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: "placet:" + e.Space, Type: "dev.placet." + string(e.Type), Subject: e.Subject,
		Time: txn.Stamp(e.At), DataContentType: "application/json", Data: data,
	})
	if err != nil {
		panic("delivery: a message does not encode: " + err.Error()) // it is our own value, and what is raw was decoded before
	}
	return b
}

func fact(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("delivery: " + err.Error())
	}
	return b
}
