package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// tokenUses are the tokens with which somebody waits. Thousands may wait with one of them:
// whether it is still good is read once for all who ask at the same time.
type tokenUses struct {
	mu sync.Mutex
	of map[string]*tokenUse
}

// tokenUse is how long the requests wait that came with a token: until it is revoked, or
// the server stops.
type tokenUse struct {
	users int // guarded by tokenUses
	ends  context.Context
	end   context.CancelCauseFunc

	mu   sync.Mutex
	good time.Time // when it was last looked at; zero: not yet
}

func (ls *tokenUses) enter(tokenID string, stopping context.Context) (l *tokenUse, leave func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l = ls.of[tokenID]
	if l == nil {
		l = &tokenUse{}
		l.ends, l.end = context.WithCancelCause(stopping)
		ls.of[tokenID] = l
	}
	l.users++
	return l, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if l.users--; l.users == 0 {
			l.end(nil)
			delete(ls.of, tokenID)
		}
	}
}

func (ls *tokenUses) get(tokenID string) *tokenUse {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.of[tokenID]
}

// revoked ends what waits with a token that was revoked through this server.
func (ls *tokenUses) revoked(tokenID string) {
	if l := ls.get(tokenID); l != nil {
		l.end(token.ErrUnauthenticated)
	}
}

// waiting is a context that also ends when the server stops or the caller's token is
// revoked. The token is looked at once more, now that its end would be noticed.
func (s *Server) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	l, leave := s.tokenUses.enter(callerOf(ctx).ID, s.stopping)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ends, func() { cancel(context.Cause(l.ends)) })
	if err := s.stillGood(ctx); err != nil {
		cancel(err)
	}
	return ctx, func() {
		stop()
		cancel(nil)
		leave()
	}
}

// stillGood refuses to tell more to a caller whose token was revoked, by whatever
// process, since it was admitted: [token.ErrUnauthenticated]. ctx is one from waiting.
func (s *Server) stillGood(ctx context.Context) error {
	asked := time.Now()
	id := callerOf(ctx).ID
	l, leave := s.tokenUses.enter(id, s.stopping)
	defer leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.good.After(asked) {
		return nil // another has looked since
	}
	began := time.Now()
	var t token.Token
	err := txn.View(ctx, s.c.Store, func(tx token.Tx) (err error) {
		t, err = tx.Token(id)
		return err
	})
	if err != nil {
		return because(ctx, err)
	}
	if !t.RevokedAt.IsZero() {
		l.end(token.ErrUnauthenticated)
		return token.ErrUnauthenticated
	}
	l.good = began
	return nil
}

// because is why a context ended, where that is why there was an error.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
