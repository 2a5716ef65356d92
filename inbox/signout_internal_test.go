package inbox

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
)

// Whoever signs out while another of their pages notes that the sign-in is used stays
// signed out.
func TestSignedOutMeanwhile(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c, err := Config{Store: st, Door: func(token.Token) Door { return nil }}.checked()
	if err != nil {
		t.Fatal(err)
	}
	who, _, err := token.Create(t.Context(), st, token.New{Space: event.MainSpace, Scope: token.Reviewer, Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	s := newSignIns(c)
	w := httptest.NewRecorder()
	if err := s.begin(w, httptest.NewRequest(http.MethodPost, "/sign-in", nil), who.ID); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, k := range w.Result().Cookies() {
		r.AddCookie(k)
	}
	if _, err := s.who(r, byToken{c}); err != nil {
		t.Fatal(err)
	}
	page, err := s.load(r)
	if err != nil {
		t.Fatal(err)
	}
	s.of.Put(page, touchedKey, int64(0)) // it is over a minute ago
	if err := s.renew(page, httptest.NewRecorder(), r); err != nil {
		t.Fatal(err)
	}
	if page, err = s.load(r); err != nil {
		t.Fatal(err)
	}
	if err := s.end(httptest.NewRecorder(), r); err != nil {
		t.Fatal(err)
	}
	if err := s.renew(page, httptest.NewRecorder(), r); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("it is noted as used: %v", err)
	}
	if _, err := s.who(r, byToken{c}); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("who signed out is signed in: %v", err)
	}
}
