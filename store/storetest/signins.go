package storetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
)

func signIns(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":           signInReadBack,
		"over":                signInOver,
		"with their token":    signInRevoked,
		"revoked meanwhile":   signInRaces,
		"ended meanwhile":     signOutRaces,
		"committed":           signInCommitted,
		"after a restore":     signInRestored,
		"with a job's tokens": signInOfJob,
	})
}

func (w *world) someSignIn(tok token.Token) token.SignIn {
	w.Helper()
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	return token.SignIn{
		Key: "k" + tok.ID, Space: tok.Space, TokenID: tok.ID, Data: []byte("a\x00b\xff"), CreatedAt: moment(1), ExpiresAt: now.Add(time.Hour), Epoch: 1,
	}
}

func (w *world) putSignIn(s token.SignIn) token.SignIn {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.PutSignIn(s) })
	return s
}

// noSignIn fails unless none of that key is good.
func (w *world) noSignIn(what, key string) {
	w.Helper()
	if s, err := try(w, func(tx store.Tx) (token.SignIn, error) { return tx.SignIn(key) }); !errors.Is(err, token.ErrNotFound) || s.Key != "" {
		w.Errorf("%s: %+v, %v", what, s, err)
	}
}

func (w *world) signIn(key string) token.SignIn {
	w.Helper()
	return read(w, func(tx store.Tx) (token.SignIn, error) { return tx.SignIn(key) })
}

func (w *world) dropSignIns(now time.Time, limit int) (n int) {
	w.Helper()
	w.write(func(tx store.Tx) (err error) {
		n, err = tx.DropSignIns(now, limit)
		return err
	})
	return n
}

func signInReadBack(w *world) {
	a, b := w.insertToken(func(*token.Token) {}), w.insertToken(func(*token.Token) {})
	s, other := w.putSignIn(w.someSignIn(a)), w.putSignIn(w.someSignIn(b))
	whole(w, s)
	w.same(s, w.signIn(s.Key))
	next := s
	next.TokenID, next.Data, next.CreatedAt, next.ExpiresAt = b.ID, nil, moment(2), s.ExpiresAt.Add(time.Second)
	w.putSignIn(next)
	w.same(next, w.signIn(s.Key))
	w.same(other, w.signIn(other.Key))
	w.write(func(tx store.Tx) error { return errors.Join(tx.DropSignIn(s.Key), tx.DropSignIn("none")) })
	w.noSignIn("dropped", s.Key)
	w.noSignIn("never there", "none")
	w.noSignIn("nothing", "")
	w.same(other, w.signIn(other.Key))
	s.Key = ""
	w.refused(nil, func(tx store.Tx) error { return tx.PutSignIn(s) })
	for name, data := range blobs() {
		w.Log(name)
		other.Data = data
		w.same(w.putSignIn(other), w.signIn(other.Key))
	}
}

// signInOver: one that has expired, or is of an earlier life, is none; and they are deleted,
// so many at a time.
func signInOver(w *world) {
	tok := w.insertToken(func(*token.Token) {})
	good := w.putSignIn(w.someSignIn(tok))
	expired, early := good, good
	var keys []string
	for i := range 5 {
		expired.Key, expired.ExpiresAt = "x"+string(rune('0'+i)), moment(int64(i))
		early.Key, early.Epoch = "e"+string(rune('0'+i)), 0
		w.putSignIn(expired)
		w.putSignIn(early)
		keys = append(keys, expired.Key, early.Key)
	}
	for _, k := range keys {
		w.noSignIn(k, k)
	}
	w.same(5+2, w.dropSignIns(moment(2), 100)) // the instant itself is in time
	w.same(2, w.dropSignIns(moment(1<<20), 2))
	w.same(1, w.dropSignIns(moment(1<<20), 2))
	w.same(0, w.dropSignIns(moment(1<<20), 0))
	w.same(good, w.signIn(good.Key))
	w.same(1, w.dropSignIns(good.ExpiresAt.Add(time.Microsecond), 0))
	w.noSignIn("expired", good.Key)
}

// signInRevoked: they end with their token, in its transaction, and others stay. One that
// is written for a token of the past is none.
func signInRevoked(w *world) {
	tok, other := w.insertToken(func(*token.Token) {}), w.insertToken(func(*token.Token) {})
	s, second, stays := w.someSignIn(tok), w.someSignIn(tok), w.someSignIn(other)
	second.Key = "second"
	for _, x := range []token.SignIn{s, second, stays} {
		w.putSignIn(x)
	}
	failed := errors.New("no")
	w.refused(failed, func(tx store.Tx) error {
		_, err := tx.RevokeToken(tok.ID, tx.Now())
		return errors.Join(err, failed)
	})
	w.same(s, w.signIn(s.Key))
	if _, err := token.Revoke(w.ctx, w.s, event.MainSpace, tok.ID); err != nil {
		w.Fatal(err)
	}
	w.noSignIn("revoked", s.Key)
	w.noSignIn("revoked", second.Key)
	w.same(stays, w.signIn(stays.Key))
	w.same(1, w.dropSignIns(s.ExpiresAt.Add(time.Hour), 0)) // there is no other any more
	w.putSignIn(s)
	w.noSignIn("of a token that is revoked", s.Key)
	s.TokenID = "tok_none"
	w.putSignIn(s)
	w.noSignIn("of no token", s.Key)
	stays.Space = "other"
	w.putSignIn(stays)
	w.noSignIn("in another space than its token", stays.Key)
}

// signInRaces: who signs in while the token is revoked is not signed in once that is done.
func signInRaces(w *world) {
	for range rounds(200) {
		tok := w.insertToken(func(*token.Token) {})
		s := w.someSignIn(tok)
		errs := make([]error, 2)
		together(2, func(i int) {
			if i == 0 {
				_, errs[0] = token.Revoke(w.ctx, w.s, tok.Space, tok.ID)
			} else if errs[1] = token.CommitSignIn(w.ctx, w.s, s); errors.Is(errs[1], token.ErrUnauthenticated) {
				errs[1] = nil
			}
		})
		if err := errors.Join(errs...); err != nil {
			w.Fatal(err)
		}
		if _, err := token.FindSignIn(w.ctx, w.s, tok.Space, s.Key); !errors.Is(err, token.ErrUnauthenticated) {
			w.Fatalf("signed in by a token that is revoked: %v", err)
		}
	}
}

// signOutRaces: who signs out while it is noted that the sign-in is used stays signed out.
func signOutRaces(w *world) {
	tok := w.insertToken(func(*token.Token) {})
	for range rounds(200) {
		s := w.putSignIn(w.someSignIn(tok))
		errs := make([]error, 2)
		together(2, func(i int) {
			if i == 0 {
				errs[0] = token.DeleteSignIn(w.ctx, w.s, s.Key)
			} else if errs[1] = token.RenewSignIn(w.ctx, w.s, s); errors.Is(errs[1], token.ErrUnauthenticated) {
				errs[1] = nil
			}
		})
		if err := errors.Join(errs...); err != nil {
			w.Fatal(err)
		}
		w.noSignIn("signed out", s.Key)
		if err := token.RenewSignIn(w.ctx, w.s, s); !errors.Is(err, token.ErrUnauthenticated) {
			w.Fatalf("a sign-in that was ended is renewed: %v", err)
		}
	}
}

// signInCommitted: the doors' own way.
func signInCommitted(w *world) {
	tok, revoked := w.insertToken(func(*token.Token) {}), w.insertToken(func(k *token.Token) { k.RevokedAt = moment(2) })
	s := w.someSignIn(tok)
	s.CreatedAt, s.Epoch = time.Time{}, 7
	commit := func(change func(*token.SignIn)) error {
		x := s
		change(&x)
		return token.CommitSignIn(w.ctx, w.s, x)
	}
	for what, change := range map[string]func(*token.SignIn){
		"a revoked token": func(s *token.SignIn) { s.TokenID = revoked.ID }, "no token": func(s *token.SignIn) { s.TokenID = "" },
		"another space": func(s *token.SignIn) { s.Space = "other" },
	} {
		if err := commit(change); !errors.Is(err, token.ErrUnauthenticated) {
			w.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*token.SignIn){
		"no key": func(s *token.SignIn) { s.Key = "" }, "no text": func(s *token.SignIn) { s.Key = "a\x00" },
		"no end": func(s *token.SignIn) { s.ExpiresAt = time.Time{} }, "much": func(s *token.SignIn) { s.Data = bytes.Repeat([]byte("x"), token.MaxSignIn+1) },
	} {
		if err := commit(change); !errors.Is(err, token.ErrUsage) {
			w.Errorf("%s: %v", what, err)
		}
	}
	for _, key := range noTexts {
		if _, err := token.FindSignIn(w.ctx, w.s, s.Space, key); !errors.Is(err, token.ErrUnauthenticated) {
			w.Errorf("%q: %v", key, err)
		}
		if err := token.DeleteSignIn(w.ctx, w.s, key); err != nil {
			w.Errorf("%q: %v", key, err)
		}
	}
	w.noSignIn("refused", s.Key)
	if err := commit(func(*token.SignIn) {}); err != nil {
		w.Fatal(err)
	}
	first := w.signIn(s.Key)
	if first.CreatedAt.IsZero() || first.Epoch != 1 {
		w.Errorf("%+v", first)
	}
	if err := commit(func(s *token.SignIn) { s.Data = []byte("more") }); err != nil {
		w.Fatal(err)
	}
	again, err := token.FindSignIn(w.ctx, w.s, s.Space, s.Key)
	first.Data = []byte("more")
	w.same(first, again)
	if err != nil {
		w.Error(err)
	}
	if _, err := token.FindSignIn(w.ctx, w.s, "other", s.Key); !errors.Is(err, token.ErrUnauthenticated) {
		w.Errorf("in another space: %v", err)
	}
	if err := commit(func(s *token.SignIn) { s.ExpiresAt = moment(0) }); err != nil {
		w.Fatal(err)
	}
	if n, err := token.SweepSignIns(w.ctx, w.s, 10); n != 1 || err != nil {
		w.Errorf("%d were over: %v", n, err)
	}
	if err := errors.Join(commit(func(*token.SignIn) {}), token.DeleteSignIn(w.ctx, w.s, s.Key), token.DeleteSignIn(w.ctx, w.s, s.Key)); err != nil {
		w.Error(err)
	}
	w.noSignIn("deleted", s.Key)
}

// signInRestored: those of before a restore are void, and deleted with the next sweep.
func signInRestored(w *world) {
	w.skipWithout(w.place.Keep != nil, "how to keep a copy")
	s := w.putSignIn(w.someSignIn(w.insertToken(func(*token.Token) {})))
	w.past()
	w.close()
	putBack := w.place.Keep(w.T)
	w.s = w.open(Options{})
	w.past()
	w.close()
	putBack()
	w.s = w.open(Options{})
	w.same(s, w.signIn(s.Key)) // nothing can be decided yet
	w.accept()
	w.noSignIn("restored", s.Key)
	if n, err := token.SweepSignIns(w.ctx, w.s, 10); n != 1 || err != nil {
		w.Errorf("%d were over: %v", n, err)
	}
}

// signInOfJob: a job's token goes with its job, and no sign-in of it keeps it.
func signInOfJob(w *world) {
	j := w.insertJob(endedJob())
	s := w.putSignIn(w.someSignIn(w.insertToken(func(k *token.Token) { k.JobID = j.ID })))
	w.write(func(tx store.Tx) error { return tx.CleanJob(j, "ana") })
	w.write(func(tx store.Tx) error {
		_, err := tx.DeleteJob(j.ID, 100)
		return err
	})
	w.noSignIn("of a token that is gone", s.Key)
	CheckInvariants(w.T, w.s)
}
