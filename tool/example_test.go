package tool_test

import (
	"context"
	"fmt"

	"github.com/placet-dev/placet/tool"
)

type refund struct {
	OrderID string `json:"order_id" jsonschema:"the order to refund"`
	Amount  int64  `json:"amount" jsonschema:"in cents"`
}

type receipt struct {
	ID string `json:"id"`
}

func ExampleNew() {
	t, err := tool.New("refund", "Refund an order.", tool.RemoteMutation,
		func(ctx context.Context, in refund) (receipt, error) {
			call, _ := tool.CallFrom(ctx) // its id is the key by which a repeat is recognised
			return receipt{ID: fmt.Sprintf("r-%s-%s-%d", call.CallID, in.OrderID, in.Amount)}, nil
		}, &tool.Options{Idempotent: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := tool.NewRegistry(t)
	if err != nil {
		fmt.Println(err)
		return
	}

	refund, _ := tools.Lookup("refund")
	fmt.Println(refund.CheckArgs([]byte(`{"order_id":"o-7","amount":"500"}`)))
	args := []byte(`{"order_id":"o-7","amount":500}`)
	fmt.Println(refund.CheckArgs(args))

	o := tool.Invoke(context.Background(), refund, tool.Call{CallID: "call_1", Attempt: 1, Args: args}, nil)
	fmt.Println(o.Status, string(o.Result))

	_, err = tools.Lookup("Refund")
	fmt.Println(err)
	// Output:
	// The field /amount must be an integer, not a string.
	// <nil>
	// succeeded {"id":"r-call_1-o-7-500"}
	// No tool named "Refund" is registered here. Did you mean "refund"?
}
