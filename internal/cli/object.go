package cli

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// What only this door writes of spec 4.3 and 4.4. Absent values are left out.

type eventObject struct {
	Cursor    event.Cursor    `json:"cursor"`
	Stream    string          `json:"stream"`
	StreamSeq int64           `json:"stream_seq"`
	At        string          `json:"at"`
	Type      event.Type      `json:"type"`
	Subject   string          `json:"subject,omitempty"`
	Actor     string          `json:"actor,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Hash      string          `json:"hash"`
}

// The results of a call (spec 4.3).

type succeededObject struct {
	Status call.Status     `json:"status"`
	CallID string          `json:"call_id"`
	RunID  string          `json:"run_id"`
	Result json.RawMessage `json:"result"`
	editedObject
	Where doer `json:"where"`
}

// editedObject is what ran, where a reviewer edited it.
type editedObject struct {
	EditedArgs      json.RawMessage `json:"edited_args,omitempty"`
	EffectiveDigest string          `json:"effective_digest,omitempty"`
}

func editedOf(res call.Result, m *display.Mask) editedObject {
	return editedObject{jsonOrNone(m.JSON, res.EditedArgs()), res.EffectiveDigest}
}

type pendingObject struct {
	Status     call.Status `json:"status"`
	ApprovalID string      `json:"approval_id"`
	CallID     string      `json:"call_id"`
	RunID      string      `json:"run_id"`
	Digest     string      `json:"digest"`
	ExpiresAt  string      `json:"expires_at,omitempty"`
	Kind       string      `json:"kind,omitempty"` // only where the call may have run already
	Where      doer        `json:"where"`
}

type unknownObject struct {
	Status     call.Status `json:"status"`
	ApprovalID string      `json:"approval_id,omitempty"` // the one that settles it, if one is open
	CallID     string      `json:"call_id"`
	RunID      string      `json:"run_id"`
	Kind       call.Kind   `json:"kind,omitempty"`
	Message    string      `json:"message,omitempty"`
	editedObject
	Where doer `json:"where"`
}

type failedObject struct {
	Status  call.Status `json:"status"`
	CallID  string      `json:"call_id,omitempty"`
	Kind    call.Kind   `json:"kind,omitempty"`
	Message string      `json:"message,omitempty"`
	editedObject
	Where doer `json:"where"`
}

// stamp is a time as every door writes it; empty for none.
func stamp(t time.Time) string { return txn.Stamp(t) }

// maskOf is the mask for what belongs to one approval: its own schema says what
// is secret, and what it holds is looked for in the texts around it.
func (a *app) maskOf(d decision.Decision, req request.Request, docs ...[]byte) *display.Mask {
	return a.newMask(req.Tool.InputSchema, append(docs, req.Args, d.EditedArgs)...)
}

func (a *app) newMask(schema []byte, docs ...[]byte) *display.Mask {
	m := &display.Mask{}
	m.Teach(schema)
	m.Learn(docs...)
	a.mask.Share(m)
	return m
}

// requestOf is what an approval asks for. One that was altered so that it cannot
// be read is shown without it.
func requestOf(d decision.Decision) request.Request {
	req, err := request.Decode(d.Request)
	if err != nil {
		return request.Request{}
	}
	return req
}

// approvalObject is an approval as every door writes it, with its secrets masked.
func (a *app) approvalObject(d decision.Decision) decision.Object {
	m := a.maskOf(d, requestOf(d))
	o := d.Object()
	o.Reason, o.Note, o.Metadata = m.Text(o.Reason), m.Text(o.Note), masked(m, o.Metadata)
	o.Args, o.EditedArgs = jsonOrNone(m.JSON, o.Args), jsonOrNone(m.JSON, o.EditedArgs)
	o.Capability, o.Presentation = jsonOrNone(m.Scrub, o.Capability), jsonOrNone(m.Scrub, o.Presentation)
	return o
}

func jsonOrNone(mask func([]byte) []byte, doc []byte) json.RawMessage {
	if len(doc) == 0 {
		return nil
	}
	return mask(doc)
}

func masked(m *display.Mask, words map[string]string) map[string]string {
	if len(words) == 0 {
		return nil
	}
	out := make(map[string]string, len(words))
	for k, v := range words {
		out[k] = m.Text(v)
		if display.SecretName(k) {
			out[k] = display.Masked
		}
	}
	return out
}

// callObject is a call as every door writes it, with its secrets masked.
func callObject(c call.Call, as []call.Attempt, m *display.Mask) call.Object {
	o := c.Object(as)
	o.Args, o.Result, o.Message = jsonOrNone(m.JSON, c.Args), jsonOrNone(m.Scrub, c.Result), m.Text(o.Message)
	for i := range o.Attempts {
		o.Attempts[i].EditedArgs = jsonOrNone(m.JSON, o.Attempts[i].EditedArgs)
	}
	return o
}

func eventObjectOf(e event.Event, m *display.Mask) eventObject {
	return eventObject{
		Cursor: event.CursorOf(e), Stream: e.Stream, StreamSeq: e.StreamSeq, At: stamp(e.At), Type: e.Type, Subject: e.Subject,
		Actor: e.Actor, Payload: jsonOrNone(m.Scrub, e.Payload), Hash: hex.EncodeToString(e.Hash),
	}
}
