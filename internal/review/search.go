package review

import (
	"context"
	"slices"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// longSearch is how long a page is looked for before it is cut.
const longSearch = time.Second

// filled is a page of what holds a search as it is shown. The store also finds what holds it
// only in its secrets; the page is filled up from behind that, since how many rows it had,
// or whether there is a page behind it, would tell what the secrets hold. Texts are looked
// through between two views: that may take long.
func filled(ctx context.Context, s txn.Store, f Filter, sel decision.Queued, part decision.QueuePage) (decision.QueuePage, error) {
	began := time.Now()
	found := finding{sel: sel, limit: pageOf(sel.Limit)}
	for !found.take(f, part) && !part.Cut {
		if part.Cut = time.Since(began) > longSearch; part.Cut {
			break
		}
		next := sel
		next.After = found.far
		err := txn.View(ctx, s, func(tx Tx) (err error) {
			part, err = tx.Queue(next)
			return err
		})
		if err != nil {
			return decision.QueuePage{}, err
		}
	}
	return found.page(part.Cut), nil
}

// pageOf is how many rows a page has, as the store has it.
func pageOf(limit int) int {
	if limit == 0 {
		return 50
	}
	return min(limit, 500)
}

// finding is a page that is being filled.
type finding struct {
	sel   decision.Queued
	limit int
	rows  []decision.Decision // in the order of reading; one more than the page has where there is more
	far   decision.QueuePlace // where it ends, seen from where it was begun; zero: nothing is behind it
}

// take adds what of a part is found, and reports whether the page is done.
func (n *finding) take(f Filter, part decision.QueuePage) (done bool) {
	ds := slices.Clone(part.Decisions)
	if n.far = part.End; n.sel.Back {
		n.far = part.Begin
		slices.Reverse(ds)
	}
	for _, d := range ds {
		if !holds(d, f.Search) {
			continue
		}
		if n.rows = append(n.rows, d); len(n.rows) > n.limit {
			return true
		}
	}
	return n.far.IsZero()
}

func (n *finding) page(cut bool) decision.QueuePage {
	p := decision.QueuePage{Decisions: n.rows, Begin: n.sel.After, End: n.far, Cut: cut}
	if len(n.rows) > n.limit {
		p.Decisions, p.Cut = n.rows[:n.limit], false
		if p.End = n.rows[n.limit-1].Behind(); n.sel.Back { // a place is behind a decision
			p.End = n.rows[n.limit].Behind()
		}
	}
	if n.sel.Back {
		slices.Reverse(p.Decisions)
		p.Begin, p.End = p.End, p.Begin
	}
	return p
}
