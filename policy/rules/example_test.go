package rules_test

import (
	"context"
	"fmt"
	"log"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/policy/rules"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func ExampleNew() {
	p, err := rules.New([]rules.Rule{
		{
			Name:    "small refunds",
			When:    `tool == "refund" && args.amount <= 50`,
			Outcome: policy.Allow,
		},
		{
			Name:         "large refunds",
			When:         `tool == "refund"`,
			Outcome:      policy.RequireApproval,
			Reason:       "refunds above 50 need a person",
			Presentation: map[string]string{"title": `"Refund " + string(args.amount) + " on " + args.order_id`},
		},
	}, policy.Default())
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{
		`{"order_id":"o-7","amount":12.50}`,
		`{"order_id":"o-7","amount":500}`,
		`{"order_id":"o-7","amount":"12"}`,
	} {
		r := request.Request{
			CallID: "c-1",
			Tool:   tool.Spec{Name: "refund", SideEffect: tool.RemoteMutation},
			Args:   []byte(args),
		}
		ruling, err := p.Evaluate(context.Background(), r, policy.View{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", ruling.Outcome, ruling.Reason)
		if ruling.Presentation != nil {
			fmt.Printf("  %s\n", ruling.Presentation)
		}
	}
	// Output:
	// allow: The rule "small refunds" says allow.
	// require_approval: refunds above 50 need a person
	//   {"title":"Refund 500 on o-7"}
	// require_approval: The rule "small refunds" could not be evaluated (a value of type string cannot be compared with one of type int), so a person has to decide.
}

func ExampleNew_wrong() {
	_, err := rules.New([]rules.Rule{{
		Name:    "small refunds",
		When:    `tool = "refund" and arg.amount <= 50`,
		Outcome: policy.Allow,
		At:      rules.Position{File: "placet.yaml", Line: 12},
	}, {
		Name:    "reading git",
		When:    `tool == "shell" && args.command.startsWith("git log")`,
		Outcome: policy.Allow,
		At:      rules.Position{File: "placet.yaml", Line: 15},
	}}, nil)
	fmt.Println(err)
	// Output:
	// placet.yaml:12: rule "small refunds", when, column 6: = does not compare; write ==
	// placet.yaml:15: rule "reading git", when, column 43: startsWith looks at a part of the value, so a rule that allows would let through whatever stands around it; compare the whole value with ==, in or matches("^…$")
}
