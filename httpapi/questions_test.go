package httpapi_test

import (
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// ask starts a job that waits for its input, and asks a question for it.
func (w *world) ask(body string) (job, question reply) {
	w.t.Helper()
	job = w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201)
	w.t.Cleanup(func() { w.endJob(job.get("job_id")) })
	return job, w.want(w.do("agent", "POST", "/v1/jobs/"+job.get("job_id")+"/decision", body), 201)
}

// Who took a question back, when and why stays on its row and is in no event.
func TestWithdrawnQuestionSaysByWhomAndWhy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j, q := w.ask(`{"prompt":"Go on?"}`)
	door := "/v1/jobs/" + j.get("job_id") + "/decision/" + q.get("decision_id") + "/withdraw"
	w.want(w.do("agent", "POST", door, `{"note":"`+strings.Repeat("a", 10_001)+`"}`), 400, "reason", "usage")
	first := w.want(w.do("agent", "POST", door, `{"by":"ana","note":"not needed any more"}`), 200,
		"status", "withdrawn", "by", "ana", "principal", "agent", "note", "not needed any more")
	if first.get("resolved_at") == "" {
		t.Errorf("not when: %s", first.text)
	}
	w.want(w.do("agent", "POST", door, `{"by":"bo","note":"another"}`), 200, "by", "ana", "note", "not needed any more")
	w.want(w.do("reviewer", "GET", "/v1/decisions/"+q.get("decision_id"), ""), 200,
		"by", "ana", "principal", "agent", "note", "not needed any more", "resolved_at", first.get("resolved_at"))
	refused := w.want(w.do("reviewer", "POST", strings.TrimSuffix(door, "withdraw")+"resolve", `{"choice":"approve"}`), 409, "reason", "withdrawn")
	if !strings.Contains(refused.get("detail"), `by "ana"`) {
		t.Errorf("the refusal does not name who: %s", refused.text)
	}
	events := w.want(w.do("agent", "GET", "/v1/jobs/"+j.get("job_id")+"/events", ""), 200)
	if !strings.Contains(events.text, `"decision_withdrawn"`) || strings.Contains(events.text, "not needed") {
		t.Errorf("events: %s", events.text)
	}
}

// A job's end takes its questions back, in nobody's name.
func TestQuestionOfAnEndedJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j, q := w.ask(`{"prompt":"Go on?"}`)
	w.endJob(j.get("job_id"))
	r := w.want(w.do("agent", "GET", "/v1/decisions/"+q.get("decision_id"), ""), 200, "status", "withdrawn", "by", "system", "note", "The job has ended.")
	if r.get("resolved_at") == "" || r.body["principal"] != nil {
		t.Errorf("%s", r.text)
	}
}

// A form's refusals speak of the input, and facts about a question name its id as one.
func TestQuestionTexts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	j, q := w.ask(`{"prompt":"Go on?","options":["yes","caf\u00e9"],"form":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`)
	door := "/v1/jobs/" + j.get("job_id") + "/decision/" + q.get("decision_id")
	for body, want := range map[string]string{
		`{"choice":"yes","input":[]}`:             "The input must be an object, not an array.",
		`{"choice":"yes","input":{"n":"x"}}`:      "The field /n must be an integer, not a string.",
		`{"choice":"cafe\u0301","input":{"n":1}}`: `"caf\u00e9"`,
	} {
		if r := w.want(w.do("reviewer", "POST", door+"/resolve", body), 422); !strings.Contains(r.get("detail"), want) {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	w.tokens["self"] = w.token(token.Reviewer, "agent")
	if r := w.want(w.do("self", "POST", door+"/resolve", `{"choice":"yes","input":{"n":1}}`), 403, "reason", "self_decision"); strings.Contains(r.text, "approval") {
		t.Errorf("%s", r.text)
	}
	w.want(w.do("reviewer", "POST", door+"/resolve", `{"choice":"yes","input":{"n":1}}`), 200)
	r := w.want(w.do("reviewer", "POST", door+"/resolve", `{"choice":"yes","input":{"n":2}}`), 409, "reason", "choice_conflict")
	if d, _ := r.body["details"].(map[string]any); d["decision_id"] != q.get("decision_id") || d["approval_id"] != nil {
		t.Errorf("%s", r.text)
	}
}
