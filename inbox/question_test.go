package inbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/token"
)

// Each option is answered exactly as it is written, also one that looks like nothing
// (case 040).
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	options := []string{"0", "false", "no", " padded ", "two\nlines", "<b>x</b>", "да", "null"}
	for i, option := range options {
		q := w.ask(decision.Asking{Prompt: "Which?", Options: options, By: "bot"})
		at := "/questions/" + q.ID
		p := b.get(at).want(200).has("The job train asks", "Which?", "train", "by bot")
		if got := len(p.buttons(at)); got != len(options) {
			t.Fatalf("%d buttons for %d options", got, len(options))
		}
		sent := with(p.form(at), "answer", fmt.Sprint(i), "note", "because")
		b.post(at, sent).want(200).has("Answered", "by ana", "because")
		b.post(at, sent).want(200)
		got := w.read(q.ID)
		if string(got.Choice) != option || got.DecidedBy != "ana" || got.Note != "because" {
			t.Errorf("%q is stored as %q by %q", option, got.Choice, got.DecidedBy)
		}
		if n := w.events(got)[event.DecisionResolved]; n != 1 {
			t.Errorf("%q was answered %d times", option, n)
		}
		other := fmt.Sprint((i + 1) % len(options))
		b.post(at, with(sent, "answer", other)).want(409).has("It was answered before your answer", "by ana")
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	q := w.ask(decision.Asking{Prompt: "Which?", Options: []string{"yes", "no"}, By: "bot"})
	at := "/questions/" + q.ID
	f := b.get(at).form(at)
	for _, answer := range []string{"", "yes", "2", "-1", "1.0", "0x0"} {
		b.post(at, with(f, "answer", answer)).want(400).has("The form has no answer.")
	}
	b.post(at, with(f, "answer", "0", "digest", "")).want(409)
	b.post(at, with(f, "answer", "0", "digest", "sha256-placet1:00")).want(409).has("not the question that was shown")
	b.post(at, with(f, "answer", "0", "form_token", "")).want(403)
	w.alter(`UPDATE decision SET prompt = ? WHERE id = ?`, []byte("Delete everything?"), q.ID)
	b.post(at, with(f, "answer", "0")).want(409).has("not the question that was shown")
	if got := w.read(q.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
}

// A secret that a form asks for is not shown while it is typed, nor in a page afterwards.
func TestAFormsSecret(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	q := w.ask(decision.Asking{Prompt: "Which key?", Options: []string{"on"}, By: "bot", Form: []byte(
		`{"type":"object","required":["n"],"properties":{"login":{"type":"string","format":"password"},"token":{"type":"integer"},"n":{"type":"integer"}}}`)})
	at := "/questions/" + q.ID
	p := b.get(at).want(200).hasNot("kept as it is")
	for _, n := range append(p.elements("input"), p.elements("textarea")...) {
		if name := attr(n, "name"); (name == "arg.login" || name == "arg.token") && attr(n, "type") != "password" {
			t.Errorf("%s is a %s %s", name, n.Data, attr(n, "type"))
		}
	}
	p = b.post(at, with(trim(p.form(at)), "answer", "0", "arg.login", "typed-secret")).want(422).has("n: it is needed.")
	if strings.Contains(p.raw, "typed-secret") {
		t.Error("what was typed is in the page")
	}
	b.post(at, with(trim(p.form(at)), "answer", "0", "arg.n", "1", "arg.login", "typed-secret", "arg.token", "x")).want(422).has("token: it is no number.")
	p = b.post(at, with(trim(p.form(at)), "answer", "0", "arg.n", "1", "arg.login", "typed-secret", "arg.token", "42")).want(200).has("Answered")
	if strings.Contains(p.raw, "typed-secret") {
		t.Error("the answer is in the page")
	}
	if got := string(w.read(q.ID).Input); got != `{"login":"typed-secret","token":42,"n":1}` {
		t.Errorf("stored is %s", got)
	}
}

// A form's values are held against its schema, and what was written is not lost.
func TestAForm(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	q := w.ask(decision.Asking{Prompt: "How far?", Options: []string{"on", "stop"}, By: "bot", Form: []byte(
		`{"type":"object","required":["epochs"],"properties":{"epochs":{"type":"integer","minimum":1},"why":{"type":"string"},"rate":{"type":"string","enum":["slow","fast"]},"save":{"type":"boolean"}}}`)})
	at := "/questions/" + q.ID
	f := trim(b.get(at).has("epochs needed", "why", "rate", "save").form(at))
	b.post(at, with(f, "answer", "0")).want(422).has("epochs: it is needed.")
	p := b.post(at, with(f, "answer", "0", "arg.epochs", "0", "arg.why", "it learns", "note", "my note")).want(422).has("epochs")
	again := trim(p.form(at))
	if again.Get("arg.why") != "it learns" || again.Get("note") != "my note" {
		t.Errorf("what was written is gone: %q", again)
	}
	b.post(at, with(f, "answer", "0", "arg.epochs", "12", "arg.why", "it learns", "arg.rate", "1")).want(200).has("Answered", "epochs 12", "it learns", "fast")
	if got := w.read(q.ID); strings.ReplaceAll(string(got.Input), " ", "") != `{"epochs":12,"why":"itlearns","rate":"fast"}` {
		t.Errorf("stored is %s", got.Input)
	}
}

// A day is chosen where browsers know how; what is none is refused at its field, and so is
// one that the form needs.
func TestADay(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	q := w.ask(decision.Asking{Prompt: "When?", Options: []string{"then"}, By: "bot", Form: []byte(
		`{"type":"object","required":["day"],"properties":{"day":{"type":"string","format":"date","default":"2026-12-01"},
			"until":{"type":"string","format":"date","default":"soon"},"at":{"type":"string","format":"date-time"}}}`)})
	at := "/questions/" + q.ID
	p := b.get(at).want(200).has("Write it like 2026-11-30T14:05:00Z")
	for id, want := range map[string][2]string{"arg.day": {"date", "2026-12-01"}, "arg.until": {"date", ""}} {
		if in := p.byID(id); attr(in, "type") != want[0] || attr(in, "value") != want[1] {
			t.Errorf("%s is asked for as %q, filled with %q", id, attr(in, "type"), attr(in, "value"))
		}
	}
	f := trim(p.form(at))
	b.post(at, with(f, "answer", "0", "arg.day", "")).want(422).has("day: it is needed.")
	p = b.post(at, with(f, "answer", "0", "arg.day", "2026-02-30")).want(422)
	if problem := p.byID("arg.day-problem"); problem == nil || !strings.Contains(textIn(problem), "It is no date: write it like 2026-11-30.") {
		t.Error("a day that there is not is not refused at its field")
	}
	b.post(at, with(f, "answer", "0", "arg.day", "2026-12-24")).want(200).has("Answered", "2026-12-24")
	if got := string(w.read(q.ID).Input); got != `{"day":"2026-12-24"}` {
		t.Errorf("stored is %s", got)
	}
}

// A form begins with the defaults that its fields allow, except of a secret: nobody answers
// what is not shown.
func TestAFormsDefaults(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	q := w.ask(decision.Asking{Prompt: "How far?", Options: []string{"on"}, By: "bot", Form: []byte(
		`{"type":"object","properties":{"n":{"type":"integer","default":7},"why":{"type":"string","default":"a\u202eb"},"rate":{"enum":["slow","fast"],"type":"string","default":"fast"},
			"key":{"type":"string","writeOnly":true,"default":"sk-default"},"save":{"type":"boolean","default":"no"}}}`)})
	at := "/questions/" + q.ID
	p := b.get(at).want(200)
	f := trim(p.form(at))
	for name, want := range map[string]string{"arg.n": "7", "arg.why": `"a\u202eb"`, "arg.rate": "1", "arg.key": "", "arg.save": ""} {
		if got := f.Get(name); got != want {
			t.Errorf("%s is filled with %q, want %q", name, got, want)
		}
	}
	if strings.Contains(p.raw, "sk-default") {
		t.Error("a secret is in the form")
	}
	b.post(at, with(f, "answer", "0", "arg.n", "")).want(200).has("Answered")
	if got := string(w.read(q.ID).Input); got != `{"why":"a\u202eb","rate":"fast"}` {
		t.Errorf("stored is %s", got)
	}
}
