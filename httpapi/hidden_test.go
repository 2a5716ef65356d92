package httpapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// unknown is an id of the same kind that nothing has.
func unknown(id string) string {
	i := strings.LastIndexByte(id, '-')
	return id[:i] + "-000000000000"
}

var anyID = regexp.MustCompile(`\b(run|stp|call|apr|dec|job|tok|tgt|dlv)_[0-9a-f-]{36}`)

// What is somebody else's is answered word for word as what is not there, by every
// operation that names something.
func TestHiddenEqualsUnknown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	w.tokens["other"] = w.token(token.Agent, "other")
	own := w.want(w.do("other", "POST", "/v1/jobs", `{"command":["cat"]}`), 201).get("job_id")
	alike := func(what, method, path, body string, ids ...string) {
		t.Helper()
		none := strings.NewReplacer(pairs(ids)...)
		hidden := w.do("other", method, path, body)
		missing := w.do("other", method, none.Replace(path), none.Replace(body))
		if hidden.status < 400 && !strings.Contains(path, "?") || hidden.status != missing.status || masked(hidden) != masked(missing) {
			t.Errorf("%s: what is hidden is answered\n%d %s\nand what is not there\n%d %s", what, hidden.status, hidden.text, missing.status, missing.text)
		}
	}
	ops, schemas := operations(t)
	n := 0
	for _, o := range ops {
		if !strings.Contains(o.path, "{") {
			continue
		}
		var ids []string
		path := o.with(func(v string) string {
			ids = append(ids, s.of(o, v))
			return s.of(o, v)
		})
		if o.ID == "callTool" {
			continue // tools are nobody's
		}
		n++
		for _, body := range []string{o.minimal(schemas), strings.Replace(o.minimal(schemas), `"x"`, `"completed"`, 1)} {
			alike(o.ID, o.method, path, body, ids...)
		}
		if strings.Contains(o.path, "{token}") { // another's question at a job of one's own
			alike(o.ID+" at one's own", o.method, strings.Replace(path, s.job, own, 1), o.minimal(schemas), s.question)
		}
	}
	if n < 20 {
		t.Errorf("only %d operations name something", n)
	}
	alike("waiting for a question", "POST", "/v1/jobs/"+own+"/wait", fmt.Sprintf(`{"decision_id":%q,"timeout_seconds":1}`, s.question), s.question)
	alike("waiting for an approval", "POST", "/v1/jobs/"+own+"/wait", fmt.Sprintf(`{"decision_id":%q,"timeout_seconds":1}`, s.approval), s.approval)
	alike("reserving again", "POST", "/v1/calls", fmt.Sprintf(`{"call_id":%q}`, s.call), s.call)
	alike("reserving what is reserved", "POST", "/v1/calls", fmt.Sprintf(`{"call_id":%q}`, s.held), s.held)
	alike("confirming", "POST", "/v1/calls/"+s.held+"/confirm", `{"fence":1,"status":"failed"}`, s.held)
	alike("renewing", "POST", "/v1/calls/"+s.held+"/renew", `{"fence":1}`, s.held)
	step := w.stepsCall(s.run)
	alike("reserving a step's call", "POST", "/v1/calls", fmt.Sprintf(`{"call_id":%q}`, step), step)
	alike("confirming a step's call", "POST", "/v1/calls/"+step+"/confirm", `{"fence":1,"status":"failed"}`, step)
	alike("renewing a step's call", "POST", "/v1/calls/"+step+"/renew", `{"fence":1}`, step)
	alike("starting after a job", "POST", "/v1/jobs", fmt.Sprintf(`{"command":["true"],"trigger":{"job_id":%q,"status":"completed"}}`, s.job), s.job)
	for _, stream := range []string{"call:" + s.call, "run:" + s.run, "job:" + s.job} {
		alike("following", "GET", "/v1/events?stream="+stream, "", stream[strings.IndexByte(stream, ':')+1:])
	}
	alike("listing questions", "GET", "/v1/decisions?job_id="+s.job, "", s.job)
	for _, list := range []string{"calls", "approvals", "runs", "jobs", "decisions"} {
		if list != "calls" {
			alike("paging "+list, "GET", "/v1/"+list+"?after="+s.approval, "", s.approval)
		}
	}
}

// pairs replaces each id by one that nothing has.
func pairs(ids []string) (list []string) {
	for _, id := range ids {
		list = append(list, id, unknown(id))
	}
	return list
}

// masked is an answer without its ids.
func masked(r reply) string {
	return fmt.Sprint(r.status, r.header.Get("Content-Type"), r.header.Get("Retry-After"), anyID.ReplaceAllString(r.text, "ID"))
}

// stepsCall is the call of a run's first step.
func (w *world) stepsCall(runID string) string {
	w.t.Helper()
	r := w.want(w.do("agent", "GET", "/v1/runs/"+runID, ""), 200)
	id, _ := r.body["steps"].([]any)[0].(map[string]any)["call_id"].(string)
	if id == "" {
		w.t.Fatalf("the first step has no call: %s", r.text)
	}
	return id
}

// An agent reads what it started, its jobs' events too.
func TestAnAgentFollowsItsJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	l := w.line().say(w.head("GET", "/v1/events?stream=job:"+s.doneJob, "agent") + "\r\n")
	if text, err := l.r.ReadString('\n'); err != nil || text != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%q, %v", text, err)
	}
}
