package delivery

import (
	"context"
	"time"
)

// Channel is one way out. It is safe for concurrent use and knows nothing of the store.
type Channel interface {
	// Check refuses a target that this channel can never reach: [ErrUsage], with what
	// to write. It looks at what the target says and opens no connection.
	Check(t Target) error
	// Send makes one attempt. It returns by the end of ctx, and does nothing for the
	// attempt after that.
	Send(ctx context.Context, m Message) Outcome
}

// Message is what one attempt carries out.
type Message struct {
	DeliveryID string    // the same in every attempt: the receiver's key
	Attempt    int64     // 1 for the first
	At         time.Time // when this attempt was made
	Target     Target
	Type       string // of the event
	Body       []byte // CloudEvents 1.0, structured JSON; the same in every attempt, unless the event was redacted meanwhile
}

// ContentType is that of every message's body.
const ContentType = "application/cloudevents+json; charset=utf-8"

// Result says what became of an attempt.
type Result string

// The results of an attempt that was made.
const (
	Arrived Result = "delivered" // the receiver has it
	Failed  Result = "failed"    // it may work another time
	Refused Result = "refused"   // it can never work: the delivery is dead
	Gone    Result = "gone"      // the receiver wants nothing any more: the target is disabled too
	NotSent Result = "not_sent"  // nothing left this process; no attempt is spent
)

// Outcome is how an attempt ended.
type Outcome struct {
	Result Result
	// RetryAfter is how long the receiver asks to be left alone; 0: it does not say.
	RetryAfter time.Duration
	Status     int    // of the answer, or a program's exit status; 0: there was none
	Message    string // what went wrong, for people; at most MaxMessage bytes are kept
}

// MaxMessage bounds what is kept of an outcome's message, in bytes.
const MaxMessage = 1000
