package httpapi_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/run"
)

// calling is an agent that calls refund once, and is done.
func calling(_ context.Context, in run.StepInput) (run.Proposal, error) {
	if in.Run.StepCount > 1 {
		return run.Proposal{Kind: run.Complete}, nil
	}
	return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(`{"order":"o"}`)}, nil
}

// 202 says that a run goes on; every other answer says that it does not, and why.
func TestResumeRun(t *testing.T) {
	t.Parallel()
	var refuse error
	w := setup(t, func(c *httpapi.Config) {
		then := c.Continue
		c.Continue = func(ctx context.Context, r run.Run) error {
			if refuse != nil {
				return refuse
			}
			return then(ctx, r)
		}
	})
	d := run.NewDriver(run.Config{Store: w.st, Tools: w.calls.Config().Tools, Agent: run.AgentFunc(calling)})
	r, err := d.Start(t.Context(), "refund", run.DefaultLimits(), run.As("agent"))
	if err != nil || r.Status != run.Waiting {
		t.Fatalf("%+v %v", r, err)
	}
	at := "/v1/runs/" + r.ID + "/resume"
	w.want(w.do("operator", "POST", "/v1/runs/run_none/resume", ""), 404, "reason", "not_found")
	w.want(w.do("agent", "POST", at, ""), 403, "reason", "forbidden")
	p := w.want(w.do("operator", "POST", at, ""), 409, "reason", "run_state")
	if p.get("hint") == "" || len(w.resumed) != 0 {
		t.Errorf("it waits for a person: %s, resumed %v", p.text, w.resumed)
	}
	if err := d.Approve(t.Context(), r.ID, r.ApprovalID, "ana", ""); err != nil {
		t.Fatal(err)
	}
	for _, no := range []struct {
		err    *fault.Error
		status int
	}{
		{fault.Sentinel(fault.Conflict, "no_agent", "No such agent here."), 409},
		{fault.Sentinel(fault.Unavailable, "no_slot", "No room."), 503},
		{httpapi.ErrShutdown, 503},
		{run.ErrStopped, 503},
	} {
		refuse = no.err
		w.want(w.do("operator", "POST", at, ""), no.status, "reason", no.err.Reason)
	}
	refuse = nil
	w.want(w.do("operator", "POST", at, ""), 202, "run_id", r.ID)
	if len(w.resumed) != 1 {
		t.Errorf("resumed %v", w.resumed)
	}
}

// Where no runs are worked on, that is said.
func TestResumeRunNowhere(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *httpapi.Config) { c.Continue = nil })
	r, err := w.runs.Start(t.Context(), "look", run.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	w.want(w.do("operator", "POST", "/v1/runs/"+r.ID+"/resume", ""), 503, "reason", "no_runs")
}

// A run can be read with some of its steps. What is secret in one of the others is still
// hidden.
func TestSomeSteps(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := run.NewDriver(run.Config{Store: w.st, Tools: w.tools, Agent: run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
		if n := len(in.Steps); n < 5 {
			return run.Proposal{Kind: run.CallTool, Tool: "look_up", Args: json.RawMessage(`{"order":"o-` + strconv.Itoa(n) + `","password":"hunter-` + strconv.Itoa(n) + `"}`)}, nil
		}
		return run.Proposal{Kind: run.Complete}, nil
	})})
	r, err := d.Start(t.Context(), "Look with hunter-4.", run.DefaultLimits(), run.As("agent"))
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]int64{
		"": {1, 2, 3, 4, 5, 6}, "?steps_limit=2": {1, 2}, "?steps_after=4": {5, 6}, "?steps_after=1&steps_limit=3": {2, 3, 4}, "?steps_after=6": nil,
		"?steps_after=0&steps_limit=1000": {1, 2, 3, 4, 5, 6},
	} {
		var o run.Object
		w.want(w.do("reviewer", "GET", "/v1/runs/"+r.ID+query, ""), 200, "goal", "Look with [masked].").into(&o)
		var got []int64
		for _, s := range o.Steps {
			got = append(got, s.Index)
		}
		if !slices.Equal(got, want) || o.StepCount != 6 {
			t.Errorf("%s: steps %v of %d, want %v", query, got, o.StepCount, want)
		}
	}
	w.want(w.do("reviewer", "GET", "/v1/runs/"+r.ID+"?steps_limit=0", ""), 400, "reason", "malformed")
}
