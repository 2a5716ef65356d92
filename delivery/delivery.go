package delivery

import (
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Status is where a delivery stands.
type Status string

// The statuses. Delivered and dropped are final; a dead one may be tried again by a
// person.
const (
	Pending     Status = "pending"     // not tried yet, or given back unsent
	Dispatching Status = "dispatching" // an attempt is being made under a lease
	Retrying    Status = "retrying"    // an attempt failed, another follows
	Delivered   Status = "delivered"   // it arrived
	Dead        Status = "dead"        // given up
	Dropped     Status = "dropped"     // given up because nobody needs it any more; it may have been tried
)

// Statuses lists all of them.
func Statuses() []Status {
	return []Status{Pending, Dispatching, Retrying, Delivered, Dead, Dropped}
}

// Open reports whether it may still be sent.
func (s Status) Open() bool { return s == Pending || s == Dispatching || s == Retrying }

// Delivery is one event for one target.
type Delivery struct {
	ID        string
	Space     string
	TargetID  string
	Pushed    bool  // a dispatcher carries it out; else its target fetches it
	Ordered   bool  // it waits for the earlier ones of its target and stream
	EventSeq  int64 // of the event in its store
	Stream    string
	StreamSeq int64 // of the event
	EventType event.Type
	Subject   string // the event's

	Status   Status
	Attempts int64 // that were spent
	// Due is when it may be claimed; zero while it may not: it has ended, is being
	// sent, or waits for an earlier one of its target and stream.
	Due        time.Time
	Message    string // why it is retrying, dead or dropped
	OutOfOrder bool   // a person tried it again: it waits for no earlier one

	Fence      int64 // number of the last claim
	Owner      string
	Token      []byte // hash of what the client that fetched it holds
	LeaseUntil time.Time
	Epoch      int64 // life of the store in which it was claimed

	CreatedAt time.Time
	GivesUpAt time.Time // what has not arrived then is dead
	Budget    int64     // attempts it had spent when a person last tried it again
	EndedAt   time.Time
	Version   int64
}

// AttemptOutcome says how an attempt ended.
type AttemptOutcome string

// The outcomes of attempts that no channel tells.
const (
	Reclaimed AttemptOutcome = "reclaimed" // its process was lost: whether it arrived is not known
	Released  AttemptOutcome = "released"  // its holder gave it back unsent
)

// Attempt is one try at bringing a delivery to its target. It is written before
// anything is sent.
type Attempt struct {
	DeliveryID string
	N          int64 // the claim's fence
	Owner      string
	StartedAt  time.Time
	EndedAt    time.Time
	Outcome    AttemptOutcome // empty while it is under way
	Status     int            // of the answer, or a program's exit status
	Message    string
}

// Query selects deliveries, newest first.
type Query struct {
	Space    string
	TargetID string
	Stream   string
	Status   Status
	After    string // id
	Prefix   string // of ids
	Limit    int    // 1 to 500; 0 means 50
	// Principal: only of targets that this one added.
	Principal string
}

// TargetQuery selects targets, newest first. Removed ones are not among them.
type TargetQuery struct {
	Space     string
	Stream    string
	Principal string
	Name      string
	Kind      Kind
	Global    bool // only those of every root
	After     string
	Prefix    string
	Limit     int // 1 to 500; 0 means 50
}

// AddTx is what adding a target needs of a transaction: other nouns add some with what
// they make.
type AddTx interface {
	txn.Tx
	// CountTargets counts those in use that hear of every root of the space, those of
	// the stream, and those of the root that has most.
	CountTargets(space, stream string) (global, ofStream, most int64, err error)
	InsertTarget(t Target) error
}

// Tx is what deliveries need of a transaction.
type Tx interface {
	event.Tx
	AddTx

	// Target reads one, also one that was removed. [ErrNotFound].
	Target(id string) (Target, error)
	Targets(q TargetQuery) ([]Target, error)
	// PutTarget is guarded by prev's version: [ErrMoved].
	PutTarget(prev, next Target) error
	// DropTarget deletes a removed target that nothing was ever for.
	DropTarget(id string) error

	// Delivery reads one. [ErrNotFound].
	Delivery(id string) (Delivery, error)
	Deliveries(q Query) ([]Delivery, error)
	DeliveryAttempts(deliveryID string) ([]Attempt, error)
	CountDeliveries(space string) (map[Status]int64, error)
	// PutDelivery writes a change, guarded by prev's version, status, fence and epoch; false:
	// another writer won, and nothing was written. Where a delivery has come to its end,
	// the next of its target and stream becomes due.
	PutDelivery(prev Delivery, ch Change) (won bool, err error)
	// PutDeliveries writes several, each as PutDelivery does: those that change alike in one
	// statement.
	PutDeliveries(prev []Delivery, chs []Change) (won []bool, err error)

	// DueTargets lists targets of which something pushed is due, by id after the given
	// one. It looks at so many at a time; at is where to go on, empty at the end. next is
	// when the first of the other targets looked at becomes due; zero: none will by itself.
	DueTargets(now time.Time, after string, limit int) (ids []string, at string, next time.Time, err error)
	// DueOf lists what of a target may be claimed, what has been due longest first.
	DueOf(t Target, now time.Time, limit int) ([]Delivery, error)
	// ClaimsEnded lists those whose lease has ended, without the first so many.
	ClaimsEnded(now time.Time, skip, limit int) ([]Delivery, error)
	// OfRemoved lists open ones that nobody has claimed and whose target was removed,
	// without the first so many.
	OfRemoved(skip, limit int) ([]Delivery, error)
	// AskingSettled lists, by id after the given one, open ones that nobody has claimed and
	// that ask for what is settled.
	AskingSettled(after string, limit int) ([]Delivery, error)
	// Overaged lists open ones that nobody has claimed and that are to be given up, without
	// the first so many.
	Overaged(now time.Time, skip, limit int) ([]Delivery, error)
	// EventsOf reads the event of each; nil: its root was cleaned up.
	EventsOf(ds []Delivery) ([]*event.Event, error)
	// Settled reports whether what an event asked people for is settled, or waited for by
	// nobody any more.
	Settled(subject string) (bool, error)
}

// Asks reports whether the delivery asks people for something that may be settled
// before it is sent.
func (d Delivery) Asks() bool {
	return d.EventType == event.ApprovalRequested || d.EventType == event.DecisionRequested
}

// DeliveryObject is a delivery as every door writes it.
type DeliveryObject struct {
	DeliveryID string     `json:"delivery_id"`
	TargetID   string     `json:"target_id"`
	Status     Status     `json:"status"`
	Stream     string     `json:"stream"`
	StreamSeq  int64      `json:"stream_seq"`
	Type       event.Type `json:"type"`
	Subject    string     `json:"subject,omitempty"`
	JobID      string     `json:"job_id,omitempty"`
	RunID      string     `json:"run_id,omitempty"`
	Attempts   int64      `json:"attempts"`
	Message    string     `json:"message,omitempty"`
	OutOfOrder bool       `json:"out_of_order,omitempty"`
	CreatedAt  string     `json:"created_at"`
	NextTryAt  string     `json:"next_try_at,omitempty"`
	LeaseUntil string     `json:"lease_until,omitempty"`
	EndedAt    string     `json:"ended_at,omitempty"`
}

// Object is the delivery as every door writes it.
func (d Delivery) Object() DeliveryObject {
	o := DeliveryObject{
		DeliveryID: d.ID, TargetID: d.TargetID, Status: d.Status, Stream: d.Stream, StreamSeq: d.StreamSeq, Type: d.EventType, Subject: d.Subject,
		Attempts: d.Attempts, Message: d.Message, OutOfOrder: d.OutOfOrder,
		CreatedAt: txn.Stamp(d.CreatedAt), NextTryAt: txn.Stamp(d.Due), LeaseUntil: txn.Stamp(d.LeaseUntil), EndedAt: txn.Stamp(d.EndedAt),
	}
	o.JobID, o.RunID = rootOf(d.Stream)
	return o
}

// AttemptObject is an attempt as every door writes it.
type AttemptObject struct {
	Attempt   int64          `json:"attempt"`
	StartedAt string         `json:"started_at"`
	EndedAt   string         `json:"ended_at,omitempty"`
	Outcome   AttemptOutcome `json:"outcome,omitempty"`
	Status    int            `json:"status,omitempty" doc:"of the answer, or a program's exit status"`
	Message   string         `json:"message,omitempty"`
	Owner     string         `json:"owner,omitempty" doc:"the process that made it"`
}

// Object is the attempt as every door writes it.
func (a Attempt) Object() AttemptObject {
	return AttemptObject{
		Attempt: a.N, StartedAt: txn.Stamp(a.StartedAt), EndedAt: txn.Stamp(a.EndedAt), Outcome: a.Outcome, Status: a.Status, Message: a.Message, Owner: a.Owner,
	}
}
