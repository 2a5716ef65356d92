package event

import (
	"encoding/hex"
	"encoding/json"

	"github.com/placet-dev/placet/txn"
)

// Object is an event as every door writes it (spec 4.3). Absent values are left out.
type Object struct {
	Cursor    Cursor          `json:"cursor"`
	Stream    string          `json:"stream"`
	StreamSeq int64           `json:"stream_seq"`
	At        string          `json:"at"`
	Type      Type            `json:"type"`
	Subject   string          `json:"subject,omitempty"`
	Actor     string          `json:"actor,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Redacted  bool            `json:"redacted,omitempty" doc:"its actor and payload were removed; hash is still its own"`
	Hash      string          `json:"hash"`
}

// Object is the event as every door writes it; at is the cursor behind it, in its
// own stream or among all.
func (e Event) Object(at Cursor) Object {
	o := Object{
		Cursor: at, Stream: e.Stream, StreamSeq: e.StreamSeq, At: txn.Stamp(e.At), Type: e.Type, Subject: e.Subject,
		Actor: e.Actor, Redacted: e.Redacted, Hash: hex.EncodeToString(e.Hash),
	}
	if json.Valid(e.Payload) {
		o.Payload = e.Payload
	}
	return o
}
