package storetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

func queue(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"order":             queueOrder,
		"pages":             func(w *world) { w.queuePages(false) },
		"pages, backwards":  func(w *world) { w.queuePages(true) },
		"pages and filters": queueFilters,
		"what is no work":   queueNoWork,
		"counts":            queueCounts,
		"search":            queueSearch,
		"search, escaped":   queueSearchEscaped,
		"search, in pieces": queueSearchCut,
		"search, large":     queueSearchLarge,
		"no search":         queueNoSearch,
	})
}

func (w *world) queue(q decision.Queued) decision.QueuePage {
	w.Helper()
	return read(w, func(tx store.Tx) (decision.QueuePage, error) { return tx.Queue(q) })
}

func (w *world) queueCounts(space string) []decision.QueueCount {
	w.Helper()
	return read(w, func(tx store.Tx) ([]decision.QueueCount, error) { return tx.QueueCounts(space) })
}

func idsOf(ds []decision.Decision) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

// park inserts approvals of one call, in one transaction.
func (w *world) park(n int, change func(i int, d *decision.Decision)) []decision.Decision {
	w.Helper()
	c := w.insertCall(parkedCall())
	ds := make([]decision.Decision, n)
	for i := range ds {
		ds[i] = pendingDecision(c)
		ds[i].N = int64(i + 1)
		change(i, &ds[i])
	}
	w.ask(ds)
	return ds
}

func (w *world) ask(ds []decision.Decision) {
	w.Helper()
	w.write(func(tx store.Tx) error {
		for _, d := range ds {
			if err := tx.InsertDecision(d, asked(d)); err != nil {
				return err
			}
		}
		return nil
	})
}

// inQueue orders decisions as the queue does.
func inQueue(a, b decision.Decision) int {
	if a.ExpiresAt.IsZero() != b.ExpiresAt.IsZero() {
		return cmp.Compare(b.ExpiresAt.UnixMicro(), a.ExpiresAt.UnixMicro()) // the zero time is the last
	}
	return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), strings.Compare(a.ID, b.ID))
}

// queueOrder: by deadline, by id among equal ones, and what never expires last; whole.
func queueOrder(w *world) {
	all := w.park(9, func(i int, d *decision.Decision) { d.ExpiresAt = []time.Time{moment(30), {}, moment(10)}[i%3] })
	all = append(all, w.insertQuestion(w.pendingQuestion(w.insertJob(queuedJob()), 1)))
	slices.SortFunc(all, inQueue)
	for _, q := range []decision.Queued{{}, {Back: true}, {Limit: 10}, {Limit: 10, Back: true}} {
		q.Space = event.MainSpace
		w.same(decision.QueuePage{Decisions: all}, w.queue(q))
	}
	w.same(decision.QueuePage{Decisions: all[:9], End: all[8].Behind()}, w.queue(decision.Queued{Space: event.MainSpace, Limit: 9}))
	w.same(decision.QueuePage{Decisions: all[1:], Begin: all[0].Behind()}, w.queue(decision.Queued{Space: event.MainSpace, Limit: 9, Back: true}))
	w.write(func(tx store.Tx) error { // the same in a transaction that writes
		p, err := tx.Queue(decision.Queued{Space: event.MainSpace, Limit: 2, After: all[1].Behind()})
		w.same(decision.QueuePage{Decisions: all[2:4], Begin: all[1].Behind(), End: all[3].Behind()}, p)
		return err
	})
	w.same(decision.QueuePage{}, w.queue(decision.Queued{Space: "none"}))
}

// walk goes through the queue page by page, and does something after each.
func (w *world) walk(q decision.Queued, after func(page []decision.Decision)) (ids []string) {
	w.Helper()
	for range 1000 {
		p := w.queue(q)
		page := idsOf(p.Decisions)
		if after(p.Decisions); q.Back {
			ids, q.After = append(page, ids...), p.Begin
		} else {
			ids, q.After = append(ids, page...), p.End
		}
		if q.After.IsZero() {
			return ids
		}
	}
	w.Fatal("the pages do not end")
	return nil
}

// queuePages walks pages of ten over 25 decisions of one deadline, while more are asked and
// half of what was seen is decided (case 157): each of the 25 comes exactly once.
func (w *world) queuePages(back bool) {
	for _, at := range []time.Time{moment(10), {}} {
		ds := w.park(25, func(_ int, d *decision.Decision) { d.ExpiresAt = at })
		pages := 0
		got := w.walk(decision.Queued{Space: event.MainSpace, Limit: 10, Back: back}, func(page []decision.Decision) {
			for i, d := range page {
				if i%2 == 0 {
					w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
				}
			}
			if pages++; pages > 5 {
				return // else the pages would not end: what is asked comes behind them
			}
			w.park(4, func(i int, d *decision.Decision) { d.ExpiresAt = []time.Time{at, moment(9), moment(11), {}}[i] })
		})
		want := idsOf(ds)
		slices.Sort(want)
		w.same(want, slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(want, id) }))
		for _, d := range w.queue(decision.Queued{Space: event.MainSpace, Limit: 500}).Decisions {
			w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
		}
	}
}

// mixed asks for decisions of every sort, many of them with one deadline, and settles some.
func (w *world) mixed(r *rand.Rand) []decision.Decision {
	w.Helper()
	c, ru, j, elsewhere := parkedCall(), w.insertRun(waitingRun()), w.insertJob(queuedJob()), parkedCall()
	elsewhere.Space = "other"
	c, elsewhere = w.insertCall(c), w.insertCall(elsewhere)
	long := string(randomText(r, 10_000)) // PostgreSQL's indexes have no room for it
	all := make([]decision.Decision, 60)
	for i := range all {
		d := pendingDecision(c)
		switch r.IntN(6) {
		case 0:
			d = pendingDecision(elsewhere)
		case 1:
			d.Owner = decision.Ref{Kind: decision.OwnerRun, ID: ru.ID}
		case 2, 3:
			d = w.pendingQuestion(j, 1)
		}
		d.N = int64(i + 1)
		d.ExpiresAt = []time.Time{{}, moment(10), moment(11), moment(12)}[r.IntN(4)]
		d.CreatedAt = moment(int64(r.IntN(4)))
		if d.Type == decision.Approval {
			d.Kind, d.Tool = []string{"payment", "Payment", "", long, long + "x"}[r.IntN(5)], []string{"refund", "refund2", "é"}[r.IntN(3)]
		}
		if r.IntN(5) == 0 {
			d = spentDecision(d)
		}
		all[i] = d
	}
	w.ask(all)
	for i, d := range all {
		switch all[i] = w.decision(d.ID); {
		case d.Status != decision.Pending:
		case r.IntN(8) == 0:
			all[i] = w.closeDecision(all[i]) // what waited on it has ended
		case r.IntN(8) == 0:
			w.write(func(tx store.Tx) error { return tx.PutDecision(all[i], yes(all[i])) })
			all[i] = w.decision(d.ID)
		}
	}
	slices.SortFunc(all, inQueue)
	return all
}

func randomText(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}

// queueFilters holds pages in both directions, and counts, against a model.
func queueFilters(w *world) {
	seed := rand.Uint64()
	w.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := w.mixed(r)
	some := func() decision.Decision { return all[r.IntN(len(all))] }
	for range 200 {
		q := decision.Queued{Space: event.MainSpace, Limit: 1 + r.IntN(20), Back: r.IntN(2) == 0}
		for _, change := range []func(){
			func() { q.Space = some().Space }, func() { q.Type = some().Type }, func() { q.Owner = some().Owner.Kind },
			func() { q.Kind = some().Kind }, func() { q.Tool = some().Tool }, func() { q.Before = some().CreatedAt },
			func() { q.After = some().Behind() }, func() { q.After = some().Behind() }, func() { q.After.ID += "z" },
		} {
			if r.IntN(4) == 0 {
				change()
			}
		}
		if q.After.ID == "z" {
			q.After = decision.QueuePlace{ExpiresAt: moment(11), ID: "apr_"}
		}
		w.same(queued(all, q), w.queue(q))
	}
	for _, space := range []string{event.MainSpace, "other", "none"} {
		w.same(countedOf(all, space), w.queueCounts(space))
	}
}

// waits reports whether d is in the queue that q picks from.
func waits(d decision.Decision, q decision.Queued) bool {
	return d.Status == decision.Pending && d.Open && d.Space == q.Space && (q.Type == "" || d.Type == q.Type) && (q.Owner == "" || d.Owner.Kind == q.Owner) &&
		(q.Kind == "" || d.Kind == q.Kind) && (q.Tool == "" || d.Tool == q.Tool) && (q.Before.IsZero() || d.CreatedAt.Before(q.Before))
}

// queued is the page that q should find of all, which are in order.
func queued(all []decision.Decision, q decision.Queued) decision.QueuePage {
	var ds []decision.Decision
	for _, d := range all {
		behind := inQueue(d, decision.Decision{ExpiresAt: q.After.ExpiresAt, ID: q.After.ID}) > 0
		if waits(d, q) && (q.After.IsZero() || behind != q.Back) {
			ds = append(ds, d)
		}
	}
	if n := len(ds) - q.Limit; q.Back && n > 0 {
		return decision.QueuePage{Decisions: ds[n:], Begin: ds[n-1].Behind(), End: q.After}
	} else if q.Back {
		return decision.QueuePage{Decisions: ds, End: q.After}
	} else if n > 0 {
		return decision.QueuePage{Decisions: ds[:q.Limit], Begin: q.After, End: ds[q.Limit-1].Behind()}
	}
	return decision.QueuePage{Decisions: ds, Begin: q.After}
}

func countedOf(all []decision.Decision, space string) (cs []decision.QueueCount) {
	n := map[decision.QueueCount]int64{}
	for _, d := range all {
		if waits(d, decision.Queued{Space: space}) {
			n[decision.QueueCount{Type: d.Type, Owner: d.Owner.Kind, Kind: d.Kind, Tool: d.Tool}]++
		}
	}
	for c, count := range n {
		c.N = count
		cs = append(cs, c)
	}
	slices.SortFunc(cs, func(a, b decision.QueueCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Owner, b.Owner), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Tool, b.Tool))
	})
	return cs
}

// queueCounts follows the counts through all that can become of what waits, of sorts that
// are all but alike: kinds of about as many bytes as an index takes, and names of which one
// begins another.
func queueCounts(w *world) {
	kinds := []string{"", "k", "k ", "kk", strings.Repeat("k", 199), strings.Repeat("k", 200), strings.Repeat("k", 201), strings.Repeat("é", 100), strings.Repeat("é", 101)}
	tools := []string{"refund", "refund2", "r"}
	ds := w.park(2*len(kinds)*len(tools), func(i int, d *decision.Decision) {
		d.Kind, d.Tool = kinds[i%len(kinds)], tools[i/len(kinds)%len(tools)]
	})
	j := w.insertJob(queuedJob())
	over := ends()[1:]
	for n := range int64(len(over) + 1) {
		ds = append(ds, w.insertQuestion(w.pendingQuestion(j, n+1)))
	}
	counted := func() {
		w.Helper()
		var all []decision.Decision
		for _, d := range ds {
			all = append(all, w.decision(d.ID))
		}
		w.same(countedOf(all, event.MainSpace), w.queueCounts(event.MainSpace))
	}
	counted()
	for i, d := range ds[:len(kinds)*len(tools)] {
		switch i % 3 {
		case 0:
			w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
		case 1:
			w.settle(d.ID, decision.Supersede{})
		case 2:
			w.closeDecision(d)
		}
		if i%len(kinds) < 3 {
			counted()
		}
	}
	counted()
	for i, cmd := range over {
		w.settle(ds[len(ds)-1-i].ID, cmd)
		counted()
	}
	w.write(func(tx store.Tx) error { // in the transaction that changes them
		n := len(ds) - len(over) - 2
		if err := tx.PutDecision(ds[n], yes(ds[n])); err != nil {
			return err
		}
		cs, err := tx.QueueCounts(event.MainSpace)
		if err != nil {
			return err
		}
		all := append(slices.Clone(ds[:n]), ds[n+1:]...)
		for i := range all {
			if all[i], err = tx.Decision(all[i].ID); err != nil {
				return err
			}
		}
		w.same(countedOf(all, event.MainSpace), cs)
		return nil
	})
	counted()
}

// queueNoWork: what an answer cannot change any more is not in the queue, nor what belongs
// to a job that is being deleted.
func queueNoWork(w *world) {
	stays := w.park(1, func(int, *decision.Decision) {})[0]
	kept, gone := w.insertJob(endedJob()), w.insertJob(endedJob())
	asked := []decision.Decision{stays, w.insertQuestion(w.pendingQuestion(kept, 1))}
	w.insertQuestion(w.pendingQuestion(gone, 1))
	ofGone := w.pendingQuestion(gone, 2)
	ofGone.Tool = "odd" // the only one of its sort
	w.insertQuestion(ofGone)
	gone = w.job(gone.ID)
	w.write(func(tx store.Tx) error { return tx.CleanJob(gone, "ana") })
	w.closeDecision(w.park(1, func(int, *decision.Decision) {})[0])
	for _, cmd := range ends()[1:] {
		w.insertQuestion(w.pendingQuestion(w.insertJob(queuedJob()), 1), cmd)
	}
	slices.SortFunc(asked, inQueue)
	w.same(decision.QueuePage{Decisions: asked}, w.queue(decision.Queued{Space: event.MainSpace}))
	w.same(decision.QueuePage{Decisions: asked}, w.queue(decision.Queued{Space: event.MainSpace, Search: "ana"}))
	w.same(countedOf(asked, event.MainSpace), w.queueCounts(event.MainSpace))
}
