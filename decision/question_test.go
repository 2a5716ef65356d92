package decision_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
)

// question is a pending question of a job.
func question(t *testing.T) decision.Decision {
	t.Helper()
	q, err := decision.Asking{
		Prompt: "Continue past epoch 40?", Options: []string{"yes", "no", "yes"}, Timeout: time.Hour, By: "bot",
		Form: []byte(`{"type":"object","properties":{"epochs":{"type":"integer"}}}`),
	}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d, err := q.Asked("dec_1", event.MainSpace, decision.Ref{Kind: decision.OwnerJob, ID: "job_1"}, 1, noon, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func yes(d decision.Decision) decision.Resolve {
	return decision.Resolve{Choice: "yes", By: reviewer, Checked: d.Digest}
}

func TestAskingIsChecked(t *testing.T) {
	t.Parallel()
	ask := decision.Asking{Prompt: "Go on?"}
	with := func(change func(*decision.Asking)) decision.Asking {
		q := ask
		change(&q)
		return q
	}
	for name, q := range map[string]decision.Asking{
		"no prompt":            with(func(q *decision.Asking) { q.Prompt = "" }),
		"a blank prompt":       with(func(q *decision.Asking) { q.Prompt = " \n\t" }),
		"a long prompt":        with(func(q *decision.Asking) { q.Prompt = strings.Repeat("ä", decision.MaxPrompt+1) }),
		"NUL":                  with(func(q *decision.Asking) { q.Prompt = "a\x00" }),
		"no UTF-8":             with(func(q *decision.Asking) { q.Prompt = "a\xff" }),
		"no options":           with(func(q *decision.Asking) { q.Options = []string{} }),
		"many options":         with(func(q *decision.Asking) { q.Options = strings.Split(strings.Repeat("a,", 50)+"a", ",") }),
		"a blank option":       with(func(q *decision.Asking) { q.Options = []string{"a", " "} }),
		"a long option":        with(func(q *decision.Asking) { q.Options = []string{strings.Repeat("x", 201)} }),
		"half a second":        with(func(q *decision.Asking) { q.Timeout = 500 * time.Millisecond }),
		"a negative time":      with(func(q *decision.Asking) { q.Timeout = -time.Second }),
		"more than ten years":  with(func(q *decision.Asking) { q.Timeout = decision.MaxTimeout + time.Second }),
		"a form of no object":  with(func(q *decision.Asking) { q.Form = []byte(`{"type":"string"}`) }),
		"a form with a list":   with(func(q *decision.Asking) { q.Form = []byte(`{"type":"object","properties":{"a":{"type":"array"}}}`) }),
		"a form of no schema":  with(func(q *decision.Asking) { q.Form = []byte(`{"type":7}`) }),
		"a form without names": with(func(q *decision.Asking) { q.Form = []byte(`{"type":"object"}`) }),
	} {
		if _, err := q.Checked(); !errors.Is(err, decision.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	q, err := ask.Checked()
	if err != nil || len(q.Options) != 2 || q.Options[0] != "approve" || q.Options[1] != "deny" {
		t.Errorf("%+v, %v", q, err)
	}
}

// A prompt is told whole, and not escaped: 10,000 emoji are 40,000 bytes.
func TestAskingIsToldWhole(t *testing.T) {
	t.Parallel()
	q, err := decision.Asking{Prompt: strings.Repeat("\U0001F642", decision.MaxPrompt)}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d, err := q.Asked("dec_1", event.MainSpace, decision.Ref{Kind: decision.OwnerJob, ID: "job_1"}, 1, noon, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := d.Requested()
	var told struct {
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal(e.Payload, &told); err != nil || told.Prompt != q.Prompt || len(e.Payload) > 40_100 {
		t.Errorf("the event tells %d bytes of it, %v, in %d", len(told.Prompt), err, len(e.Payload))
	}
}

// What is told of an answer or a withdrawal is bounded, but for what the runtime withdraws.
func TestWhatIsToldFits(t *testing.T) {
	t.Parallel()
	d := question(t)
	commands := func(limit int) (resolve, withdraw, end decision.Command) {
		r := yes(d)
		r.MaxEventBytes = limit
		return r, decision.Withdraw{By: "bot", MaxEventBytes: limit}, decision.Withdraw{By: event.System, ByRuntime: true, MaxEventBytes: limit}
	}
	resolve, withdraw, end := commands(20)
	for name, cmd := range map[string]decision.Command{"resolve": resolve, "withdraw": withdraw} {
		if _, err := d.Step(cmd, noon); !errors.Is(err, decision.ErrTooLarge) {
			t.Errorf("%s in 20 bytes: %v", name, err)
		}
	}
	step(t, d, end, noon)
	resolve, withdraw, _ = commands(0)
	step(t, d, resolve, noon)
	step(t, d, withdraw, noon)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	d := question(t)
	answered := step(t, d, yes(d), noon)
	if answered.Status != decision.Resolved || answered.Choice != "yes" || answered.Open || answered.DecidedBy != reviewer {
		t.Fatalf("%+v", answered)
	}
	ch, err := answered.Step(yes(d), noon.Add(2*time.Hour))
	if err != nil || !ch.Repeated || len(ch.Events) != 0 || ch.Vote != nil {
		t.Errorf("the same answer again: %+v, %v", ch, err)
	}
	other := func(change func(*decision.Resolve)) decision.Resolve {
		r := yes(d)
		change(&r)
		return r
	}
	late := noon.Add(time.Hour + time.Microsecond)
	withdrawn := step(t, d, decision.Withdraw{By: "bot"}, noon)
	expired := step(t, d, decision.Expire{}, late)
	for name, tt := range map[string]struct {
		of   decision.Decision
		cmd  decision.Command
		want error
	}{
		"another choice":           {answered, other(func(r *decision.Resolve) { r.Choice = "no" }), decision.ErrChoiceConflict},
		"another input":            {answered, other(func(r *decision.Resolve) { r.Input = []byte(`{"epochs":5}`) }), decision.ErrChoiceConflict},
		"not offered":              {d, other(func(r *decision.Resolve) { r.Choice = "maybe" }), decision.ErrNotOffered},
		"withdrawn":                {withdrawn, yes(d), decision.ErrWithdrawn},
		"expired":                  {expired, yes(d), decision.ErrExpired},
		"its owner has ended":      {d, other(func(r *decision.Resolve) { r.Waiting = decision.ErrRunState }), decision.ErrRunState},
		"its own question":         {d, other(func(r *decision.Resolve) { r.Principal = "bot" }), decision.ErrSelfDecision},
		"input that does not fit":  {d, other(func(r *decision.Resolve) { r.Unfit = decision.ErrUsage }), decision.ErrUsage},
		"input of another form":    {d, other(func(r *decision.Resolve) { r.Checked = "other" }), decision.ErrApprovalChanged},
		"a withdrawal afterwards":  {answered, decision.Withdraw{By: "bot"}, decision.ErrNotPending},
		"an approval's yes":        {d, approve(), decision.ErrUsage},
		"an approval's spending":   {d, decision.Consume{Attempt: 1}, decision.ErrUsage},
		"an answer to an approval": {asked(t), yes(d), decision.ErrUsage},
	} {
		if ch, err := tt.of.Step(tt.cmd, noon); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %+v", name, err, ch)
		}
	}
	if s, ok := decision.StandingOf(answered.ErrDecided()); !ok || s.Choice != "yes" {
		t.Errorf("the standing answer is %+v", s)
	}
}

func TestResolveAtTheDeadline(t *testing.T) {
	t.Parallel()
	d := question(t)
	if ch, err := d.Step(yes(d), d.ExpiresAt); err != nil || ch.Next.Status != decision.Resolved {
		t.Errorf("at the instant: %v, %s", err, ch.Next.Status)
	}
	for name, cmd := range map[string]decision.Command{"resolve": yes(d), "withdraw": decision.Withdraw{By: "bot"}} {
		ch, err := d.Step(cmd, d.ExpiresAt.Add(time.Microsecond))
		if err != nil || ch.Next.Status != decision.Expired || !errors.Is(ch.Refuse, decision.ErrExpired) || len(ch.Events) != 1 ||
			ch.Events[0].Type != event.DecisionExpired {
			t.Errorf("%s just after: %+v, %v", name, ch, err)
		}
	}
	ch, err := d.Step(decision.Withdraw{By: event.System, ByRuntime: true}, d.ExpiresAt.Add(time.Hour))
	if err != nil || ch.Next.Status != decision.Withdrawn || ch.Refuse != nil {
		t.Errorf("its owner ends: %+v, %v", ch, err)
	}
}

func TestWithdrawTwice(t *testing.T) {
	t.Parallel()
	d := step(t, question(t), decision.Withdraw{By: "bot"}, noon)
	ch, err := d.Step(decision.Withdraw{By: "bot"}, noon)
	if err != nil || !ch.Repeated || len(ch.Events) != 0 {
		t.Errorf("%+v, %v", ch, err)
	}
}

// What is refused about a question speaks of a question.
func TestQuestionErrorsSpeakOfQuestions(t *testing.T) {
	t.Parallel()
	d := question(t)
	answered := step(t, d, yes(d), noon)
	withdrawn := step(t, d, decision.Withdraw{By: "bot"}, noon)
	other := yes(d)
	other.Choice = "no"
	own := yes(d)
	own.Principal = "bot"
	for name, err := range map[string]error{
		"its own":               refusal(d.Step(own, noon)),
		"taken back by another": refusal(d.Step(decision.Withdraw{By: "ana", Principal: "ana"}, noon)),
		"not overdue":           refusal(d.Step(decision.Expire{}, noon)),
		"another answer":        refusal(answered.Step(other, noon)),
		"withdrawn":             refusal(withdrawn.Step(yes(d), noon)),
		"late":                  refusal(d.Step(yes(d), noon.Add(2*time.Hour))),
		"decided":               answered.ErrDecided(),
		"closed":                refusal(step(t, d, decision.Close{}, noon).Step(yes(d), noon)),
		"altered":               func() error { e := d; e.Prompt = "?"; return e.Intact() }(),
	} {
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := f.Error() + string(f.Details); strings.Contains(strings.ToLower(text), "approv") || strings.Contains(text, "new call") {
			t.Errorf("%s: %s %s", name, f, f.Details)
		}
		if len(f.Details) > 0 && !strings.Contains(string(f.Details), `"decision_id":"dec_1"`) {
			t.Errorf("%s: %s", name, f.Details)
		}
		if st, ok := decision.StandingOf(err); len(f.Details) > 0 && (!ok || st.DecisionID != d.ID || st.ApprovalID != "") {
			t.Errorf("%s: standing %+v", name, st)
		}
	}
}

// refusal is the error of a step, written with it or not.
func refusal(ch decision.Change, err error) error {
	if err == nil {
		err = ch.Refuse
	}
	return err
}

// Options are compared by their characters; where two only look the same, the refusal
// shows the difference.
func TestAnOptionInAnotherUnicodeForm(t *testing.T) {
	t.Parallel()
	q, err := decision.Asking{Prompt: "Where?", Options: []string{"caf\u00e9", "home"}, By: "bot"}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d, err := q.Asked("dec_1", event.MainSpace, decision.Ref{Kind: decision.OwnerJob, ID: "job_1"}, 1, noon, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Step(decision.Resolve{Choice: "cafe\u0301", By: reviewer}, noon)
	if !errors.Is(err, decision.ErrNotOffered) || !strings.Contains(err.Error(), `"caf\u00e9"`) || !strings.Contains(err.Error(), `"cafe\u0301"`) || !strings.Contains(err.Error(), "Unicode form") {
		t.Errorf("decomposed: %v", err)
	}
	if _, err = d.Step(decision.Resolve{Choice: "cafe", By: reviewer}, noon); !errors.Is(err, decision.ErrNotOffered) || strings.Contains(err.Error(), "Unicode") {
		t.Errorf("another text: %v", err)
	}
	if ch, err := d.Step(decision.Resolve{Choice: "caf\u00e9", By: reviewer}, noon); err != nil || ch.Next.Choice != "caf\u00e9" {
		t.Errorf("exactly: %v", err)
	}
}
