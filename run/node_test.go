package run_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// A flow's run goes on after a node's approval, and after that of a node's call.
func TestResumeOfNodes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ran := 0
	tools, err := tool.NewRegistry(tool.MustNew("push", "Push.", tool.RemoteMutation,
		func(context.Context, struct{}) (string, error) { ran++; return "pushed", nil }, nil))
	if err != nil {
		t.Fatal(err)
	}
	d := run.NewDriver(run.Config{Store: st, Tools: tools, Agent: run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		switch len(in.Steps) {
		case 0:
			return run.Proposal{Kind: run.AskApproval, Node: "ask", Args: json.RawMessage(`{"n":1}`)}, nil
		case 1:
			return run.Proposal{Kind: run.CallTool, Node: "push", Tool: "push", Args: json.RawMessage(`{}`)}, nil
		}
		return run.Proposal{Kind: run.Complete, Node: "end", Result: json.RawMessage(in.Steps[1].Result)}, nil
	})})
	flow := run.FlowRef{Name: "f", Version: "1", Digest: "d"}
	r, err := d.Start(ctx, "f", run.DefaultLimits(), run.OfFlow(flow))
	for _, node := range []string{"ask", "push"} {
		if err != nil || r.Status != run.Waiting || r.Current.Node != node {
			t.Fatal(r, err)
		}
		if err := (decision.Operator{Store: st}).Approve(ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
			t.Fatal(err)
		}
		r, err = d.ResumeFlow(ctx, r.ID, flow)
	}
	if err != nil || r.Status != run.Completed || r.Result != `"pushed"` || ran != 1 {
		t.Errorf("%+v %v, ran %d times", r, err, ran)
	}
}
