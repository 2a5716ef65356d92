package policy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func requestOf(class tool.SideEffect) request.Request {
	return request.Request{
		CallID: "c-1",
		Tool:   tool.Spec{Name: "push", SideEffect: class},
		Args:   []byte(`{"branch":"main"}`),
	}
}

func TestSideEffectsJudge(t *testing.T) {
	t.Parallel()
	custom := policy.SideEffects{Outcomes: map[tool.SideEffect]policy.Outcome{
		tool.ReadOnly:    policy.RequireApproval,
		tool.Destructive: policy.Abort,
		"odd":            "maybe",
	}}
	tests := []struct {
		name  string
		p     policy.Policy
		class tool.SideEffect
		want  policy.Outcome
	}{
		{"read only is allowed", policy.Default(), tool.ReadOnly, policy.Allow},
		{"local mutation is allowed", policy.Default(), tool.LocalMutation, policy.Allow},
		{"remote mutation needs a yes", policy.Default(), tool.RemoteMutation, policy.RequireApproval},
		{"destructive is denied", policy.Default(), tool.Destructive, policy.Deny},
		{"an unmapped class is denied", policy.Default(), "financial", policy.Deny},
		{"no class is denied", policy.Default(), "", policy.Deny},
		{"the zero value is the default", policy.SideEffects{}, tool.RemoteMutation, policy.RequireApproval},
		{"case matters", policy.Default(), "READ_ONLY", policy.Deny},
		{"an empty table denies everything", policy.SideEffects{Outcomes: map[tool.SideEffect]policy.Outcome{}}, tool.ReadOnly, policy.Deny},
		{"a custom table replaces the default", custom, tool.ReadOnly, policy.RequireApproval},
		{"a custom table can abort", custom, tool.Destructive, policy.Abort},
		{"a custom table has no default beneath it", custom, tool.LocalMutation, policy.Deny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.p.Evaluate(context.Background(), requestOf(tt.class), policy.View{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome != tt.want {
				t.Errorf("outcome %q, want %q", got.Outcome, tt.want)
			}
			if !strings.Contains(got.Reason, string(tt.class)) || got.Reason == "" {
				t.Errorf("reason %q does not name the class", got.Reason)
			}
			if _, err := got.Complete(requestOf(tt.class)); err != nil {
				t.Errorf("Complete: %v", err)
			}
		})
	}
}

func TestSideEffectsWithAnUnknownWordFailsClosed(t *testing.T) {
	t.Parallel()
	p := policy.SideEffects{Outcomes: map[tool.SideEffect]policy.Outcome{tool.ReadOnly: "Allow"}}
	r, err := p.Evaluate(context.Background(), requestOf(tool.ReadOnly), policy.View{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(requestOf(tool.ReadOnly)); err == nil {
		t.Error("the outcome Allow was accepted; the word is allow")
	}
}

func TestEveryClassHasADefault(t *testing.T) {
	t.Parallel()
	for _, class := range tool.SideEffects() {
		r, err := policy.Default().Evaluate(context.Background(), requestOf(class), policy.View{})
		if err != nil || strings.Contains(r.Reason, "no outcome") {
			t.Errorf("%s: %+v, %v", class, r, err)
		}
	}
}

func TestSideEffectsVersion(t *testing.T) {
	t.Parallel()
	table := func(pairs ...string) policy.SideEffects {
		m := map[tool.SideEffect]policy.Outcome{}
		for i := 0; i < len(pairs); i += 2 {
			m[tool.SideEffect(pairs[i])] = policy.Outcome(pairs[i+1])
		}
		return policy.SideEffects{Outcomes: m}
	}
	versions := map[string]string{}
	for name, p := range map[string]policy.Policy{
		"default":       policy.Default(),
		"empty":         table(),
		"one":           table("read_only", "allow"),
		"other outcome": table("read_only", "deny"),
		"other class":   table("destructive", "allow"),
		// Without quoting, the two below would read alike.
		"two":      table("a", "allow", "b", "deny"),
		"one, odd": table(`a"="allow" "b`, "deny"),
	} {
		v := policy.VersionOf(p)
		if v == "" {
			t.Errorf("%s has no version", name)
		}
		if other, ok := versions[v]; ok {
			t.Errorf("%s and %s share the version %s", name, other, v)
		}
		versions[v] = name
	}
	a, b := table("a", "allow", "b", "deny", "c", "abort"), table("c", "abort", "b", "deny", "a", "allow")
	if a.Version() != b.Version() {
		t.Error("the order in which a table is filled changes its version")
	}
}
