package job_test

import (
	"errors"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
)

// An answer's input is held against the form; one that fills nothing in is one answer,
// however it is spelled, and its repeat changes nothing.
func TestInputOfAnAnswer(t *testing.T) {
	t.Parallel()
	const required = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for name, tt := range map[string]struct {
		form  string
		takes map[string]string // input → as it is kept; "-": none
		not   map[string]error
	}{
		"no form":        {"", map[string]string{"-": "-", "null": "-", "{}": "-"}, map[string]error{`{"n":1}`: decision.ErrUsage, `[]`: decision.ErrUsage, `{`: decision.ErrUsage}},
		"nothing needed": {form, map[string]string{"-": "{}", "null": "{}", "{ }": "{}", `{"n":1}`: `{"n":1}`}, map[string]error{`{"n":"x"}`: tool.ErrInvalidArguments, `[]`: tool.ErrInvalidArguments, `{"n":1} {}`: decision.ErrUsage}},
		"something is":   {required, map[string]string{`{"n":1}`: `{"n":1}`}, map[string]error{"-": tool.ErrInvalidArguments, "null": tool.ErrInvalidArguments, "{}": tool.ErrInvalidArguments}},
		"a form of null": {"null", map[string]string{"-": "-", "{}": "-"}, map[string]error{`{"n":1}`: decision.ErrUsage}},
		"a name twice":   {form, nil, map[string]error{`{"n":1,"n":2}`: decision.ErrUsage}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			asking := decision.Asking{Prompt: "p"}
			if tt.form != "" {
				asking.Form = []byte(tt.form)
			}
			answer := func(id, input string) (decision.Decision, error) {
				with := decision.Answering{Choice: "approve", By: "ana"}
				if input != "-" {
					with.Input = []byte(input)
				}
				return a.op.Resolve(a.ctx, a.j.ID, id, with)
			}
			for input, want := range tt.not {
				q := a.ask(asking)
				before := a.all()
				if _, err := answer(q.ID, input); !errors.Is(err, want) {
					t.Errorf("%s: %v", input, err)
				}
				a.unchanged(before)
			}
			for input, kept := range tt.takes {
				q := a.ask(asking)
				if _, err := answer(q.ID, input); err != nil {
					t.Errorf("%s: %v", input, err)
					continue
				}
				if d := a.decision(q.ID); kept == "-" && d.Input != nil || kept != "-" && string(d.Input) != kept {
					t.Errorf("%s is kept as %q", input, d.Input)
				}
				before := a.all()
				for again, as := range tt.takes {
					_, err := answer(q.ID, again)
					if same := as == kept; same && err != nil || !same && !errors.Is(err, decision.ErrChoiceConflict) {
						t.Errorf("%s after %s: %v", again, input, err)
					}
				}
				a.unchanged(before)
			}
		})
	}
}

// Somebody who answers otherwise is told the answer that stands, choice and input.
func TestConflictIsTold(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	q := a.ask(decision.Asking{Prompt: "p", Options: []string{"ja", "nein"}, Form: []byte(form)})
	if _, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, decision.Answering{Choice: "ja", Input: []byte(`{"n":1}`), By: "Ana", Note: "why"}); err != nil {
		t.Fatal(err)
	}
	before := a.all()
	for name, with := range map[string]decision.Answering{
		"another choice":    {Choice: "nein", Input: []byte(`{"n":1}`)},
		"another input":     {Choice: "ja", Input: []byte(`{"n":2}`)},
		"no input":          {Choice: "ja"},
		"one not offered":   {Choice: "vielleicht"},
		"one that is unfit": {Choice: "ja", Input: []byte(`{"n":"x"}`)},
	} {
		with.By = "Bo"
		_, err := a.op.Resolve(a.ctx, a.j.ID, q.ID, with)
		st, ok := decision.StandingOf(err)
		if f := fault.From(err); f.Reason != "choice_conflict" || f.Code != fault.Conflict || !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if st.DecisionID != q.ID || st.Status != decision.Resolved || st.Choice != "ja" || string(st.Input) != `{"n":1}` || st.By != "Ana" || st.Principal != "user:ana" || st.Note != "why" {
			t.Errorf("%s: what stands is %+v", name, st)
		}
	}
	a.unchanged(before)
}
