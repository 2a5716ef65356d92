package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// A job asks, waits, and goes on with what a person said.
func TestJobAsksAndIsAnswered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	j := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"],"name":"train","env":{"KEY":"s3cret-value"},"secret_env":["KEY"]}`), 201)
	at := "/v1/jobs/" + j.get("job_id")
	if strings.Contains(j.text, "s3cret") {
		t.Errorf("a secret is shown: %s", j.text)
	}
	q := w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"Continue past epoch 40?","options":["0","no","no"]}`), 201, "status", "pending")
	if fmt.Sprint(q.body["options"]) != "[0 no]" || q.get("cursor") == "" {
		t.Errorf("asked: %s", q.text)
	}
	waited := make(chan reply, 1)
	go func() {
		r, _ := w.send("agent", "POST", at+"/wait", strings.NewReader(fmt.Sprintf(`{"decision_id":%q,"after":%q,"timeout_seconds":60}`, q.get("decision_id"), q.get("cursor"))))
		waited <- r
	}()
	door := at + "/decision/" + q.get("decision_id")
	w.want(w.do("agent", "POST", door+"/resolve", `{"choice":"0"}`), 403, "reason", "forbidden")
	w.tokens["self"] = w.token(token.Reviewer, "agent")
	w.want(w.do("self", "POST", door+"/resolve", `{"choice":"0"}`), 403, "reason", "self_decision")
	w.want(w.do("reviewer", "POST", door+"/resolve", `{"choice":"maybe"}`), 422, "reason", "not_offered")
	w.want(w.do("reviewer", "POST", "/v1/jobs/job_x/decision/"+q.get("decision_id")+"/resolve", `{"choice":"0"}`), 404)
	w.want(w.do("reviewer", "POST", door+"/resolve", `{"choice":"0"}`), 200, "choice", "0", "by", "reviewer")
	w.want(w.do("admin", "POST", door+"/resolve", `{"choice":"0"}`), 200, "by", "reviewer")
	w.want(w.do("reviewer", "POST", door+"/resolve", `{"choice":"no"}`), 409, "reason", "choice_conflict")
	w.want(w.do("agent", "POST", door+"/withdraw", ""), 409)
	if r := w.want(<-waited, 200, "result", "event"); !strings.Contains(r.text, `"choice":"0"`) {
		t.Errorf("waited: %s", r.text)
	}
	w.want(w.do("agent", "GET", "/v1/decisions/"+q.get("decision_id"), ""), 200, "choice", "0")
	w.want(w.do("agent", "POST", at+"/send", `{"text":"goodbye\n","eof":true}`), 200)
	w.want(w.do("agent", "POST", at+"/wait", `{"types":["completed"],"timeout_seconds":60}`), 200, "result", "event")
	w.want(w.do("agent", "GET", at+"/tail", ""), 200, "data", "Z29vZGJ5ZQo=")
	if r := w.want(w.do("agent", "GET", at+"/events", ""), 200); !strings.Contains(r.text, `"decision_resolved"`) {
		t.Errorf("events: %s", r.text)
	}
	w.want(w.do("agent", "POST", at+"/decision", `{"prompt":"Too late?"}`), 409, "reason", "run_state")
	w.want(w.do("agent", "POST", at+"/stop", ""), 200, "status", "completed")
}

// A job's token is good for that job, and no longer than it runs.
func TestAJobsToken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	start := func() reply { return w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201) }
	one, other := start(), start()
	_, secret, err := token.Create(t.Context(), w.st, token.New{Space: "main", Scope: token.Agent, Name: "j", Principal: "agent", JobID: one.get("job_id")})
	if err != nil {
		t.Fatal(err)
	}
	w.want(w.do(secret, "GET", "/v1/jobs/"+one.get("job_id"), ""), 200)
	w.want(w.do(secret, "GET", "/v1/jobs/"+other.get("job_id"), ""), 404)
	w.want(w.do(secret, "POST", "/v1/jobs/"+other.get("job_id")+"/decision", `{"prompt":"?"}`), 404)
	q := w.want(w.do(secret, "POST", "/v1/jobs/"+one.get("job_id")+"/decision", `{"prompt":"?"}`), 201)
	w.want(w.do(secret, "GET", "/v1/decisions/"+q.get("decision_id"), ""), 200)
	for _, r := range []reply{w.do(secret, "POST", "/v1/tools/look_up/call", `{"order":"o"}`), w.do(secret, "POST", "/v1/jobs", `{"command":["true"]}`), w.do(secret, "GET", "/v1/approvals", "")} {
		w.want(r, 403, "reason", "forbidden")
	}
	for _, j := range []reply{one, other} {
		w.want(w.do("operator", "POST", "/v1/jobs/"+j.get("job_id")+"/stop", `{"kill_after_seconds":1}`), 200, "status", "cancelled")
	}
	w.want(w.do(secret, "GET", "/v1/jobs/"+one.get("job_id"), ""), 401, "reason", "unauthenticated")
	w.want(w.do("agent", "GET", "/v1/decisions/"+q.get("decision_id"), ""), 200, "status", "withdrawn")
	w.want(w.do("operator", "POST", "/v1/jobs/cleanup", `{"older_than_seconds":0}`), 200)
	w.want(w.do("agent", "GET", "/v1/jobs/"+one.get("job_id"), ""), 404)
}

// A wait for a question that the job does not have says which, and of which job.
func TestWaitForAnUnknownQuestion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	one, _ := w.ask(`{"prompt":"?"}`)
	_, q := w.ask(`{"prompt":"?"}`)
	p := w.park("agent")
	for _, id := range []string{"dec_x", q.get("decision_id"), p.get("approval_id")} {
		r := w.want(w.do("agent", "POST", "/v1/jobs/"+one.get("job_id")+"/wait", fmt.Sprintf(`{"decision_id":%q}`, id)), 404, "reason", "not_found")
		if want := "Job " + one.get("job_id") + " has no question " + id + "."; r.get("detail") != want {
			t.Errorf("%q, want %q", r.get("detail"), want)
		}
	}
}

// A trigger on a job that the caller does not see is answered as one on no job at all.
func TestTriggerOnAnothersJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tokens["other"] = w.token(token.Agent, "other")
	j, _ := w.ask(`{"prompt":"?"}`)
	id := j.get("job_id")
	start := func(as, on string) reply {
		return w.do(as, "POST", "/v1/jobs", fmt.Sprintf(`{"command":["true"],"trigger":{"job_id":%q,"status":"completed"}}`, on))
	}
	for _, on := range []string{id, "job_x"} {
		r := w.want(start("other", on), 404, "reason", "not_found")
		if want := "There is no job " + on + "."; r.get("detail") != want {
			t.Errorf("%q, want %q", r.get("detail"), want)
		}
	}
	for _, as := range []string{"agent", "admin"} {
		waits := w.want(start(as, id), 201, "status", "queued")
		w.endJob(waits.get("job_id"))
	}
	if r := w.want(w.do("other", "GET", "/v1/jobs", ""), 200); len(r.body["jobs"].([]any)) > 0 {
		t.Errorf("a refused job was made: %s", r.text)
	}
}
