package decision

import (
	"time"

	"github.com/placet-dev/placet/txn"
)

// The queue is what waits for people: pending decisions that an answer can still change,
// what expires soonest first and what never expires last; of one instant by id.

// MaxLooked is how many decisions a search for a text looks through at a time, at most.
const MaxLooked = 20_000

// MaxSearch bounds what can be searched for, in bytes.
const MaxSearch = 1000

// Queued selects a page of the queue. The zero values leave nothing out.
type Queued struct {
	Space  string
	Type   Type      // empty: both
	Owner  OwnerKind // empty: all
	Kind   string    // of approvals, the policy's word; empty: all
	Tool   string    // empty: all
	Before time.Time // only what was asked before; zero: all
	// Search leaves out what does not hold this text: in id, run id, call id, tool, kind,
	// asker, reason, prompt or the bytes of the request, where it is also found as JSON
	// escapes it. The letters A to Z count as a to z; all others are compared as they are.
	// What is found holds it in one of these; what is shown of it may hide just that, which
	// is the caller's to see to. At most [MaxSearch] bytes of valid text.
	Search string
	// Look bounds how many a search looks through, 1 to [MaxLooked]; 0 means that many. It
	// looks through fewer where that takes longer than 0.06 s, yet through 5,000 unless those
	// take longer than 0.3 s.
	Look int

	After QueuePlace // the page begins here; zero: at the beginning of the queue
	Back  bool       // the page ends at After instead, zero: at the end of the queue; its order is the same
	Limit int        // 1 to 500; 0 means 50
}

// Check refuses what nothing can be picked by: [ErrUsage].
func (q Queued) Check() error {
	for _, s := range []string{q.Space, string(q.Type), string(q.Owner), q.Kind, q.Tool, q.After.ID} {
		if !txn.IsText(s) {
			return ErrUsage.Say("%q is not valid text.", s).Hint(txn.TextHint)
		}
	}
	if len(q.Search) > MaxSearch || !txn.IsText(q.Search) {
		return ErrUsage.Say("What is searched for is not valid text of at most %d bytes.", MaxSearch).Hint(txn.ShortTextHint)
	}
	return nil
}

// QueuePlace is a place in the queue: right behind the decision with this id and deadline,
// or where it was. Zero is the beginning or the end.
type QueuePlace struct {
	ExpiresAt time.Time // zero: never
	ID        string
}

// IsZero reports whether p is no place between decisions.
func (p QueuePlace) IsZero() bool { return p == QueuePlace{} }

// Behind is the place right behind d.
func (d Decision) Behind() QueuePlace { return QueuePlace{d.ExpiresAt, d.ID} }

// QueuePage is a page of the queue. What is asked or decided meanwhile moves nothing else
// from one page to another.
type QueuePage struct {
	Decisions []Decision // in the order of the queue
	// Begin is where the page begins: [Queued.After] of the page before it, together with
	// [Queued.Back]. Zero: nothing comes before it.
	Begin QueuePlace
	// End is where it ends: [Queued.After] of the next. Zero: nothing comes behind it.
	End QueuePlace
	// Cut: a search has looked through as many as it may, and the page is not full. It goes
	// on from End, or with Back from Begin, and may find nothing more.
	Cut bool
}

// QueueCount is how many decisions of one sort the queue has.
type QueueCount struct {
	Type  Type
	Owner OwnerKind
	Kind  string
	Tool  string
	N     int64
}
