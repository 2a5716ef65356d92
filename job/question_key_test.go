package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
)

const form = `{"type":"object","properties":{"n":{"type":"integer"},"why":{"type":"string"}}}`

// One question has one key: its repeat is answered with it, whatever became of it
// meanwhile, and nothing is written.
func TestQuestionAskedAgain(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(a *asker, q decision.AskedAt){
		"nothing":   func(*asker, decision.AskedAt) {},
		"answered":  func(a *asker, q decision.AskedAt) { a.resolve(q.ID, "deny") },
		"withdrawn": func(a *asker, q decision.AskedAt) { a.withdraw(q.ID) },
		"expired":   func(a *asker, _ decision.AskedAt) { a.clock.Advance(2 * second); a.sweep(1) },
		"overdue":   func(a *asker, _ decision.AskedAt) { a.clock.Advance(2 * second) },
		"ended":     func(a *asker, _ decision.AskedAt) { a.end() },
		"no room": func(a *asker, _ decision.AskedAt) {
			for range decision.MaxPendingOfJob - 1 {
				a.asks()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			asking := decision.Asking{Prompt: "Go on?", Timeout: second, Form: []byte(form), IdempotencyKey: "k", By: "bot"}
			first := a.ask(asking)
			meanwhile(a, first)
			before := a.all()
			spelled := asking
			spelled.Options, spelled.Form = []string{"approve", "deny", "approve"}, []byte(`{"properties":{"why":{"type":"string"},"n":{"type":"integer"}}, "type":"object"}`)
			for _, q := range []decision.Asking{asking, spelled} {
				again := a.ask(q)
				if now := a.decision(first.ID); again.ID != first.ID || again.Cursor != first.Cursor || !again.Same(now) {
					t.Errorf("answered with %+v, stored is %+v", again, now)
				}
			}
			a.unchanged(before)
		})
	}
}

// A key that stands for another question is refused, naming that one.
func TestQuestionKeyReused(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	asking := decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}, Timeout: second, Form: []byte(form), IdempotencyKey: "the key", By: "bot"}
	first := a.ask(asking)
	before := a.all()
	for name, change := range map[string]func(q *decision.Asking){
		"prompt":         func(q *decision.Asking) { q.Prompt = "Go on!" },
		"options":        func(q *decision.Asking) { q.Options = []string{"yes"} },
		"their order":    func(q *decision.Asking) { q.Options = []string{"no", "yes"} },
		"the usual ones": func(q *decision.Asking) { q.Options = nil },
		"deadline":       func(q *decision.Asking) { q.Timeout = 2 * second },
		"no deadline":    func(q *decision.Asking) { q.Timeout = 0 },
		"form":           func(q *decision.Asking) { q.Form = []byte(strings.Replace(form, "integer", "number", 1)) },
		"no form":        func(q *decision.Asking) { q.Form = nil },
		"a form of null": func(q *decision.Asking) { q.Form = []byte(`null`) },
	} {
		q := asking
		change(&q)
		_, err := a.op.Ask(a.ctx, "main", a.j.ID, q)
		if f := fault.From(err); err == nil || f.Code != fault.Conflict || !strings.Contains(f.Message, first.ID) || !strings.Contains(f.Message, "the key") || f.Advice == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.unchanged(before)
}

// A key counts for its job alone, and whole.
func TestQuestionKeysApart(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	first := a.ask(decision.Asking{Prompt: "Go on?", IdempotencyKey: "k"})
	seen := map[string]bool{first.ID: true}
	other := a.another(func(*job.Job) {})
	for _, tt := range []struct{ jobID, key string }{{other.ID, "k"}, {a.j.ID, "K"}, {a.j.ID, "k "}, {a.j.ID, ""}, {a.j.ID, ""}} {
		q, err := a.op.Ask(a.ctx, event.MainSpace, tt.jobID, decision.Asking{Prompt: "Go on?", IdempotencyKey: tt.key})
		if err != nil || seen[q.ID] {
			t.Errorf("the key %q in %s: %s, %v", tt.key, tt.jobID, q.ID, err)
		}
		seen[q.ID] = true
	}
	if _, err := a.op.Ask(a.ctx, "other", a.j.ID, decision.Asking{Prompt: "Go on?", IdempotencyKey: "k"}); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("from another space: %v", err)
	}
	a.counts(5, 5)
}
