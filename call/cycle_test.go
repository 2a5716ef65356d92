package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

func TestCycle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Hooks: &sqlite.Hooks{Twice: true, Strict: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var ran atomic.Int64
	reg, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`), SideEffect: tool.RemoteMutation},
		Run: tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(`{"args":` + string(c.Args) + `}`), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ex := call.NewExecutor(call.Config{Store: st, Tools: reg})
	_, err = ex.Call(ctx, "refund", []byte(`{"amount": 9007199254740993}`))
	var p *call.PendingError
	if !errors.As(err, &p) {
		t.Fatalf("got %v", err)
	}
	op := decision.Operator{Store: st}
	if err := op.ApproveShown(ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "ok"); err != nil {
		t.Fatal(err)
	}
	res, err := ex.Resume(ctx, p.ApprovalID, nil)
	if err != nil || res.Status != call.Succeeded || string(res.Value) != `{"args":{"amount": 9007199254740993}}` {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := ex.Resume(ctx, p.ApprovalID, nil); !errors.Is(err, call.ErrAlreadyDecided) {
		t.Errorf("second resume: %v", err)
	}
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
	rep, err := event.Verify(ctx, st, nil)
	if err != nil || rep.Break != nil || rep.Events != 5 {
		t.Errorf("verify: %+v %v", rep, err)
	}
	page, err := event.Read(ctx, st, "call:"+p.CallID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		t.Log(e.StreamSeq, e.Type, e.Subject, e.Actor, string(e.Payload))
	}
}
