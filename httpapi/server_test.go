package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/txn"
)

func TestParkDecideAndFollow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.park("agent")
	if p.get("digest") == "" || p.get("expires_at") != "" || !strings.HasSuffix(p.get("url"), "/v1/calls/"+p.get("call_id")) {
		t.Errorf("pending: %s", p.text)
	}
	list := w.want(w.do("reviewer", "GET", "/v1/approvals", ""), 200)
	if n := len(list.body["approvals"].([]any)); n != 1 || list.body["next"] != nil {
		t.Errorf("listed: %s", list.text)
	}
	a := w.want(w.do("reviewer", "GET", "/v1/approvals/"+p.get("approval_id"), ""), 200, "digest", p.get("digest"), "status", "pending")
	if m := a.body["metadata"].(map[string]any); m["origin"] != "http" || m["principal"] != "agent" {
		t.Errorf("metadata: %s", a.text)
	}
	at := "/v1/approvals/" + p.get("approval_id") + "/decide"
	d := w.want(w.do("reviewer", "POST", at, decide(true, p.get("digest"), `"note":"fine"`)), 200, "status", "approved", "decided_by", "reviewer", "note", "fine", "call_status", "pending")
	if d.body["verified"] != true {
		t.Errorf("decided: %s", d.text)
	}
	w.want(w.do("admin", "POST", at, decide(true, p.get("digest"))), 200, "decided_by", "reviewer") // an identical repeat
	w.want(w.do("reviewer", "POST", at, decide(false, p.get("digest"))), 409, "reason", "not_pending")
	w.want(w.do("reviewer", "POST", at, decide(true, p.get("digest"), `"edited_args":{"order":"x"}`)), 409, "reason", "not_pending")
	w.want(w.do("agent", "GET", "/v1/calls/"+p.get("call_id"), ""), 200, "status", "pending")
	if len(w.refund.ran()) > 0 {
		t.Error("deciding ran the tool")
	}
}

func TestAllowedCallsAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o-7","amount":12345678901234567890}`), 200, "status", "succeeded")
	if !strings.Contains(r.text, "12345678901234567890") {
		t.Errorf("a large number changed: %s", r.text)
	}
	w.want(w.do("agent", "GET", "/v1/calls/"+r.get("call_id")+"?wait=10s", ""), 200, "status", "succeeded")
	w.want(w.do("agent", "POST", "/v1/tools/none/call", `{}`), 404, "reason", "unknown_tool")
	w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"amount":1}`), 422, "reason", "invalid_arguments")
	w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `[1]`), 422, "reason", "invalid_arguments")
}

// What ran is shown wherever the call is, its edits too: in full to whose call it is.
func TestEditsAreShownWithTheCall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.want(w.do("agent", "POST", "/v1/tools/refund/call", `{"order":"o-7","password":"first-one"}`, "Idempotency-Key", "k"), 202)
	d := w.want(w.do("reviewer", "POST", "/v1/approvals/"+p.get("approval_id")+"/decide",
		decide(true, p.get("digest"), `"edited_args":{"order":"o-8","password":"second-one"}`)), 200, "status", "approved")
	if _, err := w.calls.Server(httpapi.Origin).Continue(t.Context(), p.get("call_id"), func(txn.Tx, call.Call) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	bind := `"effective_digest":"` + d.get("effective_digest") + `"`
	again := w.want(w.do("agent", "POST", "/v1/tools/refund/call", `{"order":"o-7","password":"first-one"}`, "Idempotency-Key", "k"), 200, "status", "succeeded")
	for what, tt := range map[string]struct {
		r    reply
		want string
	}{
		"the same request again": {again, `"edited_args":{"order":"o-8","password":"second-one"}`},
		"the call":               {w.do("agent", "GET", "/v1/calls/"+p.get("call_id"), ""), `"edited_args":{"order":"o-8","password":"second-one"}`},
		"to others":              {w.do("reviewer", "GET", "/v1/calls/"+p.get("call_id"), ""), `"edited_args":{"order":"o-8","password":"[masked]"}`},
	} {
		if !strings.Contains(tt.r.text, tt.want) || !strings.Contains(tt.r.text, bind) {
			t.Errorf("%s: %s", what, tt.r.text)
		}
	}
	if r := w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o-7"}`), 200); strings.Contains(r.text, "edited") || strings.Contains(r.text, "effective") {
		t.Errorf("nothing was edited: %s", r.text)
	}
}

// The mask in a shown approval is no value to run with: an edit that still has it is
// refused, whoever sends it.
func TestTheMaskIsNoEdit(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.want(w.do("agent", "POST", "/v1/tools/refund/call", `{"order":"o-7","amount":500,"password":"hunter2"}`), 202)
	at := "/v1/approvals/" + p.get("approval_id")
	shown := w.want(w.do("reviewer", "GET", at, ""), 200)
	args, _ := shown.body["args"].(map[string]any)
	args["amount"] = 50
	edited, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r := w.want(w.do("reviewer", "POST", at+"/decide", decide(true, p.get("digest"), `"edited_args":`+string(edited))), 422, "reason", "invalid_arguments")
	if !strings.Contains(r.get("detail"), "/password") || !strings.Contains(r.get("detail"), "[masked]") || r.get("hint") == "" {
		t.Errorf("it does not say what to do: %s", r.text)
	}
	w.want(w.do("reviewer", "GET", at, ""), 200, "status", "pending")
	w.want(w.do("reviewer", "POST", at+"/decide", decide(true, p.get("digest"), `"edited_args":{"order":"o-7","amount":50,"password":"other"}`)), 200, "status", "approved")
}

// What is not looked after here says so in a word of its own.
func TestNothingToGoOnWith(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *httpapi.Config) { c.Continue, c.Jobs = nil, nil })
	id, _, _ := w.startRun("ask")
	w.want(w.do("operator", "POST", "/v1/runs/"+id+"/resume", ""), 503, "reason", "no_runs")
	w.want(w.do("agent", "GET", "/v1/jobs", ""), 503, "reason", "no_jobs")
}
