// Approve parks a call in one process, has it approved in a second and carries it
// out in a third, all on the file refunds.db. Each process ends in between.
//
//	go run ./examples/approve park            # prints an id and ends
//	go run ./examples/approve approve apr_…   # a person's yes to exactly what was shown
//	go run ./examples/approve resume apr_…    # runs it, once
//	go run ./examples/approve resume apr_…    # refused: it is used already
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

type refund struct {
	OrderID string `json:"order_id" jsonschema:"the order to refund"`
	Amount  int64  `json:"amount" jsonschema:"in cents"`
}

// pay is the risky action: it adds a line to refunds.txt.
func pay(_ context.Context, in refund) (string, error) {
	f, err := os.OpenFile("refunds.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "%d on %s\n", in.Amount, in.OrderID)
	return "refunded", errors.Join(err, f.Close())
}

// A tool that changes something remote waits for a person by default.
var refunds = tool.MustNew("refund", "Refund an order.", tool.RemoteMutation, pay, nil)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	st, err := sqlite.Open(ctx, "refunds.db", nil)
	if err != nil {
		return err
	}
	defer st.Close()
	switch {
	case len(args) == 1 && args[0] == "park":
		return park(ctx, st)
	case len(args) == 2 && args[0] == "approve":
		return approve(ctx, st, args[1])
	case len(args) == 2 && args[0] == "resume":
		return resume(ctx, st, args[1])
	}
	return errors.New("usage: approve park | approve ID | resume ID")
}

func executor(st *store.Store) (*call.Executor, error) {
	tools, err := tool.NewRegistry(refunds)
	return call.NewExecutor(call.Config{Store: st, Tools: tools}), err
}

// park makes the call, which has to wait.
func park(ctx context.Context, st *store.Store) error {
	calls, err := executor(st)
	if err != nil {
		return err
	}
	_, err = calls.Call(ctx, "refund", []byte(`{"order_id":"o-7","amount":500}`))
	var waits *call.PendingError
	if errors.As(err, &waits) {
		fmt.Println(waits.ApprovalID)
		return nil
	}
	return err
}

// approve needs neither the tool nor the program that asked: only the file.
func approve(ctx context.Context, st *store.Store, id string) error {
	people := decision.Operator{Store: st}
	shown, err := people.Show(ctx, id)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", shown.Presentation, shown.Digest)
	// The digest binds the yes to what was printed. A real program asks in between.
	return people.ApproveShown(ctx, shown.RunID, id, shown.Digest, "ana", "Looks right.")
}

// resume carries the call out with exactly the arguments that were approved.
func resume(ctx context.Context, st *store.Store, id string) error {
	calls, err := executor(st)
	if err != nil {
		return err
	}
	res, err := calls.Resume(ctx, id, nil)
	if err != nil {
		return err
	}
	fmt.Println(res.Status, string(res.Value))
	return nil
}
