package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
)

// The rows of the noun tests are made by hand: no engine would make most of them.

// moment is a time to the microsecond, offset by so many of them.
func moment(us int64) time.Time { return time.UnixMicro(1_700_000_000_123_456 + us).UTC() }

// hard are texts that a database may take for something else, or change.
var hard = []string{
	"caf\u00e9", "cafe\u0301", // one word in both normal forms
	"\u00c5 \u212b A\u030a",         // one letter in three spellings
	"\u202eright to left", "\ufeff", // a mark of direction, a mark of order
	"a\U0001F600b", "\U0010FFFD", // beyond 16 bits
	"' OR 1=1 --", `"%_\`, "\r\n\t ", " ", "NULL", "\u2028", "<a>&amp;</a>",
	strings.Repeat("long ", 2000),
}

// blobs are bytes that have to come back as they were, down to nil and empty.
func blobs() map[string][]byte {
	return map[string][]byte{
		"nil":      nil,
		"empty":    {},
		"NUL":      []byte("a\x00b\x00"),
		"not text": {0xff, 0xfe, 0x00, 0xc3},
		"JSON":     []byte("{ \"b\": 1.0,\"a\" :[1e3, 0.10],\n\t\"b\":\"\\u00e9\", \"n\": 9007199254740993 }"),
		"null":     []byte("null"),
		"number":   []byte("12"),
		"1 MiB":    bytes.Repeat([]byte{0, 1, 0xfe, 'x'}, 1<<18),
	}
}

// parkedCall is a call that waits, as it is stored.
func parkedCall() call.Call {
	return call.Call{
		ID: id.New(id.Call), Space: event.MainSpace, RunID: id.New(id.Run), OwnRun: true, ExternalID: "order 7", Tool: "refund", SpecDigest: "spec", Recovery: call.RecoverByProbe,
		Args: []byte(`{"amount":1}`), ArgsDigest: "args", Principal: "agent:ana", Metadata: map[string]string{"ticket": "T-1", "é": "<&>"},
		ContinueBy: call.ByDaemon, NextTryAt: moment(1), Status: call.Pending, ApprovalID: id.New(id.Approval), ApprovalN: 1,
		Epoch: 1, CreatedAt: moment(0), Version: 1,
	}
}

// examples are calls that together set every field, as far as one can have it.
func examples() []call.Call {
	waiting, running, ended, plain := parkedCall(), parkedCall(), parkedCall(), parkedCall()
	running.Status, running.Attempts, running.Fence, running.Epoch = call.Running, 2, 3, 4
	running.LeaseUntil, running.LeaseOwner = moment(7), "host 1"
	ended.Status, ended.Kind, ended.Message, ended.Result = call.Failed, call.KindToolError, "no funds", []byte(`"r"`)
	ended.EffectiveDigest, ended.EndedAt, ended.Attempts, ended.Fence = "edited", moment(9), 1, 1
	plain.OwnRun, plain.ExternalID, plain.Principal, plain.Metadata = false, "", "", nil
	plain.ContinueBy, plain.NextTryAt, plain.Epoch = call.ByCaller, time.Time{}, 0
	return []call.Call{waiting, running, ended, plain}
}

// born is the event that stands for a call's creation in the noun tests.
func born(c call.Call) event.Event {
	return event.New(event.CallCreated, c.ID, "tester", map[string]string{"call_id": c.ID})
}

// insertCall writes a call and the event of its creation.
func (w *world) insertCall(c call.Call) call.Call {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.InsertCall(c, born(c)) })
	return w.call(c.ID)
}

func (w *world) call(id string) call.Call {
	w.Helper()
	return read(w, func(tx store.Tx) (call.Call, error) { return tx.Call(id) })
}

func (w *world) decision(id string) decision.Decision {
	w.Helper()
	return read(w, func(tx store.Tx) (decision.Decision, error) { return tx.Decision(id) })
}

// pendingDecision is an approval that waits, with every field that one can have.
func pendingDecision(c call.Call) decision.Decision {
	return decision.Decision{
		ID: id.New(id.Approval), Space: c.Space, Type: decision.Approval, Owner: c.Root(), N: 1,
		Kind: "payment", Capability: []byte(`{"c": 1}`), Presentation: []byte(`{"p": 2}`), Request: []byte(`{"r": 3}`),
		Digest: "digest", SpecDigest: "spec", ArgsDigest: "args", SpentDigest: "spent", Reason: "because", ForbidEdits: true,
		RunID: c.RunID, CallID: c.ID, StepID: "stp_1", Node: "publish", Tool: c.Tool, RequestedBy: "agent:ana",
		Metadata: map[string]string{"ticket": "T-1"}, CreatedAt: moment(0), ExpiresAt: moment(10), GrantTTL: 1500 * time.Microsecond,
		Status: decision.Pending, Open: true, Needs: 1, Epoch: 1, Version: 1,
	}
}

// spentDecision is d at the end of its way, with every field set that one has there.
func spentDecision(d decision.Decision) decision.Decision {
	d.Status, d.Open, d.Choice = decision.Consumed, false, decision.ChoiceApprove
	d.DecidedBy, d.DecidedPrincipal, d.DecidedAt, d.Verified, d.Note = "Ana", "user:ana", moment(3), true, "fine"
	d.EditedArgs, d.EditedDigest, d.EffectiveDigest = []byte(`{"amount":2}`), "edited", "effective"
	d.GrantExpiresAt, d.SettledAt, d.ConsumedAt, d.ConsumedBy, d.Epoch = moment(20), moment(3), moment(4), 1, 2
	return d
}

// answeredQuestion is a question with every field that only one can have.
func answeredQuestion(c call.Call) decision.Decision {
	return decision.Decision{
		ID: id.New(id.Question), Space: c.Space, Type: decision.Question, Owner: c.Root(), N: 4, Digest: "question",
		Prompt: "Continue past epoch 40?", Options: []string{"yes", "no"}, Form: []byte(`{"type":"object"}`), IdempotencyKey: "key-1",
		RequestedBy: "agent:ana", CreatedAt: moment(0), Status: decision.Resolved, Needs: 1, Choice: "yes", Input: []byte(`{"epochs": 5}`),
		DecidedBy: "Ana", DecidedAt: moment(3), SettledAt: moment(3), Note: "fine", Epoch: 1, Version: 1,
	}
}

// takenBack is an approval that who asked for it withdrew.
func takenBack(c call.Call) decision.Decision {
	d := pendingDecision(c)
	d.N, d.Status, d.Open, d.SettledAt, d.Note = 5, decision.Withdrawn, false, moment(3), "not needed"
	d.WithdrawnBy, d.WithdrawnPrincipal = "Ana", "agent:ana"
	return d
}

// insertDecision writes an approval below a call that exists.
func (w *world) insertDecision(d decision.Decision) decision.Decision {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.InsertDecision(d, asked(d)) })
	return w.decision(d.ID)
}

// closeDecision does what the end of an owner does to an approval that is open.
func (w *world) closeDecision(d decision.Decision) decision.Decision {
	w.Helper()
	ch, err := d.Step(decision.Close{}, moment(0))
	if err != nil {
		w.Fatal(err)
	}
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, ch) })
	return w.decision(d.ID)
}

func asked(d decision.Decision) event.Event {
	return event.New(event.ApprovalRequested, d.ID, "tester", map[string]string{"approval_id": d.ID})
}

// oneAttempt is an attempt with every field set.
func oneAttempt(c call.Call) call.Attempt {
	return call.Attempt{
		CallID: c.ID, N: 1, Fence: 5, Epoch: 2, ApprovalID: id.New(id.Approval), GrantDigest: "grant", EffectiveDigest: "effective",
		Args: []byte(`{"amount":2}`), Owner: "host 1", Recovery: call.RecoverByProbeKey, StartedAt: moment(1), EndedAt: moment(2),
		Outcome: call.Unknown, Kind: call.KindUnknownOutcome, Message: "lost", Late: true,
	}
}
