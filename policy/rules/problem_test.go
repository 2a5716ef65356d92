package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	named := func(change func(*rules.Rule)) rules.Rule {
		r := rules.Rule{Name: "r", When: "true", Outcome: policy.RequireApproval}
		change(&r)
		return r
	}
	when := func(expr string) rules.Rule { return named(func(r *rules.Rule) { r.When = expr }) }
	allow := func(expr string) rules.Rule {
		return named(func(r *rules.Rule) { r.When, r.Outcome = expr, policy.Allow })
	}
	shown := func(expr string) rules.Rule {
		return named(func(r *rules.Rule) { r.Presentation = map[string]string{"title": expr} })
	}
	many := map[string]string{}
	for i := range rules.MaxFields + 1 {
		many[fmt.Sprint(i)] = "1"
	}
	tests := []struct {
		name string
		rule rules.Rule
		want string
	}{
		{"no name", named(func(r *rules.Rule) { r.Name = " " }), `rule " ", name: a rule needs a name`},
		{"a name that is not UTF-8", named(func(r *rules.Rule) { r.Name = "a\xff" }), "not valid UTF-8"},
		{"a reason with NUL", named(func(r *rules.Rule) { r.Reason = "a\x00" }), `rule "r", reason: the text has a NUL character`},
		{"a long kind", named(func(r *rules.Rule) { r.Kind = strings.Repeat("k", 10_001) }), "kind: the text has 10001 bytes; at most 10000"},
		{"no outcome", named(func(r *rules.Rule) { r.Outcome = "" }), `outcome: "" is no outcome; write allow, require_approval, deny or abort`},
		{"another outcome", named(func(r *rules.Rule) { r.Outcome = "approve" }), `"approve" is no outcome`},
		{"a negative expiry", named(func(r *rules.Rule) { r.ExpiresIn = -1 }), "expires_in: a time limit cannot be negative"},
		{"a negative grant expiry", named(func(r *rules.Rule) { r.GrantExpiresIn = -1 }), "grant_expires_in: a time limit cannot be negative"},
		{"no condition", when(" "), "when: an expression is missing"},
		{"a long condition", when(strings.Repeat(" ", 10_001) + "true"), "when: the expression has 10005 bytes; at most 10000 are allowed"},
		{"a condition that is not UTF-8", when("tool == \"\xff\""), "not valid UTF-8"},
		{"a misspelt variable", when(`arg.amount <= 50`), `rule "r", when, column 1: arg is not known; did you mean args?`},
		{"an unknown variable", when(`amount <= 50`), "column 1: amount is not known; an expression knows tool, args, side_effect"},
		{"an unknown function", when(`today() == 1`), "column 6: today is not known"},
		{"a field that run has not", when(`run.steps == 1`), "column 4: run has no steps; it has id, goal and step"},
		{"an unfinished expression", when(`args.amount <=`), "column 15: the expression ends too early"},
		{"one = only", when(`tool = "refund"`), "column 6: = does not compare; write =="},
		{"and", when(`tool == "a" and true`), "column 13: and is no operator; write && for and"},
		{"a text that is not closed", when(`tool == "refund`), "column 9: a text is not closed"},
		{"a stray bracket", when(`tool == "a")`), "column 12: ) is not expected here"},
		{"types that do not fit", when(`tool == 5`), "column 6: == does not take the types (string, int)"},
		{"text in text", when(`tool in "abc"`), "column 6: in does not take the types (string, string)"},
		{"a condition that is a text", when(`"yes"`), "the expression gives a value of type string; write one that is true or false"},
		{"a condition that is a number", when(`size(tool)`), "value of type int"},
		{"an integer over 64 bits", when(`args.n == 18446744073709551615`), "the integer is too large; above 9223372036854775807 write a u"},
		{"a number that would be rounded", when(`args.n <= 0.1000000000000000055`), "column 11: a comparison would round the number 0.1000000000000000055"},
		{"a large number that would be rounded", when(`args.n <= 9007199254740993.0`), "would round the number 9007199254740993.0"},
		{"a negative number that would be rounded", when(`args.n <= -.1000000000000000055`), "would round the number"},
		{"a message", when(`google.protobuf.Struct{} == args`), "messages are not known here; write a map"},
		{"a pattern that does not compile", when(`tool.matches("(")`), "missing closing )"},
		{"a pattern that is calculated", when(`tool.matches(args.p)`), "the pattern of matches has to be a text in quotes"},
		{"a pattern put together", when(`tool.matches("^" + tool)`), "the pattern of matches has to be a text in quotes"},
		{"a huge pattern", when(`tool.matches("` + strings.Repeat("a{999}", 100) + `")`), "exceeds limit of 20000"},
		{"a constant that cannot be converted", when(`double("abc") == 1.0`), "not a number"},
		{"a deep expression", when(strings.Repeat("(", 3000) + "true" + strings.Repeat(")", 3000)), "the expression is nested too deep; split it into several rules"},
		{"a long sum", when("1" + strings.Repeat("+1", 4000) + " > 0"), "the expression is nested too deep"},
		{"a presentation that does not compile", shown(`args.`), "presentation.title, column 6: . is not expected here, or something is missing behind it"},
		{"a presentation without expression", shown(``), "presentation.title: an expression is missing"},
		{"a presentation of bytes", shown(`b"abc"`), "a value of type bytes cannot be shown; turn it into a text with string()"},
		{"a presentation of a time", shown(`timestamp("2020-01-01T00:00:00Z")`), "cannot be shown"},
		{"a key that is not UTF-8", named(func(r *rules.Rule) { r.Capability = map[string]string{"\xff": "1"} }), "not valid UTF-8"},
		{"many expressions", named(func(r *rules.Rule) { r.Presentation = many }), "presentation: it has 101 expressions; at most 100"},
		// Case 188: a rule that allows looks at whole values.
		{"allow by prefix", allow(`args.cmd.startsWith("git ")`), "column 20: startsWith looks at a part of the value"},
		{"allow by suffix", allow(`tool == "mail" && args.to.endsWith("@example.com")`), "endsWith looks at a part of the value"},
		{"allow by part", allow(`!args.cmd.contains(";")`), "contains looks at a part of the value"},
		{"allow by prefix of an element", allow(`args.l.all(x, x.startsWith("a"))`), "startsWith looks at a part"},
		{"allow by part of a constant", allow(`"a,b".contains(args.x)`), "contains looks at a part"},
		{"allow by a pattern without anchors", allow(`args.cmd.matches("git status")`), "matches looks for the pattern anywhere"},
		{"allow by a pattern open at its end", allow(`args.cmd.matches("^git status")`), `begin the pattern with ^ and end it with $`},
		{"allow by a pattern open at its start", allow(`args.cmd.matches("status$")`), "matches looks for the pattern anywhere"},
		{"allow by a pattern with an open way", allow(`args.cmd.matches("^git status$|log")`), "matches looks for the pattern anywhere"},
		{"allow by a pattern of lines", allow(`args.cmd.matches("(?m)^git status$")`), "matches looks for the pattern anywhere"},
		{"allow by an optional anchor", allow(`args.cmd.matches("^?git$?")`), "matches looks for the pattern anywhere"},
		{"allow by the function matches", allow(`matches(args.cmd, "git")`), "matches looks for the pattern anywhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := rules.New([]rules.Rule{tt.rule}, nil)
			if !errors.Is(err, rules.ErrRules) {
				t.Fatalf("error %v does not match ErrRules", err)
			}
			if f := fault.From(err); f.Code != fault.Invalid {
				t.Errorf("code %s", f.Code)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

func TestNewTakes(t *testing.T) {
	t.Parallel()
	for _, r := range []rules.Rule{
		{When: `args.cmd.matches("^git (status|log)$")`, Outcome: policy.Allow},
		{When: `args.cmd.matches("^a$|^b$")`, Outcome: policy.Allow},
		{When: `args.cmd.matches("(^a$)+")`, Outcome: policy.Allow},
		{When: `args.cmd.matches("\\Aa\\z")`, Outcome: policy.Allow},
		{When: `tool.startsWith("read_") && metadata.team.contains("x") && principal.matches("^a")`, Outcome: policy.Allow},
		{When: `args.cmd.startsWith("rm ") || args.cmd.matches("sudo")`, Outcome: policy.Deny},
		{When: `args.cmd.contains(";")`, Outcome: policy.RequireApproval},
		{When: `true`, Outcome: policy.Abort},
		{When: `args.flag`, Outcome: policy.Allow},
		{When: `args.x == .5 && args.y == 1e3 && args.z == -0.25 && args.w == 007.5 && args.v == 0x10`, Outcome: policy.Allow},
		// In a presentation a part of a value may be looked at.
		{When: `true`, Outcome: policy.RequireApproval, Presentation: map[string]string{"a": `args.s.startsWith("x")`, "b": `args`, "c": `3`, "": `null`}},
		{When: strings.Repeat(" ", rules.MaxExpression-4) + "true", Outcome: policy.Deny},
	} {
		r.Name = "r"
		if _, err := rules.New([]rules.Rule{r}, nil); err != nil {
			t.Errorf("%s: %v", r.When, err)
		}
	}
}

func TestNewTellsEverythingAtOnceWithLines(t *testing.T) {
	t.Parallel()
	_, err := rules.New([]rules.Rule{
		{Name: "a", When: "x", Outcome: policy.Allow, At: rules.Position{File: "placet.yaml", Line: 10, Lines: map[string]int{"when": 11}}},
		{
			Name: "b", When: "tool == 'x' &&\n\nfoo", Outcome: "maybe",
			At: rules.Position{File: "placet.yaml", Line: 20, Lines: map[string]int{"when": 22, "outcome": 25}},
		},
		{Name: "a", When: "args.n <= \n 0.1000000000000000055", Outcome: policy.Deny, At: rules.Position{File: "placet.yaml", Line: 30}},
	}, nil)
	var ps rules.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("%v", err)
	}
	want := []string{
		`placet.yaml:11: rule "a", when, column 1: x is not known`,
		`placet.yaml:25: rule "b", outcome: "maybe" is no outcome`,
		`placet.yaml:24: rule "b", when, column 1: foo is not known`,
		`placet.yaml:30: rule "a", name: another rule (line 10) has this name`,
		`placet.yaml:31: rule "a", when, column 2: a comparison would round`,
	}
	if len(ps) != len(want) {
		t.Fatalf("%d problems:\n%v", len(ps), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(ps[i].String(), w) {
			t.Errorf("got  %s\nwant %s", ps[i], w)
		}
	}
}

func TestNewRefusesTooManyRules(t *testing.T) {
	t.Parallel()
	rs := make([]rules.Rule, rules.MaxRules+1)
	if _, err := rules.New(rs, nil); !errors.Is(err, rules.ErrRules) || !strings.Contains(err.Error(), "1001 rules; at most 1000") {
		t.Error(err)
	}
}
