package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"github.com/placet-dev/placet/policy"
)

// rule is a Rule that is ready to be evaluated.
type rule struct {
	Rule
	when         cel.Program
	presentation fields
	capability   fields
}

// fields are the expressions of a document, in the order of their keys.
type fields struct {
	keys     []string
	programs []cel.Program
}

// compiler turns rules into programs and collects what is wrong with them.
type compiler struct {
	env      *cel.Env
	names    map[string]int // line of each name seen
	problems Problems
}

func (c *compiler) rules(rs []Rule) []rule {
	compiling.Lock()
	defer compiling.Unlock()
	out := make([]rule, 0, len(rs))
	for _, r := range rs {
		out = append(out, c.rule(r))
	}
	return out
}

func (c *compiler) rule(r Rule) rule {
	c.words(r)
	return rule{
		Rule:         r,
		when:         c.expression(r, "when", r.When, condition),
		presentation: c.fields(r, "presentation", r.Presentation),
		capability:   c.fields(r, "capability", r.Capability),
	}
}

// words checks everything but the expressions.
func (c *compiler) words(r Rule) {
	c.name(r)
	if !slices.Contains(outcomes, r.Outcome) {
		c.refuse(r, "outcome", 0, "%q is no outcome; write allow, require_approval, deny or abort", r.Outcome)
	}
	for field, text := range map[string]string{"name": r.Name, "reason": r.Reason, "kind": r.Kind} {
		if problem := textProblem(text); problem != "" {
			c.refuse(r, field, 0, "%s", problem)
		}
	}
	if r.ExpiresIn < 0 {
		c.refuse(r, "expires_in", 0, "a time limit cannot be negative; leave it out for none")
	}
	if r.GrantExpiresIn < 0 {
		c.refuse(r, "grant_expires_in", 0, "a time limit cannot be negative; leave it out for none")
	}
}

var outcomes = []policy.Outcome{policy.Allow, policy.RequireApproval, policy.Deny, policy.Abort}

func (c *compiler) name(r Rule) {
	if strings.TrimSpace(r.Name) == "" {
		c.refuse(r, "name", 0, "a rule needs a name; it stands in reasons and errors")
		return
	}
	if line, ok := c.names[r.Name]; ok {
		c.refuse(r, "name", 0, "another rule%s has this name; write a different one", onLine(line))
		return
	}
	c.names[r.Name] = r.At.Line
}

func onLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line)
}

func textProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "the text is not valid UTF-8"
	case strings.ContainsRune(s, 0):
		return "the text has a NUL character"
	case len(s) > MaxText:
		return fmt.Sprintf("the text has %d bytes; at most %d are allowed", len(s), MaxText)
	}
	return ""
}

func (c *compiler) fields(r Rule, name string, exprs map[string]string) fields {
	if len(exprs) > MaxFields {
		c.refuse(r, name, 0, "it has %d expressions; at most %d are allowed", len(exprs), MaxFields)
		return fields{}
	}
	f := fields{keys: slices.Sorted(maps.Keys(exprs))}
	for _, key := range f.keys {
		field := name + "." + key
		if problem := textProblem(key); problem != "" {
			c.refuse(r, field, 0, "%s", problem)
			continue
		}
		f.programs = append(f.programs, c.expression(r, field, exprs[key], showable))
	}
	return f
}

// expression compiles text; fits says what its type must be.
func (c *compiler) expression(r Rule, field, text string, fits func(*cel.Type) string) cel.Program {
	if problem := expressionProblem(text); problem != "" {
		c.refuse(r, field, 0, "%s", problem)
		return nil
	}
	ast, issues := c.env.Compile(text)
	if issues.Err() != nil {
		c.issues(r, field, issues)
		return nil
	}
	if problem := fits(ast.OutputType()); problem != "" {
		c.refuse(r, field, 0, "%s", problem)
		return nil
	}
	if !c.check(r, field, ast) {
		return nil
	}
	if allows(r, field) {
		elementsOnly(ast)
	}
	p, err := program(c.env, ast)
	if err != nil {
		c.refuse(r, field, 0, "%v", err)
	}
	return p
}

func expressionProblem(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "an expression is missing; write a condition such as tool == \"refund\", or true"
	case len(text) > MaxExpression:
		return fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(text), MaxExpression)
	case !utf8.ValidString(text):
		return "the expression is not valid UTF-8"
	}
	return ""
}

func condition(t *cel.Type) string {
	if t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) {
		return ""
	}
	return fmt.Sprintf("the expression gives a value of type %s; write one that is true or false", t)
}

func showable(t *cel.Type) string {
	if slices.Contains(hidden, t.Kind()) {
		return fmt.Sprintf("a value of type %s cannot be shown; turn it into a text with string()", t)
	}
	return ""
}

var hidden = []cel.Kind{cel.BytesKind, cel.TimestampKind, cel.DurationKind, cel.TypeKind}

func (c *compiler) refuse(r Rule, field string, column int, format string, args ...any) {
	c.refuseAt(r, field, r.At.line(field), column, format, args...)
}

func (c *compiler) refuseAt(r Rule, field string, line, column int, format string, args ...any) {
	c.problems = append(c.problems, Problem{
		Rule:    r.Name,
		Field:   field,
		File:    r.At.File,
		Line:    line,
		Column:  column,
		Message: fmt.Sprintf(format, args...),
	})
}
