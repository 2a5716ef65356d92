package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

func exampleStore() (*store.Store, func()) {
	dir, err := os.MkdirTemp("", "flow-")
	if err != nil {
		panic(err)
	}
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "placet.db"), nil)
	if err != nil {
		panic(err)
	}
	return s, func() { s.Close(); os.RemoveAll(dir) }
}

// A release waits for a person's yes, in whatever process goes on with it.
func ExampleRunner() {
	ctx := context.Background()
	store, remove := exampleStore()
	defer remove()

	type release struct {
		Tag string `json:"tag"`
	}
	tools, err := tool.NewRegistry(
		tool.MustNew("next_tag", "Find the next tag.", tool.ReadOnly,
			func(context.Context, struct{}) (release, error) { return release{"v1.4.0"}, nil }, nil),
		tool.MustNew("tag", "Tag the release.", tool.LocalMutation,
			func(_ context.Context, in release) (string, error) { return "tagged " + in.Tag, nil }, nil),
	)
	if err != nil {
		panic(err)
	}
	runner, err := flow.NewRunner(flow.Flow{
		Name: "release", Version: "1",
		Nodes: []flow.Node{
			flow.Call{Name: "find", Tool: "next_tag"},
			flow.Approve{Name: "ask", ArgsFrom: flow.ResultOf("find"), Reason: "Tags are for ever."},
			flow.Call{Name: "tag", Tool: "tag", ArgsFrom: flow.ArgsOf("ask")},
			flow.End{Name: "done", ResultFrom: flow.ResultOf("tag")},
		},
	}, run.Config{Store: store, Tools: tools})
	if err != nil {
		panic(err)
	}

	waits, err := runner.Start(ctx, nil, nil)
	fmt.Println(waits.Status, waits.Current.Node, err)

	// A person looks at it and agrees, somewhere else.
	people := decision.Operator{Store: store}
	shown, _ := people.Show(ctx, waits.ApprovalID)
	fmt.Println(shown.Reason, string(shown.Presentation))
	if err := people.ApproveShown(ctx, waits.ID, waits.ApprovalID, shown.Digest, "ana", ""); err != nil {
		panic(err)
	}

	// Any process that knows the flow goes on.
	done, err := runner.Resume(ctx, waits.ApprovalID)
	fmt.Println(done.Status, done.Result, err)
	// Output:
	// WAITING_FOR_APPROVAL ask <nil>
	// Tags are for ever. {"node":"ask","args":{"tag":"v1.4.0"}}
	// COMPLETED "tagged v1.4.0" <nil>
}

// A call is tried three times; each failure shows in the results.
func ExampleBranch() {
	ctx := context.Background()
	store, remove := exampleStore()
	defer remove()

	tries := 0
	tools, err := tool.NewRegistry(tool.MustNew("upload", "Upload the file.", tool.LocalMutation,
		func(context.Context, struct{}) (string, error) {
			if tries++; tries < 3 {
				return "", errors.New("the line is busy")
			}
			return "uploaded", nil
		}, nil))
	if err != nil {
		panic(err)
	}
	busy := func(r flow.Results) (bool, error) { return r.Message("upload") == "the line is busy", nil }
	runner, err := flow.NewRunner(flow.Flow{
		Name: "upload", Version: "1",
		Nodes: []flow.Node{
			flow.Call{Name: "upload", Tool: "upload", Next: "done", OnFailure: "again"},
			flow.Branch{Name: "again", If: busy, Then: "upload", Else: "failed", Rounds: 3},
			flow.End{Name: "done", ResultFrom: func(r flow.Results) (any, error) {
				return map[string]any{"tries": r.Visits("upload"), "result": r.Raw("upload")}, nil
			}},
			flow.End{Name: "failed", Fail: "The file could not be uploaded."},
		},
	}, run.Config{Store: store, Tools: tools})
	if err != nil {
		panic(err)
	}
	r, err := runner.Start(ctx, nil, nil)
	fmt.Println(r.Status, r.Result, err)
	// Output: COMPLETED {"result":"uploaded","tries":3} <nil>
}

// A definition is looked at before anything runs.
func ExampleFlow_Check() {
	err := flow.Flow{Name: "release", Version: "1", Nodes: []flow.Node{
		flow.Call{Name: "tag", Tool: "tag", Args: json.RawMessage(`{"tag":"v1"}`), OnFailure: "undo"},
		flow.End{Name: "done"},
	}}.Check()
	fmt.Println(err)
	// Output: Flow "release", node "tag": its OnFailure is "undo", which is no node of the flow. The nodes are tag, done.
}
