package postgres_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/pgtest"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/postgres"
	"github.com/placet-dev/placet/txn"
)

// cut is a way in which a COMMIT goes wrong.
type cut struct {
	name    string
	arm     func(*pgtest.Proxy, ...string) <-chan pgtest.Strike
	deaf    bool  // nobody can be asked afterwards
	hangs   bool  // the connection has to be cut by somebody else
	outcome error // nil: it was committed
	there   bool
}

var cuts = []cut{
	{name: "before COMMIT", arm: (*pgtest.Proxy).CutBeforeCommit, outcome: txn.ErrNotCommitted},
	{name: "after COMMIT", arm: (*pgtest.Proxy).CutAfterCommitSent, there: true},
	{name: "in the answer", arm: (*pgtest.Proxy).CutInCommitAnswer, there: true},
	{name: "COMMIT is lost", arm: (*pgtest.Proxy).DropCommit, hangs: true, outcome: txn.ErrNotCommitted},
	{name: "before COMMIT, for good", arm: (*pgtest.Proxy).CutBeforeCommit, deaf: true, outcome: txn.ErrUnknown},
	{name: "after COMMIT, for good", arm: (*pgtest.Proxy).CutAfterCommitSent, deaf: true, outcome: txn.ErrUnknown, there: true},
	{name: "in the answer, for good", arm: (*pgtest.Proxy).CutInCommitAnswer, deaf: true, outcome: txn.ErrUnknown, there: true},
}

// warm has several connections be there, so that none has to be made where none can be:
// what is told to others may be using one.
func warm(t *testing.T, s *store.Store) {
	t.Helper()
	var done sync.WaitGroup
	inside, all := make(chan struct{}), make(chan struct{})
	const conns = 4
	for range conns {
		done.Go(func() {
			first := true
			err := txn.View(patient(t), s, func(tx event.Tx) error {
				tx.Now()
				if first {
					first = false
					inside <- struct{}{}
					<-all
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range conns {
		<-inside
	}
	close(all)
	done.Wait()
}

// strike has the next COMMIT of a transaction with the fragments go wrong while do runs.
func (c cut) strike(t *testing.T, p *pgtest.Proxy, do func() error, fragments ...string) error {
	t.Helper()
	struck := c.arm(p, fragments...)
	p.Refuse(c.deaf)
	defer p.Refuse(false)
	told := make(chan error, 1)
	go func() { told <- do() }()
	if s := await(t, "the fault", struck); len(s.Statements) == 0 {
		t.Error("nothing was struck")
	}
	if c.hangs {
		p.Cut()
	}
	return await(t, "the answer", told)
}

// right fails unless the error is what the cut comes to.
func (c cut) right(t *testing.T, err error) {
	t.Helper()
	switch other := map[error]error{txn.ErrNotCommitted: txn.ErrUnknown, txn.ErrUnknown: txn.ErrNotCommitted}[c.outcome]; {
	case c.outcome == nil && err != nil:
		t.Errorf("it was committed, and the answer is %v", err)
	case c.outcome != nil && (!errors.Is(err, c.outcome) || errors.Is(err, other)):
		t.Errorf("the answer is %v, want %v", err, c.outcome)
	}
}

// Whatever becomes of a COMMIT's connection, what its caller is told is so.
func TestCutCommit(t *testing.T) {
	t.Parallel()
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Schema(t)
			direct := open(t, url, postgres.Options{})
			proxy := pgtest.NewProxy(t, url)
			s := open(t, proxy.URL(url), postgres.Options{})
			ctx, name := patient(t), ""
			warm(t, s)
			err := c.strike(t, proxy, func() (err error) { name, err = put(ctx, s); return err })
			c.right(t, err)
			stands(t, direct, name, c.there)
			if _, err := put(ctx, s); err != nil {
				t.Errorf("the handle does not go on: %v", err)
			}
		})
	}
}

// A tool is called only once it is known that its start was committed; and at most once.
func TestCutStart(t *testing.T) {
	t.Parallel()
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Schema(t)
			direct := openShop(t, open(t, url, postgres.Options{}))
			proxy := pgtest.NewProxy(t, url)
			p := openShop(t, open(t, proxy.URL(url), postgres.Options{}))
			a := p.mustGrant()
			warm(t, p.s)
			err := c.strike(t, proxy, func() error { _, err := p.Resume(p.ctx, a.ApprovalID, nil); return err }, "INSERT INTO attempt")
			c.right(t, err)
			as := direct.attempts(a.CallID)
			if (len(as) == 1) != c.there {
				t.Errorf("the store has %d attempts", len(as))
			}
			ran := 0
			if c.outcome == nil {
				ran = 1
			}
			if n := p.times(a.CallID); n != ran {
				t.Errorf("the tool ran %d times, want %d", n, ran)
			}
			if c.outcome == txn.ErrNotCommitted { // the yes is still good
				res, err := p.Resume(p.ctx, a.ApprovalID, nil)
				if err != nil || res.Status != call.Succeeded || p.times(a.CallID) != 1 {
					t.Errorf("once more: %s, %v; the tool ran %d times", res.Status, err, p.times(a.CallID))
				}
			}
		})
	}
}

// One who never hears of a COMMIT waits for as long as an answer may take, asks what
// became of it, and is told that nobody knows: its transaction is still there.
func TestSilentCommit(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	direct := open(t, url, postgres.Options{})
	proxy := pgtest.NewProxy(t, url)
	s := open(t, proxy.URL(url), postgres.Options{Hooks: impatient()})
	struck := proxy.DropCommit()
	name, err := put(patient(t), s)
	if !errors.Is(err, txn.ErrUnknown) {
		t.Errorf("the answer is %v", err)
	}
	if len(await(t, "the fault", struck).Statements) == 0 {
		t.Error("nothing was struck")
	}
	stands(t, direct, name, false)
	proxy.Cut()
}

// What fails before COMMIT was sent is not committed, without anybody being asked.
func TestCutMidway(t *testing.T) {
	t.Parallel()
	url := pgtest.Schema(t)
	proxy := pgtest.NewProxy(t, url)
	s := open(t, proxy.URL(url), postgres.Options{})
	p := openShop(t, s)
	a := p.mustAsk()
	ran := 0
	err := txn.Update(p.ctx, s, func(tx store.Tx) error {
		ran++
		if _, err := tx.LockDecision(a.ApprovalID); err != nil {
			return err
		}
		proxy.Cut()
		proxy.Refuse(true)
		return putNamed(tx, "tok_cut")
	})
	if !errors.Is(err, txn.ErrNotCommitted) && !errors.Is(err, txn.ErrUnknown) || ran != 1 {
		t.Errorf("the closure ran %d times, and the answer is %v", ran, err)
	}
	proxy.Refuse(false)
	stands(t, s, "tok_cut", false)
}
