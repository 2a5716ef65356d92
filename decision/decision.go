package decision

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// Type tells the two sorts of decision apart.
type Type string

// The types.
const (
	Approval Type = "approval"
	Question Type = "question"
)

// Status is where a decision stands.
type Status string

// The statuses of an approval (spec 2.3).
const (
	Pending    Status = "pending"
	Approved   Status = "approved"   // a grant: not yet spent
	Rejected   Status = "rejected"   // not yet returned to who asked
	Expired    Status = "expired"    // nobody answered in time, or the grant grew too old
	Withdrawn  Status = "withdrawn"  // who asked took it back
	Superseded Status = "superseded" // a newer approval or a late outcome replaced it
	Consumed   Status = "consumed"   // spent: the tool was started, or the denial returned
)

// Statuses lists those of approvals. A question is pending, resolved, withdrawn or expired.
func Statuses() []Status {
	return []Status{Pending, Approved, Rejected, Expired, Withdrawn, Superseded, Consumed}
}

// Choice is what was answered; it stays after the status moved on.
type Choice string

// The options of an approval.
const (
	ChoiceApprove Choice = "approve"
	ChoiceReject  Choice = "reject"
)

// KindInterrupted is the runtime's own kind of approval: a call started and its
// outcome is unknown, so running it again needs a person.
const KindInterrupted = "interrupted_side_effect"

// Limits of what people write.
const (
	MaxBy   = 200    // characters of a name
	MaxNote = 10_000 // characters of a note
	// MaxPageText bounds a policy's reason where it is shown, in characters.
	MaxPageText = 65_536
)

// OwnerKind names the sort of root that waits on a decision.
type OwnerKind string

// The owners.
const (
	OwnerCall OwnerKind = "call"
	OwnerRun  OwnerKind = "run"
	OwnerJob  OwnerKind = "job"
)

// Ref names an owner.
type Ref struct {
	Kind OwnerKind
	ID   string
}

// Stream is the owner's event stream.
func (r Ref) Stream() string { return string(r.Kind) + ":" + r.ID }

// The metadata keys that mark a record as the HTTP tool server's or the
// gateway's own (spec 2.1). Callers cannot set them.
var serverKeys = [...]string{"origin", "principal", "anonymous"}

// Decision is one record. For an approval everything above Status is fixed when
// it is asked and never changes.
type Decision struct {
	ID    string
	Space string
	Type  Type
	Owner Ref
	N     int64 // counts the owner's decisions; the highest is the latest

	Kind         string
	Capability   []byte // JSON object
	Presentation []byte // JSON object
	Request      []byte // exactly what is wanted, as JSON, argument bytes as given
	Digest       string // over kind, capability, presentation and request
	SpecDigest   string // of the tool as registered when it was asked
	ArgsDigest   string // of the call's original arguments, also where Request holds edited ones
	SpentDigest  string // of the grant spent by the attempt that was interrupted
	Reason       string // the policy's word; may carry text a model chose
	ForbidEdits  bool

	// Of a question.
	Prompt         string
	Options        []string
	Form           []byte // a flat JSON Schema of what else is asked for; nil: nothing
	IdempotencyKey string // by which its asker repeats it; empty: none

	RunID, CallID, StepID string // the ids that Request holds, to search by
	Node                  string // of a flow's node
	Tool                  string

	RequestedBy string // principal that asked; empty: not known
	Metadata    map[string]string
	CreatedAt   time.Time
	ExpiresAt   time.Time     // zero: never
	GrantTTL    time.Duration // 0: a yes never grows too old

	Status Status
	Open   bool // an answer can still change something
	Needs  int  // votes that settle it; 1 for now
	Choice Choice

	DecidedBy        string
	DecidedPrincipal string
	DecidedAt        time.Time
	Verified         bool // the principal was proved to somebody other than the store's own user
	Note             string
	Input            []byte // what a question's form asked for; nil: nothing
	EditedArgs       []byte // what runs instead; nil: not edited
	EditedDigest     string
	EffectiveDigest  string // binds EditedArgs to Digest
	GrantExpiresAt   time.Time
	// Epoch is the life of the store in which it was asked, and no answer changes it: what
	// was asked in an earlier one may have been agreed to and done since, so a yes to it
	// now is as doubtful as one of then.
	Epoch int64

	WithdrawnBy        string // who took it back, and who that was proved to be
	WithdrawnPrincipal string

	SettledAt  time.Time // when it stopped being pending
	ConsumedAt time.Time
	ConsumedBy int64 // attempt that spent the grant

	Version int64 // grows with every write
}

// Answer is what a reviewer gives.
type Answer struct {
	Approved   bool
	By         string // recorded as given; not empty
	Note       string
	EditedArgs []byte // arguments to run instead; nil: as asked. Calls only.
	Shown      string // digest of what the reviewer saw; empty: not bound to a showing
}

// Vote is one person's answer, as stored.
type Vote struct {
	DecisionID   string
	Principal    string
	By           string
	Choice       Choice
	Input        []byte
	Shown        string
	EditedDigest string
	Note         string
	At           time.Time
}

// FromServer reports whether the HTTP tool server or the gateway wrote this
// metadata, so that only they may run what it belongs to (spec 2.4).
func FromServer(metadata map[string]string) bool {
	for _, k := range serverKeys {
		if _, ok := metadata[k]; ok {
			return true
		}
	}
	return false
}

// Limits of what an asker says of itself.
const (
	MaxMetadata  = 4096 // bytes of all keys and values
	MaxPrincipal = 200  // bytes
)

// CheckAsker refuses a principal and metadata that cannot be recorded as given:
// [ErrUsage].
func CheckAsker(principal string, metadata map[string]string) error {
	n := 0
	for k, v := range metadata {
		if k == "" || !txn.IsText(k) || !txn.IsText(v) {
			return ErrUsage.Say("The metadata %q is not valid text.", k).Hint("Give it a name, and write both in UTF-8 without NUL.")
		}
		n += len(k) + len(v)
	}
	switch {
	case n > MaxMetadata:
		return ErrUsage.Say("The metadata has %d bytes; the limit is %d.", n, MaxMetadata)
	case !txn.IsText(principal) || len(principal) > MaxPrincipal:
		return ErrUsage.Say("The principal is not valid text of at most %d bytes.", MaxPrincipal).Hint(txn.ShortTextHint)
	}
	return nil
}

// CheckReserved refuses metadata with a key that only the server may set: [ErrUsage].
func CheckReserved(metadata map[string]string) error {
	for _, k := range serverKeys {
		if _, ok := metadata[k]; ok {
			return ErrUsage.Say("The metadata key %q is the server's own.", k).Hint("Choose another key.")
		}
	}
	return nil
}

// Shorter is the shorter of two limits of an approval, of which 0 is none.
func Shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// noun is what people call d, at the beginning of a sentence.
func (d Decision) noun() string {
	if d.Type == Question {
		return "Question"
	}
	return "Approval"
}

// Binding recomputes the digest from the fields that it covers.
func (d Decision) Binding() (string, error) {
	if d.Type == Question {
		return d.questionDigest()
	}
	return request.ApprovalDigest(d.Kind, d.Capability, d.Presentation, d.Request)
}

// Intact reports whether the stored digests are those of the stored fields:
// [ErrApprovalHash] otherwise. It also holds the searchable ids against the request.
func (d Decision) Intact() error {
	got, err := d.Binding()
	if (err != nil || got != d.Digest) && d.Type == Question {
		return ErrApprovalHash.Say("The stored content of question %s does not match its digest.", d.ID).
			Hint("It was altered in the store. Withdraw it and ask again.")
	}
	if err != nil || got != d.Digest {
		return ErrApprovalHash.Say("The stored content of approval %s does not match its digest.", d.ID).
			Hint("It was altered in the store. Reject it and ask again.")
	}
	if d.Type == Question {
		return nil
	}
	if r, err := request.Decode(d.Request); err != nil || !d.names(r) {
		return ErrApprovalHash.Say("The ids of approval %s are not those of its request.", d.ID).
			Hint("It was altered in the store. Reject it and ask again.")
	}
	return nil
}

// names reports whether what is searchable about d says the same as its request.
func (d Decision) names(r request.Request) bool {
	if r.RunID != d.RunID || r.CallID != d.CallID || r.StepID != d.StepID || r.Node != d.Node || r.Tool.Name != d.Tool ||
		d.Owner.Kind == OwnerCall && d.Owner.ID != d.CallID || d.Owner.Kind == OwnerRun && d.Owner.ID != d.RunID {
		return false
	}
	if r.Node != "" {
		return true // a flow's node has no tool
	}
	spec, err := r.Tool.Digest()
	return err == nil && spec == d.SpecDigest
}

// SoundGrant reports whether d is a grant as our own doors leave one, unspent and
// unaltered: [ErrApprovalHash] otherwise. Whether it is in time is [Decision.Overdue]'s.
func (d Decision) SoundGrant() error {
	until := time.Time{}
	if d.GrantTTL > 0 {
		until = d.DecidedAt.Add(d.GrantTTL)
	}
	if d.Status != Approved || d.Choice != ChoiceApprove || d.DecidedBy == "" || d.DecidedAt.IsZero() || !d.GrantExpiresAt.Equal(until) ||
		d.ConsumedBy != 0 || !d.ConsumedAt.IsZero() {
		return ErrApprovalHash.Say("The answer to approval %s is not stored as anybody gave it.", d.ID).
			Hint("It was altered in the store. Make the call again.")
	}
	if err := d.Intact(); err != nil {
		return err
	}
	return d.EditIntact()
}

// EditIntact does what Intact does for edited arguments.
func (d Decision) EditIntact() error {
	if d.EditedArgs == nil && d.EditedDigest == "" && d.EffectiveDigest == "" {
		return nil
	}
	edited, err := request.ArgsDigest(d.EditedArgs)
	if err == nil && edited == d.EditedDigest {
		var effective string
		if effective, err = request.EffectiveDigest(d.Digest, edited); err == nil && effective == d.EffectiveDigest {
			return nil
		}
	}
	return ErrApprovalHash.Say("The edited arguments of approval %s do not match their digest.", d.ID).
		Hint("They were altered in the store. The call can only be asked again.")
}

// Same reports whether two readings of one decision agree in everything that a
// yes is bound to and in where it stands: a guard against rows altered in between.
func (d Decision) Same(o Decision) bool {
	return d.ID == o.ID && d.Version == o.Version && d.Status == o.Status && d.Choice == o.Choice && d.Epoch == o.Epoch &&
		d.Kind == o.Kind && d.Digest == o.Digest && d.ArgsDigest == o.ArgsDigest && d.SpentDigest == o.SpentDigest &&
		d.EditedDigest == o.EditedDigest && d.EffectiveDigest == o.EffectiveDigest && d.Owner == o.Owner &&
		bytes.Equal(d.Request, o.Request) && bytes.Equal(d.Capability, o.Capability) &&
		bytes.Equal(d.Presentation, o.Presentation) && bytes.Equal(d.EditedArgs, o.EditedArgs) && bytes.Equal(d.Input, o.Input)
}

// Clone is a copy that shares no memory with d.
func (d Decision) Clone() Decision {
	d.Options = slices.Clone(d.Options)
	for _, b := range []*[]byte{&d.Capability, &d.Presentation, &d.Request, &d.EditedArgs, &d.Form, &d.Input} {
		*b = bytes.Clone(*b)
	}
	d.Metadata = maps.Clone(d.Metadata)
	return d
}

// Overdue reports whether now is past the decision's deadline: the request's
// while it is pending, the grant's once it is approved. The instant itself is in time.
func (d Decision) Overdue(now time.Time) bool {
	switch d.Status {
	case Pending:
		return !d.ExpiresAt.IsZero() && now.After(d.ExpiresAt)
	case Approved:
		return !d.GrantExpiresAt.IsZero() && now.After(d.GrantExpiresAt)
	}
	return false
}

// Tx is what decisions need of a transaction.
type Tx interface {
	event.Tx
	// Epoch is the store's present life.
	Epoch() int64
	// RestoredTo is the time that the store went back to when its present life
	// began; zero for its first life.
	RestoredTo() time.Time
	// Decision reads one; [ErrNotFound] if there is none.
	Decision(id string) (Decision, error)
	// LockDecision locks the owner's root, then reads the decision.
	LockDecision(id string) (Decision, error)
	// DecisionByKey reads the owner's question with that idempotency key; [ErrNotFound].
	DecisionByKey(owner Ref, key string) (Decision, error)
	// Decisions lists, newest first.
	Decisions(q Query) ([]Decision, error)
	// Queue reads a page of what waits for people.
	Queue(q Queued) (QueuePage, error)
	// QueueCounts counts what waits by its sort, in the order of type, owner, kind and tool.
	QueueCounts(space string) ([]QueueCount, error)
	// LastApproved reads the newest approval with a yes for a call of the tool that was asked
	// for before the one with the id before (empty: of all), leaving out those of kind
	// [KindInterrupted]; [ErrNotFound].
	LastApproved(space, tool, before string) (Decision, error)
	// SettledDecisions lists what does not wait any more.
	SettledDecisions(q Settled) ([]Decision, error)
	// Due lists open decisions whose deadline lies before now, oldest first, without the
	// first skip. limit is 1 to 1,000; 0 means 100.
	Due(now time.Time, skip, limit int) ([]Decision, error)
	// InsertDecision writes a new one and its events to the owner's stream.
	InsertDecision(d Decision, es ...event.Event) error
	// PutDecision writes a change: guarded by the status, digest and version of
	// prev, and by all of [Decision.Same] where this transaction has not read prev
	// itself; [ErrMoved] when another writer won.
	PutDecision(prev Decision, ch Change) error
	// Pending counts pending approvals of the space. In a write transaction with a limit
	// above 0 the figure only tells whether there is room: what is asked is held against
	// limit again where it is written, and the closure is run again if there is none.
	Pending(space string, limit int64) (int64, error)
	// Owner binds what waits to this transaction.
	Owner(r Ref) (Owner, error)
}

// Owner is what waits on a decision. Each noun that can wait implements it.
type Owner interface {
	// Waiting: nil while the owner still waits for exactly this decision and it
	// is the latest; else an error matching [ErrRunState].
	Waiting(d Decision) error
	// Settled writes what the settling of d does to the owner, in this transaction.
	Settled(d Decision, now time.Time) error
	// Cancel ends the owner on an operator's word; [ErrRunState] if it has ended.
	// The clock is asked once the owner is locked (design §4, rule 8).
	Cancel(by, note string, clock func() time.Time) error
}

// Asker is an owner that asks questions: it says whether it may, and counts them.
type Asker interface {
	Owner
	// MayAsk locks the owner; [ErrNotFound] where it is of another space. An earlier
	// question's key is looked up and the clock asked after it (design §4, rule 8).
	MayAsk(space string) error
	// Asking: nil where one more question may be asked; [ErrRunState] where the owner
	// has ended, [ErrTooManyPending] at its limits. It is counted in this transaction,
	// and n is its number.
	Asking(now time.Time) (n int64, err error)
}

// Query selects decisions, newest first.
type Query struct {
	Space  string
	Type   Type
	Status Status // empty: all
	Open   bool   // only those an answer can still change
	Owner  Ref    // what waits on them; zero: anything
	RunID  string
	CallID string
	StepID string
	JobID  string
	After  string // id of the last one seen
	Limit  int    // 1 to 500; 0 means 50
	Prefix string // of the id
}

// Settled selects what does not wait any more: what was decided, and what nobody decided in
// time or was taken back. What stopped waiting last comes first.
type Settled struct {
	Space string
	After SettledPlace // it begins behind that; zero: with the first
	Limit int          // 1 to 500; 0 means 50
}

// SettledPlace is a place in that order: behind one decision.
type SettledPlace struct {
	At time.Time // when it stopped waiting
	ID string
}

// IsZero reports whether it is before the first.
func (p SettledPlace) IsZero() bool { return p.ID == "" }

// BehindSettled is the place behind a decision that does not wait any more.
func (d Decision) BehindSettled() SettledPlace { return SettledPlace{d.SettledAt, d.ID} }
