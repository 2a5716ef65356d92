package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
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

// DefaultLimits are those of spec 1.1: 50 steps, 3 failures in a row, 3 repeats.
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

// Cost is an amount of money in millionths of whatever unit the agent counts in. As
// JSON it is a decimal number of that unit with at most six decimals.
type Cost int64

const costUnit = 1_000_000

// String is the decimal number, without needless zeros.
func (c Cost) String() string {
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%s%d.%06d", sign, n/costUnit, n%costUnit)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// MarshalJSON writes the decimal number.
func (c Cost) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a decimal number exactly; more than six decimals or an
// exponent are refused.
func (c *Cost) UnmarshalJSON(b []byte) error {
	whole, part, _ := strings.Cut(string(bytes.TrimSpace(b)), ".")
	if len(part) > 6 {
		return fmt.Errorf("the cost %s has more than six decimals", b)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("the cost %s is too large to be counted", b)
	case err != nil || !json.Valid(b):
		return fmt.Errorf("%s is no cost; write a decimal number such as 2.5", b)
	}
	*c = Cost(n)
	return nil
}
