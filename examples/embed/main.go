// Embed is the smallest program: a typed tool, a policy that is a function, and a
// person at the terminal who is asked while the program waits.
//
//	go run ./examples/embed
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

type refund struct {
	OrderID string `json:"order_id"`
	Amount  int64  `json:"amount"`
}

var refunds = tool.MustNew("refund", "Refund an order.", tool.RemoteMutation,
	func(_ context.Context, in refund) (string, error) {
		return fmt.Sprintf("refunded %d on %s", in.Amount, in.OrderID), nil
	}, nil)

// limit lets small refunds pass and asks about the others.
func limit(_ context.Context, r request.Request, _ policy.View) (policy.Ruling, error) {
	var in refund
	if err := json.Unmarshal(r.Args, &in); err != nil {
		return policy.Ruling{}, err
	}
	if in.Amount <= 100 {
		return policy.Ruling{Outcome: policy.Allow}, nil
	}
	return policy.Ruling{Outcome: policy.RequireApproval, Reason: "More than 100."}, nil
}

var terminal = bufio.NewReader(os.Stdin)

// ask is called with exactly what would be stored if nobody were here to answer.
func ask(_ context.Context, d decision.Decision) (decision.Answer, error) {
	fmt.Printf("%s %s Allow it? [y/N] ", d.Reason, plain(d.Presentation))
	line, err := terminal.ReadString('\n')
	if err != nil { // nobody there: nothing runs
		return decision.Answer{}, err
	}
	return decision.Answer{Approved: strings.TrimSpace(line) == "y", By: "terminal"}, nil
}

// plain takes out what a terminal would obey: a model may have written the arguments.
func plain(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(b))
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	st, err := sqlite.Open(ctx, "embed.db", nil)
	if err != nil {
		return err
	}
	defer st.Close()
	tools, err := tool.NewRegistry(refunds)
	if err != nil {
		return err
	}
	calls := call.NewExecutor(call.Config{
		Store: st, Tools: tools, Policy: policy.Func(limit), Approval: call.Callback(ask),
	})
	for _, args := range []string{`{"order_id":"o-6","amount":50}`, `{"order_id":"o-7","amount":500}`} {
		res, err := calls.Call(ctx, "refund", []byte(args))
		if err != nil {
			return err
		}
		fmt.Println(res.Status, string(res.Value), res.Message)
	}
	return nil
}
