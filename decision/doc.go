// Package decision is the durable record of a question to people and of its
// answer. An approval is bound by digest to exactly one request; a question is
// a prompt with options (it comes with jobs). Both are one table and one machine.
//
//	            ┌── approve ──▶ approved ──▶ consumed    (the tool was started)
//	pending ────┤                  ├───────▶ expired     (the yes grew too old)
//	  │         │                  └───────▶ superseded  (a newer approval replaced it)
//	  │         └── reject ───▶ rejected ──▶ consumed    (the denial was returned)
//	  ├── time ──▶ expired
//	  ├── withdraw ──▶ withdrawn
//	  └── replaced ──▶ superseded
//
// Whoever decides does three things: read the approval, show it to a person with
// its digest, and call [Operator.ApproveShown] or [Operator.RejectShown] with
// the digest that was shown. Deciding needs a store and nothing else: no agent,
// no tools, no policy. It does not continue what waits; that is resume.
//
// What waits on a decision is its [Owner]: a call, a run's step, a job. Each
// implements that interface, and the store hands it out, so this package never
// learns what waits.
package decision
