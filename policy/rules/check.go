package rules

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/policy"
)

// check refuses what CEL takes and a rule should not have. It reports whether
// nothing was found.
func (c *compiler) check(r Rule, field string, a *cel.Ast) bool {
	before := len(c.problems)
	v := &checker{
		source:  []rune(a.Source().Content()),
		info:    a.NativeRep().SourceInfo(),
		allows:  allows(r, field),
		problem: func(line, column int, message string) { c.at(r, field, line, column, message) },
	}
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(v.visit))
	return len(c.problems) == before
}

// allows reports whether a field is the condition of a rule that allows.
func allows(r Rule, field string) bool {
	return r.Outcome == policy.Allow && field == "when"
}

// at refuses a place inside the expression; line counts from 1 within it.
func (c *compiler) at(r Rule, field string, line, column int, message string) {
	first := r.At.line(field)
	if first > 0 {
		first += line - 1
	}
	c.refuseAt(r, field, first, column, "%s", message)
}

// checker looks at each node of one expression.
type checker struct {
	source  []rune
	info    *ast.SourceInfo
	allows  bool // the expression is the condition of a rule that allows
	problem func(line, column int, message string)
}

func (v *checker) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		v.literal(e)
	case ast.SelectKind:
		v.selection(e)
	case ast.StructKind:
		v.refuse(e, "messages are not known here; write a map: {\"key\": value}")
	case ast.CallKind:
		v.call(e)
	}
}

func (v *checker) refuse(e ast.Expr, message string) {
	l := v.info.GetStartLocation(e.ID())
	v.problem(l.Line(), l.Column()+1, message)
}

// literal refuses a number that the rule would compare rounded.
func (v *checker) literal(e ast.Expr) {
	f, ok := e.AsLiteral().(types.Double)
	if !ok {
		return
	}
	written := v.number(e)
	c, err := canon.Canonical([]byte(written))
	if err == nil && !writesBack(float64(f), c) {
		v.refuse(e, "a comparison would round the number "+shorten(written, 40)+"; write an integer, or at most 15 digits")
	}
}

var numberAt = regexp.MustCompile(`^-?(\d*)(\.\d+)?([eE][+-]?\d+)?`)

// number is a literal as it is written, in the form of JSON; empty if it is not found.
func (v *checker) number(e ast.Expr) string {
	o, ok := v.info.GetOffsetRange(e.ID())
	if !ok || int(o.Start) >= len(v.source) {
		return ""
	}
	text := numberAt.FindString(string(v.source[o.Start:]))
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	// CEL takes .5 and 007.5, JSON does not.
	text = strings.TrimLeft(text, "0")
	if text == "" || text[0] < '0' || text[0] > '9' {
		text = "0" + text
	}
	return sign + text
}

var runFields = []string{"id", "goal", "step"}

// selection refuses a field that `run` never has.
func (v *checker) selection(e ast.Expr) {
	s := e.AsSelect()
	if op := s.Operand(); op.Kind() == ast.IdentKind && op.AsIdent() == varRun && !slices.Contains(runFields, s.FieldName()) {
		v.refuse(e, "run has no "+s.FieldName()+"; it has id, goal and step")
	}
}

func (v *checker) call(e ast.Expr) {
	call := e.AsCall()
	name := call.FunctionName()
	operands := call.Args()
	if call.IsMemberFunction() {
		operands = append([]ast.Expr{call.Target()}, operands...)
	}
	switch name {
	case overloads.Matches:
		if len(operands) == 2 {
			v.matches(e, operands[0], operands[1])
		}
	case overloads.StartsWith, overloads.EndsWith, overloads.Contains:
		if v.allows && slices.ContainsFunc(operands, touchesArguments) {
			v.refuse(e, name+" looks at a part of the value, so a rule that allows would let through whatever stands around it;"+
				` compare the whole value with ==, in or matches("^…$")`)
		}
	}
}

// matches wants a pattern that nobody can choose but the author of the rule and,
// where the rule allows, one for the whole value.
func (v *checker) matches(e, value, pattern ast.Expr) {
	p, ok := literalString(pattern)
	if !ok {
		v.refuse(e, "the pattern of matches has to be a text in quotes; one that is calculated could be made to match anything")
		return
	}
	if v.allows && touchesArguments(value) && !wholeValue(p) {
		v.refuse(e, "matches looks for the pattern anywhere in the value, so a rule that allows would let through whatever stands around it;"+
			` begin the pattern with ^ and end it with $`)
	}
}

func literalString(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// ours are the variables whose values no caller or model chooses by argument.
var ours = []string{varTool, varSideEffect, varPrincipal, varRun, varMetadata}

// touchesArguments reports whether e reads the arguments, or a variable of a loop,
// which may run over them.
func touchesArguments(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind && !slices.Contains(ours, e.AsIdent()) {
			found = true
		}
	}))
	return found
}
