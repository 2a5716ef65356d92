package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
)

// patience is how long a client may take.
type patience struct {
	body   time.Duration // to send a body, from when it is known whose it is
	answer time.Duration // to read an answer, or an event of a stream
	linger time.Duration // to take notice of a refusal while it still sends a body
	far    time.Duration // of another daemon, to answer what is passed on to it
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// takes says in a route what its operation takes besides parameters.
type takes struct {
	body     bool               // a body
	required bool               // there must be one
	check    func([]byte) error // refuses one of another shape
	key      bool               // the header Idempotency-Key
	keyField bool               // a key in the body
}

// takesOf reads out of an operation's input what it takes.
func takesOf(in reflect.Type) (t takes) {
	for f := range in.Fields() {
		t.key = t.key || f.Tag.Get("header") == keyHeader
	}
	f, ok := in.FieldByName("Body")
	if !ok {
		return t
	}
	of := f.Type
	t.body, t.required = true, of.Kind() != reflect.Pointer
	if !t.required {
		of = of.Elem()
	}
	if of.Kind() == reflect.Struct {
		for f := range of.Fields() {
			t.keyField = t.keyField || strings.HasPrefix(f.Tag.Get("json"), "idempotency_key,")
		}
	}
	t.check = func(b []byte) error { return strict(b, reflect.New(of).Interface()) }
	return t
}

// takeBody reads the whole body, now that it is known whose it is. What its head
// already tells is refused before that.
func (w *response) takeBody(to *route, r *http.Request) error {
	switch {
	case !hasBody(r) && to.required:
		return ErrMalformed.Say("body: there is none.")
	case !hasBody(r):
		return nil
	case !to.body:
		return ErrMalformed.Say("body: %s takes none.", to.id).Hint("Send the request without a body.")
	case r.ContentLength > MaxBody:
		return ErrTooLarge.Say("The body has %d bytes; the limit is %d.", r.ContentLength, MaxBody)
	}
	if err := mediaOf(r.Header); err != nil {
		return err
	}
	b, err := w.readBody(r)
	switch {
	case err != nil:
		return err
	case len(b) > 0:
		return to.check(b)
	case to.required:
		return ErrMalformed.Say("body: it is empty.")
	}
	return nil
}

func (w *response) readBody(r *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(w.body))
	b, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrSlow.Say("The body was not there within %s.", w.body)
	case err != nil:
		return nil, ErrMalformed.Say("body: it ended before its end.")
	case len(b) > MaxBody:
		return nil, ErrTooLarge.Say("The body has more than %d bytes.", MaxBody)
	}
	w.unread = false
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // from here on only a client that hangs up is looked for
	r.Body = io.NopCloser(bytes.NewReader(b))
	return b, nil
}

// mediaOf refuses a body that says to be anything but plain JSON in UTF-8.
func mediaOf(h http.Header) error {
	for _, coding := range h.Values("Content-Encoding") {
		if !strings.EqualFold(coding, "identity") {
			return ErrMedia.Say("The body is encoded as %s.", shown(coding)).Hint("Send it as it is, without Content-Encoding.")
		}
	}
	err := ErrMedia.Hint("Send it with one header Content-Type: application/json.")
	types := h.Values("Content-Type")
	switch len(types) {
	case 0:
		return err.Say("The body does not say what it is.")
	case 1:
		name, params, bad := mime.ParseMediaType(types[0])
		charset, told := params["charset"]
		if bad == nil && name == "application/json" && (len(params) == 0 || told && len(params) == 1 && strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return err.Say("The body says to be %s.", shown(strings.Join(types, ", ")))
}
