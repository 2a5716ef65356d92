package store

import (
	"time"

	"github.com/placet-dev/placet/token"
)

func (t *tx) InsertToken(k token.Token) (err error) {
	defer t.note(&err)
	return t.Rows.InsertToken(k)
}

func (t *tx) RevokeToken(id string, at time.Time) (done bool, err error) {
	defer t.note(&err)
	if done, err = t.Rows.RevokeToken(id, at); err == nil && done {
		err = t.DropSignInsOf(id)
	}
	return done, err
}

func (t *tx) PutSignIn(s token.SignIn) (err error) {
	defer t.note(&err)
	return t.Rows.PutSignIn(s)
}

func (t *tx) RenewSignIn(s token.SignIn) (done bool, err error) {
	defer t.note(&err)
	return t.Rows.RenewSignIn(s)
}

func (t *tx) DropSignIn(key string) (err error) {
	defer t.note(&err)
	return t.Rows.DropSignIn(key)
}

func (t *tx) DropSignIns(now time.Time, limit int) (n int, err error) {
	defer t.note(&err)
	return t.Rows.DropSignIns(now, limit)
}
