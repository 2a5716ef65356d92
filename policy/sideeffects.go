package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// SideEffects judges by a tool's side-effect class alone. The zero value is the
// default policy (spec 1.1):
//
//	read_only, local_mutation   allow
//	remote_mutation             require approval
//	destructive                 deny
//
// A class without an outcome is denied.
type SideEffects struct {
	// Outcomes replaces the whole table above; it is not to be changed while the
	// policy is in use. Default: nil, the table above. An empty map denies everything.
	Outcomes map[tool.SideEffect]Outcome
}

var (
	_ Policy    = SideEffects{}
	_ Versioned = SideEffects{}
)

var defaultOutcomes = map[tool.SideEffect]Outcome{
	tool.ReadOnly:       Allow,
	tool.LocalMutation:  Allow,
	tool.RemoteMutation: RequireApproval,
	tool.Destructive:    Deny,
}

// Default is the policy that holds where no other is set: the zero [SideEffects].
func Default() Policy { return SideEffects{} }

// Evaluate looks up the class of r's tool. It never fails; an outcome that is no
// known word is answered as it stands, and [Ruling.Complete] refuses it.
func (p SideEffects) Evaluate(_ context.Context, r request.Request, _ View) (Ruling, error) {
	class := r.Tool.SideEffect
	o, ok := p.outcomes()[class]
	if !ok {
		return Ruling{
			Outcome: Deny,
			Reason:  fmt.Sprintf("The policy has no outcome for the side effect %q of the tool %q.", class, r.Tool.Name),
		}, nil
	}
	return Ruling{Outcome: o, Reason: classReason(r.Tool, o)}, nil
}

// Version spells out the table: it differs between two tables that can answer differently.
func (p SideEffects) Version() string {
	if p.Outcomes == nil {
		return defaultVersion
	}
	return versionOf(p.Outcomes)
}

var defaultVersion = versionOf(defaultOutcomes) // it is asked for in every transaction

func versionOf(table map[tool.SideEffect]Outcome) string {
	var b strings.Builder
	b.WriteString("side-effects/1")
	for _, class := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&b, " %q=%q", class, table[class])
	}
	return b.String()
}

func (p SideEffects) outcomes() map[tool.SideEffect]Outcome {
	if p.Outcomes == nil {
		return defaultOutcomes
	}
	return p.Outcomes
}

func classReason(s tool.Spec, o Outcome) string {
	what := "is refused"
	switch o {
	case Allow:
		what = "is allowed"
	case RequireApproval:
		what = "needs a person's yes"
	}
	return fmt.Sprintf("The tool %q %s (%s), which %s.", s.Name, s.SideEffect.Words(), s.SideEffect, what)
}
