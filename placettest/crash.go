package placettest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// ErrDead is what a [CrashStore] answers once its process has died. It says
// nothing of the commit, so nobody tries it again.
var ErrDead = fault.Sentinel(fault.Closed, "process_dead", "The process of this store has died.")

// Moment is where in a process's life something is counted.
type Moment string

// The moments at which a process can die.
const (
	BeforeCommit Moment = "before commit" // the transaction is lost
	AfterCommit  Moment = "after commit"  // it is kept, and its caller never hears of it
	AfterEffect  Moment = "after effect"  // a tool did its work, and nobody hears of that
)

// Crash is a place where a process dies: at the n-th of such moments, counted
// from 1. The zero Crash never comes.
type Crash struct {
	Moment Moment
	N      int
}

// String says it in words.
func (c Crash) String() string {
	if c.N == 0 {
		return "no crash"
	}
	return fmt.Sprintf("%s %d", c.Moment, c.N)
}

// CrashStore is the store of a process that dies at a chosen place. From then on
// it refuses everything with [ErrDead], and whoever waits on it is woken to learn
// that; so an engine over it can do nothing more, like one whose process was killed.
// What was committed lies in the store beneath, for the next process.
//
// Code that neither uses the store nor a tool of [CrashStore.Tool] goes on: a
// test that wants it gone waits until it has returned.
type CrashStore struct {
	store txn.Store
	crash Crash
	gone  chan struct{} // closed at death

	mu      sync.Mutex
	dead    bool
	commits int
	effects int
}

var _ txn.Store = (*CrashStore)(nil)

// NewCrashStore is the store s as a process sees it that dies at c.
func NewCrashStore(s txn.Store, c Crash) *CrashStore {
	return &CrashStore{store: s, crash: c, gone: make(chan struct{})}
}

// Update is txn.Store's. A transaction whose closure returned without an error
// counts as a commit.
func (s *CrashStore) Update(ctx context.Context, fn func(txn.Tx) error) error {
	if s.Dead() {
		return ErrDead
	}
	n := 0 // the commit's number: drawn once, though the closure may run twice
	err := s.store.Update(ctx, func(tx txn.Tx) error {
		if s.Dead() {
			return ErrDead
		}
		if err := fn(disowned(tx)); err != nil {
			return err
		}
		if n == 0 {
			n = s.count(&s.commits)
		}
		return s.pass(BeforeCommit, n)
	})
	if err == nil {
		err = s.pass(AfterCommit, n)
	}
	if s.Dead() {
		return ErrDead
	}
	return err
}

// View is txn.Store's.
func (s *CrashStore) View(ctx context.Context, fn func(txn.Tx) error) error {
	if s.Dead() {
		return ErrDead
	}
	return s.store.View(ctx, fn)
}

// Watch is txn.Store's. Death wakes the watcher.
func (s *CrashStore) Watch(streams ...string) (<-chan struct{}, func()) {
	inner, release := s.store.Watch(streams...)
	woken, stopped := make(chan struct{}, 1), make(chan struct{})
	wake := func() {
		select {
		case woken <- struct{}{}:
		default: // it is awake already
		}
	}
	go func() {
		for {
			select {
			case _, open := <-inner:
				if !open {
					inner = nil
				}
				wake()
			case <-s.gone:
				wake()
				return
			case <-stopped:
				return
			}
		}
	}()
	return woken, sync.OnceFunc(func() { close(stopped); release() })
}

// Tool is t as the process has it: its effects are counted, a crash after one
// keeps its result from everybody, and a dead process starts it no more.
func (s *CrashStore) Tool(t tool.Tool) tool.Tool {
	inner := t.Run
	t.Run = tool.RunnerFunc(func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		if s.Dead() {
			return nil, tool.ErrNotStarted.Because(ErrDead)
		}
		out, err := inner.Run(ctx, c)
		if dead := s.pass(AfterEffect, s.count(&s.effects)); dead != nil {
			return nil, tool.ErrOutcomeUnknown.Because(dead)
		}
		return out, err
	})
	return t
}

// Die ends the process now.
func (s *CrashStore) Die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead {
		s.dead = true
		close(s.gone)
	}
}

// Dead reports whether the process has died.
func (s *CrashStore) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Crashes lists the places at which the process could have died so far.
func (s *CrashStore) Crashes() []Crash {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs []Crash
	for n := range s.commits {
		cs = append(cs, Crash{BeforeCommit, n + 1}, Crash{AfterCommit, n + 1})
	}
	for n := range s.effects {
		cs = append(cs, Crash{AfterEffect, n + 1})
	}
	return cs
}

func (s *CrashStore) count(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	return *n
}

// pass is ErrDead if the process dies here, or has died meanwhile.
func (s *CrashStore) pass(m Moment, n int) error {
	if s.crash == (Crash{m, n}) {
		s.Die()
	}
	if s.Dead() {
		return ErrDead
	}
	return nil
}

// deadOwner is the identity of a process that nobody will find running.
const deadOwner = "v1:crashed:0:1:0"

// disownedTx writes attempts as a dead process's. The process that really makes
// them is the test itself, which lives on; a tool's probe would wait for it for ever.
type disownedTx struct{ run.Tx }

func (tx disownedTx) InsertAttempt(a call.Attempt) error {
	a.Owner = deadOwner
	return tx.Tx.InsertAttempt(a)
}

func disowned(tx txn.Tx) txn.Tx {
	if whole, ok := tx.(run.Tx); ok {
		return disownedTx{whole}
	}
	return tx
}
