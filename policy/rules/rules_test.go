package rules_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func newPolicy(t testing.TB, rs ...rules.Rule) *rules.Policy {
	t.Helper()
	p, err := rules.New(rs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func evaluate(t testing.TB, p policy.Policy, r request.Request) policy.Ruling {
	t.Helper()
	ruling, err := p.Evaluate(context.Background(), r, policy.View{})
	if err != nil {
		t.Fatal(err)
	}
	return ruling
}

func allowIf(when string) rules.Rule {
	return rules.Rule{Name: "r", When: when, Outcome: policy.Allow}
}

// denyElse answers what comes of a condition: allow, deny (it is false) or require_approval (an error).
func denyElse(t testing.TB, when, args string) policy.Ruling {
	t.Helper()
	p := newPolicy(t, allowIf(when), rules.Rule{Name: "else", When: "true", Outcome: policy.Deny})
	return evaluate(t, p, refund(args))
}

func TestFirstMatchDecides(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		rules.Rule{Name: "small refunds", When: `tool == "refund" && args.amount <= 50`, Outcome: policy.Allow},
		rules.Rule{Name: "huge refunds", When: `tool == "refund" && args.amount > 10000`, Outcome: policy.Deny, Reason: "never that much"},
		rules.Rule{Name: "stolen", When: `tool == "refund" && args.order_id == "o-666"`, Outcome: policy.Abort},
		rules.Rule{
			Name: "large refunds", When: `tool == "refund"`, Outcome: policy.RequireApproval,
			Reason: "refunds above 50 need a person", Kind: "money",
			ExpiresIn: 24 * time.Hour, GrantExpiresIn: 15 * time.Minute, ForbidEdits: true,
			Presentation: map[string]string{"title": `"Refund " + string(args.amount) + " on " + args.order_id`},
			Capability:   map[string]string{"max": `args.amount`},
		},
	)
	tests := []struct {
		name, args string
		outcome    policy.Outcome
		reason     string
	}{
		{"the first", `{"amount":50,"order_id":"o-7"}`, policy.Allow, `The rule "small refunds" says allow.`},
		{"a later one", `{"amount":10001,"order_id":"o-7"}`, policy.Deny, "never that much"},
		{"an abort", `{"amount":51,"order_id":"o-666"}`, policy.Abort, `The rule "stolen" says abort.`},
		{"the last", `{"amount":500,"order_id":"o-7"}`, policy.RequireApproval, "refunds above 50 need a person"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := evaluate(t, p, refund(tt.args))
			if got.Outcome != tt.outcome || got.Reason != tt.reason {
				t.Errorf("got %s, %q; want %s, %q", got.Outcome, got.Reason, tt.outcome, tt.reason)
			}
			if _, err := got.Complete(refund(tt.args)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the whole ruling", func(t *testing.T) {
		t.Parallel()
		got := evaluate(t, p, refund(`{"amount":500,"order_id":"o-7"}`))
		if got.Kind != "money" || got.ApprovalTTL != 24*time.Hour || got.GrantTTL != 15*time.Minute || !got.ForbidEdits {
			t.Errorf("%+v", got)
		}
		if string(got.Presentation) != `{"title":"Refund 500 on o-7"}` || string(got.Capability) != `{"max":500}` {
			t.Errorf("presentation %s, capability %s", got.Presentation, got.Capability)
		}
	})
	t.Run("none: the fallback", func(t *testing.T) {
		t.Parallel()
		for class, want := range map[tool.SideEffect]policy.Outcome{
			tool.ReadOnly: policy.Allow, tool.RemoteMutation: policy.RequireApproval, tool.Destructive: policy.Deny, "": policy.Deny,
		} {
			r := refund(`{}`)
			r.Tool = tool.Spec{Name: "other", SideEffect: class}
			if got := evaluate(t, p, r); got.Outcome != want {
				t.Errorf("%s: %s, want %s", class, got.Outcome, want)
			}
		}
	})
}

func TestFallback(t *testing.T) {
	t.Parallel()
	own := errors.New("the fallback's own")
	fallback := policy.Func(func(context.Context, request.Request, policy.View) (policy.Ruling, error) {
		return policy.Ruling{Outcome: policy.Abort}, own
	})
	for name, rs := range map[string][]rules.Rule{"no rules": nil, "no match": {allowIf("false")}} {
		p, err := rules.New(rs, fallback)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Evaluate(context.Background(), refund(`{}`), policy.View{})
		if got.Outcome != policy.Abort || !errors.Is(err, own) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	v := policy.View{
		Principal: "ana", RunID: "run_1", Goal: "tidy up", Step: 3,
		Metadata: map[string]string{"team": "payments"},
	}
	for _, when := range []string{
		`tool == "refund"`,
		`side_effect == "remote_mutation"`,
		`principal == "ana"`,
		`run.id == "run_1" && run.goal == "tidy up" && run.step == 3`,
		`metadata.team == "payments" && metadata["team"] in ["payments", "ops"]`,
		`!has(metadata.region) && !("region" in metadata)`,
		`args.amount == 12 && args["amount"] == 12`,
		`has(args.amount) && !has(args.note)`,
		`args.lines[1].sku == "b" && size(args.lines) == 2`,
		`args.lines.all(l, l.sku in ["a", "b"]) && args.lines.exists_one(l, l.sku == "a")`,
		`args.none == null && args.yes && !args.no`,
		`args == {"amount": 12, "lines": [{"sku": "a"}, {"sku": "b"}], "none": null, "yes": true, "no": false}`,
		`type(args.amount) == int && type(args.lines) == list && type(args) == map`,
		`tool.startsWith("ref") && metadata.team.contains("pay") && principal.endsWith("na")`,
		`(args.amount > 10 ? "big" : "small") == "big"`,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			p := newPolicy(t, allowIf(when))
			r := refund(`{"amount":12,"lines":[{"sku":"a"},{"sku":"b"}],"none":null,"yes":true,"no":false}`)
			got, err := p.Evaluate(context.Background(), r, v)
			if err != nil || got.Outcome != policy.Allow {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestVariablesOfACallOutsideARun(t *testing.T) {
	t.Parallel()
	got := denyElse(t, `principal == "" && run.id == "" && run.goal == "" && run.step == 0 && size(metadata) == 0`, `{}`)
	if got.Outcome != policy.Allow {
		t.Errorf("%+v", got)
	}
}

func TestAnErrorMeansThatAPersonDecides(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, when, args, reason string }{
		{"a missing argument", `args.amount <= 50`, `{}`, "no such key: amount"},
		{"a missing argument deep inside", `args.a.b.c == 1`, `{"a":{"b":{}}}`, "no such key: c"},
		{"a text for a number (case 192)", `args.amount <= 50`, `{"amount":"50"}`, "type string cannot be compared with one of type int"},
		{"a list for a number", `args.amount <= 50`, `{"amount":[50]}`, "type list cannot be compared with one of type int"},
		{"null for a number", `args.amount <= 50`, `{"amount":null}`, "type null_type cannot be compared"},
		{"a list for a text (case 188)", `args.cmd.matches("^git status$")`, `{"cmd":["git status"]}`, "no such overload"},
		{"an index that is out of range", `args.l[2] == 1`, `{"l":[1]}`, "index out of bounds: 2"},
		{"a field of a text", `args.a.b == 1`, `{"a":"x"}`, "no such"},
		{"arguments that are no object", `args.a == 1`, `[1]`, "unsupported index type"},
		{"a condition that is a text", `args.ok`, `{"ok":"true"}`, "type string, neither true nor false"},
		{"a condition that is a number", `args.ok`, `{"ok":1}`, "type int, neither true nor false"},
		{"a condition that is null", `args.ok`, `{"ok":null}`, "neither true nor false"},
		{"a condition that is an object", `args.ok`, `{"ok":{}}`, "neither true nor false"},
		{"a division by zero", `10 / args.n > 1`, `{"n":0}`, "division by zero"},
		{"an overflow", `args.n + 1 > 0`, `{"n":9223372036854775807}`, "integer overflow"},
		{"integer and double in a sum", `args.n * 1.5 < 100.0`, `{"n":2}`, "no such overload"},
		{"not of a text", `!args.ok`, `{"ok":"false"}`, "no such overload"},
		{"or with an error", `args.missing || args.amount > 1000`, `{"amount":1}`, "no such key: missing"},
		{"in of a text", `"a" in args.s`, `{"s":"abc"}`, "needs a list or a map"},
		{"a loop over a number", `args.n.all(x, x > 0)`, `{"n":5}`, "expected iterable type"},
		{"NaN", `double(args.x) / double(args.y) < 1.0`, `{"x":0,"y":0}`, "NaN has no order"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := denyElse(t, tt.when, tt.args)
			if got.Outcome != policy.RequireApproval {
				t.Fatalf("outcome %s (%s), want require_approval", got.Outcome, got.Reason)
			}
			if !strings.Contains(got.Reason, `The rule "r" could not be evaluated (`) || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("reason %q does not say %q", got.Reason, tt.reason)
			}
			if len(got.Presentation) != 0 || got.Kind != "" {
				t.Errorf("the ruling has more than an outcome: %+v", got)
			}
		})
	}
}

func TestCase192RuleSeesTheValuesThatWillExecute(t *testing.T) {
	t.Parallel()
	// The rule's author thinks of a tool that has a default and multiplies by units.
	p := newPolicy(t, rules.Rule{Name: "small", When: `args.amount * args.units <= 100`, Outcome: policy.Allow})
	for name, args := range map[string]string{
		"amount missing":  `{"units":1}`,
		"amount a text":   `{"amount":"500","units":1}`,
		"units thousands": `{"amount":1,"units":1000}`,
	} {
		if got := evaluate(t, p, refund(args)); got.Outcome != policy.RequireApproval {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCase188WholeValues(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, rules.Rule{
		Name:    "git",
		When:    `args.cmd == "git status" || args.cmd in ["git log", "git diff"] || args.cmd.matches("^git (show|blame) [a-z0-9]+$")`,
		Outcome: policy.Allow,
	})
	for args, want := range map[string]policy.Outcome{
		`{"cmd":"git status"}`:                  policy.Allow,
		`{"cmd":"git log"}`:                     policy.Allow,
		`{"cmd":"git show abc1"}`:               policy.Allow,
		`{"cmd":"git status; rm -rf /"}`:        policy.RequireApproval,
		`{"cmd":"git status\nrm -rf /"}`:        policy.RequireApproval,
		`{"cmd":"git show abc1\n"}`:             policy.RequireApproval,
		`{"cmd":"git show abc1\u0000rm"}`:       policy.RequireApproval,
		`{"cmd":"git show abc1\u2028rm -rf /"}`: policy.RequireApproval,
		`{"cmd":"git show abc1 && rm -rf /"}`:   policy.RequireApproval,
		`{"cmd":" git status"}`:                 policy.RequireApproval,
		`{"cmd":"git\u00a0status"}`:             policy.RequireApproval,
		`{"cmd":"Git status"}`:                  policy.RequireApproval,
		`{"cmd":["git status"]}`:                policy.RequireApproval,
		`{"cmd":["git","status"]}`:              policy.RequireApproval,
		`{"cmd":{"git status":true}}`:           policy.RequireApproval,
		`{}`:                                    policy.RequireApproval,
	} {
		if got := evaluate(t, p, refund(args)); got.Outcome != want {
			t.Errorf("%s: %s (%s), want %s", args, got.Outcome, got.Reason, want)
		}
	}
}

// `in` and the macros look at the keys of a map; whoever makes the call chooses the keys.
func TestAnAllowRuleTakesNoMapForAList(t *testing.T) {
	t.Parallel()
	const (
		list = `{"to":["ana"],"deep":{"to":["ana"]},"n":1}`
		keys = `{"to":{"ana":"mallory"},"deep":{"to":{"ana":"mallory"}},"n":1}`
	)
	for _, when := range []string{
		`"ana" in args.to`,
		`"ana" in args["to"]`,
		`"ana" in dyn(args.to)`,
		`"ana" in [args.to][0]`,
		`"ana" in {"k": args.to}.k`,
		`"ana" in (args.n == 1 ? args.to : [])`,
		`"ana" in (args.n == 1 ? args.to : metadata)`,
		`"ana" in (args.n == 2 ? ["x"] : args.to)`,
		`!("mallory" in args.to)`,
		`args.to.all(x, x == "ana")`,
		`args.to.all(x, x in ["ana"])`,
		`args.to.exists(x, x == "ana")`,
		`args.to.exists_one(x, x == "ana")`,
		`args.to.map(x, x) == ["ana"]`,
		`args.to.map(x, x == "ana", x) == ["ana"]`,
		`args.to.filter(x, x == "ana").size() == 1`,
		`args.deep.to.all(x, x == "ana")`,
		`[args.to].all(l, l.all(x, x == "ana"))`,
		`[args.to].all(l, "ana" in l)`,
		`["ana"].all(x, x in args.to)`,
		`{"k": args.to}.all(k, "ana" in args.to)`,
		`[args.to].all(metadata, metadata == ["ana"] && "ana" in args.to)`,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			if got := denyElse(t, when, list); got.Outcome != policy.Allow {
				t.Errorf("of a list: %s (%s), want allow", got.Outcome, got.Reason)
			}
			if got := denyElse(t, when, keys); got.Outcome == policy.Allow {
				t.Errorf("of a map: %s (%s)", got.Outcome, got.Reason)
			}
		})
	}
	if got := denyElse(t, `"ana" in args.to`, keys); !strings.Contains(got.Reason, "a list is expected where the value is a map") {
		t.Errorf("reason %q", got.Reason)
	}
	// What the author wrote or named as a map is one.
	for _, when := range []string{
		`args.n in {1: "a"}`,
		`{"a": 1}.all(k, k == "a")`,
		`!("team" in metadata)`,
		`metadata.all(k, k == "team")`,
		`"goal" in run`,
	} {
		if got := denyElse(t, when, list); got.Outcome != policy.Allow {
			t.Errorf("%s: %s (%s), want allow", when, got.Outcome, got.Reason)
		}
	}
	// A rule that asks or denies may look at keys, and a presentation too.
	p := newPolicy(t, rules.Rule{Name: "r", When: `"ana" in args.to && args.to.exists(x, x == "ana")`, Outcome: policy.Deny})
	if got := evaluate(t, p, refund(keys)); got.Outcome != policy.Deny {
		t.Errorf("%+v", got)
	}
	p = newPolicy(t, rules.Rule{Name: "r", When: "true", Outcome: policy.RequireApproval, Presentation: map[string]string{"to": `args.to.map(x, x)`}})
	if got := evaluate(t, p, refund(keys)); string(got.Presentation) != `{"to":["ana"]}` {
		t.Errorf("%+v", got)
	}
	if _, err := rules.New([]rules.Rule{allowIf("`@placet_elements`(args.to) == 1"), allowIf(`@placet_elements(args.to) == 1`)}, nil); err == nil {
		t.Error("the operator can be spelt")
	}
}

func TestCase189AnotherVersionIsAnotherPolicy(t *testing.T) {
	t.Parallel()
	before := newPolicy(t, rules.Rule{Name: "r", When: `tool == "refund"`, Outcome: policy.RequireApproval})
	after := newPolicy(t, rules.Rule{Name: "r", When: `tool == "refund"`, Outcome: policy.Deny})
	if before.Version() == after.Version() {
		t.Error("the change from require_approval to deny does not show in the version")
	}
}

func TestUnreadableArgumentsRunNothing(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, allowIf(`!has(args.x) || true`))
	for _, args := range []string{``, `{`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":7E29999999}`, `{"a":1e-999999999}`, `{"a":-0e99999999}`, strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		start := time.Now()
		got, err := p.Evaluate(context.Background(), refund(args), policy.View{})
		if !errors.Is(err, policy.ErrRuling) || got.Outcome != "" {
			t.Errorf("%.30q: %+v, %v", args, got, err)
		}
		if d := time.Since(start); d > time.Second {
			t.Logf("%.30q took %v (case 110)", args, d)
		}
	}
}

// wasCut reports whether text tells of the cost limit or, on a busy machine, of the time limit.
func wasCut(text string) bool {
	return strings.Contains(text, "the rules cost more than 100000 operations") ||
		strings.Contains(text, "the rules took longer than 1s")
}

func TestExpensiveRulesAreCut(t *testing.T) {
	t.Parallel()
	list := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + `],"s":"` + strings.Repeat("a", 300_000) + `"}`
	for _, when := range []string{
		`args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))`,
		`args.l.all(a, a == 1)`,
		`args.l.map(a, args.l).size() > 0`,
		`args.l.all(a, args.s + "x" != args.s)`,
		`args.l.all(a, args.s.matches("^(a|b)*c?$"))`,
		`args.l.exists(a, args.l == [a])`,
		`args.l.exists(a, args == args && a == 2)`,
		`args.l.exists(a, args.l + args.l == args.l)`,
		`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f > 0))))))`,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			got := denyElse(t, when, list)
			if got.Outcome != policy.RequireApproval {
				t.Errorf("%+v", got)
			}
			if !wasCut(got.Reason) {
				t.Errorf("reason %q", got.Reason)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Logf("cut only after %v", d)
			}
		})
	}
}

func TestRulesShareOneCostLimit(t *testing.T) {
	t.Parallel()
	list := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 10_000), ",") + `]}`
	rs := make([]rules.Rule, 100)
	for i := range rs {
		rs[i] = rules.Rule{Name: strings.Repeat("r", i+1), When: `args.l.exists(a, a == 2)`, Outcome: policy.Allow}
	}
	got := evaluate(t, newPolicy(t, rs...), refund(list))
	if got.Outcome != policy.RequireApproval || !wasCut(got.Reason) {
		t.Errorf("%+v", got)
	}
}

func TestACancelledCallerGetsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := newPolicy(t, allowIf(`true`))
	got, err := p.Evaluate(ctx, refund(`{}`), policy.View{})
	if !errors.Is(err, policy.ErrRuling) || !errors.Is(err, context.Canceled) || got.Outcome != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestConcurrentEvaluation(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		allowIf(`args.l.exists(x, x == 3) && run.step == 0`),
		rules.Rule{Name: "else", When: `true`, Outcome: policy.RequireApproval, Presentation: map[string]string{"l": `args.l.map(x, x * 2)`}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			args, want := `{"l":[1,2,3]}`, policy.Allow
			if i%2 == 0 {
				args, want = `{"l":[1,2]}`, policy.RequireApproval
			}
			for range 200 {
				if got := evaluate(t, p, refund(args)); got.Outcome != want {
					t.Errorf("%s: %+v", args, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// cel-go's environment writes to itself when a name is unknown.
func TestConcurrentNew(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := rules.New([]rules.Rule{allowIf(`args.l.all(x, x == arg)`)}, nil); err == nil {
					t.Error("arg was taken")
				}
				newPolicy(t, allowIf(`args.l.all(x, args.l.all(y, x == y))`))
			}
		})
	}
	wg.Wait()
}
