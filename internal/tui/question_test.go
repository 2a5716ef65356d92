package tui

import (
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/review"
)

const asks5 = `{"type":"object","required":["rate","mode"],"properties":{
	"rate":{"type":"number","title":"Rate","description":"With which rate?","default":0.5},
	"mode":{"type":"string","enum":["fast","slow"]},
	"again":{"type":"boolean"},
	"why":{"type":"string"},
	"key":{"type":"string","writeOnly":true}}}`

func TestAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.ask(decision.Asking{Prompt: "Continue past epoch 40?", Options: []string{"yes", "no", "later, when it is night"}, By: "ci"})
	p := w.at("ana", 80, 40)
	p.open(id)
	must2(t, "asked", p.until("A job asks", "> │ yes"))
	p.keys("tab")
	p.until("> │ no")
	p.keys("a")
	p.until("Answer with this?")
	p.settle()
	p.types("answer")
	must2(t, "word", p.until("> answer"))
	w.mustPend(id)
	p.keys("enter")
	must2(t, "answered", p.until("Recorded", "Answered\n"))
	if d := w.decision(id); d.Choice != "no" || d.DecidedBy != "ana" || d.DecidedPrincipal != "local:ana" {
		t.Errorf("got %+v", d)
	}
}

func TestAForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.ask(decision.Asking{Prompt: "With which rate?", Options: []string{"go on", "stop"}, Form: []byte(asks5)})
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("A job asks")
	p.keys("a")
	p.until("It also asks for", "0.5")
	for range 3 {
		p.keys("backspace")
	}
	p.types("x")
	p.keys("enter", "enter", "enter", "enter", "enter")
	p.until("does not fit", "rate: it is no number.")
	p.keys("backspace")
	p.types("0.25")
	p.keys("enter", "right", "right", "enter", "left", "enter")
	p.types("it is late")
	p.keys("enter")
	p.types("sk-123")
	if s := p.until("it is late"); strings.Contains(s, "sk-123") {
		t.Error("the secret is shown")
	}
	must2(t, "filled", p.until("< slow >", "< false >", "******"))
	p.keys("ctrl+e")
	p.until("It cannot be written as JSON here")
	p.keys("enter")
	p.until("Answer with this?")
	p.settle()
	must2(t, "word", p.until("Type the word answer", "hidden: a secret"))
	p.types("answer\n")
	p.until("Recorded")
	d := w.decision(id)
	if got, want := string(d.Input), `{"rate":0.25,"mode":"slow","again":false,"why":"it is late","key":"sk-123"}`; got != want || d.Choice != "go on" {
		t.Errorf("got %s with %s, want %s", d.Choice, got, want)
	}
}

// A form that is secret as a whole is filled in like any other, unseen.
func TestAFormThatIsSecretAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.ask(decision.Asking{Prompt: "Which one?", Options: []string{"go on"}, Form: []byte(`{"type":"object","writeOnly":true,"properties":{"which":{"type":"string"}}}`)})
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("A job asks")
	p.keys("a")
	p.until("It also asks for")
	p.types("one-23")
	if s := p.until("******"); strings.Contains(s, "one-23") {
		t.Error("it is shown")
	}
	p.keys("enter")
	p.until("Answer with this?")
	p.settle()
	p.types("answer\n")
	p.until("Recorded")
	if got := string(w.decision(id).Input); got != `{"which":"one-23"}` {
		t.Errorf("stored is %s", got)
	}
}

// A question that is answered elsewhere closes what was being filled in.
func TestAQuestionAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.ask(decision.Asking{Prompt: "Go on?", Form: []byte(asks5)})
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("A job asks")
	p.keys("a")
	p.until("It also asks for")
	if _, err := w.operator("bob").Resolve(t.Context(), "", id, decision.Answering{Choice: "deny", By: "bob", Input: []byte(`{"rate":1,"mode":"fast"}`)}); err != nil {
		t.Fatal(err)
	}
	p.until("It was answered before your answer", "with “deny” by bob")
}

// What an editor left is kept as it is, also where the line of the field cannot hold it.
func TestAFieldKeepsWhatItsLineCannotHold(t *testing.T) {
	t.Parallel()
	for _, v := range []string{`"plain"`, `""`, `"two\nlines"`, `"\u202eturned"`, `5`, `null`, `"` + strings.Repeat("x", 20_000) + `"`} {
		f := &field{Field: review.Field{Name: "why", Type: "string", Sort: review.TextField}}
		f.fill([]byte(v))
		if got, problem := f.value(); string(got) != v || problem != "" {
			t.Errorf("%.40s became %.40s, %q", v, got, problem)
		}
	}
}
