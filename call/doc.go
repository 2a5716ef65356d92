// Package call is one tool call, carried out once.
//
// A call goes through the same stages whoever asks: bounds, tool, schema,
// guards, policy, approval, start, tool, record. Where a person has to agree it
// is parked as a row and [Executor.Call] returns a [*PendingError]; any process
// with the same store and the tool can carry it out later with
// [Executor.Resume].
//
//	             ┌──────── allowed ────────┐
//	(new) ─── parked ──▶ pending ─── yes ──▶ running ──▶ succeeded
//	                       │  │               │   ▲  └─▶ failed
//	              no ──────┤  ├─ time         │   └─────┐ a new yes, or the key
//	                    denied expired        └─▶ unknown ─▶ succeeded, failed
//	                       └─ withdrawn: cancelled          (probe, or late)
//
// The start is committed before the tool is called: attempt, fence, lease, the
// grant spent. A process that dies afterwards leaves an attempt whose lease
// ends; the call is then unknown, and only the tool's probe, its declared
// idempotency key or a person can settle that. Nothing is run again silently.
//
// The caller does three things: keep the approval id of a PendingError, resume
// once it is decided, and read [Result.Status].
package call
