package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	calls "github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store/sqlrows"
)

// BenchmarkRows measures single statements inside a transaction, the median of
// each: what a row of the usual size costs without locks, flushes and hand-overs.
func BenchmarkRows(b *testing.B) {
	at := time.UnixMicro(1_760_000_000_000_000).UTC()
	doc := []byte(`{"tool":"refund","args":{"order_id":"o-7","amount":500,"currency":"EUR","reason":"The parcel arrived damaged; the customer sent two photographs."}}`)
	digest := "sha256-placet1:" + fmt.Sprintf("%064d", 7)
	id := func(kind string, i int) string { return fmt.Sprintf("%s_0199d3a1-6f00-7000-8000-%012d", kind, i) }
	newCall := func(i int) calls.Call {
		return calls.Call{
			ID: id("call", i), Space: "main", RunID: id("run", i), OwnRun: true, Tool: "refund", SpecDigest: digest, Args: doc, ArgsDigest: digest,
			ContinueBy: calls.ByCaller, Status: calls.Pending, ApprovalID: id("apr", i), ApprovalN: 1, Epoch: 1, CreatedAt: at, Version: 1,
			Head: event.Head{Seq: 2, Hash: make([]byte, 32)},
		}
	}
	newDecision := func(i int) decision.Decision {
		return decision.Decision{
			ID: id("apr", i), Space: "main", Type: decision.Approval, Owner: decision.Ref{Kind: decision.OwnerCall, ID: id("call", i)}, N: 1,
			Kind: "remote_mutation", Capability: doc, Presentation: doc, Request: append(append(append([]byte{}, doc...), doc...), doc...), Digest: digest, SpecDigest: digest,
			ArgsDigest: digest, Reason: "The tool needs a person's yes.", RunID: id("run", i), CallID: id("call", i), Tool: "refund", CreatedAt: at,
			Status: decision.Pending, Open: true, Needs: 1, Epoch: 1, Version: 1,
		}
	}
	newEvent := func(i, n int) event.Event {
		return event.Event{
			Seq: int64(8*i + n + 1), Space: "main", Stream: "call:" + id("call", i), StreamSeq: int64(n + 1), ID: id("evt", i), At: at, Type: event.CallCreated, Subject: id("call", i),
			Actor: "system", Payload: doc, Salt: make([]byte, 16), BodyHash: make([]byte, 32), PrevHash: make([]byte, 32), Hash: make([]byte, 32),
		}
	}
	approved := func(i int) decision.Decision {
		d := newDecision(i)
		d.Status, d.Choice, d.DecidedBy, d.DecidedAt, d.SettledAt, d.Note = decision.Approved, decision.ChoiceApprove, "ana", at, at, "fine"
		return d
	}
	running := func(i int) calls.Call {
		c := newCall(i)
		c.Status, c.Attempts, c.Fence, c.LeaseUntil, c.LeaseOwner, c.Version = calls.Running, 1, 1, at, "host/1/2", 2
		return c
	}
	attempt := func(i int) calls.Attempt {
		return calls.Attempt{CallID: id("call", i), N: 1, Fence: 1, Epoch: 1, ApprovalID: id("apr", i), GrantDigest: digest, Owner: "host/1/2", Recovery: calls.RecoverByPerson, StartedAt: at}
	}
	// In this order each finds what the one before wrote.
	steps := []struct {
		name string
		do   func(x sqlrows.Rows, i int) error
	}{
		{"InsertCall", func(x sqlrows.Rows, i int) error { return x.InsertCall(newCall(i)) }},
		{"InsertDecision", func(x sqlrows.Rows, i int) error { return x.InsertDecision(newDecision(i)) }},
		{"InsertEvents/1", func(x sqlrows.Rows, i int) error { return x.InsertEvents([]event.Event{newEvent(i, 0)}) }},
		{"InsertEvents/2", func(x sqlrows.Rows, i int) error {
			return x.InsertEvents([]event.Event{newEvent(i, 1), newEvent(i, 2)})
		}},
		{"Count", func(x sqlrows.Rows, i int) error { _, err := x.Count("main", "pending", 0); return err }},
		{"Add", func(x sqlrows.Rows, i int) error { return x.Add("main", "pending", 1) }},
		{"Subtract", func(x sqlrows.Rows, i int) error { return x.Add("main", "pending", -1) }},
		{"Decision", func(x sqlrows.Rows, i int) error { _, err := x.Decision(id("apr", i)); return err }},
		{"Call", func(x sqlrows.Rows, i int) error { _, err := x.Call(id("call", i)); return err }},
		{"UpdateDecision", func(x sqlrows.Rows, i int) error { return x.UpdateDecision(newDecision(i), approved(i), false) }},
		{"UpdateDecision/whole", func(x sqlrows.Rows, i int) error {
			a := approved(i)
			a.Version = 2
			spent := a
			spent.Status, spent.Open, spent.ConsumedAt, spent.ConsumedBy = decision.Consumed, false, at, 1
			return x.UpdateDecision(a, spent, true)
		}},
		{"InsertVote", func(x sqlrows.Rows, i int) error {
			return x.InsertVote(decision.Vote{DecisionID: id("apr", i), By: "ana", Choice: decision.ChoiceApprove, Shown: digest, Note: "fine", At: at})
		}},
		{"PutHead", func(x sqlrows.Rows, i int) error {
			c := newCall(i)
			return x.PutHead(event.Head{Stream: "call:" + id("call", i), Seq: c.Head.Seq, Hash: c.Head.Hash}, event.Head{Stream: "call:" + id("call", i), Seq: 3, Hash: make([]byte, 32)})
		}},
		{"UpdateCall", func(x sqlrows.Rows, i int) error {
			c := newCall(i)
			c.Version = 2
			return x.UpdateCall(c, running(i), false)
		}},
		{"InsertAttempt", func(x sqlrows.Rows, i int) error { return x.InsertAttempt(attempt(i)) }},
		{"UpdateAttempt", func(x sqlrows.Rows, i int) error {
			a := attempt(i)
			a.Outcome, a.EndedAt = calls.Succeeded, at
			return x.UpdateAttempt(attempt(i), a)
		}},
	}
	e, err := openEngine(context.Background(), filepath.Join(b.TempDir(), "rows.db"), Options{Logger: slog.New(slog.DiscardHandler)}, migrations())
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	took := make([][]time.Duration, len(steps))
	for i := 0; b.Loop(); i++ {
		err := e.update(context.Background(), func(h *handle) error {
			for n := range 50 {
				for j, s := range steps {
					began := time.Now()
					if err := s.do(sqlrows.Of(h), 50*i+n); err != nil {
						return fmt.Errorf("%s: %w", s.name, err)
					}
					took[j] = append(took[j], time.Since(began))
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for j, s := range steps {
		slices.Sort(took[j])
		b.ReportMetric(float64(took[j][len(took[j])/2])/1e3, s.name+"-µs")
	}
}
