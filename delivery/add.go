package delivery

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Adding is what a target is made of. Absent values are those of the constants.
type Adding struct {
	Type              Kind              `json:"type"`
	Events            []string          `json:"events,omitempty" doc:"exact types, or output:NAME for what a job prints; the default tells of ends and of what people are asked"`
	Name              string            `json:"name,omitempty"`
	URL               string            `json:"url,omitempty" doc:"of a webhook"`
	Headers           map[string]string `json:"headers,omitempty" doc:"of a webhook: sent with each message, and shown to nobody"`
	Secret            string            `json:"secret,omitempty" doc:"of a webhook: whsec_ and base64; one is made where it is left out"`
	Command           []string          `json:"command,omitempty" doc:"program and arguments; the message comes on its standard input"`
	MaxAttempts       int64             `json:"max_attempts,omitempty" minimum:"1" maximum:"100" doc:"20 where it is left out"`
	RetryDelaySeconds float64           `json:"retry_delay_seconds,omitempty" minimum:"0.001" maximum:"3600" doc:"before the second attempt; later ones wait longer; 5 where it is left out"`
	TimeoutSeconds    float64           `json:"timeout_seconds,omitempty" minimum:"0.1" maximum:"60" doc:"of one attempt; 10 where it is left out"`
	MaxAgeSeconds     float64           `json:"max_age_seconds,omitempty" minimum:"1" maximum:"2592000" doc:"after it, what has not arrived is given up; 7 days where it is left out"`
	Unordered         bool              `json:"unordered,omitempty" doc:"a later event of a stream need not wait until an earlier one has arrived"`
}

// The events of a target that names none (spec 3.4).
var (
	usualOfJob = []string{
		string(event.JobCompleted), string(event.JobFailed), string(event.JobTimeout), string(event.JobCancelled), string(event.JobOrphaned), string(event.DecisionRequested),
	}
	usualOfAll = []string{string(event.ApprovalRequested), string(event.DecisionRequested), string(event.RunFinished)}
)

// Channels are the ways out, by kind.
type Channels map[Kind]Channel

// Target makes a target of what was asked for, to be inserted. stream is the one root
// that it hears of, empty for every root in the space. Errors: [ErrUsage].
func (cs Channels) Target(space, stream, principal string, a Adding) (Target, error) {
	t := Target{
		ID: id.New(id.Target), Space: space, Kind: a.Type, Stream: stream, Name: a.Name, Events: a.Events, Principal: principal,
		URL: a.URL, Headers: a.Headers, Command: a.Command, MaxAttempts: a.MaxAttempts,
		RetryDelay: seconds(a.RetryDelaySeconds, DefaultRetryDelay), Timeout: seconds(a.TimeoutSeconds, DefaultTimeout), MaxAge: seconds(a.MaxAgeSeconds, DefaultMaxAge),
		Unordered: a.Unordered, Version: 1,
	}
	if t.MaxAttempts == 0 {
		t.MaxAttempts = DefaultMaxAttempts
	}
	if a.Events == nil {
		t.Events = usualEvents(stream)
	}
	if err := t.check(); err != nil {
		return t, err
	}
	if err := t.setSecret(a.Secret); err != nil {
		return t, err
	}
	if t.Kind == KindRelay {
		return t, nil
	}
	c := cs[t.Kind]
	if c == nil {
		return t, ErrUsage.Say("There is no way here to reach a target of type %q.", t.Kind)
	}
	return t, c.Check(t)
}

func seconds(n float64, usual time.Duration) time.Duration {
	if n == 0 {
		return usual
	}
	return time.Duration(n * float64(time.Second)).Round(time.Microsecond)
}

func usualEvents(stream string) []string {
	if strings.HasPrefix(stream, jobStream) {
		return slices.Clone(usualOfJob)
	}
	return slices.Clone(usualOfAll)
}

// check looks at what is alike for every kind.
func (t *Target) check() error {
	if err := t.checkKind(); err != nil {
		return err
	}
	if err := t.checkEvents(); err != nil {
		return err
	}
	switch {
	case utf8.RuneCountInString(t.Name) > MaxName || !txn.IsText(t.Name):
		return ErrUsage.Say("The target's name is at most %d characters of text.", MaxName)
	case t.MaxAttempts < 1 || t.MaxAttempts > MaxMaxAttempts:
		return ErrUsage.Say("max_attempts is %d; it is from 1 to %d.", t.MaxAttempts, MaxMaxAttempts)
	case t.RetryDelay < time.Millisecond || t.RetryDelay > MaxRetryDelay:
		return ErrUsage.Say("The delay before the second attempt is %s; it is from 1 ms to %s.", t.RetryDelay, MaxRetryDelay)
	case t.Timeout < 100*time.Millisecond || t.Timeout > MaxTimeout:
		return ErrUsage.Say("The time for one attempt is %s; it is from 100 ms to %s.", t.Timeout, MaxTimeout)
	case t.MaxAge < time.Second || t.MaxAge > MaxMaxAge:
		return ErrUsage.Say("What has not arrived is given up after %s; that is from 1 s to %s.", t.MaxAge, MaxMaxAge)
	}
	if b, err := json.Marshal(t); err != nil || len(b) > MaxSpec {
		return ErrUsage.Say("The target has %d bytes; the limit is %d.", len(b), MaxSpec)
	}
	return nil
}

func (t *Target) checkKind() error {
	switch t.Kind {
	case KindWebhook, KindCommand, KindRelay:
	case "slack", "email":
		return ErrUsage.Say("Targets of type %s come later.", t.Kind).Hint("Use a webhook until then.")
	case "":
		return ErrUsage.Say("The target has no type.").Hint("It is webhook, command or relay.")
	default:
		return ErrUsage.Say("There is no type of target %q.", cut(string(t.Kind), 40)).Hint("It is webhook, command or relay.")
	}
	switch {
	case t.Kind != KindWebhook && (t.URL != "" || t.Headers != nil):
		return ErrUsage.Say("A target of type %s has no URL and no headers.", t.Kind)
	case t.Kind != KindCommand && t.Command != nil:
		return ErrUsage.Say("A target of type %s has no command.", t.Kind)
	case t.Kind == KindWebhook && t.URL == "":
		return ErrUsage.Say("The webhook has no URL.").Hint("Write it like https://example.com/hook.")
	case t.Kind == KindCommand && len(t.Command) == 0:
		return ErrUsage.Say("The target has no command.").Hint(`Write it like ["notify-send","Placet"].`)
	case len(t.Command) > MaxCommand:
		return ErrUsage.Say("The command has %d words; the limit is %d.", len(t.Command), MaxCommand)
	}
	return nil
}

// checkEvents refuses words that no event has which the target could hear of.
func (t *Target) checkEvents() error {
	if len(t.Events) == 0 || len(t.Events) > MaxEvents {
		return ErrUsage.Say("The target names %d types of events; it is from 1 to %d.", len(t.Events), MaxEvents)
	}
	known := event.Types()
	prints := true
	switch {
	case strings.HasPrefix(t.Stream, jobStream):
		known = event.JobTypes()
	case strings.HasPrefix(t.Stream, runStream):
		known, prints = event.RunTypes(), false
	}
	var kept []string
	for _, word := range t.Events {
		if name, ok := event.OutputName(word); !(ok && prints && len(name) < event.MaxOutputName) && !slices.Contains(known, event.Type(word)) {
			return ErrUsage.Say("No event that this target could hear of is of type %q.", cut(word, 80)).
				Hint("Write a type as the events' list shows it, such as %s, or output:NAME for what a job prints.", usualEvents(t.Stream)[0])
		}
		if !slices.Contains(kept, word) {
			kept = append(kept, word)
		}
	}
	t.Events = kept
	return nil
}

func (t *Target) setSecret(text string) (err error) {
	switch {
	case t.Kind != KindWebhook && text != "":
		return ErrUsage.Say("A target of type %s has no secret.", t.Kind)
	case t.Kind == KindWebhook && text == "":
		t.Secret = NewSecret()
	case t.Kind == KindWebhook:
		t.Secret, err = ParseSecret(text)
	}
	return err
}

// Add inserts a target, unless too many would hear of one event: [ErrTooManyTargets].
// It is run in the transaction that the target belongs to; whoever calls it has looked
// that the root is there and goes on.
func Add(tx AddTx, t *Target) error {
	if err := fits(tx, *t); err != nil {
		return err
	}
	t.CreatedAt = tx.Now()
	return tx.InsertTarget(*t)
}

// fits refuses one target more than may hear of one event. t is not in use yet.
func fits(tx AddTx, t Target) error {
	global, ofStream, most, err := tx.CountTargets(t.Space, t.Stream)
	if err != nil {
		return err
	}
	n := global + ofStream
	if t.Stream == "" {
		n = global + most
	}
	if n >= MaxTargets {
		return ErrTooManyTargets.Say("%d targets hear of these events already; the limit is %d.", n, MaxTargets).
			Hint("Remove one: placet wake list, placet wake remove TARGET.")
	}
	return nil
}

// Word is what a target has to name to hear of the event: its type, or output:NAME for
// what a job prints; empty: no target can. A lifecycle type is never the word of what is
// printed.
func Word(e *event.Event) string {
	if e.Type != event.JobOutput {
		return string(e.Type)
	}
	name, ok := e.Printed()
	if !ok || name == "" {
		return ""
	}
	return event.OutputPrefix + name
}

// Wants reports whether the target hears of an event with this word.
func (t Target) Wants(word string) bool { return word != "" && slices.Contains(t.Events, word) }

func cut(s string, n int) string {
	s = txn.AsText(s)
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
