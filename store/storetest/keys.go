package storetest

import (
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
)

func keys(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":  keyReadBack,
		"used twice": keyTwice,
		"age":        keyAge,
	})
}

// oneKey is an idempotency key used now, by the store's clock.
func (w *world) oneKey() call.IdempotencyKey {
	w.Helper()
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	return call.IdempotencyKey{
		Space: "main", Principal: "agent:ana", Route: "calls", Key: "k1", Request: "digest", CallID: "call_1", At: now,
	}
}

func (w *world) putKey(k call.IdempotencyKey) {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.PutIdempotent(k) })
}

func (w *world) findKey(k call.IdempotencyKey) (got call.IdempotencyKey, found bool) {
	w.Helper()
	k.Request, k.CallID, k.At = "", "", time.Time{}
	got = read(w, func(tx store.Tx) (g call.IdempotencyKey, err error) {
		g, found, err = tx.FindIdempotent(k)
		return g, err
	})
	return got, found
}

func keyReadBack(w *world) {
	k := w.oneKey()
	whole(w, k)
	if _, found := w.findKey(k); found {
		w.Error("a key is found before it was used")
	}
	w.putKey(k)
	got, found := w.findKey(k)
	if !found {
		w.Error("the key is not found")
	}
	w.same(k, got)
	for _, s := range hard { // each part of the key tells apart
		for _, change := range []func(*call.IdempotencyKey){
			func(k *call.IdempotencyKey) { k.Space = s },
			func(k *call.IdempotencyKey) { k.Principal = s },
			func(k *call.IdempotencyKey) { k.Route = s },
			func(k *call.IdempotencyKey) { k.Key = s },
		} {
			other := k
			change(&other)
			if _, found := w.findKey(other); found {
				w.Errorf("%q finds another's key", s)
			}
			other.CallID = s
			w.putKey(other)
			got, _ := w.findKey(other)
			w.same(other, got)
		}
	}
}

func keyTwice(w *world) {
	k := w.oneKey()
	w.putKey(k)
	again := k
	again.Request, again.CallID = "other", "call_2"
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutIdempotent(again) })
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutIdempotent(k) })
	got, _ := w.findKey(k)
	w.same(k, got)
}

// keyAge: a key is forgotten after its time, and can then be used anew.
func keyAge(w *world) {
	old, kept := w.oneKey(), w.oneKey()
	old.At = old.At.Add(-call.KeptKeys - time.Minute)
	kept.Key, kept.At = "k2", kept.At.Add(-call.KeptKeys+time.Minute)
	w.putKey(old)
	w.putKey(kept)
	if _, found := w.findKey(old); found {
		w.Error("a key is found after its time")
	}
	if _, found := w.findKey(kept); !found {
		w.Error("a key is forgotten before its time")
	}
	fresh := w.oneKey()
	fresh.Request, fresh.CallID = "new", "call_9"
	w.putKey(fresh)
	got, _ := w.findKey(fresh)
	w.same(fresh, got)
	fresh.Key = kept.Key
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutIdempotent(fresh) })
}
