package rules

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
)

// maxIssues bounds how many faults of one expression are told.
const maxIssues = 5

// issues takes over what CEL found wrong. Errors of the grammar follow from each
// other, so only the first of them is told.
func (c *compiler) issues(r Rule, field string, issues *cel.Issues) {
	errs := issues.Errors()
	for i, e := range errs[:min(len(errs), maxIssues)] {
		if i > 0 && strings.HasPrefix(e.Message, "Syntax error") {
			continue
		}
		line := r.At.line(field)
		if line > 0 && e.Location.Line() > 0 {
			line += e.Location.Line() - 1
		}
		c.refuseAt(r, field, line, column(e), "%s", explain(e.Message))
	}
}

func column(e *common.Error) int {
	if e.Location.Line() < 1 {
		return 0
	}
	return e.Location.Column() + 1
}

// known is what an undeclared reference should have been.
const known = "an expression knows tool, args, side_effect, principal, run, metadata and the functions of the CEL standard"

// explanations replace the messages of CEL that do not say what to write.
var explanations = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`^undeclared reference to '([^']*)' \(did you mean '([^']*)'\?\)$`), `$1 is not known; did you mean $2?`},
	{regexp.MustCompile(`^undeclared reference to '([^']*)'.*$`), `$1 is not known; ` + known},
	{regexp.MustCompile(`^Syntax error: mismatched input '<EOF>'.*$`), `the expression ends too early; write what is missing at its end`},
	{regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '(and|or|not)' .*$`), `$1 is no operator; write && for and, || for or, ! for not`},
	{regexp.MustCompile(`^Syntax error: token recognition error at: '=.*$`), `= does not compare; write ==`},
	{regexp.MustCompile(`(?s)^Syntax error: token recognition error at: '["'].*$`), `a text is not closed; write the quote that ends it`},
	{regexp.MustCompile(`(?s)^Syntax error: (?:mismatched|extraneous) input '(.*)' expecting .*$`), `$1 is not expected here`},
	{regexp.MustCompile(`(?s)^Syntax error: no viable alternative at input '(.*)'$`), `$1 is not expected here, or something is missing behind it`},
	{regexp.MustCompile(`^found no matching overload for '(?:_|@)?([^'_]+)_?' applied to '(.*)'$`), `$1 does not take the types $2; write values of types that fit`},
	{regexp.MustCompile(`recursion (?:limit|depth) exceeded`), `the expression is nested too deep; split it into several rules`},
	{regexp.MustCompile(`^invalid int literal$`), `the integer is too large; above 9223372036854775807 write a u at its end`},
}

func explain(message string) string {
	for _, e := range explanations {
		if m := e.pattern.FindStringSubmatchIndex(message); m != nil {
			return shorten(string(e.pattern.ExpandString(nil, e.text, message, m)), 300)
		}
	}
	return shorten(message, 300)
}
