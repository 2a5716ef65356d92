package placettest_test

import (
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
)

func TestReviewerRules(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	calls := shop(t, st, w.Tool("refund"), w.Tool("drop_table"), w.Tool("send"), w.Tool("other"))
	refund, drop, send, other := park(t, calls, "refund"), park(t, calls, "drop_table"), park(t, calls, "send"), park(t, calls, "other")

	ana := placettest.Reviewer{Store: st, By: "ana"}.
		Reject(placettest.Tool("drop_table"), "Never.").
		Edit(placettest.Tool("send"), `{"to":"nobody"}`).
		Approve(placettest.Tool("refund")).
		Reject(placettest.Tool("refund"), "A rule that comes too late.")
	if n, err := ana.Decide(t.Context()); n != 3 || err != nil {
		t.Fatalf("decided %d, %v", n, err)
	}
	if n, err := ana.Decide(t.Context()); n != 0 || err != nil {
		t.Fatalf("decided %d again, %v", n, err)
	}

	if res := resume(t, calls, refund); res.Status != call.Succeeded {
		t.Errorf("refund: %+v", res)
	}
	if res := resume(t, calls, drop); res.Status != call.Denied || res.Message != "Rejected by ana: Never." {
		t.Errorf("drop_table: %+v", res)
	}
	if res := resume(t, calls, send); !res.Edited || string(res.Args) != `{"to":"nobody"}` {
		t.Errorf("send: %+v", res)
	}
	left, err := decision.Operator{Store: st}.Pending(t.Context(), 0)
	if err != nil || len(left) != 1 || left[0].ID != other.ApprovalID {
		t.Errorf("pending: %v %v", left, err)
	}
	if got := w.Count(refund.CallID) + w.Count(send.CallID); got != 2 || len(w.Lines()) != 2 {
		t.Errorf("the witness has %v", w.Lines())
	}
}

func TestReviewerFollows(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	calls := shop(t, st, w.Tool("refund"))
	before := park(t, calls, "refund")
	placettest.Reviewer{Store: st}.Approve(placettest.Any).Start(t)
	for _, waits := range []*call.PendingError{before, park(t, calls, "refund"), park(t, calls, "refund")} {
		d := placettest.Decided(t, st, waits)
		if d.Status != decision.Approved || d.DecidedBy != "reviewer" {
			t.Errorf("decided: %s by %s", d.Status, d.DecidedBy)
		}
		if res := resume(t, calls, waits); res.Status != call.Succeeded {
			t.Errorf("got %+v", res)
		}
	}
}
