package event

import (
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Version is the envelope's version, part of every hash.
const Version = 1

// MainSpace is the tenant where none is named.
const MainSpace = "main"

// Type names what happened. The lifecycle types are those of spec 4.5.
type Type string

// Types of calls and of the approvals that hang below them.
const (
	CallCreated        Type = "call.created"
	CallStarted        Type = "call.started"
	CallFinished       Type = "call.finished"
	CallUnknown        Type = "call.unknown"
	CallCancelled      Type = "call.cancelled"
	ApprovalRequested  Type = "approval.requested"
	ApprovalDecided    Type = "approval.decided"
	ApprovalExpired    Type = "approval.expired"
	ApprovalWithdrawn  Type = "approval.withdrawn"
	ApprovalSuperseded Type = "approval.superseded"
	ApprovalConsumed   Type = "approval.consumed" // a denial was returned; a spent grant shows in call.started
	ResumeRefused      Type = "resume.refused"
	EventRedacted      Type = "event.redacted"
)

// Types of a job's questions (spec 4.5).
const (
	DecisionRequested Type = "decision_requested"
	DecisionResolved  Type = "decision_resolved"
	DecisionWithdrawn Type = "decision_withdrawn"
	DecisionExpired   Type = "decision_expired"
)

// Types of runs, their steps and their flows (spec 4.5).
const (
	RunCreated       Type = "run.created"
	RunStarted       Type = "run.started"
	RunResumed       Type = "run.resumed"
	RunFinished      Type = "run.finished"
	StepStarted      Type = "step.started"
	StepDecided      Type = "step.decided"
	StepPolicy       Type = "step.policy"
	StepToolStarted  Type = "step.tool_started"
	StepToolFinished Type = "step.tool_finished"
	StepFailed       Type = "step.failed"
	StepInterrupted  Type = "step.interrupted"
	LimitExceeded    Type = "limit.exceeded"
	LoopDetected     Type = "loop.detected"
	LeaseTakenOver   Type = "lease.taken_over"
)

// Types of jobs (spec 4.5). What a job prints is only ever a JobOutput: the type that
// it names is data.
const (
	JobQueued        Type = "queued"
	JobStarted       Type = "started"
	JobCompleted     Type = "completed"
	JobFailed        Type = "failed"
	JobTimeout       Type = "timeout"
	JobCancelled     Type = "cancelled"
	JobOrphaned      Type = "orphaned"
	JobPaused        Type = "paused"
	JobUnpaused      Type = "unpaused"
	JobOutput        Type = "job.output"
	LogTruncated     Type = "log_truncated"
	LogCaptureFailed Type = "log_capture_failed"
	OutputDropped    Type = "output_dropped"
)

// Event is one entry. Nouns fill in Type, Subject, Actor and Payload; the store
// fills in the rest when it appends.
type Event struct {
	V         int64 // the envelope's version
	Seq       int64 // the store's own number
	Pos       int64 // public order over all streams, dense; 0 while not yet given
	ID        string
	Space     string
	Stream    string
	StreamSeq int64 // 1 for a stream's first
	At        time.Time
	Type      Type
	Subject   string          // id of what changed
	Actor     string          // who did it: a label, or "system"
	Payload   json.RawMessage // a JSON object; nil when redacted
	Redacted  bool            // the body was emptied; its hash still stands

	Salt     []byte // 16 random bytes; nil when redacted
	BodyHash []byte
	PrevHash []byte // 32 zero bytes for a stream's first
	Hash     []byte
}

// System is the actor of what no person did.
const System = "system"

// New is an event to append. The payload is our own value; one that does not encode panics.
func New(t Type, subject, actor string, payload any) Event {
	b, err := json.Marshal(payload)
	if err != nil {
		panic("event: payload of " + string(t) + ": " + err.Error())
	}
	return Event{Type: t, Subject: subject, Actor: actor, Payload: b}
}

// Head is where a stream ends.
type Head struct {
	Stream string
	Seq    int64  // stream_seq of the last event; 0 for an empty stream
	Hash   []byte // its hash; nil for an empty stream
}

// Query selects events, oldest first unless asked otherwise.
type Query struct {
	Stream  string // one stream by stream_seq; empty: all streams by pos
	After   int64  // stream_seq, or pos for all streams
	Newest  bool   // newest first: those below After; all where it is 0
	Types   []Type // empty: all
	Subject string // empty: all
	Limit   int    // 1 to 1,000; 0 means 100
}

// Tx is what the log needs of a transaction.
type Tx interface {
	txn.Tx
	// Epoch is which life of the store this is; it rises when the store goes back in time.
	Epoch() int64
	// Append chains events to the end of a stream and writes them. The stream's
	// root has to exist: [ErrNoStream].
	Append(stream string, es ...Event) error
	// Appended lists what this closure appended so far, sealed.
	Appended() []Event
	Events(q Query) ([]Event, error)
	// Heads lists streams by name, after the given one, from their roots' rows.
	Heads(after string, limit int) ([]Head, error)
	// LastPos is the position of the last event over all streams; 0 for an empty log.
	LastPos() (int64, error)
	// Head is one stream's head. [ErrNoStream] when it has no root.
	Head(stream string) (Head, error)
	// Tombstone is where a stream ended that was cleaned up; found is false if it was not.
	Tombstone(stream string) (h Head, found bool, err error)
	// Redact empties one body. It reports whether it was there and not yet empty.
	Redact(stream string, streamSeq int64) (bool, error)
}

// Observer hears of each event after its commit, from several goroutines at once. It is
// foreign code: it runs outside every transaction, and a panic of its is dropped.
type Observer interface {
	Observe(Event)
}

// ObserverFunc lets a function be an Observer.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// Errors of this package.
var (
	ErrNoStream  = fault.Sentinel(fault.NotFound, "not_found", "There is no such stream.")
	ErrCursor    = fault.Sentinel(fault.Invalid, "unknown_cursor", "This cursor is not one of this stream's.")
	ErrNoEvent   = fault.Sentinel(fault.NotFound, "not_found", "There is no such event.")
	ErrUsage     = fault.Sentinel(fault.Invalid, "usage", "This cannot be asked for in this way.")
	ErrBadStream = fault.Sentinel(fault.Invalid, "usage", "A stream is run:ID, call:ID or job:ID.")
)
