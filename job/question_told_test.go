package job_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// told compares the data of an event field by field, and none is missing or too much.
func (a *asker) told(e event.Event, t event.Type, subject, actor string, want map[string]any) {
	a.Helper()
	if e.Type != t || e.Subject != subject || e.Actor != actor || e.Stream != a.j.Stream() || e.Space != event.MainSpace {
		a.Errorf("%s about %s by %s in %s of %s; want %s about %s by %s", e.Type, e.Subject, e.Actor, e.Stream, e.Space, t, subject, actor)
	}
	var got map[string]any
	if err := json.Unmarshal(e.Payload, &got); err != nil {
		a.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.Errorf("%s tells (-want +got)\n%s", t, diff)
	}
}

func TestWhatIsToldOfAQuestion(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q := a.ask(decision.Asking{Prompt: "Weiter über 40? <\u2028>", Options: []string{"ja", "nein", "ja"}, Timeout: second, Form: []byte(form), By: "bot"})
	a.told(a.of(q.ID)[0], event.DecisionRequested, q.ID, "bot", map[string]any{
		"decision_id": q.ID, "prompt": "Weiter über 40? <\u2028>", "options": []any{"ja", "nein"}, "expires_at": txn.Stamp(q.ExpiresAt),
		"form": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}, "why": map[string]any{"type": "string"}}},
	})
	if at := txn.Stamp(a.clock.Now().Add(second)); txn.Stamp(q.ExpiresAt) != at {
		t.Errorf("it expires at %s, want %s", txn.Stamp(q.ExpiresAt), at)
	}
	plain := a.ask(decision.Asking{Prompt: "p"})
	a.told(a.of(plain.ID)[0], event.DecisionRequested, plain.ID, event.System, map[string]any{
		"decision_id": plain.ID, "prompt": "p", "options": []any{"approve", "deny"},
	})
}

// The whole of an answer in the store: the row, the vote, what is told, and the counters.
func TestWhatIsKeptOfAnAnswer(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q, plain := a.ask(decision.Asking{Prompt: "p", Options: []string{"ja", "nein"}, Form: []byte(form), By: "bot"}), a.ask(decision.Asking{Prompt: "p"})
	at := a.clock.Advance(second)
	op := a.op
	op.Verified = true
	got, err := op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "ja", Input: []byte(`{ "n": 5, "why": "ü" }`), By: "Ana", Note: "a secret thought"})
	if err != nil {
		t.Fatal(err)
	}
	want := q.Decision
	want.Status, want.Open, want.Choice, want.Input = decision.Resolved, false, "ja", []byte(`{ "n": 5, "why": "ü" }`)
	want.DecidedBy, want.DecidedPrincipal, want.Verified, want.Note = "Ana", "user:ana", true, "a secret thought"
	want.DecidedAt, want.SettledAt, want.Version = at, at, q.Version+1
	for what, d := range map[string]decision.Decision{"row": a.decision(q.ID), "answer": got} {
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("the %s (-want +got)\n%s", what, diff)
		}
	}
	a.told(a.of(q.ID)[1], event.DecisionResolved, q.ID, "Ana", map[string]any{ // and not the note
		"decision_id": q.ID, "choice": "ja", "input": map[string]any{"n": 5.0, "why": "ü"}, "by": "Ana", "principal": "user:ana",
	})
	if _, err := (decision.Operator{Store: a.st}).Resolve(a.ctx, "", plain.ID, decision.Answering{Choice: "deny", By: "Bo"}); err != nil {
		t.Fatal(err)
	}
	a.told(a.of(plain.ID)[1], event.DecisionResolved, plain.ID, "Bo", map[string]any{"decision_id": plain.ID, "choice": "deny", "by": "Bo"})
	votes := []string{
		vote(q.ID, "user:ana", "Ana", "ja", `{ "n": 5, "why": "ü" }`, "a secret thought", at),
		vote(plain.ID, "", "Bo", "deny", "", "", at),
	}
	if diff := cmp.Diff(votes, a.votes()); diff != "" {
		t.Errorf("votes (-want +got)\n%s", diff)
	}
	a.counts(0, 2)
	before := a.all()
	for _, input := range []string{`{"why":"ü","n":5.0}`, `{ "n": 5, "why": "ü" }`} {
		again := decision.Answering{Choice: "ja", Input: []byte(input), By: "Another", Note: "again"}
		if d, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, again); err != nil || d.DecidedBy != "Ana" || d.Note != "a secret thought" || string(d.Input) != string(want.Input) {
			t.Errorf("the same answer again: %+v, %v", d, err)
		}
	}
	a.unchanged(before)
}

func TestWhatIsToldOfTheOtherEnds(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	taken, overdue, ended := a.asks(), a.brief(), a.asks()
	if _, err := a.bot().WithdrawQuestion(a.ctx, a.j.ID, taken.ID, "the bot", ""); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(2 * second)
	a.sweep(1)
	a.end()
	a.told(a.of(taken.ID)[1], event.DecisionWithdrawn, taken.ID, "the bot", map[string]any{"decision_id": taken.ID, "by": "the bot"})
	a.told(a.of(overdue.ID)[1], event.DecisionExpired, overdue.ID, event.System, map[string]any{"decision_id": overdue.ID})
	a.told(a.of(ended.ID)[1], event.DecisionWithdrawn, ended.ID, event.System, map[string]any{"decision_id": ended.ID, "by": event.System})
}

// The answer to asking says from where to wait: right behind what tells of the question.
func TestCursorOfAQuestion(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	other := a.asks()
	q := a.ask(decision.Asking{Prompt: "p", IdempotencyKey: "k"})
	behind := func(at event.Cursor) string {
		page, err := event.Read(a.ctx, a.st, a.j.Stream(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return types(page.Events)
	}
	if at := behind(q.Cursor); at != "" {
		t.Errorf("behind it at first: %s", at)
	}
	a.resolve(other.ID, "approve")
	a.asks()
	a.resolve(q.ID, "approve")
	for what, cursor := range map[string]event.Cursor{
		"asked": q.Cursor, "asked again": a.ask(decision.Asking{Prompt: "p", IdempotencyKey: "k"}).Cursor, "its event's": event.CursorOf(a.of(q.ID)[0]),
	} {
		if got := behind(cursor); got != "decision_resolved decision_requested decision_resolved" || cursor != q.Cursor {
			t.Errorf("%s: behind %s is %s", what, cursor, got)
		}
	}
	if got := behind(other.Cursor); got != "decision_requested decision_resolved decision_requested decision_resolved" {
		t.Errorf("behind the first: %s", got)
	}
}

// A choice that is not offered is refused, and those that are offered are listed.
func TestNotOffered(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q := a.ask(decision.Asking{Prompt: "p", Options: []string{"ja", `n"ein`, "é"}})
	before := a.all()
	for _, choice := range []string{"nein", "Ja", " ja", "", "approve"} {
		_, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: choice, By: "ana"})
		f := fault.From(err)
		if f.Reason != "not_offered" || f.Code != fault.Invalid || f.Advice != `It offers: "ja", "n\"ein", "é".` {
			t.Errorf("%q: %s %s %v", choice, f.Code, f.Reason, err)
		}
	}
	a.unchanged(before)
	a.resolve(q.ID, `n"ein`)
}
