package sqlite

import (
	"time"

	tokens "github.com/placet-dev/placet/token"
)

const (
	tokenColumns   = `id, space, scope, name, principal, job_id, hash, created_at, revoked_at`
	insertTokenSQL = `INSERT INTO token(` + tokenColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	revokeTokenSQL = `UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`
)

var (
	selectTokens = `SELECT ` + selected(tokenColumns) + ` FROM token`
	tokenSQL     = selectTokens + ` WHERE id = ?`
)

func (x rows) InsertToken(t tokens.Token) error {
	_, err := x.h.exec(insertTokenSQL, t.ID, t.Space, string(t.Scope), t.Name, t.Principal, text(t.JobID), t.Hash, t.CreatedAt, t.RevokedAt)
	return err
}

func (x rows) Token(id string) (t tokens.Token, err error) {
	found, err := x.h.queryRow(tokenSQL, []any{id}, func(r row) error {
		t = scanToken(r)
		return nil
	})
	if err == nil && !found {
		err = tokens.ErrNotFound.Say("There is no token %s.", id)
	}
	return t, err
}

func scanToken(r row) tokens.Token {
	return tokens.Token{
		ID: r.str(0), Space: r.str(1), Scope: tokens.Scope(r.str(2)), Name: r.str(3), Principal: r.str(4), JobID: r.str(5),
		Hash: r.bytes(6), CreatedAt: r.time(7), RevokedAt: r.time(8),
	}
}

// Tokens lists newest first: ids sort by time.
func (x rows) Tokens(q tokens.Query) ([]tokens.Token, error) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`principal = ?`, q.Principal, q.Principal != "")
	w.and(`job_id = ?`, q.JobID, q.JobID != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	if q.Good {
		w.sql += ` AND revoked_at IS NULL`
	}
	var ts []tokens.Token
	err := x.h.query(selectTokens+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500)), func(r row) error {
		ts = append(ts, scanToken(r))
		return nil
	})
	return ts, err
}

func (x rows) RevokeToken(id string, at time.Time) (bool, error) {
	return x.one(revokeTokenSQL, at, id)
}
