// Package problem is how an error goes over HTTP (RFC 9457) and comes back as the error
// that it was.
package problem

import (
	"encoding/json"
	"net/http"

	"github.com/placet-dev/placet/fault"
)

// statuses is the one table from the class of an error to its HTTP status.
var statuses = map[fault.Code]int{
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Closed:          http.StatusConflict,
	fault.Expired:         http.StatusGone,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.TooMany:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Unknown:         http.StatusServiceUnavailable,
	fault.Internal:        http.StatusInternalServerError,
}

// narrower are reasons whose status says more than their class does.
var narrower = map[string]int{
	"invalid_arguments":      http.StatusUnprocessableEntity,
	"not_offered":            http.StatusUnprocessableEntity,
	"method_not_allowed":     http.StatusMethodNotAllowed,
	"unsupported_media_type": http.StatusUnsupportedMediaType,
	"request_timeout":        http.StatusRequestTimeout,
	"home_unreachable":       http.StatusBadGateway,
}

// Status is the HTTP status of an error (spec 4.6).
func Status(err error) int {
	f := fault.From(err)
	if s, ok := narrower[f.Reason]; ok {
		return s
	}
	if s, ok := statuses[f.Code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Answer is what the API answered, or the error that its problem was made of; err says
// that there was no answer.
func Answer(status int, answer []byte, err error) ([]byte, error) {
	if err == nil && status >= http.StatusMultipleChoices {
		err = Read(status, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Read is the error that a problem was made of. An answer without a reason is an internal one.
func Read(status int, body []byte) *fault.Error {
	var p struct {
		Code    fault.Code      `json:"code"`
		Reason  string          `json:"reason"`
		Detail  string          `json:"detail"`
		Hint    string          `json:"hint"`
		Details json.RawMessage `json:"details"`
	}
	if json.Unmarshal(body, &p) != nil || p.Reason == "" {
		return fault.New(fault.Internal, "The daemon answered with HTTP %d and no reason.", status)
	}
	return &fault.Error{Code: p.Code, Reason: p.Reason, Message: p.Detail, Advice: p.Hint, Details: p.Details}
}
