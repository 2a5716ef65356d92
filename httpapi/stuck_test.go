package httpapi_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/tool"
)

// A call that is approved and that no process here can carry out says so after a while,
// and what to do: it is taken back, and asked for again.
func TestStuckCalls(t *testing.T) {
	t.Parallel()
	as := tool.Spec{Name: "refund", Description: "Refund an order.", InputSchema: json.RawMessage(schema), SideEffect: tool.RemoteMutation}
	changed := as
	changed.Description = "Refund any order."
	other := as
	other.Name = "other"
	for what, now := range map[string]struct {
		here tool.Spec
		why  string
	}{
		"as it was": {as, ""}, "no tool": {other, "approved, no process here has tool refund"}, "a changed tool": {changed, "tool refund has changed since"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := setup(t, func(c *httpapi.Config) {
				var err error
				if c.Tools, err = tool.NewRegistry(tool.Tool{Spec: now.here, Run: &spy{}}); err != nil {
					t.Fatal(err)
				}
			})
			old, fresh := w.granted(2*time.Minute), w.granted(0)
			at := "/v1/calls/" + old.CallID
			r := w.want(w.do("agent", "GET", at, ""), 200, "status", "pending")
			if s := r.get("stuck"); (s != "") != (now.why != "") || now.why != "" && (!strings.Contains(s, now.why) || !strings.Contains(s, "DELETE "+at)) {
				t.Errorf("stuck: %q", s)
			}
			if r := w.want(w.do("agent", "GET", "/v1/calls/"+fresh.CallID, ""), 200); r.body["stuck"] != nil {
				t.Errorf("agreed to just now: %s", r.text)
			}
			w.tokens["other"] = w.token("agent", "other")
			w.want(w.do("other", "DELETE", at, ""), 404)
			w.want(w.do("agent", "DELETE", at, ""), 200, "status", "cancelled")
			w.want(w.do("agent", "DELETE", at, ""), 409, "reason", "run_state")
			if r := w.want(w.do("reviewer", "GET", "/v1/approvals/"+old.ApprovalID, ""), 200, "status", "superseded"); r.get("choice") != "approve" {
				t.Errorf("the yes: %s", r.text)
			}
			w.want(w.do("operator", "DELETE", "/v1/calls/"+fresh.CallID, ""), 200, "status", "cancelled")
		})
	}
}

// granted is a call of the agent's to which somebody agreed so long ago.
func (w *world) granted(ago time.Duration) *call.PendingError {
	w.t.Helper()
	_, err := w.calls.Server(httpapi.Origin).Call(w.t.Context(), "agent", "refund", []byte(`{"order":"o"}`))
	var p *call.PendingError
	if !errors.As(err, &p) {
		w.t.Fatal(err)
	}
	op := decision.Operator{Store: w.st, Now: func() time.Time { return time.Now().Add(-ago) }}
	if _, err := op.Decide(w.t.Context(), p.ApprovalID, decision.Answer{Approved: true, By: "ana"}); err != nil {
		w.t.Fatal(err)
	}
	return p
}
