// Package event is the append-only log: one entry for each transition, written
// in the transaction that makes it, chained by hash within its stream.
//
// A stream is a root's: "run:run_…", "call:call_…" or "job:job_…". Events of
// what hangs below a root stand in the root's stream and name it as their
// subject.
//
// A reader does three things: it keeps a [Cursor], asks [Wait] for the next
// event after it, and acts on what it gets. A wake-up is only a hint; the rows
// are the truth, so a reader that was away misses nothing.
//
// The chain hashes an event's body (salt, actor, payload) into body_hash, and
// body_hash with the envelope and the event before into hash. So a body can be
// emptied with [Redact] and the chain still verifies.
package event
