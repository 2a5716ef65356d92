package run_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

func TestRound(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ran := 0
	mk := func(name string, se tool.SideEffect) tool.Tool {
		return tool.Tool{Spec: tool.Spec{Name: name, Description: "x", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: se}, Run: tool.RunnerFunc(func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
			ran++
			return json.RawMessage(`{"ok":true}`), nil
		})}
	}
	tools, err := tool.NewRegistry(mk("look", tool.ReadOnly), mk("push", tool.RemoteMutation))
	if err != nil {
		t.Fatal(err)
	}
	d := run.NewDriver(run.Config{Store: st, Tools: tools, Agent: run.AgentFunc(func(ctx context.Context, in run.StepInput) (run.Proposal, error) {
		switch len(in.Steps) {
		case 0:
			return run.Proposal{Kind: run.CallTool, Tool: "look", Args: json.RawMessage(`{"a":1}`)}, nil
		case 1:
			return run.Proposal{Kind: run.CallTool, Tool: "push", Args: json.RawMessage(`{"a":2}`)}, nil
		}
		return run.Proposal{Kind: run.Complete, Result: json.RawMessage(`"fine"`)}, nil
	})})
	r, err := d.Start(ctx, "do it", run.DefaultLimits())
	t.Logf("%+v %v", r, err)
	if err := (decision.Operator{Store: st}).Approve(ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
		t.Fatal(err)
	}
	r, err = d.Resume(ctx, r.ID)
	t.Logf("%+v %v", r, err)
	page, err := event.Read(ctx, st, r.Stream(), "", 0)
	for _, e := range page.Events {
		t.Log(e.StreamSeq, e.Type, e.Subject, string(e.Payload))
	}
	if ran != 2 {
		t.Fatal(ran, err)
	}
	rep, err := event.Verify(ctx, st, nil)
	t.Logf("%+v %v", rep, err)
}
