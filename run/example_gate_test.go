package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

type file struct {
	Path string `json:"path"`
}

// framework stands for a loop that is not ours: it asks its own model, and has one
// place through which all tool calls go.
type framework struct{ gate *run.Gate }

// model is the framework's: it reads, publishes and says that it is done.
func (framework) model(in run.StepInput) run.Proposal {
	switch len(in.Steps) {
	case 0:
		return run.Proposal{Kind: run.CallTool, Tool: "read", Args: json.RawMessage(`{"path":"a.txt"}`)}
	case 1:
		return run.Proposal{Kind: run.CallTool, Tool: "publish", Args: json.RawMessage(`{"path":"a.txt"}`)}
	}
	return run.Proposal{Kind: run.Complete, Result: json.RawMessage(`"published"`)}
}

// loop goes on until the run waits for a person or has ended.
func (f framework) loop(ctx context.Context, s *run.Session) error {
	defer s.Close(ctx)
	for {
		step, err := s.Step(ctx)
		if errors.Is(err, run.ErrEnded) {
			fmt.Println(s.Run().Status, s.Run().Reason)
			return nil
		}
		if err != nil {
			return err
		}
		v := step.Verdict() // of a step whose approval was given: allowed
		if v.Outcome == "" {
			in, err := step.Input(ctx)
			if err != nil {
				return err
			}
			if v, err = step.Propose(ctx, f.model(in)); err != nil {
				return err
			}
		}
		switch v.Outcome {
		case run.VerdictAllowed:
			if v, err = step.Execute(ctx); err != nil {
				return err
			}
			fmt.Println(step.Step().Tool, v.Outcome, string(v.Result))
		case run.VerdictPending:
			fmt.Println(step.Step().Tool, "waits for a person")
			return nil // this process may end; any other attaches
		}
	}
}

func ExampleGate() {
	ctx := context.Background()
	store, remove := exampleStore()
	defer remove()
	tools, err := tool.NewRegistry(
		tool.MustNew("read", "Read a file.", tool.ReadOnly, func(_ context.Context, f file) (string, error) { return "text of " + f.Path, nil }, nil),
		tool.MustNew("publish", "Publish a file.", tool.RemoteMutation, func(_ context.Context, f file) (string, error) { return f.Path + " is out", nil }, nil),
	)
	if err != nil {
		panic(err)
	}
	gate := run.NewGate(run.Config{Store: store, Tools: tools})

	s, err := gate.Begin(ctx, "Publish a.txt", run.DefaultLimits())
	if err != nil {
		panic(err)
	}
	if err := (framework{gate}).loop(ctx, s); err != nil {
		panic(err)
	}

	// A person agrees to exactly what was shown, in whatever process.
	r := s.Run()
	if err := (decision.Operator{Store: store}).Approve(ctx, r.ID, r.ApprovalID, "ana", ""); err != nil {
		panic(err)
	}

	if s, err = gate.Attach(ctx, r.ID); err != nil {
		panic(err)
	}
	if err := (framework{gate}).loop(ctx, s); err != nil {
		panic(err)
	}
	// Output:
	// read succeeded "text of a.txt"
	// publish waits for a person
	// publish succeeded "a.txt is out"
	// COMPLETED goal_completed
}

// A framework that runs its tools itself reserves the attempt and tells how it went.
func ExampleOpenStep_Reserve() {
	ctx := context.Background()
	store, remove := exampleStore()
	defer remove()
	tools, err := tool.NewRegistry(tool.Tool{
		Spec: tool.Spec{
			Name: "note", Description: "Write a note.", SideEffect: tool.LocalMutation,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		},
		Run: tool.Elsewhere, // only who reserves a call carries it out
	})
	if err != nil {
		panic(err)
	}
	s, err := run.NewGate(run.Config{Store: store, Tools: tools}).Begin(ctx, "Write it down", run.DefaultLimits())
	if err != nil {
		panic(err)
	}
	defer s.Close(ctx)
	step, err := s.Step(ctx)
	if err != nil {
		panic(err)
	}
	if _, err := step.Propose(ctx, run.Proposal{Kind: run.CallTool, Tool: "note", Args: json.RawMessage(`{"path":"a.txt"}`)}); err != nil {
		panic(err)
	}
	res, v, err := step.Reserve(ctx)
	if err != nil || v.Outcome != run.VerdictAllowed {
		panic(fmt.Sprint(v.Reason, err))
	}
	fmt.Println("attempt", res.Attempt, "of", res.Tool, string(res.Args))
	result := json.RawMessage(`"noted"`) // what the framework's own tool returned
	if v, err = step.Confirm(ctx, result, nil); err != nil {
		panic(err)
	}
	fmt.Println(v.Outcome, string(v.Result))
	// Output:
	// attempt 1 of note {"path":"a.txt"}
	// succeeded "noted"
}

func exampleStore() (txn.Store, func()) {
	dir, err := os.MkdirTemp("", "placet-")
	if err != nil {
		panic(err)
	}
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "placet.db"), nil)
	if err != nil {
		panic(err)
	}
	return s, func() { s.Close(); os.RemoveAll(dir) }
}
