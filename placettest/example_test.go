package placettest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

type refundArgs struct {
	Amount int `json:"amount"`
}

// refunds is the program's own executor, which is under test.
func refunds(s txn.Store) *call.Executor {
	tools, err := tool.NewRegistry(tool.MustNew("refund", "Refund an order.", tool.RemoteMutation,
		func(_ context.Context, in refundArgs) (string, error) { return fmt.Sprint("refunded ", in.Amount), nil }, nil))
	if err != nil {
		panic(err)
	}
	return call.NewExecutor(call.Config{Store: s, Tools: tools})
}

// tempStore stands in for placettest.Open, which needs a test.
func tempStore() (txn.Store, func()) {
	dir, err := os.MkdirTemp("", "placettest-")
	if err != nil {
		panic(err)
	}
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "placet.db"), nil)
	if err != nil {
		panic(err)
	}
	return s, func() { s.Close(); os.RemoveAll(dir) }
}

func ExampleReviewer() {
	ctx := context.Background()
	store, remove := tempStore()
	defer remove()
	calls := refunds(store)

	_, err := calls.Call(ctx, "refund", []byte(`{"amount":500}`))
	var waits *call.PendingError
	errors.As(err, &waits)

	ana := placettest.Reviewer{Store: store, By: "ana"}.
		Edit(placettest.Tool("refund"), `{"amount":50}`).
		Reject(placettest.Any, "Only refunds.")
	decided, err := ana.Decide(ctx)
	fmt.Println(decided, err)

	res, err := calls.Resume(ctx, waits.ApprovalID, nil)
	fmt.Println(res.Status, string(res.Value), res.Edited, err)
	// Output:
	// 1 <nil>
	// succeeded "refunded 50" true <nil>
}

func ExampleClock() {
	var clock placettest.Clock
	clock.Advance(90 * time.Minute)
	fmt.Println(clock.Now().Format(time.TimeOnly))
	// Output: 13:30:00
}

func ExampleCrashStore() {
	ctx := context.Background()
	store, remove := tempStore()
	defer remove()

	dying := placettest.NewCrashStore(store, placettest.Crash{Moment: placettest.AfterCommit, N: 1})
	_, err := refunds(dying).Call(ctx, "refund", []byte(`{"amount":500}`))
	fmt.Println(err)

	// What was committed is there for the next process.
	waiting, err := decision.Operator{Store: store}.Pending(ctx, 0)
	fmt.Println(len(waiting), err)
	// Output:
	// The process of this store has died.
	// 1 <nil>
}

// A refund is made exactly once, wherever the program dies: the person who is
// asked whether to make it again looks at what was done.
func ExampleEachCrash() {
	var t *testing.T // the test's own

	placettest.EachCrash(t, placettest.Scenario{
		Run: func(ctx context.Context, p *placettest.Process) error {
			tools, err := tool.NewRegistry(p.Store.Tool(p.Witness.Tool("refund")))
			if err != nil {
				return err
			}
			calls := call.NewExecutor(call.Config{Store: p.Store, Tools: tools})
			ana := placettest.Reviewer{Store: p.Store, By: "ana"}.
				Approve(placettest.Any).
				Approve(p.Witness.Missing).
				Reject(p.Witness.Done, "I see it in the books.")
			for {
				_, err := calls.Handle(ctx, []byte(`{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{}}`))
				if waits := (*call.PendingError)(nil); !errors.As(err, &waits) {
					return err
				}
				if _, err := ana.Decide(ctx); err != nil {
					return err
				}
			}
		},
		Check: func(t *testing.T, p *placettest.Process) {
			if n := len(p.Witness.Lines()); n != 1 {
				t.Errorf("refunded %d times", n)
			}
		},
	})
}
