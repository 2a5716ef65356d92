package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// What is kept of a sign-in.
const (
	proofKey   = "proof"
	formKey    = "form"
	touchedKey = "touched"
)

// touchEvery is how often it is noted that a sign-in is used: not with each page, since
// that is a write.
const touchEvery = time.Minute

// signIns keeps who is signed in: in the store, so that it survives the daemon and is the
// same at every daemon on that store. A browser holds a random key, the store its hash.
type signIns struct {
	of      *scs.SessionManager
	plain   string // the cookie's names: without TLS,
	overTLS string // and with it, where no other host can set it
}

func newSignIns(c Config) *signIns {
	m := &scs.SessionManager{ // scs.New would begin with a store in memory, whose cleaner never ends
		Lifetime: c.Longest, IdleTimeout: c.Idle, Store: rows{c.Store, c.Space}, Codec: scs.GobCodec{}, HashTokenInStore: true,
	}
	return &signIns{of: m, plain: c.Cookie, overTLS: "__Host-" + c.Cookie}
}

// who is signed in: [token.ErrUnauthenticated] where nobody is.
func (s *signIns) who(r *http.Request, id identity) (who reviewer, err error) {
	ctx, err := s.load(r)
	if err != nil {
		return who, err
	}
	proof := s.of.GetString(ctx, proofKey)
	if proof == "" {
		return who, token.ErrUnauthenticated
	}
	who = reviewer{form: s.of.GetString(ctx, formKey)}
	who.Token, who.door, err = id.still(r.Context(), proof)
	return who, err
}

// load reads the sign-in that a request's cookie names; an empty one where there is none.
func (s *signIns) load(r *http.Request) (context.Context, error) {
	key := ""
	for _, name := range []string{s.overTLS, s.plain} {
		if c, err := r.Cookie(name); err == nil && key == "" {
			key = c.Value
		}
	}
	return s.of.Load(r.Context(), key)
}

// touch notes that a sign-in is used. Where the store takes no writes it ends in its time;
// where somebody signed out meanwhile it has ended: [token.ErrUnauthenticated].
func (s *signIns) touch(w http.ResponseWriter, r *http.Request) error {
	ctx, err := s.load(r)
	if err != nil || time.Since(time.Unix(s.of.GetInt64(ctx, touchedKey), 0)) < touchEvery {
		return err
	}
	s.of.Put(ctx, touchedKey, time.Now().Unix())
	return s.renew(ctx, w, r)
}

// renew writes a sign-in that is there still.
func (s *signIns) renew(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	return s.commit(context.WithValue(ctx, renewedKey{}, true), w, r)
}

// begin signs somebody in, under a key that nobody has seen before.
func (s *signIns) begin(w http.ResponseWriter, r *http.Request, proof string) error {
	if err := s.end(w, r); err != nil {
		return err
	}
	ctx, err := s.of.Load(r.Context(), "")
	if err != nil {
		return err
	}
	s.of.Put(ctx, proofKey, proof)
	s.of.Put(ctx, formKey, rand.Text())
	s.of.Put(ctx, touchedKey, time.Now().Unix())
	return s.commit(ctx, w, r)
}

func (s *signIns) commit(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	key, until, err := s.of.Commit(context.WithValue(ctx, proofOf{}, s.of.GetString(ctx, proofKey)))
	if err == nil {
		s.cookie(w, r, key, until)
	}
	return err
}

// end signs out whoever is signed in.
func (s *signIns) end(w http.ResponseWriter, r *http.Request) error {
	ctx, err := s.load(r)
	if err != nil || s.of.GetString(ctx, proofKey) == "" {
		return err
	}
	err = s.of.Destroy(ctx)
	if err == nil {
		s.cookie(w, r, "", time.Unix(0, 0))
	}
	return err
}

// cookie is for this host alone, for no script, and sent along only where a person goes
// to a page of ours.
func (s *signIns) cookie(w http.ResponseWriter, r *http.Request, key string, until time.Time) {
	c := &http.Cookie{Name: s.plain, Value: key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Expires: until, MaxAge: int(time.Until(until).Seconds())}
	if key == "" {
		c.MaxAge = -1
	}
	if secure(r) {
		c.Name, c.Secure = s.overTLS, true
	}
	http.SetCookie(w, c)
}

// secure reports whether the browser reaches us over TLS. Whoever claims so falsely only
// gets a cookie that it does not send.
func secure(r *http.Request) bool {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return true
	}
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Scheme == "https"
}

// rows keeps sign-ins in the store.
type rows struct {
	store txn.Store
	space string
}

// proofOf is what a sign-in rests on, in the context of its writing: the manager holds
// what it keeps while it writes it.
type proofOf struct{}

// renewedKey is in the context of a writing that begins no sign-in.
type renewedKey struct{}

// FindCtx is scs.CtxStore's.
func (k rows) FindCtx(ctx context.Context, key string) (data []byte, found bool, err error) {
	in, err := token.FindSignIn(ctx, k.store, k.space, key)
	if errors.Is(err, token.ErrUnauthenticated) {
		return nil, false, nil
	}
	return in.Data, err == nil, err
}

// CommitCtx is scs.CtxStore's.
func (k rows) CommitCtx(ctx context.Context, key string, data []byte, until time.Time) error {
	tokenID, _ := ctx.Value(proofOf{}).(string)
	write := token.CommitSignIn
	if renewed, _ := ctx.Value(renewedKey{}).(bool); renewed {
		write = token.RenewSignIn
	}
	return write(ctx, k.store, token.SignIn{Key: key, Space: k.space, TokenID: tokenID, Data: data, ExpiresAt: until})
}

// DeleteCtx is scs.CtxStore's.
func (k rows) DeleteCtx(ctx context.Context, key string) error {
	return token.DeleteSignIn(ctx, k.store, key)
}

// Find is scs.Store's; the manager calls those with a context.
func (k rows) Find(key string) ([]byte, bool, error) { return k.FindCtx(context.Background(), key) }

// Commit is scs.Store's.
func (k rows) Commit(key string, data []byte, until time.Time) error {
	return k.CommitCtx(context.Background(), key, data, until)
}

// Delete is scs.Store's.
func (k rows) Delete(key string) error { return k.DeleteCtx(context.Background(), key) }
