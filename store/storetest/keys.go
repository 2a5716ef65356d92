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
		"forgotten":  keyForgotten,
	})
}

// oneKey is an idempotency key used now, by the store's clock.
func (w *world) oneKey() call.IdempotencyKey {
	w.Helper()
	now := read(w, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
	return call.IdempotencyKey{
		Space: "main", Principal: "agent:ana", Route: "calls", Key: "k1", Request: "digest", CallID: "call_1", Attempt: 1, At: now,
	}
}

func (w *world) putKey(k call.IdempotencyKey) {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.PutIdempotent(k) })
}

func (w *world) findKey(k call.IdempotencyKey) (got call.IdempotencyKey, found bool) {
	w.Helper()
	k.Request, k.CallID, k.Attempt, k.At = "", "", 0, time.Time{}
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
	again.Request, again.CallID, again.Attempt = "other", "call_2", 7
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
	fresh.Request, fresh.CallID, fresh.Attempt = "new", "call_9", 0
	w.putKey(fresh)
	got, _ := w.findKey(fresh)
	w.same(fresh, got)
	fresh.Key = kept.Key
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutIdempotent(fresh) })
}

// keyForgotten: old keys are listed oldest first, of every space, and go only while
// they are as they were listed.
func keyForgotten(w *world) {
	var ks []call.IdempotencyKey
	for i, space := range []string{"main", "other", "main"} {
		k := w.oneKey()
		k.Space, k.Key, k.At = space, string(rune('a'+i)), k.At.Add(-call.KeptKeys-time.Duration(3-i)*time.Hour)
		w.putKey(k)
		ks = append(ks, k)
	}
	old := func(before time.Time, limit int) []call.IdempotencyKey {
		w.Helper()
		return read(w, func(tx store.Tx) ([]call.IdempotencyKey, error) { return tx.OldKeys(before, limit) })
	}
	cut := w.oneKey().At.Add(-call.KeptKeys)
	w.same(ks, old(cut, 10))
	w.same(ks[:2], old(cut, 2))
	w.same(ks[:1], old(ks[1].At, 10)) // strictly before
	anew := ks[0]
	anew.CallID, anew.At = "call_2", w.oneKey().At
	w.putKey(anew)
	for i, want := range []bool{false, true, true} {
		var got bool
		w.write(func(tx store.Tx) (err error) {
			got, err = tx.DropKey(ks[i])
			return err
		})
		w.same(want, got)
	}
	w.same([]call.IdempotencyKey(nil), old(cut, 10))
	got, _ := w.findKey(anew)
	w.same(anew, got)
}
