package rules

import (
	"fmt"
	"strings"

	"github.com/placet-dev/placet/fault"
)

// ErrRules: rules that cannot be used. What [New] returns matches it.
var ErrRules = fault.Sentinel(fault.Invalid, "rules", "The rules cannot be used.")

// Problem is one thing that is wrong with a rule.
type Problem struct {
	Rule    string // its name; may be empty
	Field   string // "when", "presentation.title"; empty: the rule itself
	File    string
	Line    int    // in the file, from 1; 0: not known
	Column  int    // in the line of the expression, from 1; 0: the whole field
	Message string // what is wrong and what to write
}

// String is one line: file and line, the rule, the field and the message.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" && p.Line > 0 {
		fmt.Fprintf(&b, "%s:%d: ", p.File, p.Line)
	}
	b.WriteString(p.Text())
	return b.String()
}

// Text is String without file and line.
func (p Problem) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %q", p.Rule)
	if p.Field != "" {
		fmt.Fprintf(&b, ", %s", p.Field)
	}
	if p.Column > 0 {
		fmt.Fprintf(&b, ", column %d", p.Column)
	}
	fmt.Fprintf(&b, ": %s", p.Message)
	return b.String()
}

// Problems is everything that is wrong with a set of rules. As an error it matches [ErrRules].
type Problems []Problem

// Error is one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems the shape of all errors here.
func (ps Problems) Unwrap() error { return ErrRules.Say("%s", ps.Error()) }
