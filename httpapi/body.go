package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// patience is how long a client may take.
type patience struct {
	body   time.Duration // to send a body, from when it is known whose it is
	answer time.Duration // to read an answer, or an event of a stream
	linger time.Duration // to take notice of a refusal while it still sends a body
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// readBody takes the whole body, now that it is known whose it is.
func (w *response) readBody(r *http.Request) error {
	if !hasBody(r) {
		return nil
	}
	if r.ContentLength > MaxBody {
		return ErrTooLarge.Say("The body has %d bytes; the limit is %d.", r.ContentLength, MaxBody)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(w.body))
	b, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSlow.Say("The body was not there within %s.", w.body)
	case err != nil:
		return ErrMalformed.Say("The body ended before its end.")
	case len(b) > MaxBody:
		return ErrTooLarge.Say("The body has more than %d bytes.", MaxBody)
	}
	w.unread = false
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // from here on only a client that hangs up is looked for
	r.Body = io.NopCloser(bytes.NewReader(b))
	return nil
}
