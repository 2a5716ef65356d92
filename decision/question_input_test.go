package decision_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
)

// plainQuestion is one that asks for a choice alone.
func plainQuestion(t *testing.T) decision.Decision {
	t.Helper()
	q, err := decision.Asking{Prompt: "Go on?", Options: []string{"yes", "no"}, By: "bot"}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d, err := q.Asked("dec_2", event.MainSpace, decision.Ref{Kind: decision.OwnerJob, ID: "job_1"}, 1, noon, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func yesWith(d decision.Decision, input string) decision.Resolve {
	r := yes(d)
	if input != "" {
		r.Input = []byte(input)
	}
	return r
}

// no input at all, in every spelling.
var nothings = []string{"", "null", "{}", " { } ", "\tnull\n"}

// An answer that fills nothing in is one answer, however it is spelled.
func TestNoInputIsOneAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d    decision.Decision
		want string
	}{
		"with a form":    {question(t), `{}`},
		"without a form": {plainQuestion(t), ``},
	} {
		for _, first := range nothings {
			answered := step(t, tt.d, yesWith(tt.d, first), noon)
			if string(answered.Input) != tt.want || (answered.Input == nil) != (tt.want == "") {
				t.Errorf("%s: %q is kept as %q", name, first, answered.Input)
			}
			for _, again := range nothings {
				if ch, err := answered.Step(yesWith(tt.d, again), noon); err != nil || !ch.Repeated {
					t.Errorf("%s: %q after %q: %v", name, again, first, err)
				}
			}
		}
	}
}

// A row of a question with a form, answered without an input, may also have none.
func TestNoInputAsItWasStoredBefore(t *testing.T) {
	t.Parallel()
	d := question(t)
	answered := step(t, d, yes(d), noon)
	answered.Input = nil
	for _, again := range nothings {
		if ch, err := answered.Step(yesWith(d, again), noon); err != nil || !ch.Repeated {
			t.Errorf("%q: %v", again, err)
		}
	}
	if _, err := answered.Step(yesWith(d, `{"epochs":1}`), noon); !errors.Is(err, decision.ErrChoiceConflict) {
		t.Errorf("an input: %v", err)
	}
}

// Inputs are compared by value, and kept as they were given.
func TestInputIsComparedByValue(t *testing.T) {
	t.Parallel()
	d := question(t)
	answered := step(t, d, yesWith(d, `{ "epochs": 5, "note": "\u00e9" }`), noon)
	if string(answered.Input) != `{ "epochs": 5, "note": "\u00e9" }` {
		t.Errorf("kept as %s", answered.Input)
	}
	for input, same := range map[string]bool{
		`{"note":"é","epochs":5.0}`: true, `{"epochs":5}`: false, `{"epochs":6,"note":"é"}`: false, `{}`: false, ``: false, `null`: false,
		`{"epochs":"5","note":"é"}`: false,
	} {
		ch, err := answered.Step(yesWith(d, input), noon)
		if same != (err == nil && ch.Repeated) || !same && !errors.Is(err, decision.ErrChoiceConflict) {
			t.Errorf("%s: %+v, %v", input, ch, err)
		}
	}
}

// What is not asked for is refused, also where it is of no consequence.
func TestInputWithoutAForm(t *testing.T) {
	t.Parallel()
	d := plainQuestion(t)
	for _, input := range []string{`{"a":1}`, `[]`, `""`, `0`, `false`} {
		if _, err := d.Step(yesWith(d, input), noon); !errors.Is(err, decision.ErrUsage) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// A conflict says what the answer is that stands: to people, and to programs.
func TestConflictNamesTheStoredAnswer(t *testing.T) {
	t.Parallel()
	d := question(t)
	withInput, without := step(t, d, yesWith(d, "{\n \"epochs\": 5}"), noon), step(t, d, yes(d), noon)
	for name, tt := range map[string]struct {
		of    decision.Decision
		cmd   decision.Resolve
		says  []string
		input string
	}{
		"another input":      {withInput, yesWith(d, `{"epochs":6}`), []string{`"yes"`, "another input", `"ana"`}, `{"epochs":5}`},
		"no input":           {withInput, yes(d), []string{`"yes"`, "another input"}, `{"epochs":5}`},
		"an input, not none": {without, yesWith(d, `{"epochs":6}`), []string{`"yes"`, "without input"}, `{}`},
		"another choice":     {withInput, func() decision.Resolve { r := yes(d); r.Choice = "no"; return r }(), []string{`"yes"`, `"ana"`}, `{"epochs":5}`},
	} {
		_, err := tt.of.Step(tt.cmd, noon)
		if !errors.Is(err, decision.ErrChoiceConflict) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, words := range tt.says {
			if !strings.Contains(fault.From(err).Message, words) {
				t.Errorf("%s: %q does not name %s", name, err, words)
			}
		}
		st, ok := decision.StandingOf(err)
		if !ok || st.DecisionID != d.ID || st.Choice != "yes" || st.By != reviewer || string(st.Input) != tt.input {
			t.Errorf("%s: the standing answer is %+v", name, st)
		}
	}
	long := step(t, d, yesWith(d, `{"note":"`+strings.Repeat("é", 5000)+`"}`), noon)
	_, err := long.Step(yes(d), noon)
	if m := fault.From(err).Message; strings.Contains(m, "é") {
		t.Errorf("the text has the input, whose secrets only a door can hide: %.200s", m)
	}
	if st, _ := decision.StandingOf(err); len(st.Input) < 10_000 {
		t.Errorf("programs get %d bytes of it", len(st.Input))
	}
	long.Input = []byte(`{"altered`)
	if _, err := long.Step(yes(d), noon); !errors.Is(err, decision.ErrChoiceConflict) {
		t.Errorf("an input altered in the store: %v", err)
	}
}

// A form of null is no form, as options of null are the usual ones.
func TestNullFormIsNoForm(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"null", " null\n"} {
		q, err := decision.Asking{Prompt: "Go on?", Form: json.RawMessage(form)}.Checked()
		if err != nil || q.Form != nil {
			t.Errorf("%q: kept as %q, %v", form, q.Form, err)
		}
	}
	if _, err := (decision.Asking{Prompt: "Go on?", Form: []byte(`{}`)}).Checked(); !errors.Is(err, decision.ErrUsage) {
		t.Errorf("an empty form: %v", err)
	}
}
