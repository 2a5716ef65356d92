package call

import (
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/tool"
)

// Status is where a call stands.
type Status string

// The statuses (spec 2.3).
const (
	Pending   Status = "pending"   // parked: waits for a person, or for somebody to resume it
	Running   Status = "running"   // an attempt holds the lease
	Succeeded Status = "succeeded" // the tool's result is stored
	Failed    Status = "failed"    // the tool said so, or had no effect
	Unknown   Status = "unknown"   // it may or may not have had its effect
	Denied    Status = "denied"    // by the policy or a person
	Expired   Status = "expired"   // nobody agreed, or acted on a yes, in time
	Cancelled Status = "cancelled" // taken back by who asked
	// Invalid is only a Result's: such a call is not stored.
	Invalid Status = "invalid"
)

// Statuses lists those that are stored.
func Statuses() []Status {
	return []Status{Pending, Running, Succeeded, Failed, Unknown, Denied, Expired, Cancelled}
}

// Terminal reports whether nothing changes a call of this status any more.
func (s Status) Terminal() bool {
	switch s {
	case Succeeded, Failed, Denied, Expired, Cancelled:
		return true
	}
	return false
}

// Kind says why a call did not succeed, for programs.
type Kind string

// The kinds (spec 2.2).
const (
	KindApprovalDenied   Kind = "approval_denied"
	KindPolicyDenied     Kind = "policy_denied"
	KindPolicyAbort      Kind = "policy_abort"
	KindInvalidArguments Kind = "invalid_arguments"
	KindGuardRefused     Kind = "guard_refused"
	KindNotAuthorised    Kind = "not_authorised"
	KindNotStarted       Kind = "not_started"
	KindToolError        Kind = "tool_error"
	KindToolTimeout      Kind = "tool_timeout"
	KindToolPanic        Kind = "tool_panic"
	KindUnknownOutcome   Kind = "unknown_outcome"
	KindApprovalExpired  Kind = "approval_expired"
	KindCancelled        Kind = "cancelled"
)

// ContinueBy says who may carry out approved work (design §4).
type ContinueBy string

// The ways. Only what says daemon is ever continued without an explicit resume.
const (
	ByCaller ContinueBy = "caller"
	ByDaemon ContinueBy = "daemon"
)

// Call is one tool call.
type Call struct {
	ID         string
	Space      string
	RunID      string // names the calls whose guards count together
	OwnRun     bool   // the run id was made for this call alone
	StepID     string // the run's step that it hangs below; empty: it is its own root
	ExternalID string // the id its caller chose, unique per run; empty: none
	Tool       string
	SpecDigest string   // of the tool as registered when the call was parked or started last
	Recovery   Recovery // what that tool declared then
	Args       []byte   // exactly as given
	ArgsDigest string

	Principal  string // who asks, as proved; empty: not known
	Metadata   map[string]string
	ContinueBy ContinueBy
	NextTryAt  time.Time // a daemon does not try before; zero: any time

	Status          Status
	Kind            Kind
	Message         string
	Result          []byte // one JSON value, as the tool gave it
	EffectiveDigest string // of the edited arguments that ran; empty: not edited

	ApprovalID string // the latest approval; only it can answer
	ApprovalN  int64  // how many there were

	Attempts   int64 // how many there were; the number of the last
	Fence      int64 // of the last attempt; only ever grows
	LeaseUntil time.Time
	LeaseOwner string // for display
	Epoch      int64  // life of the store in which the last attempt started

	CreatedAt time.Time
	EndedAt   time.Time
	Version   int64 // grows with every write
	Head      event.Head
}

// Hosted reports whether the call hangs below a run's step. Then the run is its
// root: it waits on the call's approvals, and its stream has the call's events.
func (c Call) Hosted() bool { return c.StepID != "" }

// approvedAs is the call id in approvals of the call: one that hangs below a step
// is named by that.
func (c Call) approvedAs() string {
	if c.Hosted() {
		return ""
	}
	return c.ID
}

// Root is what waits on the call's approvals: the run, or the call itself.
func (c Call) Root() decision.Ref {
	if c.Hosted() {
		return decision.Ref{Kind: decision.OwnerRun, ID: c.RunID}
	}
	return decision.Ref{Kind: decision.OwnerCall, ID: c.ID}
}

// Stream is the root's event stream.
func (c Call) Stream() string { return c.Root().Stream() }

// Recovery is what may settle an attempt whose outcome is unknown, as the tool
// declared it when the attempt started.
type Recovery string

// The ways besides a late outcome.
const (
	RecoverByPerson   Recovery = "person"
	RecoverByProbe    Recovery = "probe"
	RecoverByKey      Recovery = "key"
	RecoverByProbeKey Recovery = "probe+key"
)

func (r Recovery) probe() bool { return r == RecoverByProbe || r == RecoverByProbeKey }
func (r Recovery) key() bool   { return r == RecoverByKey || r == RecoverByProbeKey }

// recoveryOf is what the tool declares for an attempt whose outcome is unknown.
func recoveryOf(t *tool.Tool) Recovery {
	switch {
	case t.Probe != nil && t.Idempotent:
		return RecoverByProbeKey
	case t.Probe != nil:
		return RecoverByProbe
	case t.Idempotent:
		return RecoverByKey
	}
	return RecoverByPerson
}

// Attempt is one try at carrying a call out.
type Attempt struct {
	CallID          string
	N               int64 // 1 for the first
	Fence           int64
	Epoch           int64
	ApprovalID      string // the grant it spent; empty: none was needed
	GrantDigest     string // digest of that grant; empty: none
	EffectiveDigest string // binds edited arguments to the grant; empty: not edited
	Args            []byte // what ran, where it was edited; nil: the call's own
	Owner           string // process identity, to tell whether it is gone
	Recovery        Recovery
	StartedAt       time.Time
	EndedAt         time.Time // zero while it runs
	Outcome         Status    // succeeded, failed or unknown; empty while it runs
	Kind            Kind
	Message         string
	Late            bool // the outcome came after its lease, or its call, ended
}

// Guard is a counter of a guard that spans calls.
type Guard struct {
	Space string
	Name  string // of the guard
	RunID string // empty for a guard that spans runs
	Key   string // what it counts for
	N     int64
	Since time.Time // start of the window, for guards over time
}

// IdempotencyKey is a client's word by which it repeats a request without
// repeating its effect: one per space, principal and route, kept 30 days.
type IdempotencyKey struct {
	Space     string
	Principal string
	Route     string
	Key       string
	Request   string // digest of what was asked for
	CallID    string
	Attempt   int64 // that the request started; 0: none
	At        time.Time
}

// KeptKeys is how long an idempotency key is remembered.
const KeptKeys = 30 * 24 * time.Hour

// RunUse says whose a run id is.
type RunUse struct {
	Run       bool   // an agent's run has it
	Calls     bool   // calls that are their own roots have it
	Principal string // of the first of those calls
}

// Tx is what calls need of a transaction.
type Tx interface {
	decision.Tx
	// Call reads a call and, in a write transaction, locks it; [ErrNotFound].
	Call(id string) (Call, error)
	// CallByExternalID does the same by the id a caller chose.
	CallByExternalID(space, runID, externalID string) (Call, error)
	Calls(q Query) ([]Call, error)
	// LeaseEnded lists running calls of the space that are their own root, by id
	// behind after, whose lease ended before now, or whose attempt is of an earlier
	// life of the store.
	LeaseEnded(space string, now time.Time, after string, limit int) ([]Call, error)
	// Continuable lists calls of the space that are their own root and a daemon's to
	// go on with, by id behind after: those with a grant, and those of unknown outcome
	// about which nobody is asked. One that is not to be tried before a time after now
	// is left out.
	Continuable(space string, now time.Time, after string, limit int) ([]Call, error)
	// InsertCall writes a new call; the ids in use already are [ErrCallConflict].
	InsertCall(c Call, es ...event.Event) error
	// LockCall locks a call that is judged on as it was read before.
	LockCall(id string) error
	// PutCall writes a change: guarded by the version, status and fence of prev,
	// and by all else that an attempt is bound to where this transaction has not
	// read prev itself; decision.ErrMoved when another writer won.
	PutCall(prev, next Call, es ...event.Event) error
	Attempts(callID string) ([]Attempt, error)
	Attempt(callID string, n int64) (Attempt, error)
	InsertAttempt(a Attempt) error
	// PutAttempt writes an outcome: guarded by the fence and outcome of prev.
	PutAttempt(prev, next Attempt) error
	// GuardCount reads a guard's counter; zero when there is none.
	// In a write transaction the counter is locked until its end.
	GuardCount(g Guard) (Guard, error)
	PutGuard(g Guard) error
	// CountGrants counts the space's yeses that nobody has acted on, by what waits on
	// them: calls and runs.
	CountGrants(space string) (calls, runs int64, err error)
	// RunUse says whose a run id of the space is.
	RunUse(space, runID string) (RunUse, error)
	// DropGuard forgets a counter, unless it counts more than g.N: others too.
	DropGuard(g Guard) error
	// FindIdempotent reads a key's record, unless it is too old.
	FindIdempotent(k IdempotencyKey) (IdempotencyKey, bool, error)
	// PutIdempotent stores a new key; decision.ErrMoved when it is there already.
	PutIdempotent(k IdempotencyKey) error
	// OldKeys lists keys of all spaces that were used before a time, oldest first.
	OldKeys(before time.Time, limit int) ([]IdempotencyKey, error)
	// DropKey forgets a key that was last used when k says; false: it was used anew.
	DropKey(k IdempotencyKey) (bool, error)
}

// Query selects calls, newest first.
type Query struct {
	Space  string
	Status Status // empty: all
	RunID  string
	After  string // id of the last one seen
	Limit  int    // 1 to 500; 0 means 50
	Prefix string // of the id
}
