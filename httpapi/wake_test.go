package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// gone disables a target as a receiver would that says 410 and more.
func (w *world) gone(targetID, says string) {
	w.t.Helper()
	err := txn.Update(w.t.Context(), w.st, func(tx delivery.Tx) error {
		t, err := tx.Target(targetID)
		if err != nil {
			return err
		}
		next := t
		next.DisabledAt, next.Disabled, next.Version = tx.Now(), says, t.Version+1
		return tx.PutTarget(t, next)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// What may hold a secret of a target is told to who added it and to who manages: not
// where it leads, and not what a receiver says. A webhook's secret is told once.
func TestWhatIsToldOfATarget(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	made := w.want(w.do("agent", "POST", "/v1/jobs/"+s.job+"/wake-targets",
		`{"type":"webhook","url":"https://example.com/T/`+marker+`","headers":{"X-Key":"`+marker+`"}}`), 201)
	if !strings.HasPrefix(made.get("secret"), "whsec_") {
		t.Errorf("%s", made.text)
	}
	id := made.get("target_id")
	w.want(w.do("agent", "POST", "/v1/jobs/"+s.job+"/decision", `{"prompt":"And now?"}`), 201)
	dead := w.dead(id)
	w.gone(id, "The receiver wants nothing any more (410): "+marker+".")
	for as, whole := range map[string]bool{"agent": true, "operator": true, "admin": true, "reviewer": false} {
		for _, path := range []string{"/v1/wake-targets/" + id, "/v1/wake-targets", "/v1/deliveries/" + dead, "/v1/deliveries", "/v1/deliveries/" + dead + "/attempts"} {
			r := w.want(w.do(as, "GET", path, ""), 200)
			told := strings.Contains(r.text, marker) || strings.Contains(path, "deliveries") && strings.Contains(r.text, `"message":"no"`)
			if told != whole || strings.Contains(r.text, "whsec_") || strings.Contains(r.text, `"X-Key":`) {
				t.Errorf("%s is told by %s: %s", as, path, r.text)
			}
		}
	}
	w.want(w.do("reviewer", "DELETE", "/v1/wake-targets/"+id, ""), 403)
	w.want(w.do("operator", "POST", "/v1/wake-targets/"+id+"/enable", ""), 200, "status", "in_use")
	if r := w.want(w.do("agent", "POST", "/v1/wake-targets/"+id+"/rotate", ""), 200); r.get("secret") == made.get("secret") || r.get("secret") == "" || r.get("old_secret_until") == "" {
		t.Errorf("%s", r.text)
	}
	w.want(w.do("agent", "POST", "/v1/wake-targets/"+id+"/rotate", ""), 409, "reason", "delivery_state")
	w.want(w.do("agent", "POST", "/v1/wake-targets/"+id+"/rotate", `{"end_old":true}`), 200)
}

// A job's own token sees what its job added with it, and not what else its starter is
// told of.
func TestAJobSeesItsOwnTargets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	other := w.want(w.do("agent", "POST", "/v1/jobs", `{"command":["cat"]}`), 201).get("job_id")
	theirs := w.want(w.do("agent", "POST", "/v1/jobs/"+other+"/wake-targets", `{"type":"relay","events":["cancelled"]}`), 201).get("target_id")
	w.want(w.do("operator", "POST", "/v1/wake-targets", `{"type":"relay","events":["decision_requested"]}`), 201)
	w.tokens["of the job"] = w.jobToken(s.job)
	w.want(w.do("agent", "POST", "/v1/jobs/"+s.job+"/decision", `{"prompt":"And now?"}`), 201)
	w.want(w.do("of the job", "GET", "/v1/wake-targets/"+s.relay, ""), 200)
	w.want(w.do("of the job", "GET", "/v1/wake-targets/"+theirs, ""), 404)
	w.want(w.do("of the job", "POST", "/v1/wake-targets", `{"type":"relay"}`), 403)
	w.want(w.do("of the job", "POST", "/v1/wake-targets", fmt.Sprintf(`{"type":"relay","job_id":%q}`, other)), 404)
	var l httpapi.Deliveries
	w.want(w.do("of the job", "GET", "/v1/deliveries", ""), 200).into(&l)
	if len(l.Deliveries) == 0 {
		t.Error("it sees none of its own")
	}
	for _, d := range l.Deliveries {
		w.want(w.do("of the job", "GET", "/v1/deliveries/"+d.DeliveryID, ""), 200, "job_id", s.job)
	}
}

// jobToken is a token that is good for the job only, of who started it.
func (w *world) jobToken(jobID string) string {
	w.t.Helper()
	_, secret, err := token.Create(w.t.Context(), w.st, token.New{Space: "main", Scope: token.Agent, Name: jobID, Principal: "agent", JobID: jobID})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// Who wants a delivery tried again is text of a bounded length.
func TestRetryIsChecked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.loop()
	s := w.seed()
	for _, by := range []string{strings.Repeat("é", 201), "a\\u0000"} {
		w.want(w.do("agent", "POST", "/v1/deliveries/"+s.dead+"/retry", `{"by":"`+by+`"}`), 400)
	}
	w.want(w.do("agent", "POST", "/v1/deliveries/"+s.dead+"/retry", `{"by":"`+strings.Repeat("é", 200)+`"}`), 200, "status", "retrying")
	w.want(w.do("agent", "POST", "/v1/deliveries/"+s.dead+"/retry", ""), 200, "status", "retrying")
	w.want(w.do("agent", "POST", "/v1/deliveries/"+s.fetched+"/retry", ""), 409, "reason", "delivery_state")
}
