package cli

import (
	"context"
	"encoding/json"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// The daemon shows all of it to whoever brought it. At a terminal, and in what scripts
// keep, secrets are masked for everybody: a job that needs the answer it asked for
// reads it over HTTP.

// questionMask knows the secrets of a question's answer: its form says what is one.
func questionMask(q httpapi.Question) *display.Mask {
	m := &display.Mask{}
	m.Teach(q.Form)
	m.Learn(q.Input)
	return m
}

// emitQuestion prints a question for programs.
func (a *app) emitQuestion(q httpapi.Question) {
	m := questionMask(q)
	a.emitMasked(display.Members(a.mask.JSON(encode(q)), map[string]func([]byte) []byte{
		"form": schemaOf(q.Form), "input": m.JSON, "note": m.Scrub,
	}))
}

// schemaOf is a form for what was masked in its place: one is no secret for having a
// member called password; Schema knows.
func schemaOf(form []byte) func([]byte) []byte {
	return func([]byte) []byte { return (&display.Mask{}).Schema(form) }
}

// maskedEvent is an event of a job with the secrets in it masked.
func (a *app) maskedEvent(ctx context.Context, c *httpapi.Client, e event.Object) event.Object {
	e.Payload = a.jobPayload(e.Type, e.Payload, func() ([]byte, error) {
		q, err := c.GetQuestion(ctx, e.Subject)
		return q.Form, err
	})
	return e
}

// storedPayload is the same for an event that was read from the store.
func (a *app) storedPayload(ctx context.Context, st *store.Store, e event.Event) json.RawMessage {
	return a.jobPayload(e.Type, e.Payload, func() (form []byte, err error) {
		err = txn.View(ctx, st, func(tx decision.Tx) error {
			d, err := tx.Decision(e.Subject)
			form = d.Form
			return err
		})
		return form, err
	})
}

// jobPayload is what an event of a job tells, with the secrets in it masked. form reads
// the form of the question that it is about.
func (a *app) jobPayload(t event.Type, payload []byte, form func() ([]byte, error)) json.RawMessage {
	if len(payload) == 0 {
		return nil
	}
	how := map[string]func([]byte) []byte{}
	switch t {
	case event.JobOutput:
		m := &display.Mask{}
		m.Learn(payload)
		how["data"], how["message"] = m.Scrub, m.Scrub
	case event.DecisionRequested:
		var p struct{ Form json.RawMessage }
		if json.Unmarshal(payload, &p) == nil {
			how["form"] = schemaOf(p.Form)
		}
	case event.DecisionResolved:
		how["input"] = everything
		if f, err := form(); err == nil {
			m := &display.Mask{}
			m.Teach(f)
			how["input"] = m.JSON
		}
	}
	return display.Members(a.mask.JSON(payload), how)
}

// everything hides a document of which nobody says what in it is secret.
func everything([]byte) []byte {
	b, _ := json.Marshal(display.Masked) // a text always encodes
	return b
}
