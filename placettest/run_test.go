package placettest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store/storetest"
	"github.com/placet-dev/placet/tool"
)

// two is an agent with two things in mind that a person has to agree to, and one
// that is allowed.
func two() *placettest.Agent {
	return placettest.NewAgent(
		placettest.Calls("look", `{"at":"it"}`),
		placettest.Calls("refund", `{"amount":0}`),
		placettest.Calls("refund", `{"amount":1}`),
		placettest.Completes(`"both"`),
	)
}

func driver(t *testing.T, p *placettest.Process, agent run.Agent, declare func(*tool.Tool)) *run.Driver {
	t.Helper()
	look, refund := p.Witness.Tool("look"), p.Witness.Tool("refund")
	look.SideEffect = tool.ReadOnly
	declare(&refund)
	tools, err := tool.NewRegistry(p.Store.Tool(look), p.Store.Tool(refund))
	if err != nil {
		t.Fatal(err)
	}
	return run.NewDriver(run.Config{Store: p.Store, Tools: tools, Agent: agent})
}

// A run whose process dies at any commit and after any effect comes to its end all the
// same, and each approved action had its effect once.
func TestEachCrashOfARun(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*tool.Tool, *placettest.Witness){
		"person": func(*tool.Tool, *placettest.Witness) {},
		"probe":  func(tl *tool.Tool, w *placettest.Witness) { tl.Probe = w.Probe() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placettest.EachCrash(t, placettest.Scenario{
				Run: func(ctx context.Context, p *placettest.Process) error {
					d := driver(t, p, two(), func(tl *tool.Tool) { declare(tl, p.Witness) })
					defer func() { _ = d.Wait(context.Background()) }()
					_, err := p.Finish(ctx, d, "run_x", "refund both", run.DefaultLimits(), honest(p))
					return err
				},
				Check: func(t *testing.T, p *placettest.Process) {
					storetest.CheckInvariants(t, p.Store)
					r := stored(t, p, "run_x")
					// An honest no to a repeat ends the run; then the second may be missing.
					told := r.Reason == run.ApprovalRejected
					for i := range 2 {
						if n := ran(p, i); n != 1 && !(told && i == 1 && n == 0) {
							t.Errorf("the tool ran %d times for refund %d (%s)", n, i, r.Reason)
						}
					}
					if r.Reason != run.GoalCompleted && !(told && name == "person") {
						t.Errorf("it ended as %s: %s", r.Reason, r.Detail)
					}
				},
			})
		})
	}
}

func stored(t *testing.T, p *placettest.Process, id string) (r run.Run) {
	t.Helper()
	err := txnView(t, p, func(tx run.Tx) (err error) { r, err = tx.Run(id); return err })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFinishThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	st, clock := placettest.Open(t), &placettest.Clock{}
	p := &placettest.Process{Store: placettest.NewCrashStore(st, placettest.Crash{}), Clock: clock, Witness: placettest.NewWitness(t)}
	d := driver(t, p, two(), func(*tool.Tool) {})
	r, err := p.Finish(t.Context(), d, "run_x", "refund both", run.DefaultLimits(), placettest.Reviewer{Store: p.Store})
	if err == nil || r.Status != run.Waiting {
		t.Errorf("run %s, %v", r.Status, err)
	}
}

func TestAgentSeesAndRepeats(t *testing.T) {
	t.Parallel()
	a := placettest.NewAgent(placettest.Calls("a", `{}`), placettest.Fails("no"))
	ended := func(kinds ...run.ObservationKind) run.StepInput {
		in := run.StepInput{}
		for _, k := range kinds {
			in.Steps = append(in.Steps, run.Step{Observation: k})
		}
		return in
	}
	for i, tt := range []struct {
		in   run.StepInput
		want run.ProposalKind
	}{
		{ended(), run.CallTool},
		{ended(run.WasInterrupted), run.CallTool},
		{ended(run.WasInterrupted, run.ToolResult), run.Fail},
		{ended(run.ToolError, run.PolicyDenied), run.Complete},
	} {
		if p, err := a.Decide(t.Context(), tt.in); err != nil || p.Kind != tt.want {
			t.Errorf("%d: got %s, %v", i, p.Kind, err)
		}
	}
	if n := len(a.Seen()); n != 4 {
		t.Errorf("saw %d", n)
	}
}

// A run whose process dies anywhere: the person who is asked whether to make a refund
// again looks at what was done.
func ExampleProcess_Finish() {
	var t *testing.T // the test's own

	placettest.EachCrash(t, placettest.Scenario{
		Run: func(ctx context.Context, p *placettest.Process) error {
			tools, err := tool.NewRegistry(p.Store.Tool(p.Witness.Tool("refund")))
			if err != nil {
				return err
			}
			agent := placettest.NewAgent(placettest.Calls("refund", `{"amount":500}`))
			d := run.NewDriver(run.Config{Store: p.Store, Tools: tools, Agent: agent})
			ana := placettest.Reviewer{Store: p.Store, By: "ana"}.
				Approve(placettest.Any).
				Approve(p.Witness.Missing).
				Reject(p.Witness.Done, "I see it in the books.")
			_, err = p.Finish(ctx, d, "run_refund", "refund order o-7", run.DefaultLimits(), ana)
			return err
		},
		Check: func(t *testing.T, p *placettest.Process) {
			if n := len(p.Witness.Lines()); n != 1 {
				t.Errorf("refunded %d times", n)
			}
		},
	})
}

func ExampleAgent() {
	agent := placettest.NewAgent(placettest.Calls("refund", `{"amount":500}`), placettest.Completes(`"refunded"`))
	first, err := agent.Decide(context.Background(), run.StepInput{})
	fmt.Println(first.Kind, first.Tool, string(first.Args), err)
	// Output: tool_call refund {"amount":500} <nil>
}
