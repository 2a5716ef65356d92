// Flow publishes what lies in drafts/, once a person has agreed to exactly that: it
// collects, asks and publishes to public/, in three processes on the file flow.db.
//
//	go run ./examples/flow start          # collects, prints an approval's id and ends
//	go run ./examples/flow approve apr_…  # a person's yes to exactly what was shown
//	go run ./examples/flow resume apr_…   # publishes it, once
//
// A draft that changed after it was collected is not published: the run fails.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/flow"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/tool"
)

// page is one draft as it was collected.
type page struct {
	Name string `json:"name"`
	Sum  string `json:"sha256"`
}

type pages struct {
	Pages []page `json:"pages"`
}

// publishing is the plan. What is approved at ask is, byte for byte, what publish gets.
var publishing = flow.Flow{
	Name: "publish", Version: "1",
	Nodes: []flow.Node{
		flow.Call{Name: "collect", Tool: "collect"},
		flow.Branch{Name: "anything", If: anything, Then: "ask", Else: "nothing"},
		flow.Approve{Name: "ask", ArgsFrom: flow.ResultOf("collect"), Reason: "Everybody can read what is published."},
		flow.Call{Name: "publish", Tool: "publish", ArgsFrom: flow.ArgsOf("ask")},
		flow.End{Name: "published", ResultFrom: flow.ResultOf("publish")},
		flow.End{Name: "nothing", Result: []byte(`"nothing to publish"`)},
	},
}

func anything(r flow.Results) (bool, error) {
	var found pages
	err := r.Of("collect", &found)
	return len(found.Pages) > 0, err
}

func collect(context.Context, struct{}) (pages, error) {
	names, err := filepath.Glob("drafts/*.md")
	found := pages{Pages: []page{}}
	for _, name := range names {
		text, readErr := os.ReadFile(name)
		err = errors.Join(err, readErr)
		found.Pages = append(found.Pages, page{filepath.Base(name), sum(text)})
	}
	return found, err
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// publish copies the pages, all of them or, if one is not what was agreed to, none.
func publish(_ context.Context, in pages) (string, error) {
	texts := make([][]byte, len(in.Pages))
	for i, p := range in.Pages {
		text, err := os.ReadFile(filepath.Join("drafts", filepath.Base(p.Name)))
		if err != nil {
			return "", err
		}
		if sum(text) != p.Sum {
			return "", fmt.Errorf("%s is not what was approved", p.Name)
		}
		texts[i] = text
	}
	if err := os.MkdirAll("public", 0o755); err != nil {
		return "", err
	}
	for i, p := range in.Pages {
		if err := os.WriteFile(filepath.Join("public", filepath.Base(p.Name)), texts[i], 0o600); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("published %d", len(texts)), nil
}

// runner is the same in every process: the tools and the plan.
func runner(st *store.Store) (*flow.Runner, error) {
	tools, err := tool.NewRegistry(
		tool.MustNew("collect", "List the drafts.", tool.ReadOnly, collect, nil),
		// Writing the same files again does no harm, so a process that was lost while it
		// published leaves no question to a person.
		tool.MustNew("publish", "Copy drafts to public.", tool.LocalMutation, publish, &tool.Options{Idempotent: true}),
	)
	if err != nil {
		return nil, err
	}
	return flow.NewRunner(publishing, run.Config{Store: st, Tools: tools})
}

func main() {
	if err := work(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(ctx context.Context, args []string) error {
	st, err := sqlite.Open(ctx, "flow.db", nil)
	if err != nil {
		return err
	}
	defer st.Close()
	r, err := runner(st)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(args, []string{"start"}):
		return report(r.Start(ctx, nil, nil))
	case len(args) == 2 && args[0] == "approve":
		return approve(ctx, st, args[1])
	case len(args) == 2 && args[0] == "resume":
		return report(r.Resume(ctx, args[1]))
	}
	return errors.New("usage: flow start | approve ID | resume ID")
}

// report says where the run stands.
func report(r run.Run, err error) error {
	switch {
	case err != nil:
		return err
	case r.Status == run.Waiting:
		fmt.Println(r.ApprovalID)
	case r.Status == run.Completed:
		fmt.Println(r.Result)
	default:
		return errors.New(r.Detail)
	}
	return nil
}

// approve needs neither the tools nor the plan: only the file.
func approve(ctx context.Context, st *store.Store, id string) error {
	people := decision.Operator{Store: st}
	shown, err := people.Show(ctx, id)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n%s\n", shown.Reason, shown.Presentation, shown.Digest)
	// The digest binds the yes to what was printed. A real program asks in between.
	return people.ApproveShown(ctx, shown.RunID, id, shown.Digest, "ana", "Looks right.")
}
