package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/placet-dev/placet/event"
)

// Limits bound a run. The first three have to be above 0; the others are off at 0.
type Limits struct {
	MaxSteps                   int64
	MaxConsecutiveToolFailures int64
	LoopThreshold              int64         // the same tool call so often in a row ends the run
	MaxActiveTime              time.Duration // working; waiting for people does not count
	MaxElapsedTime             time.Duration // since the start, waiting included
	MaxModelCalls              int64
	MaxTotalTokens             int64
	MaxEstimatedCost           Cost
	ApprovalTTL                time.Duration // how long a request may stay pending
	GrantTTL                   time.Duration // how old a yes may be when it is acted on
}

// DefaultLimits are 50 steps, 3 failures in a row, 3 repeats.
func DefaultLimits() Limits {
	return Limits{MaxSteps: 50, MaxConsecutiveToolFailures: 3, LoopThreshold: 3}
}

// Check is [ErrUsage] naming the first limit that cannot be kept.
func (l Limits) Check() error {
	for _, f := range l.fields() {
		switch {
		case f.required && f.value <= 0:
			return ErrUsage.Say("The limit %s is %d; it has to be above 0.", f.name, f.value).
				Hint("Start from run.DefaultLimits().")
		case f.value < 0:
			return ErrUsage.Say("The limit %s is negative.", f.name).Hint("0 means no limit.")
		}
	}
	return nil
}

type limitField struct {
	name     string
	value    int64
	required bool
}

func (l Limits) fields() []limitField {
	return []limitField{
		{"max_steps", l.MaxSteps, true},
		{"max_consecutive_tool_failures", l.MaxConsecutiveToolFailures, true},
		{"loop_threshold", l.LoopThreshold, true},
		{"max_active_time", int64(l.MaxActiveTime), false},
		{"max_elapsed_time", int64(l.MaxElapsedTime), false},
		{"max_model_calls", l.MaxModelCalls, false},
		{"max_total_tokens", l.MaxTotalTokens, false},
		{"max_estimated_cost", int64(l.MaxEstimatedCost), false},
		{"approval_ttl", int64(l.ApprovalTTL), false},
		{"grant_ttl", int64(l.GrantTTL), false},
	}
}

// limitsJSON is how limits are written: durations as in "1h30m", a cost as a
// decimal number, absent where off.
type limitsJSON struct {
	MaxSteps                   *int64    `json:"max_steps,omitempty"`
	MaxConsecutiveToolFailures *int64    `json:"max_consecutive_tool_failures,omitempty"`
	LoopThreshold              *int64    `json:"loop_threshold,omitempty"`
	MaxActiveTime              *duration `json:"max_active_time,omitempty"`
	MaxElapsedTime             *duration `json:"max_elapsed_time,omitempty"`
	MaxModelCalls              *int64    `json:"max_model_calls,omitempty"`
	MaxTotalTokens             *int64    `json:"max_total_tokens,omitempty"`
	MaxEstimatedCost           *Cost     `json:"max_estimated_cost,omitempty"`
	ApprovalTTL                *duration `json:"approval_ttl,omitempty"`
	GrantTTL                   *duration `json:"grant_ttl,omitempty"`
}

// MarshalJSON writes the limits that are on.
func (l Limits) MarshalJSON() ([]byte, error) {
	var w limitsJSON
	number := func(to **int64, v int64) {
		if v != 0 {
			*to = &v
		}
	}
	span := func(to **duration, v time.Duration) {
		if d := duration(v); d != 0 {
			*to = &d
		}
	}
	number(&w.MaxSteps, l.MaxSteps)
	number(&w.MaxConsecutiveToolFailures, l.MaxConsecutiveToolFailures)
	number(&w.LoopThreshold, l.LoopThreshold)
	span(&w.MaxActiveTime, l.MaxActiveTime)
	span(&w.MaxElapsedTime, l.MaxElapsedTime)
	number(&w.MaxModelCalls, l.MaxModelCalls)
	number(&w.MaxTotalTokens, l.MaxTotalTokens)
	if l.MaxEstimatedCost != 0 {
		w.MaxEstimatedCost = &l.MaxEstimatedCost
	}
	span(&w.ApprovalTTL, l.ApprovalTTL)
	span(&w.GrantTTL, l.GrantTTL)
	return json.Marshal(w)
}

// UnmarshalJSON changes those that are named; the others stay. Unknown and repeated
// names are refused.
func (l *Limits) UnmarshalJSON(b []byte) error {
	var w limitsJSON
	if err := jsonv2.Unmarshal(b, &w, jsonv2.RejectUnknownMembers(true)); err != nil {
		return ErrUsage.Say("The limits cannot be read.").Because(inJSON(err)).
			Hint(`Write a JSON object such as {"max_steps":20,"max_elapsed_time":"1h"}.`)
	}
	set(&l.MaxSteps, w.MaxSteps)
	set(&l.MaxConsecutiveToolFailures, w.MaxConsecutiveToolFailures)
	set(&l.LoopThreshold, w.LoopThreshold)
	set((*duration)(&l.MaxActiveTime), w.MaxActiveTime)
	set((*duration)(&l.MaxElapsedTime), w.MaxElapsedTime)
	set(&l.MaxModelCalls, w.MaxModelCalls)
	set(&l.MaxTotalTokens, w.MaxTotalTokens)
	set(&l.MaxEstimatedCost, w.MaxEstimatedCost)
	set((*duration)(&l.ApprovalTTL), w.ApprovalTTL)
	set((*duration)(&l.GrantTTL), w.GrantTTL)
	return nil
}

// inJSON is a decoder's error without the names of our types.
func inJSON(err error) error {
	var s *jsonv2.SemanticError
	switch {
	case !errors.As(err, &s):
		return err
	case s.Err != nil && s.JSONPointer == "":
		return s.Err
	case s.Err != nil:
		return fmt.Errorf("%s: %w", s.JSONPointer, s.Err)
	}
	return fmt.Errorf("a JSON %s does not belong at %s", s.JSONKind, quoted(string(s.JSONPointer)))
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

type duration time.Duration

func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (d *duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a time limit is written as in \"90s\" or \"1h30m\", not %s", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no time limit; write it as in \"90s\" or \"1h30m\"", s)
	}
	*d = duration(v)
	return nil
}

// exceeded is a limit that ends the run.
type exceeded struct {
	reason  Reason
	detail  string
	told    event.Type
	payload any
}

// timeLeft is how much of the run's time is left, and whether it is limited.
func (r Run) timeLeft(now time.Time) (left time.Duration, limited bool) {
	for _, l := range []struct{ most, used time.Duration }{
		{r.Limits.MaxActiveTime, r.ActiveAt(now)},
		{r.Limits.MaxElapsedTime, now.Sub(r.CreatedAt)},
	} {
		if rest := max(0, l.most-l.used); l.most > 0 && (!limited || rest < left) {
			left, limited = rest, true
		}
	}
	return left, limited
}

// exceeds is the first limit, in the order of spec 1.1, that lets no further step
// begin; nil: none.
func (r Run) exceeds(now time.Time) *exceeded {
	l := r.Limits
	over := func(reason Reason, limit, value, most any) *exceeded {
		return &exceeded{
			reason, fmt.Sprintf("The limit %s is %v, and the run has come to %v.", limit, most, value),
			event.LimitExceeded,
			limitPayload{fmt.Sprint(limit), fmt.Sprint(value), fmt.Sprint(most)},
		}
	}
	switch active, elapsed := r.ActiveAt(now), now.Sub(r.CreatedAt); {
	case r.StepCount >= l.MaxSteps:
		return over(LimitSteps, "max_steps", r.StepCount, l.MaxSteps)
	case r.Failures >= l.MaxConsecutiveToolFailures:
		return over(RepeatedFailures, "max_consecutive_tool_failures", r.Failures, l.MaxConsecutiveToolFailures)
	case l.MaxActiveTime > 0 && active > l.MaxActiveTime:
		return over(LimitActiveTime, "max_active_time", active, l.MaxActiveTime)
	case l.MaxElapsedTime > 0 && elapsed > l.MaxElapsedTime:
		return over(LimitElapsedTime, "max_elapsed_time", elapsed, l.MaxElapsedTime)
	case r.Repeats >= l.LoopThreshold:
		return &exceeded{
			LoopDetected, fmt.Sprintf("The tool %q was proposed with the same arguments %d times in a row.", r.Current.Tool, r.Repeats),
			event.LoopDetected,
			loopPayload{r.Current.Tool, r.Current.ArgsDigest, r.Repeats},
		}
	case l.MaxModelCalls > 0 && r.Usage.ModelCalls >= l.MaxModelCalls:
		return over(LimitModelCalls, "max_model_calls", r.Usage.ModelCalls, l.MaxModelCalls)
	case l.MaxTotalTokens > 0 && r.Usage.Tokens >= l.MaxTotalTokens:
		return over(LimitTokens, "max_total_tokens", r.Usage.Tokens, l.MaxTotalTokens)
	case l.MaxEstimatedCost > 0 && r.Usage.Cost >= l.MaxEstimatedCost:
		return over(LimitCost, "max_estimated_cost", r.Usage.Cost, l.MaxEstimatedCost)
	}
	return nil
}
