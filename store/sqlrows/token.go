package sqlrows

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
	selectTokens = `SELECT ` + Selected(tokenColumns) + ` FROM token`
	tokenSQL     = selectTokens + ` WHERE id = ?`
)

func (x Rows) InsertToken(t tokens.Token) error {
	return x.write(insertTokenSQL, t.ID, t.Space, string(t.Scope), t.Name, t.Principal, text(t.JobID), t.Hash, t.CreatedAt, t.RevokedAt)
}

func (x Rows) Token(id string) (t tokens.Token, err error) {
	found, err := x.queryRow(tokenSQL, []any{id}, func(r Row) error {
		t = scanToken(r)
		return nil
	})
	if err == nil && !found {
		err = tokens.ErrNotFound.Say("There is no token %s.", id)
	}
	return t, err
}

func scanToken(r Row) tokens.Token {
	return tokens.Token{
		ID: r.Str(0), Space: r.Str(1), Scope: tokens.Scope(r.Str(2)), Name: r.Str(3), Principal: r.Str(4), JobID: r.Str(5),
		Hash: r.Bytes(6), CreatedAt: r.Time(7), RevokedAt: r.Time(8),
	}
}

// Tokens lists newest first: ids sort by time.
func (x Rows) Tokens(q tokens.Query) ([]tokens.Token, error) {
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
	err := x.Query(selectTokens+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500)), func(r Row) error {
		ts = append(ts, scanToken(r))
		return nil
	})
	return ts, err
}

func (x Rows) RevokeToken(id string, at time.Time) (bool, error) {
	return x.one(revokeTokenSQL, at, id)
}
