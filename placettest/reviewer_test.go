package placettest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/tool"
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

func TestReviewersShareTheWork(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	calls := shop(t, st, w.Tool("refund"))
	for _, name := range []string{"ana", "ben", "eva"} {
		placettest.Reviewer{Store: st, By: name}.Approve(placettest.Any).Start(t)
	}
	for range 10 {
		waits := park(t, calls, "refund")
		placettest.Decided(t, st, waits)
		resume(t, calls, waits)
	}
	if n := len(w.Lines()); n != 10 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestReviewerRunEnds(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (placettest.Reviewer{Store: st}).Run(ctx); err != nil {
		t.Errorf("with its context: %v", err)
	}
	refund := w.Tool("refund")
	refund.InputSchema = []byte(`{"type":"object","properties":{"amount":{"type":"integer"}}}`)
	park(t, shop(t, st, refund), "refund")
	ana := placettest.Reviewer{Store: st}.Edit(placettest.Any, `{"amount":"much"}`)
	if err := ana.Run(t.Context()); !errors.Is(err, tool.ErrInvalidArguments) {
		t.Errorf("with an edit that does not fit: %v", err)
	}
	if _, err := ana.Decide(t.Context()); !errors.Is(err, tool.ErrInvalidArguments) {
		t.Errorf("with an edit that does not fit: %v", err)
	}
}

func TestReviewerAnswersWithWhatItSees(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	calls := shop(t, st, w.Tool("refund"))
	waits := park(t, calls, "refund")
	var saw decision.Decision
	ana := placettest.Reviewer{Store: st, By: "ana"}.
		Answer(placettest.Any, func(d decision.Decision) decision.Answer {
			saw = d.Clone()
			copy(d.Request, "altered") // it has a copy
			return decision.Answer{Approved: true, By: "somebody else", Shown: "something else", Note: "Seen."}
		})
	if n, err := ana.Decide(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if d := placettest.Decided(t, st, waits); saw.Digest != waits.Digest || d.DecidedBy != "ana" || d.Note != "Seen." {
		t.Errorf("saw %s, decided by %s: %s", saw.Digest, d.DecidedBy, d.Note)
	}
}

func TestReviewerRulesAreCopied(t *testing.T) {
	t.Parallel()
	st, w := placettest.Open(t), placettest.NewWitness(t)
	calls := shop(t, st, w.Tool("a"), w.Tool("b"), w.Tool("c"))
	base := placettest.Reviewer{Store: st}.Approve(placettest.Tool("x")).Approve(placettest.Tool("y")).Approve(placettest.Tool("a"))
	yes, no := base.Approve(placettest.Tool("b")), base.Reject(placettest.Tool("b"), "No.")
	a, b := park(t, calls, "a"), park(t, calls, "b")
	if n, err := base.Decide(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := no.Decide(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := yes.Decide(t.Context()); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if res := resume(t, calls, a); res.Failed() {
		t.Errorf("a: %+v", res)
	}
	if res := resume(t, calls, b); res.Status != call.Denied {
		t.Errorf("b: %+v", res)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	w := placettest.NewWitness(t)
	asked := decision.Decision{Kind: "remote_mutation", Tool: "refund", CallID: "c"}
	again := decision.Decision{Kind: decision.KindInterrupted, Tool: "refund", CallID: "c"}
	for name, tc := range map[string]struct {
		match        placettest.Match
		asked, again bool
	}{
		"any":         {placettest.Any, true, false},
		"tool":        {placettest.Tool("refund"), true, false},
		"other tool":  {placettest.Tool("send"), false, false},
		"interrupted": {placettest.Interrupted, false, true},
		"missing":     {w.Missing, false, true},
		"done":        {w.Done, false, false},
	} {
		if tc.match(asked) != tc.asked || tc.match(again) != tc.again {
			t.Errorf("%s matches %t, %t", name, tc.match(asked), tc.match(again))
		}
	}
}
