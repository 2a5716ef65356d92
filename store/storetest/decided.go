package storetest

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

func decided(t *testing.T, b Backend) {
	cases(t, b, map[string]func(*world){
		"last approved": lastApproved,
		"list":          decidedList,
		"pages":         decidedPages,
	})
}

// lastApproved is the newest yes for the tool: whatever became of it, edited or not; not a
// no, another tool's, another space's, a question's or one about what was interrupted.
func lastApproved(w *world) {
	last := func(space, tool, before string) decision.Decision {
		w.Helper()
		d, err := try(w, func(tx store.Tx) (decision.Decision, error) { return tx.LastApproved(space, tool, before) })
		if err != nil && !errors.Is(err, decision.ErrNotFound) {
			w.Error(err)
		}
		return d
	}
	none := decision.Decision{}
	ds := w.park(9, func(i int, d *decision.Decision) {
		switch i {
		case 0, 1:
			*d = spentDecision(*d)
		case 2: // waits
		case 3:
			*d = spentDecision(*d)
			d.Tool = "other"
		case 4:
			*d = spentDecision(*d)
			d.Kind = decision.KindInterrupted
		case 5:
			*d = spentDecision(*d)
			d.Type = decision.Question
		case 6:
			d.Status, d.Open, d.Choice, d.DecidedBy, d.DecidedAt, d.SettledAt = decision.Rejected, false, decision.ChoiceReject, "Ana", moment(3), moment(3)
		case 7:
			*d = spentDecision(*d)
			d.Tool = ""
		case 8:
			*d = spentDecision(*d)
			d.Space = "other"
		}
	})
	for i, want := range []decision.Decision{none, ds[0], ds[1], ds[1], ds[1], ds[1], ds[1], ds[1]} {
		got := last(event.MainSpace, "refund", ds[i].ID)
		want.Version = got.Version
		w.same(want, got)
	}
	w.same(ds[1].ID, last(event.MainSpace, "refund", "").ID)
	w.same(ds[3].ID, last(event.MainSpace, "other", "").ID)
	w.same(ds[8].ID, last("other", "refund", "").ID)
	for _, tool := range []string{"", "refun", "Refund", "%", "none"} {
		w.same(none, last(event.MainSpace, tool, ""))
	}
	w.write(func(tx store.Tx) error { return tx.PutDecision(ds[2], yes(ds[2])) }) // from now on
	w.same(ds[2].ID, last(event.MainSpace, "refund", ds[8].ID).ID)
	w.settle(ds[2].ID, decision.Supersede{})
	w.same(ds[2].ID, last(event.MainSpace, "refund", "").ID)
}

// history asks for questions and approvals in turn, and has most of them decided, in another
// order than they were asked in and several at one moment. It returns what does not wait any
// more, what was decided last first.
func (w *world) history(n int, from int64) (settled []decision.Decision) {
	w.Helper()
	j, c := w.insertJob(queuedJob()), w.insertCall(parkedCall())
	for i := range n {
		d := pendingDecision(c)
		if i%3 == 1 {
			d = w.pendingQuestion(j, 1)
		}
		d.N = int64(i + 1)
		at := moment(from + int64(i*7%5))
		switch {
		case i%5 == 4: // waits
		case d.Type == decision.Question:
			d.Status, d.Open, d.SettledAt = decision.Withdrawn, false, at
		default:
			d = spentDecision(d)
			d.DecidedAt, d.SettledAt = at, at
		}
		if d = w.insertDecision(d); d.Status != decision.Pending {
			settled = append(settled, d)
		}
	}
	slices.SortFunc(settled, func(a, b decision.Decision) int {
		return cmp.Or(b.SettledAt.Compare(a.SettledAt), cmp.Compare(b.ID, a.ID))
	})
	return settled
}

func (w *world) settledList(q decision.Settled) []string {
	w.Helper()
	return idsOf(read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.SettledDecisions(q) }))
}

// decidedList: both types together by when they stopped waiting, whatever became of them.
func decidedList(w *world) {
	all := w.history(20, 10)
	for _, q := range []decision.Settled{
		{},
		{Limit: 4},
		{After: all[7].BehindSettled()},
		{After: all[8].BehindSettled(), Limit: 3},
		{After: decision.SettledPlace{At: moment(12), ID: "z"}},
		{After: decision.SettledPlace{At: moment(12), ID: "a"}},
		{After: decision.SettledPlace{At: moment(9), ID: "z"}},
	} {
		q.Space = event.MainSpace
		var want []decision.Decision
		for _, d := range all {
			before := d.SettledAt.Before(q.After.At) || d.SettledAt.Equal(q.After.At) && d.ID < q.After.ID
			if (q.After.IsZero() || before) && (q.Limit == 0 || len(want) < q.Limit) {
				want = append(want, d)
			}
		}
		w.Logf("%+v", q)
		w.same(idsOf(want), w.settledList(q))
	}
	w.same([]string(nil), w.settledList(decision.Settled{Space: "other"}))
}

// decidedPages walks back through what was decided, while more is.
func decidedPages(w *world) {
	all := w.history(25, 10)
	want := idsOf(all)
	var got []string
	for q := (decision.Settled{Space: event.MainSpace, Limit: 3}); ; {
		page := read(w, func(tx store.Tx) ([]decision.Decision, error) { return tx.SettledDecisions(q) })
		got = append(got, idsOf(page)...)
		if len(page) < 3 || len(got) > len(want) {
			break
		}
		q.After = page[len(page)-1].BehindSettled()
		w.history(2, 100)
	}
	w.same(want, got)
}
