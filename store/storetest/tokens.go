package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/token"
)

func tokens(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back": tokenReadBack,
		"list":      tokenList,
		"revoke":    tokenRevoke,
	})
}

func (w *world) insertToken(change func(*token.Token)) token.Token {
	w.Helper()
	k := token.Token{
		ID: id.New(id.Token), Space: "main", Scope: token.Agent, Name: "bot", Principal: "bot", Hash: slices.Repeat([]byte{0xA5}, 32), CreatedAt: moment(1),
	}
	change(&k)
	w.write(func(tx store.Tx) error { return tx.InsertToken(k) })
	return k
}

func tokenReadBack(w *world) {
	for _, k := range []token.Token{
		w.insertToken(func(k *token.Token) { k.Name, k.Principal, k.JobID = "O'Néil \U0001F600", "ana", "job_1" }),
		w.insertToken(func(k *token.Token) { k.Scope, k.RevokedAt = token.Admin, moment(2) }),
	} {
		w.same(k, read(w, func(tx store.Tx) (token.Token, error) { return tx.Token(k.ID) }))
	}
	if _, err := try(w, func(tx store.Tx) (token.Token, error) { return tx.Token("tok_none") }); !errors.Is(err, token.ErrNotFound) {
		w.Errorf("of no such token: %v", err)
	}
	for what, wrong := range map[string]func(*token.Token){
		"no such scope":      func(k *token.Token) { k.Scope = "root" },
		"a short hash":       func(k *token.Token) { k.Hash = []byte("x") },
		"a job's that rules": func(k *token.Token) { k.Scope, k.JobID = token.Admin, "job_1" },
	} {
		k := token.Token{ID: id.New(id.Token), Space: "main", Scope: token.Agent, Hash: make([]byte, 32), CreatedAt: moment(1)}
		wrong(&k)
		if err := w.update(func(tx store.Tx) error { return tx.InsertToken(k) }); err == nil {
			w.Errorf("%s is stored", what)
		}
	}
}

func tokenList(w *world) {
	var all []string
	for i := range 5 {
		k := w.insertToken(func(k *token.Token) {
			if i%2 == 1 {
				k.Principal, k.RevokedAt = "ana", moment(9)
			}
		})
		all = append(all, k.ID)
	}
	w.insertToken(func(k *token.Token) { k.Space = "elsewhere" })
	slices.Reverse(all)
	w.same(all, w.tokenIDs(token.Query{Space: "main"}))
	w.same(all[3:], w.tokenIDs(token.Query{Space: "main", After: all[2]}))
	w.same(all[:2], w.tokenIDs(token.Query{Space: "main", Limit: 2}))
	w.same([]string{all[1], all[3]}, w.tokenIDs(token.Query{Space: "main", Principal: "ana"}))
	w.same([]string{all[0], all[2], all[4]}, w.tokenIDs(token.Query{Space: "main", Good: true}))
	w.same(all[:1], w.tokenIDs(token.Query{Space: "main", Prefix: all[0]}))
	w.same([]string(nil), w.tokenIDs(token.Query{Space: "main", JobID: "job_1"}))
}

func (w *world) tokenIDs(q token.Query) (ids []string) {
	w.Helper()
	for _, k := range read(w, func(tx store.Tx) ([]token.Token, error) { return tx.Tokens(q) }) {
		ids = append(ids, k.ID)
	}
	return ids
}

func tokenRevoke(w *world) {
	k := w.insertToken(func(*token.Token) {})
	for i, want := range []bool{true, false} { // the first time stands
		var got bool
		w.write(func(tx store.Tx) (err error) {
			got, err = tx.RevokeToken(k.ID, moment(int64(5+i)))
			return err
		})
		w.same(want, got)
	}
	w.same(moment(5), read(w, func(tx store.Tx) (time.Time, error) { t, err := tx.Token(k.ID); return t.RevokedAt, err }))
}
