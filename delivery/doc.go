// Package delivery brings events to whoever wants to hear of them: a wake target says
// who that is, and a delivery is one event for one target, sent at least once.
//
//	              claim                    it arrived
//	pending ───────────────▶ dispatching ─────────────▶ delivered
//	   │  ▲                     │  │  │
//	   │  └──── released ───────┘  │  └──── it failed for good ──▶ dead
//	   │                           │                                │
//	   │         it failed, or its process was lost                 │ a person
//	   │                           ▼                                ▼
//	   │                        retrying ◀──────────────────────────┘
//	   │                           │
//	   └────────▶ dropped ◀────────┘   what it asks for is settled, or its target or its root is gone
//
// A pending or retrying one is also dead once its time is over, or when its target is
// disabled; one that is given back after it was tried is retrying again.
//
// A delivery is written in its event's transaction. An attempt is written before
// anything is sent, with a lease; an attempt whose process was lost is closed as
// reclaimed once the lease has ended, and the delivery is tried again. So a message may
// arrive twice, never two at a time, and always under the same delivery id, which is
// the receiver's key.
//
// Of a target and a stream the deliveries go out in the order of their events, unless
// the target is unordered: only the first that has not come to an end is due, and the
// end of one makes the next due. One that a person tries again after it was dead goes
// out of order, and says so. Targets do not wait for each other.
//
// The caller's duties: run a [Dispatcher] in at least one process, with a [Channel] for
// each kind that is pushed to; it also looks after what clients of relays have claimed
// and not acknowledged. Several processes may run one.
package delivery
