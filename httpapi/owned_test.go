package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
)

// guarded lets a world's calls count under their run ids.
func guarded(t *testing.T) *world {
	t.Helper()
	w := setup(t)
	w.tokens["other"] = w.token(token.Agent, "other")
	return w
}

// A run id belongs to whoever used it first: nobody else's call counts under it, hangs
// below it, or is stored at all.
func TestARunIDIsItsFirstUsers(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	mine := w.want(w.do("agent", "POST", "/v1/tools/look_up/call?run_id=night", `{"order":"o"}`), 200, "run_id", "night")
	w.want(w.do("agent", "POST", "/v1/tools/look_up/call?run_id=night", `{"order":"p"}`), 200)
	made := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`), 200).get("run_id") // for that call alone
	if _, err := w.calls.Call(t.Context(), "look_up", []byte(`{"order":"o"}`), call.InRun("library")); err != nil {
		t.Fatal(err)
	}
	r, err := w.runs.Start(t.Context(), "look", run.DefaultLimits(), run.As("other"))
	if err != nil {
		t.Fatal(err)
	}
	before := w.look()
	for what, id := range map[string]string{
		"another agent's": mine.get("run_id"), "the id of another agent's call": made, "a library's": "library", "an agent's run, although it is theirs": r.ID,
	} {
		for _, tool := range []string{"look_up", "refund"} {
			w.want(w.do("other", "POST", "/v1/tools/"+tool+"/call?run_id="+id, `{"order":"o"}`), 409, "reason", "call_conflict")
			w.want(w.do("other", "POST", "/v1/tools/"+tool+"/call?run_id="+id, `{"order":"o"}`, "Idempotency-Key", what), 409, "reason", "call_conflict")
			w.want(w.do("other", "POST", "/v1/calls", fmt.Sprintf(`{"tool":%q,"args":{"order":"o"},"run_id":%q}`, tool, id)), 409, "reason", "call_conflict")
		}
	}
	if after := w.look(); after != before {
		t.Errorf("something was stored: %s before, %s after", before, after)
	}
	if n := len(w.refund.ran()); n != 4 {
		t.Errorf("the tools ran %d times", n)
	}
}

// Of several who name a new run id at the same time one has it.
func TestARunIDIsOnePrincipals(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	for i := range 10 {
		got := make(chan reply, 8)
		for k := range cap(got) {
			go func() {
				r, _ := w.send([]string{"agent", "other"}[k%2], "POST", fmt.Sprintf("/v1/tools/look_up/call?run_id=race-%d", i), strings.NewReader(`{"order":"o"}`))
				got <- r
			}()
		}
		won := 0
		for range cap(got) {
			r := <-got
			switch r.status {
			case 200:
				won++
			case 409:
			default:
				t.Fatalf("%d %s", r.status, r.text)
			}
		}
		if won != 4 {
			t.Errorf("run id %d: %d calls of 8", i, won)
		}
	}
}

// A client that lost the answer to its reservation repeats it with the same key, and
// has the same attempt to confirm.
func TestAReservationIsRepeated(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	reserve := func(as, key, body string) reply {
		t.Helper()
		return w.do(as, "POST", "/v1/calls", body, "Idempotency-Key", key)
	}
	const body = `{"tool":"look_up","args":{"order":"o"}}`
	first := w.want(reserve("agent", "k", body), 201, "status", "running")
	again := w.want(reserve("agent", "k", body), 201, "status", "running", "call_id", first.get("call_id"), "lease_until", first.get("lease_until"))
	if again.body["fence"] != first.body["fence"] || again.body["attempt"] != 1.0 || again.body["again"] != true || first.body["again"] != nil || !strings.Contains(again.text, `"args":{"order":"o"}`) {
		t.Errorf("first %s, again %s", first.text, again.text)
	}
	if r := w.want(reserve("other", "k", body), 201); r.get("call_id") == first.get("call_id") {
		t.Errorf("another's key: %s", r.text)
	}
	at := "/v1/calls/" + first.get("call_id")
	w.want(w.do("agent", "POST", at+"/confirm", fmt.Sprintf(`{"fence":%v,"status":"succeeded","result":1}`, again.body["fence"])), 200)
	if r := w.want(reserve("agent", "k", body), 200, "status", "succeeded"); r.body["fence"] != nil {
		t.Errorf("a call that has ended: %s", r.text)
	}

	// One that waited for a person, gone on with by its id.
	p := w.want(reserve("agent", "k2", `{"tool":"refund","args":{"order":"o"}}`), 202, "status", "pending")
	byID := fmt.Sprintf(`{"call_id":%q}`, p.get("call_id"))
	w.want(reserve("agent", "k3", byID), 202, "status", "pending")
	w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide", decide(true, p.get("digest"), `"edited_args":{"order":"x"}`)), 200)
	first = w.want(reserve("agent", "k3", byID), 201, "status", "running")
	again = w.want(reserve("agent", "k3", byID), 201, "lease_until", first.get("lease_until"))
	if again.body["fence"] != first.body["fence"] || again.body["edited"] != true || !strings.Contains(again.text, `"args":{"order":"x"}`) {
		t.Errorf("first %s, again %s", first.text, again.text)
	}
	for what, r := range map[string]reply{ // whoever comes without that key is somebody else, who must not run it too
		"no key": w.do("agent", "POST", "/v1/calls", byID), "another key": reserve("agent", "k4", byID),
		"the key of the asking": reserve("agent", "k2", `{"tool":"refund","args":{"order":"o"}}`),
	} {
		if w.want(r, 202, "status", "running"); r.body["fence"] != nil {
			t.Errorf("with %s: %s", what, r.text)
		}
	}
	w.want(reserve("agent", "k3", body), 409, "reason", "call_conflict")
	w.want(reserve("agent", "k2", byID), 409, "reason", "call_conflict")
	at = "/v1/calls/" + p.get("call_id")
	w.want(w.do("agent", "POST", at+"/confirm", fmt.Sprintf(`{"fence":%v,"status":"failed","message":"no"}`, first.body["fence"])), 200, "status", "failed")
	w.want(reserve("agent", "k3", byID), 200, "status", "failed")
	if n := len(w.refund.ran()); n != 0 {
		t.Errorf("the tools ran here %d times", n)
	}
}

// An admin may do everything: also go on with what somebody else reserved, by its fence.
func TestAnAdminConfirmsForOthers(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	h := w.want(w.do("agent", "POST", "/v1/calls", `{"tool":"look_up","args":{"order":"o"}}`), 201)
	at := "/v1/calls/" + h.get("call_id")
	for _, as := range []string{"other", "reviewer", "operator"} {
		for word, b := range map[string]string{"/renew": `{"fence":1}`, "/confirm": `{"fence":1,"status":"failed"}`} {
			if r := w.do(as, "POST", at+word, b); r.status != 404 && r.status != 403 {
				t.Errorf("%s as %s: %d %s", word, as, r.status, r.text)
			}
		}
	}
	w.want(w.do("admin", "POST", at+"/renew", `{"fence":2}`), 409, "reason", "lease_lost")
	w.want(w.do("admin", "POST", at+"/renew", `{"fence":1}`), 200)
	w.want(w.do("admin", "POST", at+"/confirm", `{"fence":2,"status":"failed"}`), 409, "reason", "lease_lost")
	w.want(w.do("admin", "POST", at+"/confirm", `{"fence":1,"status":"succeeded","result":7}`), 200, "status", "succeeded")
	r := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`), 200) // what the daemon carries out is nobody's to confirm
	w.want(w.do("admin", "POST", "/v1/calls/"+r.get("call_id")+"/confirm", `{"fence":1,"status":"failed"}`), 409, "reason", "lease_lost")
}
