package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Code is the class of an error: what a program does next depends on it alone.
type Code string

// The codes. HTTP status, MCP error and exit code each come from one table over them.
const (
	Invalid         Code = "invalid"         // the request itself is wrong; repeating it will not help
	NotFound        Code = "not_found"       // nothing has that id
	Conflict        Code = "conflict"        // the stored state does not allow it
	Closed          Code = "closed"          // it ended, and will not open again
	Expired         Code = "expired"         // a deadline passed
	Forbidden       Code = "forbidden"       // the identity is known and may not
	Unauthenticated Code = "unauthenticated" // no valid identity was given
	TooMany         Code = "too_many"        // a limit on a count is reached
	TooLarge        Code = "too_large"       // a limit on a size is passed
	Unavailable     Code = "unavailable"     // try again later; nothing was changed
	Unknown         Code = "unknown"         // it may or may not have happened
	Internal        Code = "internal"        // our fault
)

// Error is one refusal or failure. Values are immutable: Say, Hint, Because and
// With return copies, so a sentinel can be refined without being changed.
type Error struct {
	Code    Code            // class
	Reason  string          // stable name of the rule, snake_case; what errors.Is compares
	Message string          // one or more sentences for people
	Advice  string          // what to do about it; may be empty
	Details json.RawMessage // facts for programs, a JSON object; may be empty
	cause   error
}

// wire is the JSON form, spec 4.1.
type wire struct {
	Code    Code            `json:"code"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

var (
	parentsMu sync.RWMutex
	parents   = map[string]string{} // reason → the reason it stands under
)

// Sentinel declares an error of its own reason. It matches itself, every copy
// made from it, and every decoded error with the same reason. With under given,
// it matches that sentinel too.
//
// Call it only from package variables: the relation has to exist before the
// first error is decoded. A reason declared twice with different parents panics.
func Sentinel(code Code, reason, message string, under ...*Error) *Error {
	if len(under) > 0 {
		parentsMu.Lock()
		defer parentsMu.Unlock()
		if old, ok := parents[reason]; ok && old != under[0].Reason {
			panic("fault: reason " + reason + " is declared under both " + old + " and " + under[0].Reason)
		}
		parents[reason] = under[0].Reason
	}
	return &Error{Code: code, Reason: reason, Message: message}
}

// New is an error without a sentinel of its own; its reason is the code's word.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Reason: string(code), Message: fmt.Sprintf(format, args...)}
}

// Error is the message, followed by the advice where there is one.
func (e *Error) Error() string {
	s := e.Message
	if e.Advice != "" {
		s += " " + e.Advice
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Say returns a copy with another message.
func (e *Error) Say(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// Hint returns a copy that also says what to do.
func (e *Error) Hint(format string, args ...any) *Error {
	c := *e
	c.Advice = fmt.Sprintf(format, args...)
	return &c
}

// Because returns a copy that wraps cause. The cause is for logs and
// errors.Is in this process; it is not encoded.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// With returns a copy that carries facts for programs. They are encoded; v must
// encode as a JSON object, else With panics: it is our own value.
func (e *Error) With(v any) *Error {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fault: details of %s: %v", e.Reason, err))
	}
	c := *e
	c.Details = b
	return &c
}

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error of the same reason, or one that this reason stands under.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	if !ok || t.Reason == "" {
		return false
	}
	if e.Reason == t.Reason {
		return true
	}
	parentsMu.RLock()
	defer parentsMu.RUnlock()
	// A chain is as long as its declarations; the bound only guards against a cycle.
	for r, n := e.Reason, 0; n < 16; n++ {
		p, ok := parents[r]
		if !ok {
			return false
		}
		if p == t.Reason {
			return true
		}
		r = p
	}
	return false
}

// MarshalJSON writes {"code","reason","message","hint","details"}; empty ones are left out.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{e.Code, e.Reason, e.Message, e.Advice, e.Details})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Error) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("decode error object: %w", err)
	}
	*e = Error{Code: w.Code, Reason: w.Reason, Message: w.Message, Advice: w.Hint, Details: w.Details}
	return nil
}

// From finds the first Error in err's tree, or makes one of code internal that
// shows a neutral sentence and keeps err as its cause: foreign texts do not leak.
// From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Sentinel(Internal, "internal", "Something failed inside Placet.").Because(err)
}
