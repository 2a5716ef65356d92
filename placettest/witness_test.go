package placettest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

func TestWitnessCounts(t *testing.T) {
	t.Parallel()
	w := placettest.NewWitness(t)
	if n := len(w.Lines()); n != 0 {
		t.Errorf("%d lines before anything ran", n)
	}
	run := w.Tool("refund").Run
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			id := []string{"c1", "c2"}[i%2]
			if _, err := run.Run(t.Context(), tool.Call{CallID: id, RunID: "r", Tool: "refund", Attempt: 1, Args: order}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if w.Count("c1") != 5 || w.Count("c2") != 5 || w.Count("c") != 0 {
		t.Errorf("got %v", w.Lines())
	}
	want := placettest.Line{CallID: "c1", RunID: "r", Tool: "refund", Attempt: 1, Args: order}
	for _, got := range w.Lines() {
		if got.CallID == "c1" && (got.RunID != want.RunID || got.Attempt != 1 || string(got.Args) != string(order)) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestWitnessAround(t *testing.T) {
	t.Parallel()
	w := placettest.NewWitness(t)
	broken := errors.New("broken")
	own := w.Around(tool.Tool{Run: tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { return nil, broken })})
	if _, err := own.Run.Run(t.Context(), tool.Call{CallID: "c", Args: order}); !errors.Is(err, broken) || w.Count("c") != 1 {
		t.Errorf("got %v, %v", err, w.Lines())
	}
}

func TestWitnessThatCannotWrite(t *testing.T) {
	t.Parallel()
	w := placettest.WitnessAt(t, filepath.Join(t.TempDir(), "none", "witness"))
	ran := false
	own := w.Around(tool.Tool{Run: tool.RunnerFunc(func(context.Context, tool.Call) (json.RawMessage, error) { ran = true; return nil, nil })})
	if _, err := own.Run.Run(t.Context(), tool.Call{Args: order}); !errors.Is(err, os.ErrNotExist) || ran {
		t.Errorf("a tool ran without its witness: %v", err)
	}
}

func TestWitnessProbe(t *testing.T) {
	t.Parallel()
	w := placettest.NewWitness(t)
	c := tool.Call{CallID: "c", Args: []byte(`{"long":"` + strings.Repeat("x", 1<<17) + `"}`)}
	if got, err := w.Probe().Probe(t.Context(), c); err != nil || got.Outcome != tool.ProbeNotFound {
		t.Errorf("before: %+v %v", got, err)
	}
	if _, err := w.Tool("refund").Run.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Probe().Probe(t.Context(), c); err != nil || got.Outcome != tool.ProbeSucceeded {
		t.Errorf("after: %+v %v", got, err)
	}
}

// The approval of a run's step names no call; its line is found all the same.
func TestWitnessOfAStep(t *testing.T) {
	t.Parallel()
	w := placettest.NewWitness(t)
	asked := func(runID, args string) decision.Decision {
		req, err := request.Request{RunID: runID, StepID: "stp_1", Tool: w.Tool("refund").Spec, Args: []byte(args)}.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return decision.Decision{Kind: decision.KindInterrupted, RunID: runID, StepID: "stp_1", Tool: "refund", Request: req}
	}
	c := tool.Call{CallID: "c", RunID: "run_1", Tool: "refund", Args: []byte(`{"to": "<ana>"}`)}
	if _, err := w.Tool("refund").Run.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if d := asked("run_1", `{"to": "<ana>"}`); !w.Done(d) || w.Missing(d) {
		t.Error("the step's line was not found")
	}
	for _, d := range []decision.Decision{asked("run_2", `{"to": "<ana>"}`), asked("run_1", `{"to": "<ben>"}`)} {
		if w.Done(d) || !w.Missing(d) {
			t.Error("another step's line was found")
		}
	}
}
