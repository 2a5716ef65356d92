package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// args are of an ordinary size.
const args = `{"order_id":"o-7","amount":500,"currency":"EUR","reason":"The parcel arrived damaged; the customer sent two photographs."}`

const schema = `{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"integer"},"currency":{"type":"string"},"reason":{"type":"string"}},"required":["order_id","amount"]}`

// world is a store with tools that do nothing.
type world struct {
	store *store.Store
	exec  *call.Executor
	op    decision.Operator
}

func openWorld(ctx context.Context, path string, hooks *sqlite.Hooks) (*world, error) {
	return openWorldWith(ctx, path, &sqlite.Options{Hooks: hooks}, func(*call.Config) {})
}

func openWorldWith(ctx context.Context, path string, o *sqlite.Options, change func(*call.Config)) (*world, error) {
	o.Logger = slog.New(slog.DiscardHandler)
	st, err := sqlite.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return newWorld(st, change)
}

func newWorld(st *store.Store, change func(*call.Config)) (*world, error) {
	reg, err := tool.NewRegistry(noop("refund", tool.RemoteMutation), noop("look_up", tool.ReadOnly))
	if err != nil {
		return nil, err
	}
	conf := call.Config{Store: st, Tools: reg}
	change(&conf)
	return &world{st, call.NewExecutor(conf), decision.Operator{Store: st}}, nil
}

func noop(name string, effect tool.SideEffect) tool.Tool {
	return tool.Tool{
		Spec: tool.Spec{Name: name, Description: "Does nothing, quickly.", InputSchema: json.RawMessage(schema), SideEffect: effect},
		Run:  tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(`{"ok":true}`), nil }),
	}
}

// cycle is one call that a person has to agree to: park, approve, resume, done.
func (w *world) cycle(ctx context.Context) error {
	p, err := w.park(ctx)
	if err != nil {
		return err
	}
	if err := w.op.ApproveShown(ctx, p.RunID, p.ApprovalID, p.Digest, "ana", "fine"); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	res, err := w.exec.Resume(ctx, p.ApprovalID, nil)
	return succeeded(res, err)
}

func (w *world) park(ctx context.Context) (*call.PendingError, error) {
	var p *call.PendingError
	if res, err := w.exec.Call(ctx, "refund", []byte(args)); !errors.As(err, &p) {
		return nil, fmt.Errorf("the call was not parked: %s %w", res.Status, err)
	}
	return p, nil
}

// allowed is one call that the policy allows by itself.
func (w *world) allowed(ctx context.Context) error {
	res, err := w.exec.Call(ctx, "look_up", []byte(args))
	return succeeded(res, err)
}

func succeeded(res call.Result, err error) error {
	if err == nil && res.Failed() {
		err = fmt.Errorf("the call is %s: %s", res.Status, res.Message)
	}
	return err
}
