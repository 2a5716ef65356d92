package storetest

import (
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func counters(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"add":     counterAdd,
		"pending": counterPending,
	})
}

// counting is the part of a backend's rows that counts.
type counting interface {
	store.Tx
	Count(space, name string, limit int64) (int64, error)
	Add(space, name string, n int64) error
}

func counterAdd(w *world) {
	add := func(space, name string, n int64) error {
		return txn.Update(w.ctx, w.s, func(tx counting) error { return tx.Add(space, name, n) })
	}
	count := func(space, name string) (n int64) {
		if err := txn.View(w.ctx, w.s, func(tx counting) (err error) {
			n, err = tx.Count(space, name, 0)
			return err
		}); err != nil {
			w.Fatal(err)
		}
		return n
	}
	for _, step := range []struct{ n, want int64 }{{3, 3}, {-2, 1}, {0, 1}, {1 << 40, 1<<40 + 1}, {-1<<40 - 1, 0}} {
		if err := add("main", "c", step.n); err != nil {
			w.Fatal(err)
		}
		w.same(step.want, count("main", "c"))
	}
	for _, of := range [][2]string{{"main", "C"}, {"other", "c"}, {"", "c"}} {
		w.same(int64(0), count(of[0], of[1]))
	}
	for _, name := range []string{"c", "never used"} { // a count below zero would lift a limit
		if err := add("main", name, -1); err == nil {
			w.Errorf("counter %q went below zero without an error", name)
		}
		w.same(int64(0), count("main", name))
	}
}

// counterPending: the counter moves with the rows it counts, in their transaction.
func counterPending(w *world) {
	pending := func(space string, want int64) {
		w.Helper()
		w.same(want, read(w, func(tx store.Tx) (int64, error) { return tx.Pending(space, 0) }))
	}
	c := w.insertCall(parkedCall())
	pending(c.Space, 0)
	var ds []decision.Decision
	for n := range int64(3) {
		d := pendingDecision(c)
		d.N = n + 1
		ds = append(ds, w.insertDecision(d))
	}
	question, settled := pendingDecision(c), spentDecision(pendingDecision(c))
	question.N, question.Type, settled.N = 4, decision.Question, 5
	w.insertDecision(question)
	w.insertDecision(settled)
	pending(c.Space, 3)
	pending("other", 0)
	w.write(func(tx store.Tx) error { return tx.PutDecision(ds[0], decision.Change{Next: ds[0]}) }) // still pending
	pending(c.Space, 3)
	w.write(func(tx store.Tx) error {
		if err := tx.PutDecision(ds[1], yes(ds[1])); err != nil {
			return err
		}
		n, err := tx.Pending(c.Space, 0)
		w.same(int64(2), n)
		return err
	})
	pending(c.Space, 2)
	w.refused(decision.ErrMoved, func(tx store.Tx) error { return tx.PutDecision(ds[1], yes(ds[1])) })
	d := w.decision(ds[1].ID)
	w.write(func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: spentDecision(d)}) }) // counted off already
	pending(c.Space, 2)

	// One that was closed is no work any more, and what becomes of it is counted once.
	shut := w.closeDecision(w.decision(ds[0].ID))
	pending(c.Space, 1)
	w.write(func(tx store.Tx) error { return tx.PutDecision(shut, decision.Change{Next: spentDecision(shut)}) })
	pending(c.Space, 1)
	d = pendingDecision(c)
	d.N, d.Open = 6, false
	w.insertDecision(d)
	pending(c.Space, 1)
}
