// Package flow carries out a fixed plan: a named, versioned list of nodes, run by the
// same driver as an agent's run, with the plan in place of a model.
//
//	 collect            Call: a tool, under policy and ledger as ever
//	    │
//	    ▼
//	 anything? ──no──▶ nothing          Branch, End
//	    │ yes
//	    ▼
//	   ask              Approve: a person's yes, bound by digest
//	    │
//	    ▼
//	 publish ──failed──▶ undo ──▶ failed
//	    │
//	    ▼
//	published           End: the result
//
// A flow's run is rows like any other: one step for each node that was begun, with the
// node's name. Which node comes next follows from these steps alone, so any process with
// the same definition goes on at the node that had not finished:
//
//	the last step of a node   what comes next
//	done                      the node after it
//	failed, denied, refused   OnFailure, or the run fails
//	interrupted, undecided    the same node again
//	waits, or may have run    what the driver does about it: a person, a probe, a key
//
// A node is carried out again only where nothing can have come of the first time, its
// tool is read_only, or Reconcile said run.Continue; for a flow that verdict means that
// the node is to be done again.
//
// The caller does three things: make a [Runner] of a [Flow], which checks it; show
// people what waits; and call [Runner.Resume] once they have decided, in whatever
// process that is. A paused run of another version, or of a definition that changed
// under the same version, is refused: keep the old definition as long as its runs wait.
package flow
