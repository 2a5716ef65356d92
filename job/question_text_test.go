package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/decision"
)

// Who answers or takes back is named, in 1 to 200 characters; a note has at most 10,000.
// Characters are counted, whatever they take, and what is refused changes nothing.
func TestQuestionTexts(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("\U0001F642", n-1) + "é" }
	type door struct {
		try    func(a *asker, id, by, note string) (decision.Decision, error)
		notes  bool
		stored func(a *asker, id string) (by, note string)
	}
	for name, d := range map[string]door{
		"resolve": {func(a *asker, id, by, note string) (decision.Decision, error) {
			return a.op.Resolve(a.ctx, a.j.ID, id, decision.Answering{Choice: "approve", By: by, Note: note})
		}, true, func(a *asker, id string) (by, note string) {
			d := a.decision(id)
			return d.DecidedBy, d.Note
		}},
		"withdraw": {func(a *asker, id, by, _ string) (decision.Decision, error) {
			return a.bot().WithdrawQuestion(a.ctx, a.j.ID, id, by, "")
		}, false, func(a *asker, id string) (by, note string) {
			es := a.of(id)
			return es[len(es)-1].Actor, a.decision(id).Note
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := askingJob(t)
			q := a.asks()
			before := a.all()
			refused := map[string][2]string{
				"nobody":        {"", ""},
				"a long name":   {text(201), ""},
				"NUL in it":     {"a\x00b", ""},
				"no UTF-8":      {"a\xff", ""},
				"a long note":   {"ana", text(10_001)},
				"NUL in a note": {"ana", "\x00"},
				"a broken note": {"ana", "a\xed\xa0\x80"},
			}
			for what, of := range refused {
				if of[1] != "" && !d.notes {
					continue
				}
				if _, err := d.try(a, q.ID, of[0], of[1]); !errors.Is(err, decision.ErrUsage) {
					t.Errorf("%s: %v", what, err)
				}
			}
			a.unchanged(before)
			by, note := text(200), ""
			if d.notes {
				note = text(10_000)
			}
			if _, err := d.try(a, q.ID, by, note); err != nil {
				t.Fatal(err)
			}
			if gotBy, gotNote := d.stored(a, q.ID); gotBy != by || gotNote != note {
				t.Errorf("stored by %d characters with a note of %d", len([]rune(gotBy)), len([]rune(gotNote)))
			}
		})
	}
}

// Who asks is recorded as it is named: what cannot be is refused.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	before := a.all()
	for _, by := range []string{"a\x00b", "a\xff", strings.Repeat("x", decision.MaxPrincipal+1)} {
		if _, err := a.op.Ask(a.ctx, "main", a.j.ID, decision.Asking{Prompt: "p", By: by}); !errors.Is(err, decision.ErrUsage) {
			t.Errorf("%.20q: %v", by, err)
		}
	}
	a.unchanged(before)
	by := strings.Repeat("x", decision.MaxPrincipal)
	if q := a.ask(decision.Asking{Prompt: "p", By: by}); a.decision(q.ID).RequestedBy != by {
		t.Errorf("asked by %q", a.decision(q.ID).RequestedBy)
	}
	if q := a.ask(decision.Asking{Prompt: "p"}); a.decision(q.ID).RequestedBy != "" || a.of(q.ID)[0].Actor != "system" {
		t.Errorf("nobody asked: %+v", a.of(q.ID)[0])
	}
}

// What is asked is bounded in characters, and kept and told as it was given.
func TestQuestionBounds(t *testing.T) {
	t.Parallel()
	a := askingJob(t)
	options := make([]string, decision.MaxOptions)
	for i := range options {
		options[i] = strings.Repeat("é", i%decision.MaxOption+1)
	}
	options[49] = strings.Repeat("x", decision.MaxOption)
	q := a.ask(decision.Asking{Prompt: strings.Repeat("é", decision.MaxPrompt), Options: options, Timeout: decision.MaxTimeout})
	d := a.decision(q.ID)
	if d.Prompt != strings.Repeat("é", decision.MaxPrompt) || len(d.Options) != decision.MaxOptions || d.Options[49] != options[49] || d.ExpiresAt.Sub(d.CreatedAt) != decision.MaxTimeout {
		t.Errorf("kept as %+v", d)
	}
	if err := d.Intact(); err != nil {
		t.Error(err)
	}
	before := a.all()
	for name, over := range map[string]decision.Asking{
		"prompt":             {Prompt: strings.Repeat("é", decision.MaxPrompt+1)},
		"options":            {Prompt: "p", Options: append(options[:50:50], "y")},
		"repeated options":   {Prompt: "p", Options: strings.Split(strings.Repeat("a,", 50)+"a", ",")}, // counted before they collapse
		"an option":          {Prompt: "p", Options: []string{"a", strings.Repeat("é", decision.MaxOption+1)}},
		"time":               {Prompt: "p", Timeout: decision.MaxTimeout + second},
		"no time":            {Prompt: "p", Timeout: -second},
		"part of a second":   {Prompt: "p", Timeout: second / 2},
		"a key of 201 bytes": {Prompt: "p", IdempotencyKey: strings.Repeat("k", 201)},
	} {
		if _, err := a.op.Ask(a.ctx, "main", a.j.ID, over); !errors.Is(err, decision.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.unchanged(before)
}
