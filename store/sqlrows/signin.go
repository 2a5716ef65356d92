package sqlrows

import (
	"time"

	tokens "github.com/placet-dev/placet/token"
)

const (
	signInColumns = `key, space, token_id, data, created_at, expires_at, epoch`
	putSignInSQL  = `INSERT INTO sign_in(` + signInColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET space = excluded.space, token_id = excluded.token_id, data = excluded.data,
			created_at = excluded.created_at, expires_at = excluded.expires_at, epoch = excluded.epoch`
	renewSignInSQL   = `UPDATE sign_in SET data = ?, expires_at = ? WHERE key = ? AND token_id = ? AND epoch = ?`
	dropSignInSQL    = `DELETE FROM sign_in WHERE key = ?`
	dropSignInsOfSQL = `DELETE FROM sign_in WHERE token_id = ?`
	signInsOverSQL   = `SELECT key, expires_at, epoch FROM sign_in WHERE epoch < ?
		UNION ALL SELECT key, expires_at, epoch FROM sign_in WHERE epoch = ? AND expires_at < ? LIMIT +?`
	dropOverSQL = `DELETE FROM sign_in WHERE key = ? AND expires_at = ? AND epoch = ?`
)

// A sign-in is as good as its token: one that was written while that was revoked is not.
var signInSQL = `SELECT ` + Selected(signInColumns) + ` FROM sign_in WHERE key = ?
	AND EXISTS (SELECT 1 FROM token WHERE token.id = sign_in.token_id AND token.space = sign_in.space AND token.revoked_at IS NULL)`

func (x Rows) SignIn(key string) (s tokens.SignIn, err error) {
	found, err := x.queryRow(signInSQL, []any{key}, func(r Row) error {
		s = tokens.SignIn{
			Key: r.Str(0), Space: r.Str(1), TokenID: r.Str(2), Data: r.Bytes(3), CreatedAt: r.Time(4), ExpiresAt: r.Time(5), Epoch: r.Int(6),
		}
		return nil
	})
	if err == nil && (!found || s.Epoch != x.Epoch() || x.Now().After(s.ExpiresAt)) {
		return tokens.SignIn{}, tokens.ErrNotFound.Say("There is no such sign-in.")
	}
	return s, err
}

func (x Rows) PutSignIn(s tokens.SignIn) error {
	return x.write(putSignInSQL, s.Key, s.Space, s.TokenID, s.Data, s.CreatedAt, s.ExpiresAt, s.Epoch)
}

// RenewSignIn changes what is there: were it written anew, one that is dropped meanwhile
// would be there again.
func (x Rows) RenewSignIn(s tokens.SignIn) (bool, error) {
	return x.one(renewSignInSQL, s.Data, s.ExpiresAt, s.Key, s.TokenID, s.Epoch)
}

func (x Rows) DropSignIn(key string) error { return x.write(dropSignInSQL, key) }

func (x Rows) DropSignInsOf(tokenID string) error { return x.write(dropSignInsOfSQL, tokenID) }

// DropSignIns looks for them first: mostly there are none. One that was written anew
// meanwhile stays.
func (x Rows) DropSignIns(now time.Time, limit int) (n int, err error) {
	var over [][]any
	err = x.Query(signInsOverSQL, []any{x.Epoch(), x.Epoch(), now, pageSize(limit, 100, 1000)}, func(r Row) error {
		over = append(over, []any{r.Str(0), r.Int(1), r.Int(2)})
		return nil
	})
	for _, args := range over {
		if err != nil {
			return n, err
		}
		var gone bool
		if gone, err = x.one(dropOverSQL, args...); gone {
			n++
		}
	}
	return n, err
}
