package delivery

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/txn"
)

// Kind is how a target is reached.
type Kind string

// The kinds. The later ones are refused with a sentence.
const (
	KindWebhook Kind = "webhook" // a POST to a URL
	KindCommand Kind = "command" // a program that gets the message on its standard input
	KindRelay   Kind = "relay"   // a client that polls and acknowledges
)

// Limits and defaults of targets.
const (
	MaxTargets         = 100 // that hear of one event
	MaxEvents          = 50
	MaxName            = 200
	MaxURL             = 2048
	MaxCommand         = 100      // arguments
	MaxSpec            = 64 << 10 // bytes in all
	MaxHeaders         = 20       // of a webhook
	MaxMaxAttempts     = 100      // attempts of one delivery
	DefaultMaxAttempts = 20       //
	DefaultRetryDelay  = 5 * time.Second
	MaxRetryDelay      = time.Hour // of the first; later ones grow from it
	LongestRetryDelay  = 6 * time.Hour
	DefaultTimeout     = 10 * time.Second
	MaxTimeout         = time.Minute
	DefaultMaxAge      = 7 * 24 * time.Hour
	MaxMaxAge          = 30 * 24 * time.Hour
	RotationOverlap    = 24 * time.Hour // in which both secrets sign
)

// Target says who wants to hear of which events, and how they are reached.
type Target struct {
	ID        string
	Space     string
	Kind      Kind
	Stream    string   // of the one root it hears of; empty: of every root in the space
	Name      string   // of people, or a relay's own word for itself
	Events    []string // exact types, or output:NAME for what a job prints
	Principal string   // who added it, as proved

	URL     string            // webhook
	Headers map[string]string // webhook: sent with each message and shown to nobody
	Command []string          // command: program and arguments
	Secret  []byte            // webhook: its messages are signed with it
	// OldSecret was the secret before it was rotated. Messages are signed with both
	// until OldUntil.
	OldSecret []byte
	OldUntil  time.Time

	MaxAttempts int64
	RetryDelay  time.Duration // before the second attempt
	Timeout     time.Duration // of one attempt
	MaxAge      time.Duration // of a delivery that has not arrived
	Unordered   bool          // a later event of a stream need not wait for an earlier one

	CreatedAt  time.Time
	DisabledAt time.Time // zero: it is in use
	Disabled   string    // why
	RemovedAt  time.Time // zero: it is there
	Version    int64
}

// InUse reports whether events are still matched with it.
func (t Target) InUse() bool { return t.DisabledAt.IsZero() && t.RemovedAt.IsZero() }

// Pushed reports whether a dispatcher carries its messages out, rather than that it
// fetches them.
func (t Target) Pushed() bool { return t.Kind != KindRelay }

// Signing are the secrets with which a message is signed now, the newest first.
func (t Target) Signing(now time.Time) [][]byte {
	if t.OldSecret != nil && now.Before(t.OldUntil) {
		return [][]byte{t.Secret, t.OldSecret}
	}
	return [][]byte{t.Secret}
}

// Object is a target as every door writes it (spec 3.5), without what is secret.
type Object struct {
	TargetID          string   `json:"target_id"`
	Type              Kind     `json:"type"`
	JobID             string   `json:"job_id,omitempty"`
	RunID             string   `json:"run_id,omitempty"`
	Name              string   `json:"name,omitempty"`
	Events            []string `json:"events"`
	URL               string   `json:"url,omitempty"`
	Headers           []string `json:"headers,omitempty" doc:"names of those that are sent; the values are shown to nobody"`
	Command           []string `json:"command,omitempty"`
	OldSecretUntil    string   `json:"old_secret_until,omitempty" doc:"until when the secret before the present one signs too"`
	Secret            string   `json:"secret,omitempty" doc:"a webhook's, in the answer that made it and in no other"`
	MaxAttempts       int64    `json:"max_attempts"`
	RetryDelaySeconds float64  `json:"retry_delay_seconds"`
	TimeoutSeconds    float64  `json:"timeout_seconds"`
	MaxAgeSeconds     float64  `json:"max_age_seconds"`
	Unordered         bool     `json:"unordered,omitempty"`
	Status            string   `json:"status" enum:"in_use,disabled,removed"`
	Disabled          string   `json:"disabled,omitempty" doc:"why it is"`
	Principal         string   `json:"principal,omitempty"`
	CreatedAt         string   `json:"created_at"`
}

// Object is the target as every door writes it.
func (t Target) Object() Object {
	o := Object{
		TargetID: t.ID, Type: t.Kind, Name: t.Name, Events: t.Events, URL: t.URL, Command: t.Command, Headers: t.headerNames(),
		MaxAttempts: t.MaxAttempts, RetryDelaySeconds: t.RetryDelay.Seconds(), TimeoutSeconds: t.Timeout.Seconds(), MaxAgeSeconds: t.MaxAge.Seconds(),
		Unordered: t.Unordered, OldSecretUntil: txn.Stamp(t.OldUntil), Status: "in_use", Disabled: t.Disabled, Principal: t.Principal, CreatedAt: txn.Stamp(t.CreatedAt),
	}
	if !t.DisabledAt.IsZero() {
		o.Status = "disabled"
	}
	if !t.RemovedAt.IsZero() {
		o.Status = "removed"
	}
	o.JobID, o.RunID = rootOf(t.Stream)
	return o
}

func (t Target) headerNames() []string {
	return slices.Sorted(maps.Keys(t.Headers))
}

const (
	jobStream = "job:"
	runStream = "run:"
)

// rootOf is the job or the run that a stream is of.
func rootOf(stream string) (jobID, runID string) {
	if id, ok := strings.CutPrefix(stream, jobStream); ok {
		return id, ""
	}
	if id, ok := strings.CutPrefix(stream, runStream); ok {
		return "", id
	}
	return "", ""
}
