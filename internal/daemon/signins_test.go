package daemon

import (
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// A daemon deletes sign-ins that are over, more than it deletes at a time, and leaves the
// others.
func TestSignInsThatAreOverGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.open()
	tok, _, err := token.Create(t.Context(), st, token.New{Space: event.MainSpace, Scope: token.Reviewer, Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	good := token.SignIn{Key: "good", Space: event.MainSpace, TokenID: tok.ID, ExpiresAt: time.Now().Add(time.Hour)}
	if err := token.CommitSignIn(t.Context(), st, good); err != nil {
		t.Fatal(err)
	}
	if err := txn.Update(t.Context(), st, func(tx store.Tx) error {
		over := good
		over.CreatedAt, over.ExpiresAt = tx.Now(), tx.Now().Add(-time.Second)
		for i := range 1200 {
			over.Key = string(rune('a'+i/100)) + string(rune('0'+i%100))
			if err := tx.PutSignIn(over); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.serve()
	w.comes("sweep")
	if n, err := token.SweepSignIns(t.Context(), st, 0); n != 0 || err != nil {
		t.Errorf("%d are left: %v", n, err)
	}
	if got, err := token.FindSignIn(t.Context(), st, event.MainSpace, "good"); err != nil || got.TokenID != tok.ID {
		t.Errorf("%+v, %v", got, err)
	}
}
