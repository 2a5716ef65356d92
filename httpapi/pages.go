package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// MaxForm bounds a page's form, in bytes: arguments of the largest call, each byte of
// which takes three in a form.
const MaxForm = 4 << 20

// ofPages stands for whatever pages answer.
var ofPages = &route{id: "pages"}

// Pages lets h answer every path that is none of the API's. The host's name was looked
// at before, and so was where a request comes from: a link on another site may lead to a
// page, and nothing else reaches h from there. Who asks is h's to find out, and h reads a
// body only then: it comes with a limit of size and time. Call it before the server serves.
func (s *Server) Pages(h http.Handler) { s.pages = h }

// serves reports whether a path is the API's, also one where nothing is.
func (s *Server) serves(path string) bool {
	if path == "/v1" || strings.HasPrefix(path, "/v1/") {
		return true
	}
	for _, r := range s.routes {
		if r.path == path {
			return true
		}
	}
	return false
}

// fromLink refuses what another site sent, unless a person follows a link from there.
func fromLink(r *http.Request) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Origin") == "" {
		return nil
	}
	return sameSite(r)
}

func (s *Server) page(w *response, r *http.Request) {
	if hasBody(r) {
		r.Body = &form{w: w, from: r.Body}
	}
	s.pages.ServeHTTP(w, r)
}

// form is a page's body, which has its time from when it is first asked for.
type form struct {
	w     *response
	from  io.ReadCloser
	taken int64
	begun bool
}

// Read is io.Reader's. Of a body that is too large or too slow it is [ErrTooLarge], [ErrSlow].
func (f *form) Read(b []byte) (int, error) {
	c := http.NewResponseController(f.w)
	if !f.begun {
		f.begun = true
		_ = c.SetReadDeadline(time.Now().Add(f.w.body))
	}
	n, err := f.from.Read(b)
	f.taken += int64(n)
	switch {
	case f.taken > MaxForm:
		return 0, ErrTooLarge.Say("The form has more than %d bytes.", MaxForm)
	case errors.Is(err, io.EOF):
		f.w.unread = false
		_ = c.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlow.Say("The form was not there within %s.", f.w.body)
	}
	return n, err
}

// Close is io.Closer's.
func (f *form) Close() error { return f.from.Close() }
