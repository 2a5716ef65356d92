package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
	"github.com/placet-dev/placet/tool"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	base := func() rules.Rule {
		return rules.Rule{Name: "r", When: "true", Outcome: policy.Deny}
	}
	other := base()
	other.Name = "s"
	changed := map[string]func(*rules.Rule){
		"name":             func(r *rules.Rule) { r.Name = "q" },
		"when":             func(r *rules.Rule) { r.When = "true " },
		"outcome":          func(r *rules.Rule) { r.Outcome = policy.Abort },
		"reason":           func(r *rules.Rule) { r.Reason = "x" },
		"kind":             func(r *rules.Rule) { r.Kind = "x" },
		"expires_in":       func(r *rules.Rule) { r.ExpiresIn = time.Second },
		"grant_expires_in": func(r *rules.Rule) { r.GrantExpiresIn = time.Second },
		"edits":            func(r *rules.Rule) { r.ForbidEdits = true },
		"presentation":     func(r *rules.Rule) { r.Presentation = map[string]string{"a": "1"} },
		"capability":       func(r *rules.Rule) { r.Capability = map[string]string{"a": "1"} },
	}
	seen := map[string]string{}
	see := func(name string, p *rules.Policy) {
		v := p.Version()
		if !strings.HasPrefix(v, "sha256-placet1:") {
			t.Errorf("%s: version %q", name, v)
		}
		if first, ok := seen[v]; ok {
			t.Errorf("%s and %s share a version", first, name)
		}
		seen[v] = name
	}
	see("base", newPolicy(t, base()))
	see("no rules", newPolicy(t))
	see("two", newPolicy(t, base(), other))
	see("two, swapped", newPolicy(t, other, base()))
	for name, change := range changed {
		r := base()
		change(&r)
		see(name, newPolicy(t, r))
	}
	strict, err := rules.New([]rules.Rule{base()}, policy.SideEffects{Outcomes: map[tool.SideEffect]policy.Outcome{}})
	if err != nil {
		t.Fatal(err)
	}
	see("another fallback", strict)

	moved := base()
	moved.At = rules.Position{File: "x.yaml", Line: 9}
	moved.Presentation = map[string]string{}
	if newPolicy(t, moved).Version() != newPolicy(t, base()).Version() {
		t.Error("where a rule stands changes the version")
	}
}

// live is a fallback whose rules change while it is in use.
type live struct {
	policy.Policy
	version string
}

func (l *live) Version() string { return l.version }

func TestVersionFollowsTheFallback(t *testing.T) {
	t.Parallel()
	l := &live{policy.Default(), "1"}
	p, err := rules.New([]rules.Rule{{Name: "r", When: "false", Outcome: policy.Deny}}, l)
	if err != nil {
		t.Fatal(err)
	}
	first := p.Version()
	l.version = "2"
	second := p.Version()
	l.version = "1"
	if first == second || p.Version() != first {
		t.Errorf("%s, %s, %s", first, second, p.Version())
	}
}
