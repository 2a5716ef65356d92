package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
)

func attempts(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back":       attemptReadBack,
		"bytes":           attemptBytes,
		"not found":       attemptNotFound,
		"guards":          attemptGuards,
		"what is fixed":   attemptFixed,
		"impossible rows": attemptImpossible,
	})
}

func (w *world) insertAttempt(a call.Attempt) call.Attempt {
	w.Helper()
	w.write(func(tx store.Tx) error { return tx.InsertAttempt(a) })
	return w.attempt(a.CallID, a.N)
}

func (w *world) attempt(callID string, n int64) call.Attempt {
	w.Helper()
	return read(w, func(tx store.Tx) (call.Attempt, error) { return tx.Attempt(callID, n) })
}

func attemptReadBack(w *world) {
	c, other := w.insertCall(parkedCall()), w.insertCall(parkedCall())
	full := oneAttempt(c)
	whole(w, full)
	bare := call.Attempt{CallID: c.ID, N: 10, StartedAt: moment(0)}
	second := oneAttempt(c)
	second.N = 2
	for _, a := range []call.Attempt{bare, full, second} {
		w.same(a, w.insertAttempt(a))
	}
	w.insertAttempt(oneAttempt(other))
	w.same([]call.Attempt{full, second, bare}, read(w, func(tx store.Tx) ([]call.Attempt, error) { return tx.Attempts(c.ID) }))
	for i, at := range instants(w.b.Precision) {
		a := oneAttempt(other)
		a.N, a.StartedAt, a.EndedAt = int64(i+2), at.given, at.given
		got := w.insertAttempt(a)
		w.same([]time.Time{at.stored, at.stored}, []time.Time{got.StartedAt, got.EndedAt})
	}
}

func attemptBytes(w *world) {
	c := w.insertCall(parkedCall())
	n := int64(0)
	for _, b := range blobs() {
		a := oneAttempt(c)
		n++
		a.N, a.Args = n, b
		w.same(a, w.insertAttempt(a))
	}
	for _, s := range hard {
		a := oneAttempt(c)
		n++
		a.N, a.Owner, a.Message, a.GrantDigest, a.EffectiveDigest, a.ApprovalID = n, s, s, s, s, s
		w.same(a, w.insertAttempt(a))
	}
}

func attemptNotFound(w *world) {
	c := w.insertCall(parkedCall())
	w.insertAttempt(oneAttempt(c))
	for _, n := range []int64{0, 2, -1} {
		_, err := try(w, func(tx store.Tx) (call.Attempt, error) { return tx.Attempt(c.ID, n) })
		if !errors.Is(err, decision.ErrNotFound) {
			w.Errorf("attempt %d: %v", n, err)
		}
	}
	if as := read(w, func(tx store.Tx) ([]call.Attempt, error) { return tx.Attempts("call_none") }); len(as) != 0 {
		w.Errorf("a call that does not exist has %d attempts", len(as))
	}
	w.Log("an attempt at nothing")
	stray := oneAttempt(c)
	stray.CallID = "call_none"
	w.refused(nil, func(tx store.Tx) error { return tx.InsertAttempt(stray) })
	w.Log("an attempt twice")
	w.refused(nil, func(tx store.Tx) error { return tx.InsertAttempt(oneAttempt(c)) })
}

// attemptGuards: only who holds the attempt may write how it went, and an
// outcome is never overwritten by one who did not see it (case 070).
func attemptGuards(w *world) {
	c := w.insertCall(parkedCall())
	a := oneAttempt(c)
	a.Outcome, a.EndedAt, a.Late = "", time.Time{}, false
	w.insertAttempt(a)
	next := a
	next.Outcome, next.EndedAt, next.Kind, next.Message = call.Succeeded, moment(5), "", "done"
	for name, stale := range map[string]func(*call.Attempt){
		"fence":   func(a *call.Attempt) { a.Fence-- },
		"epoch":   func(a *call.Attempt) { a.Epoch++ },
		"outcome": func(a *call.Attempt) { a.Outcome = call.Unknown },
		"number":  func(a *call.Attempt) { a.N++ },
	} {
		prev := a
		stale(&prev)
		w.Log(name)
		w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutAttempt(prev, next) })
	}
	w.write(func(tx store.Tx) error { return tx.PutAttempt(a, next) })
	w.same(next, w.attempt(c.ID, 1))
	lost := a
	lost.Outcome, lost.EndedAt = call.Unknown, moment(6)
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutAttempt(a, lost) })
}

func attemptFixed(w *world) {
	c := w.insertCall(parkedCall())
	a := w.insertAttempt(oneAttempt(c))
	next := a
	next.Fence, next.Epoch, next.ApprovalID, next.GrantDigest, next.EffectiveDigest = 9, 9, "other", "other", "other"
	next.Args, next.Owner, next.Recovery, next.StartedAt = nil, "other", call.RecoverByPerson, moment(99)
	next.Outcome, next.EndedAt, next.Kind, next.Message, next.Late = call.Failed, moment(8), call.KindToolError, "no", false
	w.write(func(tx store.Tx) error { return tx.PutAttempt(a, next) })
	want := a
	want.Outcome, want.EndedAt, want.Kind, want.Message, want.Late = call.Failed, moment(8), call.KindToolError, "no", false
	w.same(want, w.attempt(c.ID, 1))
}

func attemptImpossible(w *world) {
	c := w.insertCall(parkedCall())
	for name, spoil := range map[string]func(*call.Attempt){
		"number 0":              func(a *call.Attempt) { a.N = 0 },
		"outcome without end":   func(a *call.Attempt) { a.EndedAt = time.Time{} },
		"end without outcome":   func(a *call.Attempt) { a.Outcome = "" },
		"outcome of no attempt": func(a *call.Attempt) { a.Outcome = call.Denied },
	} {
		a := oneAttempt(c)
		spoil(&a)
		w.Log(name)
		w.refused(nil, func(tx store.Tx) error { return tx.InsertAttempt(a) })
	}
}
