package rules_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
)

func asking(presentation map[string]string) rules.Rule {
	return rules.Rule{Name: "r", When: "true", Outcome: policy.RequireApproval, Presentation: presentation}
}

func TestPresentationKeepsValues(t *testing.T) {
	t.Parallel()
	args := `{"n":9007199254740993,"u":18446744073709551615,"big":123456789012345678901234567890,` +
		`"f":0.10,"exact":0.1000000000000000055511151231257827,"tiny":1e-400,"one":1.0,` +
		`"s":"a\u0000\u202e<b>\"","l":[1,"two",null,true,[2.50]],"m":{"z":1,"a":{"y":2}},"m2":{"b":1,"a":2,"\ud83d\ude00":3,"\ufb33":4}}`
	tests := []struct{ expr, want string }{
		{`args.n`, `9007199254740993`},
		{`args.u`, `18446744073709551615`},
		{`args.big`, `1.2345678901234567890123456789e+29`},
		{`args.f`, `0.1`},
		{`args.exact`, `0.1000000000000000055511151231257827`},
		{`args.tiny`, `1e-400`},
		{`args.one`, `1`},
		{`args.s`, `"a\u0000` + "\u202e" + `<b>\""`},
		{`args.l`, `[1,"two",null,true,[2.5]]`},
		{`args.m`, `{"a":{"y":2},"z":1}`},
		{`args.m2`, `{"a":2,"b":1,"` + "\U0001F600" + `":3,"` + "\uFB33" + `":4}`},
		{`string(args.n) + " and " + string(args.big)`, `"9007199254740993 and 1.2345678901234567890123456789e+29"`},
		{`{"total": args.n + 1, "list": [args.f, 1.5, 2u, -3]}`, `{"list":[0.1,1.5,2,-3],"total":9007199254740994}`},
		{`args.l[4][0] * 2.0`, `5`},
		{`1e21`, `1e+21`},
		{`null`, `null`},
		{`!args.l[3]`, `false`},
		{`[]`, `[]`},
		{`{}`, `{}`},
		{`size(args.l)`, `5`},
		{`args.m2.map(k, k)`, `["a","b","` + "\uFB33" + `","` + "\U0001F600" + `"]`},
		{`{"b": 1, "c": 2, "a": 3}.map(k, k)`, `["a","b","c"]`},
		{`{3: 1, 2: 2, 1: 3}.map(k, k)`, `[1,2,3]`},
		{`metadata.map(k, metadata[k])`, `["1","2","3"]`},
		{`{"x": args.m2}.x.filter(k, k < "b")`, `["a"]`},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			p := newPolicy(t, asking(map[string]string{"v": tt.expr}))
			v := policy.View{Metadata: map[string]string{"c": "3", "a": "1", "b": "2"}}
			for range 20 { // a map walked in another order would show
				got, err := p.Evaluate(context.Background(), refund(args), v)
				if err != nil {
					t.Fatal(err)
				}
				if want := `{"v":` + tt.want + `}`; string(got.Presentation) != want {
					t.Fatalf("got  %s\nwant %s", got.Presentation, want)
				}
			}
		})
	}
}

func TestPresentationDoesNotDependOnSpelling(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, asking(map[string]string{"title": `"pay " + string(args.amount)`, "all": `args`}))
	a := evaluate(t, p, refund(`{"amount":500,"to":"a"}`))
	b := evaluate(t, p, refund(` { "to" : "\u0061", "amount" : 5.00E2 } `))
	if string(a.Presentation) != string(b.Presentation) {
		t.Errorf("%s\n%s", a.Presentation, b.Presentation)
	}
}

func TestUnusablePresentationRunsNothing(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expr, want string }{
		{"a missing argument", `args.note`, `The presentation.v of the rule "r" cannot be evaluated (no such key: note); nothing was run.`},
		{"a number joined to a text", `"pay " + args.amount`, "no such overload"},
		{"a division by zero", `1 / 0`, "division by zero"},
		{"infinity", `double(args.amount) / 0.0`, "no finite result"},
		{"NaN", `0.0 / 0.0`, "no finite result"},
		{"a map with numbers as keys", `{1: "a"}`, "needs texts as keys"},
		{"a type", `dyn(type(args.amount))`, "a value of type type cannot be shown; turn it into a text with string()"},
		{"bytes inside a list", `[dyn(b"a")]`, "a value of type bytes cannot be shown"},
		{"an endless loop", `args.l.map(a, args.l.map(b, args.l.map(c, 1)))`, "(the rules "},
	}
	args := `{"amount":5,"l":[` + strings.TrimSuffix(strings.Repeat("1,", 200), ",") + `]}`
	for _, tt := range tests {
		for _, field := range []string{"presentation", "capability"} {
			t.Run(tt.name+" in the "+field, func(t *testing.T) {
				t.Parallel()
				r := asking(map[string]string{"v": tt.expr})
				want := tt.want
				if field == "capability" {
					r.Capability, r.Presentation = r.Presentation, nil
					want = strings.Replace(want, "presentation", "capability", 1)
				}
				got, err := newPolicy(t, r).Evaluate(context.Background(), refund(args), policy.View{})
				if !errors.Is(err, policy.ErrRuling) || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
				if got.Outcome != "" {
					t.Errorf("there is a ruling all the same: %+v", got)
				}
			})
		}
	}
}

func TestPresentationOfOtherOutcomesIsNotEvaluated(t *testing.T) {
	t.Parallel()
	for _, o := range []policy.Outcome{policy.Allow, policy.Deny, policy.Abort} {
		r := asking(map[string]string{"v": `args.note`})
		r.Outcome = o
		if got := evaluate(t, newPolicy(t, r), refund(`{}`)); got.Outcome != o || got.Presentation != nil {
			t.Errorf("%+v", got)
		}
	}
}

func TestReasonsAreBoundedText(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("é", 10_000)
	got := denyElse(t, `args[args.k] == 1`, `{"k":"`+key+`"}`)
	if got.Outcome != policy.RequireApproval || len(got.Reason) > 600 || strings.ContainsRune(got.Reason, '\uFFFD') {
		t.Errorf("%s, %d bytes: %s", got.Outcome, len(got.Reason), got.Reason)
	}
}
