package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
)

func (l *loader) rules(c *Config, list *node) {
	items := l.items(list, "rules")
	if len(items) == 0 {
		return
	}
	readable := make([]rules.Rule, 0, len(items))
	for i, item := range items {
		// A rule that is not even readable would only be refused again.
		if r, ok := l.rule(item, fmt.Sprintf("rule %d", i+1)); ok {
			readable = append(readable, r)
		}
	}
	p, err := rules.New(readable, policy.Default())
	var problems rules.Problems
	switch {
	case err == nil:
		c.Policy = p
	case errors.As(err, &problems):
		for _, p := range problems {
			l.refuseLine(p.Line, "%s", p.Text())
		}
	default:
		l.refuse(list, "%s", sentence(err))
	}
}

// rule reads one rule; ok is false if something in it was refused.
func (l *loader) rule(n *node, what string) (_ rules.Rule, ok bool) {
	if !l.isMapping(n, what) {
		return rules.Rule{}, false
	}
	before := l.refused
	if name := find(n, "name"); name != nil && name.Value != "" {
		what = "rule " + quoted(name.Value)
	}
	f := l.fields(n, what, "name", "when", "outcome", "reason", "kind", "expires_in", "grant_expires_in",
		"edits", "presentation", "capability")
	at := rules.Position{File: l.file, Line: n.Line, Lines: map[string]int{}}
	for key, value := range f.values {
		at.Lines[key] = textLine(value)
	}
	r := rules.Rule{
		Name:           l.text(f.get("name"), "the name of "+what),
		When:           l.raw(f.get("when"), "when of "+what),
		Outcome:        l.outcome(f.get("outcome"), what),
		Reason:         l.text(f.get("reason"), "the reason of "+what),
		Kind:           l.text(f.get("kind"), "the kind of "+what),
		ExpiresIn:      l.duration(f.get("expires_in"), "expires_in of "+what),
		GrantExpiresIn: l.duration(f.get("grant_expires_in"), "grant_expires_in of "+what),
		ForbidEdits:    l.word(f.get("edits"), "edits of "+what, "allow", "forbid") == "forbid",
		Presentation:   l.expressions(f.get("presentation"), "presentation", what, at),
		Capability:     l.expressions(f.get("capability"), "capability", what, at),
		At:             at,
	}
	if f.get("outcome") == nil {
		l.refuse(n, "%s has no outcome; write outcome: allow, require_approval, deny or abort", what)
	}
	return r, l.refused == before
}

func (l *loader) outcome(n *node, what string) policy.Outcome {
	return policy.Outcome(l.word(n, "outcome of "+what,
		string(policy.Allow), string(policy.RequireApproval), string(policy.Deny), string(policy.Abort)))
}

// expressions reads the CEL expressions of a document and notes their lines.
func (l *loader) expressions(n *node, field, what string, at rules.Position) map[string]string {
	if n == nil {
		return nil
	}
	exprs := map[string]string{}
	for key, value := range l.pairs(n, field+" of "+what) {
		exprs[key.Value] = l.raw(value, field+"."+key.Value+" of "+what)
		at.Lines[field+"."+key.Value] = textLine(value)
	}
	return exprs
}

// textLine is the line on which the text of a scalar begins: behind | and > it is the next.
func textLine(n *node) int {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Line + 1
	}
	return n.Line
}
