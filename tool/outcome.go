package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/placet-dev/placet/canon"
)

// OutcomeStatus is how one attempt ended (spec 2.3).
type OutcomeStatus string

// How an attempt may end.
const (
	Succeeded OutcomeStatus = "succeeded" // it had its effect, and Result is what it returned
	Failed    OutcomeStatus = "failed"    // it says that it failed, or had no effect; Kind says how
	Unknown   OutcomeStatus = "unknown"   // it may or may not have had its effect
)

// Kinds of a failed or unknown outcome (spec 2.2).
const (
	KindToolError      = "tool_error"      // the tool returned an error, or a read_only one no usable result
	KindToolTimeout    = "tool_timeout"    // a harmless tool passed its time limit
	KindToolPanic      = "tool_panic"      // a harmless tool panicked
	KindNotStarted     = "not_started"     // nothing was begun
	KindUnknownOutcome = "unknown_outcome" // of Unknown
)

// Outcome is what became of one attempt.
type Outcome struct {
	Status  OutcomeStatus   `json:"status"`
	Kind    string          `json:"kind,omitempty"`    // empty if succeeded
	Result  json.RawMessage `json:"result,omitempty"`  // of succeeded: one JSON value of at most MaxResult bytes
	Message string          `json:"message,omitempty"` // of the others: valid UTF-8, at most 4 KiB

	// Abort: of failed, the tool asks that an agent's run ends here ([ErrAbort]).
	Abort bool `json:"-"`
	// Running: the tool was given up but has not ended; late will be called.
	Running bool `json:"-"`
	// Stack is where a panic happened, for logs. It is not for models or reviewers.
	Stack string `json:"-"`
}

// OutcomeOf is the outcome of an attempt that somebody else carried out and that
// ended as [Runner.Run] would have returned.
func (t *Tool) OutcomeOf(result json.RawMessage, err error) Outcome {
	if err != nil {
		return t.ofError(err, nil)
	}
	return t.ofResult(result)
}

func notStarted(msg string) Outcome {
	return Outcome{Status: Failed, Kind: KindNotStarted, Message: message(msg)}
}

// unsure is the outcome of an attempt that ended without telling: unknown, or, where
// a repeat does no harm, failed with kind (spec 1.1).
func (t *Tool) unsure(kind, msg string) Outcome {
	o := Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: message(msg)}
	if t.SideEffect == ReadOnly || t.CancelSafe {
		o.Status, o.Kind = Failed, kind
	}
	return o
}

// unusable is the outcome of a tool that ended by itself with something that is no
// result. It was neither killed nor timed out nor did it panic, so what
// [Tool.CancelSafe] promises does not cover it: it may have had its effect.
func (t *Tool) unusable(msg string) Outcome {
	o := Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: message(msg)}
	if t.SideEffect == ReadOnly {
		o.Status, o.Kind = Failed, KindToolError
	}
	return o
}

// errEnded is the cause of an [ErrOutcomeUnknown] whose tool ended by itself: it was
// not killed, and no connection to it was lost.
var errEnded = errors.New("the tool ended by itself")

// endedAs is a refusal that has how the tool ended, and says nothing of it.
type endedAs struct {
	error
	how error
}

func (e endedAs) Unwrap() []error { return []error{e.error, e.how} }

// ofError sorts an error that the tool returned. ended is why its context had ended
// by then, nil if it had not: after that an error proves nothing, since it may only
// be the end of the context in other words.
func (t *Tool) ofError(err, ended error) Outcome {
	switch {
	case errors.Is(err, ErrNotStarted):
		return notStarted(err.Error())
	case errors.Is(err, ErrOutcomeUnknown):
		if errors.Is(err, errEnded) {
			return t.unusable(err.Error())
		}
		return t.unsure(KindToolError, err.Error())
	case ended != nil:
		o := t.cutOff(ended)
		o.Message = message(o.Message + " It returned: " + err.Error())
		return o
	}
	return Outcome{Status: Failed, Kind: KindToolError, Message: message(err.Error()), Abort: errors.Is(err, ErrAbort)}
}

// ofResult checks what a tool returned as its result.
func (t *Tool) ofResult(result []byte) Outcome {
	value, err := oneValue(result)
	if err != nil {
		return t.unusable("The tool ended without an error, but " + err.Error() + ".")
	}
	return Outcome{Status: Succeeded, Result: bytes.Clone(value)}
}

// oneValue is out without the white space around it, if that is exactly one JSON
// value of at most MaxResult bytes. The error completes "…, but".
func oneValue(out []byte) (json.RawMessage, error) {
	out = bytes.Trim(out, " \t\r\n")
	if len(out) > MaxResult {
		return nil, fmt.Errorf("its result has more than %d bytes", MaxResult)
	}
	if len(out) == 0 {
		return nil, errors.New("it gave no result where one JSON value was expected")
	}
	if err := canon.Valid(out); err != nil {
		return nil, fmt.Errorf("its result is not exactly one JSON value: %s", short(err.Error()))
	}
	return out, nil
}
