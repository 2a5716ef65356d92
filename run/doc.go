// Package run is an agent's run: a loop of steps under policy and limits, which
// pauses as rows and goes on in any process.
//
//	                    ┌─────────── resume ───────────┐
//	                    ▼                              │
//	(new) ──▶ RUNNING ─── a person has to agree ──▶ WAITING_FOR_APPROVAL
//	           │  │  └── lease ended: taken over        │       │
//	           │  └────── cancel ───────┐               │       │
//	           ▼                        ▼               │       │
//	    COMPLETED, FAILED           CANCELLED ◀── no, or no answer in time
//
// Each step is claimed, decided by the agent, recorded as the agent said it,
// checked, judged by the policy and then carried out. Its tool call goes through
// package call: the same stages and the same ledger of attempts as any other.
//
//	deciding ──▶ executing ──▶ done
//	   │  │          │   └───▶ failed
//	   │  └─▶ awaiting_approval ─▶ executing (resumed), failed (a no)
//	   └──────────┴─▶ interrupted: the process was lost, or the outcome is unknown
//
// The [Driver] runs an agent's loop. [Gate] is for loops that belong to others.
// The caller does three things: give the driver an [Agent], a policy and tools;
// show people what waits; and call [Driver.Resume] once they have decided, in
// whatever process that is.
//
// A run holds a lease while it is RUNNING. Every taking of it draws a new fence,
// and every write of the loop is guarded by it, so a process that was thought lost
// can write nothing more once another has taken over.
package run
