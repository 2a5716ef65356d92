package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/txn"
)

// Problem is an error as it goes over HTTP (RFC 9457). Reason is stable; programs
// compare it.
type Problem struct {
	Type    string          `json:"type" doc:"always about:blank: the reason says more"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail" doc:"a sentence for people"`
	Code    fault.Code      `json:"code" doc:"class of the error"`
	Reason  string          `json:"reason" doc:"stable name of the rule"`
	Hint    string          `json:"hint,omitempty" doc:"what to do about it"`
	Details json.RawMessage `json:"details,omitempty" doc:"facts for programs"`
}

// Errors of this door.
var (
	ErrMalformed   = fault.Sentinel(fault.Invalid, "malformed", "The request cannot be understood.")
	ErrNoRoute     = fault.Sentinel(fault.NotFound, "no_route", "There is nothing at this path.")
	ErrMethod      = fault.Sentinel(fault.Invalid, "method_not_allowed", "This path does not take that method.")
	ErrMedia       = fault.Sentinel(fault.Invalid, "unsupported_media_type", "The body is not JSON.")
	ErrTooLarge    = fault.Sentinel(fault.TooLarge, "body_too_large", "The body is too large.")
	ErrSlow        = fault.Sentinel(fault.Invalid, "request_timeout", "The body did not come in time.")
	ErrHost        = fault.Sentinel(fault.Forbidden, "unknown_host", "This server does not go by that name.")
	ErrCrossSite   = fault.Sentinel(fault.Forbidden, "cross_site", "Requests from other sites are refused.")
	ErrScope       = fault.Sentinel(fault.Forbidden, "forbidden", "This token may not do that.")
	ErrShutdown    = fault.Sentinel(fault.Unavailable, "shutdown", "The server is shutting down.")
	errClientGone  = fault.Sentinel(fault.Unavailable, "client_gone", "The client hung up.")
	errUnreachable = fault.Sentinel(fault.Unavailable, "unreachable", "The daemon does not answer.")
)

// problemOf is an error as it goes over HTTP: foreign texts stay inside.
func problemOf(err error) *Problem {
	f, status := fault.From(err), problem.Status(err)
	return &Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Message,
		Code: f.Code, Reason: f.Reason, Hint: f.Advice, Details: f.Details,
	}
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.HeadersError      = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
)

// Error is the sentence.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is huma's.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is huma's.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders is huma's.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="placet"`)
	}
	return h
}

const problemType = "application/problem+json"

// write answers outside huma.
func (p *Problem) write(w http.ResponseWriter) {
	for k, v := range p.GetHeaders() {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = encode(w, p)
}

// failure turns what an operation answered into a problem, and logs what nobody else is told.
func (s *Server) failure(ctx context.Context, err error) error {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	cause := context.Cause(ctx)
	switch {
	case cause != nil && errors.Is(cause, ErrShutdown),
		s.stopping.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, txn.ErrNotCommitted)):
		err = ErrShutdown
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		err = errClientGone // over a network it hangs up; one that is inside has a deadline
	}
	p = problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.c.Log.Error("a request failed", "reason", p.Reason, "error", err)
	}
	return p
}

// Huma makes its own refusals through a variable of its package. Only those of our
// operations are changed, so that another API in this program keeps its own.
func init() {
	others := huma.NewErrorWithContext
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		if op := ctx.Operation(); op != nil {
			if r, ok := op.Metadata[ours].(*route); ok {
				return refusalOf(r, status, msg, errs)
			}
		}
		return others(ctx, status, msg, errs...)
	}
}

const ours = "placet"

func refusalOf(r *route, status int, msg string, errs []error) *Problem {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return problemOf(malformed(r, msg, errs))
	case http.StatusUnsupportedMediaType:
		return problemOf(ErrMedia.Hint("Send it as application/json."))
	case http.StatusRequestEntityTooLarge:
		return problemOf(ErrTooLarge)
	case http.StatusRequestTimeout:
		return problemOf(ErrSlow)
	}
	slog.Error("the HTTP library refused a request", "status", status, "message", msg, "errors", errs)
	return problemOf(fault.From(errors.New(msg)))
}

// malformed names the field that is wrong.
func malformed(r *route, msg string, errs []error) error {
	var words []string
	for _, err := range errs {
		var d huma.ErrorDetailer
		if errors.As(err, &d) {
			e := d.ErrorDetail()
			words = append(words, strings.TrimPrefix(cut(e.Location)+": "+reworded(e.Message), ": "))
		}
	}
	if len(words) == 0 {
		words = []string{msg}
	}
	return r.tell(ErrMalformed.Say("%s.", strings.Join(words, "; ")))
}

// exponent is a number as the library writes the larger ones of its limits.
var exponent = regexp.MustCompile(`\d(\.\d+)?e\+\d+`)

// reworded is the library's text as ours are: it says what was expected, in numbers
// as people write them.
func reworded(text string) string {
	switch text {
	case "invalid integer":
		return "expected integer of at most 64 bits"
	case "invalid boolean":
		return "expected true or false"
	}
	return exponent.ReplaceAllStringFunc(text, func(n string) string {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return n
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	})
}
