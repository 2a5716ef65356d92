package rules

import (
	"time"

	"github.com/placet-dev/placet/policy"
)

// Limits of a rule file and of one evaluation.
const (
	MaxRules      = 1000   // rules in a policy
	MaxExpression = 10_000 // bytes of an expression
	MaxFields     = 100    // expressions in a presentation or capability
	MaxText       = 10_000 // bytes of a name, a reason or a kind

	// CostLimit bounds what all expressions of one evaluation may cost together, in CEL's
	// units: about one for each operation, and one for every ten bytes of text looked at.
	CostLimit = 100_000
	// TimeLimit bounds how long one evaluation may take. It is a second fence, far behind the
	// first: CostLimit is spent in some 30 ms, and is alike on every machine. A time near
	// that would fail good rules wherever a busy machine stalls for a moment.
	TimeLimit = time.Second
)

// Rule is one rule. Only the fields of its outcome matter.
type Rule struct {
	// Name is unique among the rules and stands in reasons and errors. Required.
	Name string
	// When is the condition, a CEL expression. Required; `true` always matches.
	When string
	// Outcome is what follows when the condition holds. Required.
	Outcome policy.Outcome
	// Reason is the sentence people read. Default: one that names the rule.
	Reason string
	// Kind names the sort of approval. Default: the tool's side-effect class.
	Kind string
	// ExpiresIn bounds how long a request may stay pending, GrantExpiresIn how old a
	// yes may be when it is acted on. 0: no limit of the rule's own.
	ExpiresIn, GrantExpiresIn time.Duration
	// ForbidEdits: a reviewer may not change the arguments.
	ForbidEdits bool
	// Presentation is what the reviewer is shown, and Capability what a yes permits: a CEL
	// expression for each key. Empty: {tool, args}.
	Presentation, Capability map[string]string
	// At is where the rule is written. It is only used in messages.
	At Position
}

// Position is a place in a file of rules.
type Position struct {
	File string
	Line int // of the rule, from 1; 0: not known
	// Lines has the lines on which the texts of the rule begin: by "name",
	// "when", "presentation.title". Default: Line.
	Lines map[string]int
}

func (p Position) line(field string) int {
	if n, ok := p.Lines[field]; ok {
		return n
	}
	return p.Line
}
