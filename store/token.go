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
	return t.Rows.RevokeToken(id, at)
}
