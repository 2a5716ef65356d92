package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// order tells every story once, in peace, on a store that watches in what order
// the engines use it. A backend with one lock for all forgives what is wrong here;
// one that locks row by row does not.
func order(t *testing.T, b Backend) {
	for name, tell := range stories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, b, Options{Once: true})
			s := &orderly{Store: h.struck, t: t}
			p := h.play(h.struck, 0)
			p.s, p.op.Store, p.later.Store = s, s, s
			// An engine's own clock is read at the moment at which the store's would be.
			now := p.later.Now
			p.later.Now = func() time.Time { s.clock(); return now() }
			p.Executor = p.executor(func(c *call.Config) { c.Store, c.Approval = s, call.Deferred(s) })
			tell(p)
			p.endSlow()
			p.settled()
		})
	}
}

// orderly is a store on which the clock may not be read before the root is locked
// (design §4, rule 8), nor a row be written that was not (rule 2).
type orderly struct {
	*store.Store
	t   testing.TB
	now *orderlyTx // of the closure that runs
}

func (s *orderly) Update(ctx context.Context, fn func(txn.Tx) error) error {
	return s.Store.Update(ctx, func(inner txn.Tx) error {
		s.now = &orderlyTx{Tx: inner.(store.Tx), t: s.t}
		defer func() { s.now = nil }()
		return fn(s.now)
	})
}

func (s *orderly) clock() {
	if s.now != nil {
		s.now.early = s.now.early || !s.now.locked
	}
}

type orderlyTx struct {
	store.Tx
	t             testing.TB
	locked, early bool
}

func (tx *orderlyTx) Now() time.Time {
	tx.early = tx.early || !tx.locked
	return tx.Tx.Now()
}

func (tx *orderlyTx) lock(what string) {
	tx.t.Helper()
	if tx.early && !tx.locked {
		tx.t.Errorf("the clock was read before %s was locked", what)
	}
	tx.locked = true
}

func (tx *orderlyTx) Call(id string) (call.Call, error) {
	tx.lock(id)
	return tx.Tx.Call(id)
}

func (tx *orderlyTx) LockCall(id string) error {
	tx.lock(id)
	return tx.Tx.LockCall(id)
}

func (tx *orderlyTx) CallByExternalID(space, runID, externalID string) (call.Call, error) {
	tx.lock(externalID)
	return tx.Tx.CallByExternalID(space, runID, externalID)
}

func (tx *orderlyTx) LockDecision(id string) (decision.Decision, error) {
	tx.lock(id)
	return tx.Tx.LockDecision(id)
}

func (tx *orderlyTx) Run(id string) (run.Run, error) {
	tx.lock(id)
	return tx.Tx.Run(id)
}

func (tx *orderlyTx) LockRun(r run.Run) error {
	tx.lock(r.ID)
	return tx.Tx.LockRun(r)
}

// InsertRun makes a root, like InsertCall.
func (tx *orderlyTx) InsertRun(ch run.Change) error {
	tx.locked = true
	return tx.Tx.InsertRun(ch)
}

// InsertCall makes a root: nobody else can have locked it.
func (tx *orderlyTx) InsertCall(c call.Call, es ...event.Event) error {
	tx.locked = true
	return tx.Tx.InsertCall(c, es...)
}

func (tx *orderlyTx) PutDecision(prev decision.Decision, ch decision.Change) error {
	tx.unlocked(prev.ID)
	return tx.Tx.PutDecision(prev, ch)
}

func (tx *orderlyTx) PutRun(prev run.Run, ch run.Change) error {
	tx.unlocked(prev.ID)
	return tx.Tx.PutRun(prev, ch)
}

func (tx *orderlyTx) PutAttempt(prev, next call.Attempt) error {
	tx.unlocked(prev.CallID)
	return tx.Tx.PutAttempt(prev, next)
}

func (tx *orderlyTx) unlocked(id string) {
	tx.t.Helper()
	if !tx.locked {
		tx.t.Errorf("%s was written without a lock on its root", id)
	}
}
