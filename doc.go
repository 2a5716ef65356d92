// Package placet makes an AI agent's risky action wait, durably, for a person's
// yes, and then runs exactly what was approved, once.
//
// A pause is a row, not a callback: whoever waits may die, any later process
// with the same store can decide, and any later process that knows the tools can
// resume.
//
//	st, err := sqlite.Open(ctx, "placet.db", nil)
//	p, err := placet.Open(placet.Config{Store: st, Tools: tools})
//
//	_, err = p.Calls.Call(ctx, "refund", []byte(`{"order_id":"o-7","amount":500}`))
//	var waits *call.PendingError
//	errors.As(err, &waits)                     // parked: keep waits.ApprovalID
//
//	p.Operator.ApproveShown(ctx, waits.RunID, waits.ApprovalID, waits.Digest, "ana", "")
//	res, err := p.Calls.Resume(ctx, waits.ApprovalID, nil)   // runs once
//
// The packages, in the order data flows: request (what is wanted), policy (may
// it), decision (what a person said), tool and call (carrying it out, once), run
// and flow (an agent's steps, a fixed plan), event (what happened), delivery (who is
// told of it), store (where all of it lies).
package placet
