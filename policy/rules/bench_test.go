package rules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func refund(args string) request.Request {
	return request.Request{
		CallID: "c-1",
		Tool:   tool.Spec{Name: "refund", SideEffect: tool.RemoteMutation},
		Args:   []byte(args),
	}
}

func BenchmarkEvaluate(b *testing.B) {
	thousand := make([]rules.Rule, 0, rules.MaxRules)
	for i := range rules.MaxRules - 1 {
		thousand = append(thousand, rules.Rule{Name: fmt.Sprint("r", i), When: fmt.Sprintf(`tool == "t%d" && args.amount <= 50`, i), Outcome: policy.Deny})
	}
	small := rules.Rule{Name: "small", When: `tool == "refund" && args.amount <= 50`, Outcome: policy.Allow}
	large := rules.Rule{
		Name: "large", When: `tool == "refund"`, Outcome: policy.RequireApproval,
		Presentation: map[string]string{"title": `"Refund " + string(args.amount) + " on " + args.order_id`},
	}
	list := rules.Rule{Name: "list", When: `args.items.all(i, i.price < 100)`, Outcome: policy.Allow}
	items := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"price":12.5,"name":"a thing"},`, 100), ",") + `]}`
	for _, bb := range []struct {
		name  string
		rules []rules.Rule
		args  string
	}{
		{"allow", []rules.Rule{small}, `{"order_id":"o-7","amount":12}`},
		{"allow a fraction", []rules.Rule{small}, `{"order_id":"o-7","amount":12.5}`},
		{"ask with presentation", []rules.Rule{small, large}, `{"order_id":"o-7","amount":500}`},
		{"fallback", []rules.Rule{{Name: "other", When: `tool == "deploy"`, Outcome: policy.Deny}}, `{"order_id":"o-7","amount":500}`},
		{"loop over 100", []rules.Rule{list}, items},
		{"last of 1000", append(thousand, small), `{"order_id":"o-7","amount":12}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p, err := rules.New(bb.rules, nil)
			if err != nil {
				b.Fatal(err)
			}
			r := refund(bb.args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Evaluate(context.Background(), r, policy.View{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
