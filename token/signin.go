package token

import (
	"context"
	"errors"
	"time"

	"github.com/placet-dev/placet/txn"
)

// SignIn is a browser's proof that its holder showed a token. It lies in the store, found
// by a key that is hashed already: whoever reads the store cannot sign in with it. It ends
// with its token, and with the store's present life.
type SignIn struct {
	Key       string // hashed; not empty
	Space     string
	TokenID   string // that was shown
	Data      []byte // whatever its keeper needs
	CreatedAt time.Time
	ExpiresAt time.Time // not zero; the instant itself is in time
	Epoch     int64     // life of the store in which it was written
}

// MaxSignIn bounds a sign-in's data, in bytes.
const MaxSignIn = 64 << 10

// FindSignIn is the good sign-in of that key, in the space: [ErrUnauthenticated] for
// anything else, whatever is wrong with it.
func FindSignIn(ctx context.Context, s txn.Store, space, key string) (SignIn, error) {
	if !txn.IsText(key) {
		return SignIn{}, ErrUnauthenticated
	}
	var in SignIn
	err := txn.View(ctx, s, func(tx Tx) (err error) {
		in, err = tx.SignIn(key)
		return err
	})
	if errors.Is(err, ErrNotFound) || err == nil && in.Space != space {
		return SignIn{}, ErrUnauthenticated
	}
	return in, err
}

// CommitSignIn writes a sign-in, in place of the one with the same key. Its token has to
// be a good one of its space, else it is [ErrUnauthenticated]. The epoch is the store's; a
// CreatedAt that is zero is the earlier one's, or now.
func CommitSignIn(ctx context.Context, s txn.Store, in SignIn) error {
	if err := in.check(); err != nil {
		return err
	}
	return txn.Update(ctx, s, func(tx Tx) error {
		t, err := tx.Token(in.TokenID)
		if errors.Is(err, ErrNotFound) || err == nil && (!t.RevokedAt.IsZero() || t.Space != in.Space) {
			return ErrUnauthenticated
		}
		if err != nil {
			return err
		}
		next := in
		if next.CreatedAt.IsZero() {
			if next.CreatedAt, err = since(tx, in.Key); err != nil {
				return err
			}
		}
		next.Epoch = tx.Epoch()
		return tx.PutSignIn(next)
	})
}

// since is when the sign-in of the key began.
func since(tx Tx, key string) (time.Time, error) {
	was, err := tx.SignIn(key)
	if errors.Is(err, ErrNotFound) {
		return tx.Now(), nil
	}
	return was.CreatedAt, err
}

// RenewSignIn writes the data and the end of a sign-in that is there and good still, else it
// is [ErrUnauthenticated]: one that was ended meanwhile stays ended.
func RenewSignIn(ctx context.Context, s txn.Store, in SignIn) error {
	if err := in.check(); err != nil {
		return err
	}
	return txn.Update(ctx, s, func(tx Tx) error {
		was, err := tx.SignIn(in.Key)
		if errors.Is(err, ErrNotFound) || err == nil && (was.TokenID != in.TokenID || was.Space != in.Space) {
			return ErrUnauthenticated
		}
		if err != nil {
			return err
		}
		was.Data, was.ExpiresAt = in.Data, in.ExpiresAt
		done, err := tx.RenewSignIn(was)
		if err == nil && !done {
			err = ErrUnauthenticated
		}
		return err
	})
}

func (in SignIn) check() error {
	switch {
	case in.Key == "" || len(in.Key) > MaxName || !txn.IsText(in.Key):
		return ErrUsage.Say("A sign-in's key is text of 1 to %d bytes.", MaxName)
	case in.ExpiresAt.IsZero():
		return ErrUsage.Say("A sign-in has to end.").Hint("Say when it expires.")
	case len(in.Data) > MaxSignIn:
		return ErrUsage.Say("The sign-in's data has %d bytes; the limit is %d.", len(in.Data), MaxSignIn)
	}
	return nil
}

// DeleteSignIn ends a sign-in; none is fine.
func DeleteSignIn(ctx context.Context, s txn.Store, key string) error {
	if !txn.IsText(key) {
		return nil
	}
	return txn.Update(ctx, s, func(tx Tx) error { return tx.DropSignIn(key) })
}

// SweepSignIns deletes up to limit sign-ins that are over, and says how many. limit is 1 to
// 1,000; 0 means 100.
func SweepSignIns(ctx context.Context, s txn.Store, limit int) (n int, err error) {
	err = txn.Update(ctx, s, func(tx Tx) (err error) {
		n, err = tx.DropSignIns(tx.Now(), limit)
		return err
	})
	return n, err
}
