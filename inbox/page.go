package inbox

import (
	"crypto/subtle"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/token"
)

type handler func(w http.ResponseWriter, r *http.Request, who reviewer)

// page answers whoever is signed in. A form that is sent has to come from a page of that
// sign-in.
func (b *Inbox) page(pattern string, h handler) {
	b.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		who, err := b.signIns.who(r, b.identity)
		switch {
		case errors.Is(err, token.ErrUnauthenticated) || errors.Is(err, ErrAgent):
			b.lead(w, r)
			return
		case err != nil:
			b.fail(w, r, who, err)
			return
		}
		err = b.signIns.touch(w, r)
		if errors.Is(err, token.ErrUnauthenticated) {
			b.lead(w, r)
			return
		}
		if err != nil {
			b.c.Log.Warn("it could not be noted that a sign-in is used", "error", err)
		}
		if r.Method == http.MethodPost {
			if err := takeOwn(w, r, who); err != nil {
				b.fail(w, r, who, err)
				return
			}
		}
		h(w, r, who)
	})
}

// maxForm bounds a form, in bytes: arguments of 1 MiB, of which each byte takes three.
const maxForm = 4 << 20

// Errors of forms.
var (
	errForm  = fault.Sentinel(fault.Invalid, "malformed", "This form cannot be read.")
	errStale = fault.Sentinel(fault.Forbidden, "forbidden", "This form does not come from a page of your present sign-in.")
	errLarge = fault.Sentinel(fault.TooLarge, "too_large", "The form is too large.")
)

// takeForm reads a form as our pages send it.
func takeForm(w http.ResponseWriter, r *http.Request, most int64) error {
	sort, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || sort != "application/x-www-form-urlencoded" {
		return errForm.Say("A form is sent as application/x-www-form-urlencoded.")
	}
	if r.ContentLength > most { // its head says so already
		return errLarge.Say("The form has %d bytes; the limit is %d.", r.ContentLength, most)
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return errLarge.Say("The form has more than %d bytes.", most)
		}
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return f
		}
		return errForm
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return errForm.Say("%q is in the form more than once.", name)
		}
		if !utf8.ValidString(values[0]) { // as JSON it would be another text than was sent
			return errForm.Say("%q is not valid UTF-8.", name).Hint("Send the form as UTF-8.")
		}
	}
	return nil
}

// takeOwn reads a form of this sign-in's own pages, and refuses one that some other page
// made up (case 130).
func takeOwn(w http.ResponseWriter, r *http.Request, who reviewer) error {
	if err := takeForm(w, r, maxForm); err != nil {
		return err
	}
	if who.form == "" || subtle.ConstantTimeCompare([]byte(r.PostForm.Get("form_token")), []byte(who.form)) != 1 {
		return errStale.Hint("Open the page again; you may have signed in anew since it was made.")
	}
	return nil
}

// lead brings somebody who is not signed in to the form that asks for a token, and back
// to where they wanted to go.
func (b *Inbox) lead(w http.ResponseWriter, r *http.Request) {
	q := url.Values{}
	page := r.URL.RequestURI()
	if r.Method == http.MethodPost {
		q.Set("unsaid", "")
		page = formsPage(r.URL.Path)
	}
	if page != "/" {
		q.Set("to", page)
	}
	to := "/sign-in"
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		http.Error(w, "You are not signed in any more.", http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// formsPage is the page whose form is sent to a path: mostly that itself.
func formsPage(path string) string {
	if path == "/sign-out" {
		return "/"
	}
	return strings.TrimSuffix(path, "/retry")
}

// ours is a path of our own pages; anything else is the first page.
func ours(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}
