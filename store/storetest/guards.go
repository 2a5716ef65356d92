package storetest

import (
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/store"
)

func guards(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"read back": guardReadBack,
		"drop":      guardDrop,
		"run use":   runUse,
		"grants":    grants,
	})
}

func (w *world) guard(g call.Guard) call.Guard {
	w.Helper()
	return read(w, func(tx store.Tx) (call.Guard, error) { return tx.GuardCount(g) })
}

func guardReadBack(w *world) {
	key := call.Guard{Space: "main", Name: "cost", RunID: "run_1", Key: "refund ana"}
	w.same(key, w.guard(key)) // none yet: zero
	full := key
	full.N, full.Since = 7, moment(1)
	whole(w, full)
	for _, g := range []call.Guard{full, {Space: "main", Name: "cost", RunID: "run_1", Key: "refund ana", N: 1 << 40}} {
		w.write(func(tx store.Tx) error { return tx.PutGuard(g) })
		w.same(g, w.guard(key))
	}
	for i, s := range append([]string{""}, hard...) { // each part of the key tells apart
		g := call.Guard{Space: "main", Name: s, RunID: s, Key: s, N: int64(i + 1)}
		w.write(func(tx store.Tx) error { return tx.PutGuard(g) })
	}
	for i, s := range append([]string{""}, hard...) {
		w.same(int64(i+1), w.guard(call.Guard{Space: "main", Name: s, RunID: s, Key: s}).N)
		w.same(int64(0), w.guard(call.Guard{Space: "other", Name: s, RunID: s, Key: s}).N)
	}
	for _, at := range instants(w.b.Precision) {
		g := key
		g.Since = at.given
		w.write(func(tx store.Tx) error { return tx.PutGuard(g) })
		w.same([]time.Time{at.stored}, []time.Time{w.guard(key).Since})
	}
}

// guardDrop: a counter goes unless others added to it; all others stay.
func guardDrop(w *world) {
	keys := []call.Guard{
		{Space: "main", RunID: "run_1", Name: "cost"},
		{Space: "main", RunID: "run_1", Name: "repeats", Key: "k"},
		{Space: "main", RunID: "run_2", Name: "cost"},
		{Space: "main", RunID: "", Name: "cost"},
		{Space: "main", RunID: "RUN_1", Name: "cost"},
		{Space: "other", RunID: "run_1", Name: "cost"},
	}
	w.write(func(tx store.Tx) error {
		for _, g := range keys {
			g.N = 3
			if err := tx.PutGuard(g); err != nil {
				return err
			}
		}
		mine, shared := keys[0], keys[1]
		mine.N, shared.N = 3, 2
		if err := tx.DropGuard(mine); err != nil {
			return err
		}
		return tx.DropGuard(shared) // it counts 3: others too
	})
	for i, g := range keys {
		want := int64(3)
		if i == 0 {
			want = 0
		}
		w.same(want, w.guard(g).N)
	}
	w.write(func(tx store.Tx) error { return tx.DropGuard(call.Guard{Space: "main", RunID: "run_none", N: 9}) })
}

// runUse: a run id is its first user's, told apart by case and space; steps' calls are
// their run's.
func runUse(w *world) {
	use := func(space, id string) call.RunUse {
		w.Helper()
		return read(w, func(tx store.Tx) (call.RunUse, error) { return tx.RunUse(space, id) })
	}
	w.same(call.RunUse{}, use("main", "night"))
	for _, principal := range []string{"first", "second"} {
		c := parkedCall()
		c.RunID, c.ExternalID, c.Principal = "night", principal, principal
		w.insertCall(c)
	}
	w.same(call.RunUse{Calls: true, Principal: "first"}, use("main", "night"))
	w.same(call.RunUse{}, use("main", "Night"))
	w.same(call.RunUse{}, use("other", "night"))
	nobodys := parkedCall()
	nobodys.RunID, nobodys.Principal = "nobody's", ""
	w.insertCall(nobodys)
	w.same(call.RunUse{Calls: true}, use("main", "nobody's"))
	r := w.insertRun(runExamples()[3])
	w.same(call.RunUse{Run: true}, use("main", r.ID))
	w.same(call.RunUse{}, use("other", r.ID))
	step := parkedCall()
	step.RunID, step.StepID, step.OwnRun = r.ID, "stp_1", false
	w.insertCall(step)
	w.same(call.RunUse{Run: true}, use("main", r.ID))
}

// grants: yeses count while somebody can still act on them.
func grants(w *world) {
	type counts struct{ Calls, Runs int64 }
	count := func(space string) counts {
		w.Helper()
		return read(w, func(tx store.Tx) (n counts, err error) {
			n.Calls, n.Runs, err = tx.CountGrants(space)
			return n, err
		})
	}
	w.same(counts{}, count("main"))
	given := func() decision.Decision {
		w.Helper()
		d := w.insertDecision(pendingDecision(w.insertCall(parkedCall())))
		next := d.Clone()
		next.Status, next.Choice, next.DecidedBy, next.DecidedAt, next.SettledAt = decision.Approved, decision.ChoiceApprove, "Ana", moment(3), moment(3)
		w.write(func(tx store.Tx) error { return tx.PutDecision(d, decision.Change{Next: next}) })
		return w.decision(d.ID)
	}
	given()
	spent, moot := given(), given()
	w.insertDecision(pendingDecision(w.insertCall(parkedCall())))
	w.same(counts{Calls: 3}, count("main"))
	w.write(func(tx store.Tx) error { return tx.PutDecision(spent, decision.Change{Next: spentDecision(spent)}) })
	w.closeDecision(moot)
	w.same(counts{Calls: 1}, count("main"))
	w.same(counts{}, count("other"))
}
