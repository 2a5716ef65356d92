package run_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
)

// A driver holds the loop itself, with a function as its agent.
func ExampleDriver() {
	ctx := context.Background()
	store, remove := exampleStore()
	defer remove()
	tools, err := tool.NewRegistry(
		tool.MustNew("publish", "Publish a file.", tool.RemoteMutation, func(_ context.Context, f file) (string, error) { return f.Path + " is out", nil }, nil),
	)
	if err != nil {
		panic(err)
	}
	agent := func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if len(in.Steps) == 0 {
			return run.Proposal{Kind: run.CallTool, Tool: "publish", Args: json.RawMessage(`{"path":"a.txt"}`), Text: "it is ready"}, nil
		}
		return run.Proposal{Kind: run.Complete, Result: json.RawMessage(in.Steps[0].Result)}, nil
	}
	driver := run.NewDriver(run.Config{Store: store, Tools: tools, Agent: run.AgentFunc(agent)})

	r, err := driver.Start(ctx, "Publish a.txt", run.DefaultLimits())
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Status) // it is stored, and this process may end

	// A person agrees to exactly what was shown, and any process with the store goes on.
	if err := (decision.Operator{Store: store}).Approve(ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
		panic(err)
	}
	if r, err = driver.Resume(ctx, r.ID); err != nil {
		panic(err)
	}
	fmt.Println(r.Status, r.Reason, string(r.Result))
	// Output:
	// WAITING_FOR_APPROVAL
	// COMPLETED goal_completed "a.txt is out"
}
