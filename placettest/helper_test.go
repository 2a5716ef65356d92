package placettest_test

import (
	"errors"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

var order = []byte(`{"order":"o-7","amount":500}`)

// shop is an executor over s that knows these tools.
func shop(t *testing.T, s txn.Store, tools ...tool.Tool) *call.Executor {
	t.Helper()
	reg, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return call.NewExecutor(call.Config{Store: s, Tools: reg})
}

// park makes a call that has to wait.
func park(t *testing.T, calls *call.Executor, toolName string) *call.PendingError {
	t.Helper()
	_, err := calls.Call(t.Context(), toolName, order)
	var waits *call.PendingError
	if !errors.As(err, &waits) {
		t.Fatalf("the call did not park: %v", err)
	}
	return waits
}

// resume carries a parked call out.
func resume(t *testing.T, calls *call.Executor, waits *call.PendingError) call.Result {
	t.Helper()
	res, err := calls.Resume(t.Context(), waits.ApprovalID, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func txnView(t *testing.T, p *placettest.Process, fn func(run.Tx) error) error {
	t.Helper()
	return txn.View(t.Context(), p.Store, fn)
}
