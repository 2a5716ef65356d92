package delivery_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
)

// A message tells ids and what became of things, and nothing that people or programs
// wrote: that is read by who may.
func TestBody(t *testing.T) {
	t.Parallel()
	d := delivery.Delivery{ID: "dlv_1", TargetID: "tgt_1"}
	e := event.New(event.DecisionResolved, "dec_1", "ana", map[string]any{
		"decision_id": "dec_1", "status": "resolved", "late": true, "note": "secret", "args": map[string]any{"a": 1},
		"kind": map[string]any{"status": "no"}, "digest": strings.Repeat("x", 400), "delivery_id": "forged", "stream": "forged",
	})
	e.ID, e.Space, e.Stream, e.StreamSeq, e.At = "evt_1", "main", "job:job_1", 7, noon
	got := map[string]any{}
	mustDecode(d.Body(e), &got)
	want := map[string]any{
		"specversion": "1.0", "id": "evt_1", "source": "placet:main", "type": "dev.placet.decision_resolved", "subject": "dec_1",
		"time": "2026-01-01T12:00:00Z", "datacontenttype": "application/json",
		"data": map[string]any{
			"type": "decision_resolved", "decision_id": "dec_1", "status": "resolved", "late": true, "job_id": "job_1", "delivery_id": "dlv_1", "target_id": "tgt_1",
			"stream": "job:job_1", "stream_seq": 7.0, "cursor": string(event.CursorOf(e)),
		},
	}
	if at, err := time.Parse(time.RFC3339Nano, got["time"].(string)); err != nil || !at.Equal(noon) {
		t.Errorf("%v", got["time"])
	}
	got["time"] = want["time"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a, b := d.Body(e), d.Body(e); string(a) != string(b) {
		t.Error("another body the second time")
	}
}

// What a job prints shows its name alone, and forges no fact; what was redacted shows
// nothing.
func TestBodyOfPrinted(t *testing.T) {
	t.Parallel()
	d := delivery.Delivery{ID: "dlv_1", TargetID: "tgt_1"}
	e := event.New(event.JobOutput, "job_1", "job", map[string]any{"type": "done", "approval_id": "apr_forged", "status": "approved", "data": map[string]any{"key": "secret"}})
	e.Stream, e.StreamSeq, e.At = "job:job_1", 1, noon
	data := dataOf(t, d.Body(e))
	if data["output"] != "done" || data["approval_id"] != nil || data["status"] != nil || data["data"] != nil {
		t.Errorf("%v", data)
	}
	for _, payload := range []string{"", "null", "[]", `"x"`, `{"type":1}`, "\xff"} {
		e.Payload = json.RawMessage(payload)
		if data := dataOf(t, d.Body(e)); data["output"] != nil && data["output"] != "" || data["job_id"] != "job_1" {
			t.Errorf("%q: %v", payload, data)
		}
	}
}

// What a target is asked for with is refused with what to write instead, or is made of
// it with the defaults.
func TestAdding(t *testing.T) {
	t.Parallel()
	cs := delivery.Channels{delivery.KindWebhook: newSink(), delivery.KindCommand: newSink()}
	hook := delivery.Adding{Type: delivery.KindWebhook, URL: "https://example.com"}
	of := func(change func(*delivery.Adding)) delivery.Adding {
		a := hook
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		stream string
		a      delivery.Adding
		says   string // empty: it is fine
	}{
		"webhook":           {"", hook, ""},
		"no type":           {"", of(func(a *delivery.Adding) { a.Type = "" }), "no type"},
		"later":             {"", of(func(a *delivery.Adding) { a.Type = "slack" }), "come later"},
		"unknown":           {"", of(func(a *delivery.Adding) { a.Type = "fax" }), "no type of target"},
		"no URL":            {"", of(func(a *delivery.Adding) { a.URL = "" }), "no URL"},
		"command":           {"job:j", delivery.Adding{Type: delivery.KindCommand, Command: []string{"x"}}, ""},
		"no command":        {"", delivery.Adding{Type: delivery.KindCommand}, "no command"},
		"command with URL":  {"", delivery.Adding{Type: delivery.KindCommand, Command: []string{"x"}, URL: "https://a"}, "no URL and no headers"},
		"relay with secret": {"", delivery.Adding{Type: delivery.KindRelay, Secret: "x"}, "no secret"},
		"secret":            {"", of(func(a *delivery.Adding) { a.Secret = "short" }), "whsec_"},
		"no events":         {"", of(func(a *delivery.Adding) { a.Events = []string{} }), "names 0 types"},
		"unknown event":     {"", of(func(a *delivery.Adding) { a.Events = []string{"done"} }), "is of type"},
		"a run's of a job":  {"job:j", of(func(a *delivery.Adding) { a.Events = []string{string(event.RunFinished)} }), "is of type"},
		"printed of a run":  {"run:r", of(func(a *delivery.Adding) { a.Events = []string{"output:done"} }), "is of type"},
		"printed":           {"", of(func(a *delivery.Adding) { a.Events = []string{"output:done"} }), ""},
		"printed, no name":  {"", of(func(a *delivery.Adding) { a.Events = []string{"output:"} }), "is of type"},
		"what is printed":   {"", of(func(a *delivery.Adding) { a.Events = []string{string(event.JobOutput)} }), "is of type"},
		"name":              {"", of(func(a *delivery.Adding) { a.Name = strings.Repeat("é", 201) }), "name is at most"},
		"no text":           {"", of(func(a *delivery.Adding) { a.Name = "a\x00" }), "name is at most"},
		"attempts":          {"", of(func(a *delivery.Adding) { a.MaxAttempts = 101 }), "max_attempts"},
		"negative":          {"", of(func(a *delivery.Adding) { a.MaxAttempts = -1 }), "max_attempts"},
		"delay":             {"", of(func(a *delivery.Adding) { a.RetryDelaySeconds = 3601 }), "second attempt"},
		"timeout":           {"", of(func(a *delivery.Adding) { a.TimeoutSeconds = 61 }), "one attempt"},
		"age":               {"", of(func(a *delivery.Adding) { a.MaxAgeSeconds = -1 }), "given up after"},
		"large":             {"", of(func(a *delivery.Adding) { a.Headers = map[string]string{"A": strings.Repeat("x", 70_000)} }), "the limit is"},
	} {
		got, err := cs.Target("main", c.stream, "ana", c.a)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says == "" && (got.MaxAttempts != 20 || got.RetryDelay != 5*time.Second || got.Timeout != 10*time.Second || got.MaxAge != 7*24*time.Hour || len(got.Events) == 0):
			t.Errorf("%s: %+v", name, got)
		case c.says != "" && (!errors.Is(err, delivery.ErrUsage) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A secret that is rotated signs beside the new one until its time is over.
func TestRotate(t *testing.T) {
	t.Parallel()
	w := setup(t)
	target := w.add("")
	next, err := w.desk.Rotate(w.ctx, target.ID, "", false)
	if err != nil || cmp.Equal(next.Secret, target.Secret) || !cmp.Equal(next.OldSecret, target.Secret) {
		t.Fatalf("%+v %v", next, err)
	}
	if n := len(next.Signing(w.now())); n != 2 {
		t.Errorf("%d secrets sign", n)
	}
	if n := len(next.Signing(next.OldUntil)); n != 1 {
		t.Errorf("%d secrets sign afterwards", n)
	}
	if _, err := w.desk.Rotate(w.ctx, target.ID, "", false); !errors.Is(err, delivery.ErrState) {
		t.Errorf("rotated again, and the first secret is cut off: %v", err)
	}
	if again, err := w.desk.Rotate(w.ctx, target.ID, "", true); err != nil || !cmp.Equal(again.OldSecret, next.Secret) {
		t.Errorf("%+v %v", again, err)
	}
	if got, err := delivery.ParseSecret(delivery.FormatSecret(next.Secret)); err != nil || !cmp.Equal(got, next.Secret) {
		t.Errorf("%v %v", got, err)
	}
	if _, err := w.desk.Rotate(w.ctx, w.relay("", "mine").ID, "", false); !errors.Is(err, delivery.ErrUsage) {
		t.Errorf("a relay's: %v", err)
	}
}

// What a message says of its root is true of every kind of stream.
func TestRootOfAMessage(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string][2]any{"job:job_1": {"job_1", nil}, "run:run_1": {nil, "run_1"}, "call:call_1": {nil, nil}} {
		d := delivery.Delivery{ID: "dlv_1", Stream: stream}
		data := dataOf(t, d.Body(event.Event{Stream: stream, StreamSeq: 1, Type: event.ApprovalRequested, Payload: json.RawMessage(`{"approval_id":"apr_1"}`)}))
		o := d.Object()
		if data["job_id"] != want[0] || data["run_id"] != want[1] || data["approval_id"] != "apr_1" || (o.JobID == "") != (want[0] == nil) || (o.RunID == "") != (want[1] == nil) {
			t.Errorf("%s: %v, %+v", stream, data, o)
		}
	}
}
