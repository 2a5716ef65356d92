package rules

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func requestWith(args string) request.Request {
	return request.Request{CallID: "c-1", Tool: tool.Spec{Name: "t", SideEffect: tool.ReadOnly}, Args: []byte(args)}
}

// Terms of random expressions: many of them fail for many of the arguments.
var (
	terms = []string{
		`args.a`, `args.b`, `args.c`, `args.missing`, `args.a.b`, `args["a"]`, `args.c[0]`, `args.c[7]`,
		`1`, `50`, `2.5`, `"x"`, `"500"`, `true`, `false`, `null`, `size(args.a)`, `size(args)`, `tool`, `run.step`,
		`string(args.a)`, `double(args.a)`, `int(args.b)`, `-args.a`, `args.a / 0`, `args.a + args.b`, `args.a * 2`,
		`[args.a, 1]`, `{"k": args.b}`, `has(args.a)`, `has(args.missing)`,
	}
	comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in"}
	values      = []string{
		`1`, `50`, `50.5`, `1e400`, `0.1000000000000000055`, `9007199254740993`, `"x"`, `"500"`, `""`,
		`true`, `null`, `[]`, `[1]`, `["x",{}]`, `{}`, `{"b":1}`,
	}
)

func randomCondition(t *rapid.T, depth int) string {
	term := func(label string) string { return "dyn(" + rapid.SampledFrom(terms).Draw(t, label) + ")" }
	switch n := rapid.IntRange(0, 9).Draw(t, "form"); {
	case depth > 0 && n < 2:
		return "(" + randomCondition(t, depth-1) + " && " + randomCondition(t, depth-1) + ")"
	case depth > 0 && n < 4:
		return "(" + randomCondition(t, depth-1) + " || " + randomCondition(t, depth-1) + ")"
	case depth > 0 && n == 4:
		return "!(" + randomCondition(t, depth-1) + ")"
	case depth > 0 && n == 5:
		return "(" + randomCondition(t, depth-1) + " ? " + randomCondition(t, depth-1) + " : " + term("else") + ")"
	case depth > 0 && n == 6:
		return "args.c.exists(x, x == " + term("element") + " || " + randomCondition(t, depth-1) + ")"
	case n == 7:
		return term("bare")
	}
	return term("left") + " " + rapid.SampledFrom(comparisons).Draw(t, "op") + " " + term("right")
}

// For every condition and all arguments: true allows, false goes on to the next
// rule, and everything else asks a person. An error neither allows nor skips.
func TestRulesNeverAllowOnAnEvaluationError(t *testing.T) {
	t.Parallel()
	came := map[policy.Outcome]int{}
	rapid.Check(t, func(rt *rapid.T) {
		when := randomCondition(rt, 2)
		value := func(label string) string { return rapid.SampledFrom(values).Draw(rt, label) }
		r := requestWith(`{"a":` + value("a") + `,"b":` + value("b") + `,"c":` + value("c") + `}`)
		yes := mustNew(rt, Rule{Name: "r", When: when, Outcome: policy.Allow}, Rule{Name: "rest", When: "true", Outcome: policy.Deny})
		no := mustNew(rt, Rule{Name: "r", When: when, Outcome: policy.Deny}, Rule{Name: "rest", When: "true", Outcome: policy.Allow})

		// Each by its own program: over a map, the rule that allows is an error.
		for p, outcomes := range map[*Policy][2]policy.Outcome{yes: {policy.Allow, policy.Deny}, no: {policy.Deny, policy.Allow}} {
			want := policy.RequireApproval
			switch v, _, err := p.rules[0].when.Eval(&vars{req: r}); {
			case err == nil && v == types.True:
				want = outcomes[0]
			case err == nil && v == types.False:
				want = outcomes[1]
			}
			if p == yes {
				came[want]++
			}
			got, err := p.Evaluate(context.Background(), r, policy.View{})
			if err != nil || got.Outcome != want {
				rt.Fatalf("%s of %s: %+v, %v; want %s", when, r.Args, got, err, want)
			}
		}
	})
	for _, o := range []policy.Outcome{policy.Allow, policy.Deny, policy.RequireApproval} {
		if came[o] == 0 {
			t.Errorf("no condition came to %s: %v", o, came)
		}
	}
}

func mustNew(t *rapid.T, rs ...Rule) *Policy {
	p, err := New(rs, nil)
	if err != nil {
		t.Skip(err)
	}
	return p
}

func TestAPanicInAnExpressionAsksAPerson(t *testing.T) {
	t.Parallel()
	p, err := New([]Rule{{Name: "r", When: `args.a == 1`, Outcome: policy.Allow}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &evaluation{ctx: context.Background(), vars: vars{req: requestWith(`{"a":1}`), args: map[string]any{"a": panics{}}}}
	if _, err := e.condition(&p.rules[0]); err == nil || !strings.Contains(err.Error(), "no comparison") {
		t.Errorf("error %v", err)
	}
}

// panics is a value that cannot be compared.
type panics struct{ types.Null }

func (panics) Equal(ref.Val) ref.Val { panic("no comparison") }

func FuzzRule(f *testing.F) {
	f.Add(`args.amount <= 50`, `"pay " + string(args.amount)`, `{"amount":50}`)
	f.Add(`args.l.all(x, x.matches("^a$"))`, `args.l.map(x, x)`, `{"l":["a"]}`)
	f.Add(`tool == "t" && args.a in [1, 2.5, 3u]`, `{"a": args}`, `{"a":1e400}`)
	f.Add("args.a == '\u202e' ||\n run.x", `b"x"`, `[1,2]`)
	f.Fuzz(func(t *testing.T, when, shown, args string) {
		start := time.Now()
		defer func() {
			if d := time.Since(start); d > 5*time.Second {
				t.Logf("took %v", d)
			}
		}()
		p, err := New([]Rule{
			{Name: "a", When: when, Outcome: policy.Allow},
			{Name: "b", When: "true", Outcome: policy.RequireApproval, Presentation: map[string]string{"v": shown}},
		}, nil)
		if err != nil {
			if !errors.Is(err, ErrRules) {
				t.Fatalf("%v does not match ErrRules", err)
			}
			return
		}
		r := requestWith(args)
		got, err := p.Evaluate(context.Background(), r, policy.View{})
		if err != nil {
			if !errors.Is(err, policy.ErrRuling) || got.Outcome != "" {
				t.Fatalf("%+v, %v", got, err)
			}
			return
		}
		again, err := p.Evaluate(context.Background(), r, policy.View{})
		if err != nil || string(again.Presentation) != string(got.Presentation) || again.Outcome != got.Outcome {
			t.Fatalf("two answers: %+v and %+v, %v", got, again, err)
		}
		if _, err := got.Complete(r); err != nil && got.Presentation == nil {
			t.Fatalf("%+v: %v", got, err)
		}
	})
}
