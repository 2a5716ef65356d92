package placet_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet"
	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

func TestOpenNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := placet.Open(placet.Config{}); !errors.Is(err, call.ErrUsage) {
		t.Errorf("got %v", err)
	}
}

func TestStartExpiresWhatIsOverdue(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	refund, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation},
		Run: tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) {
			return json.RawMessage(`null`), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := placet.Open(placet.Config{Store: st, Tools: refund, ApprovalTTL: time.Microsecond, Sweep: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var waits *call.PendingError
	if _, err := p.Calls.Call(ctx, "refund", []byte(`{}`)); !errors.As(err, &waits) {
		t.Fatalf("got %v", err)
	}
	w, err := event.Wait(ctx, st, event.Waiting{Stream: "call:" + waits.CallID, Types: []event.Type{event.ApprovalExpired}})
	if err != nil || w.Outcome != event.Matched {
		t.Fatalf("got %+v, %v", w, err)
	}
	err = p.Operator.Approve(ctx, waits.RunID, waits.ApprovalID, "ana", "")
	if !errors.Is(err, decision.ErrApprovalExpired) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := p.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Stop waits for the gate's sessions: they give their runs back.
func TestStopWaitsForTheGate(t *testing.T) {
	t.Parallel()
	st := placettest.Open(t)
	p, err := placet.Open(placet.Config{Store: st, Tools: &tool.Registry{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Gate.Begin(t.Context(), "do it", run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped beside an open session: %v", err)
	}
	if _, err := p.Gate.Attach(t.Context(), s.Run().ID); !errors.Is(err, run.ErrStopped) {
		t.Errorf("attach: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A flow's runner shares store, tools and policy, and is stopped with the rest.
func TestFlow(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	tools, err := tool.NewRegistry(tool.MustNew("look", "Look.", tool.ReadOnly,
		func(context.Context, struct{}) (string, error) { return "seen", nil }, nil))
	if err != nil {
		t.Fatal(err)
	}
	p, err := placet.Open(placet.Config{Store: st, Tools: tools, Agent: run.AgentFunc(nil)})
	if err != nil {
		t.Fatal(err)
	}
	f := flow.Flow{Name: "f", Version: "1", Nodes: []flow.Node{
		flow.Call{Name: "look", Tool: "look"}, flow.End{Name: "end", ResultFrom: flow.ResultOf("look")},
	}}
	if _, err := p.Flow(flow.Flow{}); !errors.Is(err, run.ErrUsage) {
		t.Errorf("got %v", err)
	}
	r, err := p.Flow(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Start(t.Context(), nil, nil); err != nil || got.Result != `"seen"` {
		t.Errorf("%+v %v", got, err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	late, err := p.Flow(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*flow.Runner{r, late} {
		if _, err := r.Start(t.Context(), nil, nil); !errors.Is(err, run.ErrStopped) {
			t.Errorf("after Stop: %v", err)
		}
	}
}

// arriving is a way out at which everything arrives.
type arriving chan delivery.Message

func (arriving) Check(delivery.Target) error { return nil }

func (a arriving) Send(_ context.Context, m delivery.Message) delivery.Outcome {
	a <- m
	return delivery.Outcome{Result: delivery.Arrived}
}

// Who is to hear of what people are asked does, as long as it is started.
func TestStartWakes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	tools, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{Name: "refund", InputSchema: json.RawMessage(`{"type":"object"}`), SideEffect: tool.RemoteMutation},
		Run:  tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`null`), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	came := make(arriving, 1)
	p, err := placet.Open(placet.Config{Store: st, Tools: tools, Channels: delivery.Channels{delivery.KindWebhook: came}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wakes.Add(ctx, "", "ana", delivery.Adding{Type: delivery.KindWebhook, URL: "https://example.com/"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var waits *call.PendingError
	if _, err := p.Calls.Call(ctx, "refund", []byte(`{}`)); !errors.As(err, &waits) {
		t.Fatalf("got %v", err)
	}
	if m := <-came; !strings.Contains(string(m.Body), waits.ApprovalID) {
		t.Errorf("%s", m.Body)
	}
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}
