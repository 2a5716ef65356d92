package httpapi

import (
	"context"
	"net/http"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Tokens is a page of tokens, newest first.
type Tokens struct {
	Tokens []token.Object `json:"tokens"`
	Next   string         `json:"next,omitempty"`
}

// NewToken is what a token is made of.
type NewToken struct {
	Scope     token.Scope `json:"scope" enum:"agent,reviewer,operator,admin"`
	Name      string      `json:"name"`
	Principal string      `json:"principal,omitempty" doc:"who its holder is; the name where it is left out"`
}

type newTokenIn struct{ Body NewToken }

func (s *Server) registerTokens() {
	add(s, route{method: http.MethodGet, path: "/v1/tokens", id: "listTokens", summary: "Tokens, newest first, without their secrets", scopes: admins},
		func(ctx context.Context, c caller, in *Page) (*body[Tokens], error) {
			err := c.behind(in.After, "token", id.Token, func(id string) error { return s.knowsToken(ctx, id) })
			if err != nil {
				return nil, err
			}
			ts, next, err := listing[token.Token]{
				read: func(after string, limit int) ([]token.Token, error) {
					return token.List(ctx, s.c.Store, token.Query{Space: s.c.Space, After: after, Limit: limit})
				},
				id:   func(t token.Token) string { return t.ID },
				sees: func(token.Token) bool { return true },
			}.page(in.After, in.Limit)
			return answer(Tokens{objects(ts, token.Token.Object), next}, err)
		})
	add(s, route{
		method: http.MethodPost, path: "/v1/tokens", id: "createToken", status: http.StatusCreated, scopes: admins,
		summary: "Make a token; its secret is told this once", shape: `{"scope":"agent","name":"ci"}`,
	}, func(ctx context.Context, _ caller, in *newTokenIn) (*body[token.Object], error) {
		b := in.Body
		t, secret, err := token.Create(ctx, s.c.Store, token.New{Space: s.c.Space, Scope: b.Scope, Name: b.Name, Principal: b.Principal})
		o := t.Object()
		o.Secret = secret
		return answer(o, err)
	})
	add(s, route{method: http.MethodDelete, path: "/v1/tokens/{id}", id: "revokeToken", summary: "End a token, and what waits with it", scopes: admins},
		func(ctx context.Context, _ caller, in *idIn) (*body[token.Object], error) {
			t, err := token.Revoke(ctx, s.c.Store, s.c.Space, in.ID)
			if err == nil {
				s.tokenUses.revoked(t.ID)
			}
			return answer(t.Object(), err)
		})
}

func (s *Server) knowsToken(ctx context.Context, id string) error {
	return txn.View(ctx, s.c.Store, func(tx token.Tx) error {
		t, err := tx.Token(id)
		if err == nil && t.Space != s.c.Space {
			err = hidden("token", id)
		}
		return err
	})
}
