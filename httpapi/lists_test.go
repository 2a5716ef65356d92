package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// parkedRun is a run of somebody's that waits for a person.
func (w *world) parkedRun(principal, args string) run.Run {
	w.t.Helper()
	agent := run.AgentFunc(func(context.Context, run.StepInput) (run.Proposal, error) {
		return run.Proposal{Kind: run.CallTool, Tool: "refund", Args: json.RawMessage(args)}, nil
	})
	r, err := run.NewDriver(run.Config{Store: w.st, Tools: w.tools, Agent: agent}).Start(w.t.Context(), "Refund it.", run.DefaultLimits(), run.As(principal))
	if err != nil || r.Status != run.Waiting {
		w.t.Fatalf("the run is %s: %v", r.Status, err)
	}
	return r
}

// An approval whose run was cancelled is no work any more: no door lists it among what
// waits, and its object says that it can not be decided.
func TestApprovalOfACancelledRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	kept, gone := w.parkedRun("ana", `{"order":"o-1"}`), w.parkedRun("ana", `{"order":"o-2"}`)
	w.want(w.do("operator", "POST", "/v1/runs/"+gone.ID+"/cancel", ""), 200, "status", "CANCELLED")
	pending, err := decision.Operator{Store: w.st}.Pending(t.Context(), 0)
	if err != nil || len(pending) != 1 || pending[0].ID != kept.ApprovalID {
		t.Fatalf("pending: %+v, %v", pending, err)
	}
	for _, path := range []string{"/v1/approvals", "/v1/approvals?status=pending"} {
		if got := ids(w.do("reviewer", "GET", path, ""), "approvals", "id"); !slices.Equal(got, []string{kept.ApprovalID}) {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := ids(w.do("reviewer", "GET", "/v1/approvals?status=all", ""), "approvals", "id"); len(got) != 2 {
		t.Errorf("all: %v", got)
	}
	o := w.want(w.do("reviewer", "GET", "/v1/approvals/"+gone.ApprovalID, ""), 200, "status", "pending")
	if o.body["closed"] != true {
		t.Errorf("it does not say that it is closed: %s", o.text)
	}
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+gone.ApprovalID+"/decide", decide(true, o.get("digest"))), 409, "reason", "run_state")
	if o := w.want(w.do("reviewer", "GET", "/v1/approvals/"+kept.ApprovalID, ""), 200); o.body["closed"] != nil {
		t.Errorf("it says that it is closed: %s", o.text)
	}
}

// ids are those of a page.
func ids(r reply, plural, key string) []string {
	var list []string
	rows, _ := r.body[plural].([]any)
	for _, row := range rows {
		list = append(list, row.(map[string]any)[key].(string))
	}
	return list
}

// listed is one of the lists, and how a row of somebody's comes to it.
type listed struct {
	path, plural, key string
	insert            func(principal string) string
	change            func(id string) // so that it is not what it was
}

// queuedJob is a job that nobody launches.
func (w *world) queuedJob(principal string, change ...func(*job.Job)) string {
	w.t.Helper()
	j := job.Job{
		ID: id.New(id.Job), Space: event.MainSpace, Home: "/elsewhere", Spec: job.Spec{Shell: "true"}, Principal: principal,
		Status: job.Queued, ExitCode: -1, CreatedAt: time.Now(), Version: 1,
	}
	for _, f := range change {
		f(&j)
	}
	e := event.New(event.JobQueued, j.ID, "tester", map[string]string{"job_id": j.ID})
	if err := txn.Update(w.t.Context(), w.st, func(tx job.Tx) error { return tx.InsertJob(job.Change{Next: j, Events: []event.Event{e}}) }); err != nil {
		w.t.Fatal(err)
	}
	return j.ID
}

func (w *world) lists() []listed {
	op := decision.Operator{Store: w.st}
	must := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	ctx := w.t.Context()
	park := func(principal string) string {
		_, err := w.calls.Call(ctx, "refund", []byte(`{"order":"o"}`), call.As(principal))
		var parked *call.PendingError
		if !errors.As(err, &parked) {
			w.t.Fatalf("not parked: %v", err)
		}
		return parked.ApprovalID
	}
	ask := func(principal string) string {
		q, err := op.Ask(ctx, event.MainSpace, w.queuedJob(principal), decision.Asking{Prompt: "Go on?", By: principal})
		must(err)
		return q.ID
	}
	reject := func(id string) { must(op.Reject(ctx, "", id, "ana", "")) }
	resolve := func(id string) {
		_, err := op.Resolve(ctx, "", id, decision.Answering{Choice: "deny", By: "ana"})
		must(err)
	}
	cancel := func(jobID string) {
		must(txn.Update(ctx, w.st, func(tx job.Tx) error { return job.Owner{Tx: tx, ID: jobID}.Cancel("ana", "", tx.Now) }))
	}
	return []listed{
		{"/v1/approvals?status=all", "approvals", "id", park, reject},
		{"/v1/approvals?status=pending", "approvals", "id", park, reject},
		{"/v1/decisions?status=all", "decisions", "decision_id", ask, resolve},
		{"/v1/decisions?status=pending", "decisions", "decision_id", ask, resolve},
		{"/v1/jobs?view=newest", "jobs", "job_id", func(p string) string { return w.queuedJob(p) }, cancel},
		{"/v1/jobs?status=queued", "jobs", "job_id", func(p string) string { return w.queuedJob(p) }, cancel},
		{
			"/v1/runs?status=all", "runs", "run_id", func(p string) string { return w.parkedRun(p, `{"order":"o"}`).ID },
			func(id string) { must(op.Cancel(ctx, id, "ana", "")) },
		},
		{
			"/v1/runs?status=WAITING_FOR_APPROVAL", "runs", "run_id", func(p string) string { return w.parkedRun(p, `{"order":"o"}`).ID },
			func(id string) { must(op.Cancel(ctx, id, "ana", "")) },
		},
	}
}

// Whoever pages through a list sees each row that is theirs to see exactly once, with
// pages of any size, while rows come and others are decided.
func TestEachVisibleRowOnce(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		seed := uint64(time.Now().UnixNano())
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.tokens["a"], w.tokens["b"] = w.token(token.Agent, "a"), w.token(token.Agent, "b")
			l := w.lists()[i]
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			defer func() {
				if t.Failed() {
					t.Logf("%s, seed %d", l.path, seed)
				}
			}()
			w.eachOnce(r, l)
		})
	}
}

func (w *world) eachOnce(r *rand.Rand, l listed) {
	owner := map[string]string{} // by row
	var open []string            // that were not changed
	grow := func() {
		p := []string{"a", "b", "b", "c"}[r.IntN(4)]
		id := l.insert(p)
		owner[id] = p
		open = append(open, id)
	}
	for range 20 + r.IntN(20) {
		grow()
	}
	for _, as := range []string{"a", "b", "reviewer"} {
		sees := func(id string) bool { return as == "reviewer" || owner[id] == as }
		before := slices.Clone(open)
		seen := map[string]int{}
		limit := 1 + r.IntN(12)
		for after, pages := "", 0; ; pages++ {
			page := w.want(w.do(as, "GET", fmt.Sprintf("%s&limit=%d&after=%s", l.path, limit, url.QueryEscape(after)), ""), 200)
			got := ids(page, l.plural, l.key)
			if len(got) > limit {
				w.t.Errorf("%d rows of at most %d", len(got), limit)
			}
			for _, id := range got {
				if seen[id]++; seen[id] > 1 || !sees(id) {
					w.t.Errorf("%s sees %s of %s for the %dth time", as, id, owner[id], seen[id])
				}
			}
			if after = page.get("next"); after == "" {
				break
			}
			if pages > 200 {
				w.t.Fatal("the list does not end")
			}
			if r.IntN(3) == 0 {
				grow()
			}
			if i := r.IntN(len(open)); r.IntN(3) == 0 {
				l.change(open[i])
				open = slices.Delete(open, i, i+1)
			}
			limit = 1 + r.IntN(12)
		}
		for _, id := range before {
			if sees(id) && slices.Contains(open, id) && seen[id] != 1 {
				w.t.Errorf("%s sees %s, its own and as it was, %d times", as, id, seen[id])
			}
		}
	}
}

// A list goes on only behind an id of its own kind that is there.
func TestListsRefuseAForeignAfter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park("agent")
	r := w.parkedRun("agent", `{"order":"o"}`)
	jobID := w.queuedJob("agent")
	q, err := decision.Operator{Store: w.st}.Ask(t.Context(), event.MainSpace, jobID, decision.Asking{Prompt: "?", By: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	tokens := ids(w.do("admin", "GET", "/v1/tokens", ""), "tokens", "id")
	own := map[string]string{
		"/v1/approvals": p.get("approval_id"), "/v1/decisions": q.ID, "/v1/jobs": jobID, "/v1/runs": r.ID, "/v1/tokens": tokens[0],
	}
	for path := range own {
		for of, after := range own {
			refused := w.do("admin", "GET", path+"?after="+after, "")
			if of == path {
				w.want(refused, 200)
				continue
			}
			w.refusesAfter(refused, after)
		}
		for _, after := range []string{"x", "apr_", "job_x", "dec_" + strings.Repeat("0", 36), id.New(id.Approval), id.New(id.Run), id.New(id.Job), id.New(id.Question), id.New(id.Token)} {
			w.refusesAfter(w.do("admin", "GET", path+"?after="+after, ""), after)
		}
	}
	w.refusesAfter(w.do("agent", "GET", "/v1/jobs?view=attention&after="+jobID, ""), "attention")
}

func (w *world) refusesAfter(r reply, names string) {
	w.t.Helper()
	w.want(r, 400, "reason", "malformed")
	if !strings.Contains(r.get("detail"), "after") || !strings.Contains(r.get("detail"), names) || r.get("hint") == "" {
		w.t.Errorf("it does not say what is wrong: %s", r.text)
	}
}

// A job that was cleaned up meanwhile does not end the paging.
func TestListGoesOnBehindACleanedJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.queuedJob("agent")
	second := w.queuedJob("agent", func(j *job.Job) { j.Status, j.EndedAt = job.Cancelled, time.Now() })
	page := w.want(w.do("agent", "GET", "/v1/jobs?limit=1", ""), 200, "next", second)
	err := txn.Update(t.Context(), w.st, func(tx job.Tx) error {
		j, err := tx.Job(second)
		if err != nil {
			return err
		}
		return tx.CleanJob(j, "ana")
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(w.want(w.do("agent", "GET", "/v1/jobs?after="+page.get("next"), ""), 200), "jobs", "job_id"); !slices.Equal(got, []string{first}) {
		t.Errorf("%v", got)
	}
}

// What needs a person first is shown to whom it belongs, however much others have that
// needs one, and only of the status, name and tag that were asked for.
func TestAttentionOfOnesOwnJobs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tokens["other"] = w.token(token.Agent, "other")
	ended := func(status job.Status, name string, tags ...string) func(*job.Job) {
		return func(j *job.Job) { j.Status, j.EndedAt, j.Spec.Name, j.Spec.Tags = status, time.Now(), name, tags }
	}
	old := w.queuedJob("other", ended(job.Completed, "train", "gpu"))
	failed := w.queuedJob("other", ended(job.Failed, "train"))
	asking := w.queuedJob("other", func(j *job.Job) { j.Spec.Name = "ask" })
	for range 5 {
		w.queuedJob("agent", ended(job.Failed, "train", "gpu"))
		of := w.queuedJob("agent")
		if _, err := (decision.Operator{Store: w.st}).Ask(t.Context(), event.MainSpace, of, decision.Asking{Prompt: "?"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (decision.Operator{Store: w.st}).Ask(t.Context(), event.MainSpace, asking, decision.Asking{Prompt: "?"}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		"":                             {asking, failed, old},
		"&limit=1":                     {asking},
		"&limit=2":                     {asking, failed},
		"&status=failed":               {failed},
		"&status=completed&name=train": {old},
		"&name=train":                  {failed, old},
		"&tag=gpu":                     {old},
		"&status=running":              nil,
	} {
		if got := ids(w.want(w.do("other", "GET", "/v1/jobs?view=attention"+query, ""), 200), "jobs", "job_id"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if got := ids(w.do("operator", "GET", "/v1/jobs?view=attention&limit=500", ""), "jobs", "job_id"); len(got) != 13 || got[0] < asking {
		t.Errorf("of all: %v", got)
	}
}

// A run may have an id of its starter's choice: a list goes on behind it, too.
func TestListGoesOnBehindAChosenRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, name := range []string{"run_a", "run_b", "run_c"} {
		agent := run.AgentFunc(func(context.Context, run.StepInput) (run.Proposal, error) {
			return run.Proposal{Kind: run.Complete}, nil
		})
		if _, err := run.NewDriver(run.Config{Store: w.st, Tools: w.tools, Agent: agent}).StartWithID(t.Context(), name, "?", run.DefaultLimits(), run.As("agent")); err != nil {
			t.Fatal(err)
		}
	}
	for _, as := range []string{"agent", "reviewer"} {
		if got := ids(w.want(w.do(as, "GET", "/v1/runs?after=run_c&limit=1", ""), 200, "next", "run_b"), "runs", "run_id"); !slices.Equal(got, []string{"run_b"}) {
			t.Errorf("%s: %v", as, got)
		}
	}
}
