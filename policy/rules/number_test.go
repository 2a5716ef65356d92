package rules_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
)

// What a condition may come to, by the outcome of denyElse.
const (
	holds   = policy.Allow
	not     = policy.Deny
	anError = policy.RequireApproval
)

func TestNumbersCompareExactly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		when, args string
		want       policy.Outcome
	}{
		// Spellings of one number are one number.
		{`args.n == 1 && type(args.n) == int`, `{"n":1.0}`, holds},
		{`args.n == 100 && type(args.n) == int`, `{"n":1e2}`, holds},
		{`args.n == 100`, `{"n":1000e-1}`, holds},
		{`args.n == 0 && !(args.n < 0)`, `{"n":-0.0}`, holds},
		{`args.n in [1, 2]`, `{"n":10e-1}`, holds},
		{`args.n == 1.0`, `{"n":1}`, holds},
		{`args.n == 1u`, `{"n":1}`, holds},
		{`[args.n] == [1.0]`, `{"n":1}`, holds},
		// Beyond 2^53 (case 107).
		{`args.n == 9007199254740993`, `{"n":9007199254740993}`, holds},
		{`args.n == 9007199254740993`, `{"n":9007199254740992}`, not},
		{`args.n <= 9007199254740992`, `{"n":9007199254740993}`, not},
		{`args.n <= 9007199254740992.0`, `{"n":9007199254740993}`, not},
		{`9007199254740992.0 >= args.n`, `{"n":9007199254740993}`, not},
		{`args.n == 9007199254740992.0`, `{"n":9007199254740993}`, not},
		{`args.n in [9007199254740992.0]`, `{"n":9007199254740993}`, not},
		{`[args.n] == [9007199254740992.0]`, `{"n":9007199254740993}`, not},
		{`{"a": args.n} == {"a": 9007199254740992.0}`, `{"n":9007199254740993}`, not},
		{`args.n != 9007199254740992.0`, `{"n":9007199254740993}`, holds},
		{`args.n <= 1e16`, `{"n":10000000000000001}`, not},
		{`args.n <= 9223372036854775807`, `{"n":9223372036854775807}`, holds},
		{`args.n == -9223372036854775808`, `{"n":-9223372036854775808}`, holds},
		{`args.n <= 9223372036854775807`, `{"n":9223372036854775808}`, not},
		{`type(args.n) == uint && args.n == 18446744073709551615u`, `{"n":18446744073709551615}`, holds},
		{`args.n <= 18446744073709551614u`, `{"n":18446744073709551615}`, not},
		{`args.n < 18446744073709552000.0`, `{"n":18446744073709551615}`, holds},
		{`args.n == 18446744073709552000.0`, `{"n":18446744073709551615}`, not},
		// Fractions.
		{`args.n <= 50`, `{"n":50.5}`, not},
		{`args.n <= 50`, `{"n":49.99}`, holds},
		{`args.n <= 0.1`, `{"n":0.1}`, holds},
		{`args.n == 0.1`, `{"n":1e-1}`, holds},
		{`args.n < 1`, `{"n":5e-324}`, holds},
		{`args.n > 50`, `{"n":1e300}`, holds},
		{`args.n < 0`, `{"n":-1e300}`, holds},
		// Numbers that nothing holds: equal to themselves, else an error.
		{`args.n <= 50`, `{"n":1e400}`, anError},
		{`args.n > 50`, `{"n":1e400}`, anError},
		{`50 < args.n`, `{"n":1e400}`, anError},
		{`args.n >= 0`, `{"n":1e-400}`, anError},
		{`args.n <= 0.1`, `{"n":0.1000000000000000055511151231257827}`, anError},
		{`args.n == 0.1`, `{"n":0.1000000000000000055511151231257827}`, not},
		{`args.n < args.m`, `{"n":1e400,"m":2e400}`, anError},
		{`args.n == args.m`, `{"n":1e400,"m":10e399}`, holds},
		{`args.n == args.m`, `{"n":1e400,"m":2e400}`, not},
		{`[args.n] == [args.m]`, `{"n":1e400,"m":2e400}`, not},
		{`args.n in args.l`, `{"n":1e400,"l":[1,2e400]}`, not},
		{`args.n in args.l`, `{"n":1e400,"l":[1,1e400]}`, holds},
		{`args.l.all(x, x < 5)`, `{"l":[1,1e400]}`, anError},
		{`args.l.exists(x, x < 5)`, `{"l":[1,1e400]}`, holds},
		{`args.n <= 50`, `{"n":123456789012345678901234567890}`, anError},
		{`args.n <= 50`, `{"n":18446744073709551617}`, anError},
		{`args.n <= 50`, `{"n":9007199254740993.5}`, anError},
		{`args.n > 1e30`, `{"n":1e31}`, holds},
		{`args.n + 1 > 0`, `{"n":1e400}`, anError},
		{`-args.n < 0`, `{"n":1e400}`, anError},
		{`int(args.n) > 0`, `{"n":1e400}`, anError},
		{`double(args.n) > 0.0`, `{"n":1e400}`, anError},
		{`string(args.n) == "1e+400"`, `{"n":1e400}`, holds},
		{`{args.n: 1} == {args.n: 1}`, `{"n":1e400}`, holds},
		// Conversions do not round.
		{`double(args.n) == 2.0`, `{"n":2}`, holds},
		{`double(args.n) > 0.0`, `{"n":9007199254740993}`, anError},
		{`double(args.n) > 0.0`, `{"n":18446744073709551615}`, anError},
		{`double(args.s) == 0.5`, `{"s":"0.50"}`, holds},
		{`double(args.s) > 0.0`, `{"s":"0.1000000000000000055"}`, anError},
		{`double(args.s) > 0.0`, `{"s":"NaN"}`, anError},
		{`double(args.s) > 0.0`, `{"s":"0x10"}`, anError},
		{`double(args.s) > 0.0`, `{"s":"[1]"}`, anError},
		{`double(args.quantity) * args.price <= 100.0`, `{"quantity":3,"price":12.5}`, holds},
		{`string(args.n) == "9007199254740993"`, `{"n":9007199254740993}`, holds},
		// Nor do they cut off.
		{`int(args.n) <= 50`, `{"n":50.99}`, anError},
		{`int(args.n) >= 0`, `{"n":-0.5}`, anError},
		{`uint(args.n) <= 50u`, `{"n":50.99}`, anError},
		{`int(args.n) <= 50`, `{"n":50.0}`, holds},
		{`int(double(args.n)) == 50 && uint(double(args.n)) == 50u`, `{"n":50}`, holds},
		{`int(double(args.s)) <= 50`, `{"s":"50.99"}`, anError},
		{`int(args.s) <= 50`, `{"s":"50.99"}`, anError},
		{`int(args.s) == 50`, `{"s":"50"}`, holds},
		{`int(args.n) > 0`, `{"n":1e300}`, anError},
		{`uint(args.n) >= 0u`, `{"n":-1}`, anError},
		// No coercion.
		{`args.n == 500`, `{"n":"500"}`, not},
		{`args.n == "500"`, `{"n":500}`, not},
		{`args.n == true`, `{"n":1}`, not},
		{`args.n == null`, `{"n":0}`, not},
		{`args.n < "b"`, `{"n":"a"}`, holds},
		{`args.n < true`, `{"n":false}`, holds},
	}
	for _, tt := range tests {
		t.Run(tt.when+" of "+tt.args, func(t *testing.T) {
			t.Parallel()
			if got := denyElse(t, tt.when, tt.args); got.Outcome != tt.want {
				t.Errorf("%s (%s), want %s", got.Outcome, got.Reason, tt.want)
			}
		})
	}
}

func TestCase110LargeExponentsCostNothing(t *testing.T) {
	t.Parallel()
	args := `{"l":[` + strings.TrimSuffix(strings.Repeat("1e10000,-1e-10000,0e9999,", 1000), ",") + `]}`
	start := time.Now()
	if got := denyElse(t, `args.l.all(x, x <= 5)`, args); got.Outcome != anError {
		t.Errorf("%+v", got)
	}
	if d := time.Since(start); d > time.Second {
		t.Logf("took %v", d)
	}
}

// spelling draws a JSON number, now and then one that is hard on 64 bits.
func spelling() *rapid.Generator[string] {
	edges := []string{
		"0", "50", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807",
		"9223372036854775808", "18446744073709551615", "18446744073709551616", "18446744073709552000",
		"1e16", "1e19", "1e23", "99999999999999991611392", "0.1", "0.1000000000000000055", "1e-400", "1e400",
	}
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.OneOf(
			rapid.SampledFrom(edges),
			rapid.Map(rapid.Int64(), func(n int64) string { return new(big.Int).Abs(big.NewInt(n)).String() }),
			rapid.StringMatching(`[1-9][0-9]{0,22}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`),
		).Draw(t, "digits")
		return rapid.SampledFrom([]string{"", "", "-"}).Draw(t, "sign") + s
	})
}

// A comparison of two arguments is right or an error; never wrong.
func TestComparisonsAreNeverWrong(t *testing.T) {
	t.Parallel()
	right := map[string]func(c int) bool{
		"<":  func(c int) bool { return c < 0 },
		"<=": func(c int) bool { return c <= 0 },
		">":  func(c int) bool { return c > 0 },
		">=": func(c int) bool { return c >= 0 },
		"==": func(c int) bool { return c == 0 },
		"!=": func(c int) bool { return c != 0 },
	}
	policies := map[string]*rules.Policy{}
	for op := range right {
		policies[op] = newPolicy(t, allowIf(`args.a `+op+` args.b`), rules.Rule{Name: "else", When: "true", Outcome: policy.Deny})
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := spelling().Draw(rt, "a"), spelling().Draw(rt, "b")
		for op, want := range right {
			got := evaluate(t, policies[op], refund(fmt.Sprintf(`{"a":%s,"b":%s}`, a, b)))
			if got.Outcome == anError {
				continue
			}
			if is := want(rational(rt, a).Cmp(rational(rt, b))); is != (got.Outcome == holds) {
				rt.Fatalf("%s %s %s came to %s", a, op, b, got.Outcome)
			}
		}
	})
}

// The same with a number in the rule: New refuses it, or the comparison is right or an error.
func TestComparisonsWithLiteralsAreNeverWrong(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := spelling().Draw(rt, "a"), spelling().Draw(rt, "b")
		p, err := rules.New([]rules.Rule{
			allowIf(`args.a <= ` + b),
			{Name: "else", When: "true", Outcome: policy.Deny},
		}, nil)
		if err != nil {
			return
		}
		got := evaluate(t, p, refund(fmt.Sprintf(`{"a":%s}`, a)))
		if is := rational(rt, a).Cmp(rational(rt, b)) <= 0; got.Outcome != anError && is != (got.Outcome == holds) {
			rt.Fatalf("%s <= %s came to %s", a, b, got.Outcome)
		}
	})
}

func rational(t *rapid.T, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("no number: %s", s)
	}
	return r
}
