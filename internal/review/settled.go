package review

import (
	"context"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Past leaves out a part of what was decided. The zero Past shows all of it.
type Past struct {
	Standing string // as [StandingOf] has it; empty: all
	Search   string // a text that has to stand in its row, or in the arguments of which that shows some
}

// Standings are how what does not wait any more can stand.
var Standings = []string{"approved", "rejected", "answered", "expired", "taken back", "replaced"}

// None reports whether everything is shown.
func (p Past) None() bool { return p == Past{} }

// Shows reports whether a decision that does not wait any more is one that is left in.
func (p Past) Shows(d decision.Decision) bool {
	return (p.Standing == "" || StandingOf(d, false) == p.Standing) && (p.Search == "" || holds(d, p.Search))
}

// Settled is a page of what was decided, what stopped waiting last first.
type Settled struct {
	At        time.Time // of the reading, by the store's clock
	Decisions []decision.Decision
	End       decision.SettledPlace // where the next page begins; zero: nothing comes behind it
	Cut       bool                  // it was looked for long enough
}

// fewSettled is how many are read at once while a page is looked for: each may be large.
const fewSettled = 50

// ReadSettled reads a page of the space behind a place. What is left out is read, too: after
// a second the page is cut, and can be gone on with from its end.
func ReadSettled(ctx context.Context, s txn.Store, space string, p Past, after decision.SettledPlace, limit int) (found Settled, err error) {
	sel := decision.Settled{Space: space, After: after, Limit: limit + 1}
	if !p.None() {
		sel.Limit = fewSettled
	}
	for until := time.Now().Add(longSearch); ; {
		var ds []decision.Decision
		err = txn.View(ctx, s, func(tx decision.Tx) (err error) {
			found.At = tx.Now()
			ds, err = tx.SettledDecisions(sel)
			return err
		})
		if err != nil {
			return Settled{}, err
		}
		if found.take(p, ds, limit, until) || len(ds) < sel.Limit {
			return found, nil
		}
		sel.After = ds[len(ds)-1].BehindSettled()
	}
}

// take adds what is left in, and reports whether the page is done: there is more than it
// has, or it was looked for until its time was over.
func (s *Settled) take(p Past, ds []decision.Decision, limit int, until time.Time) bool {
	for _, d := range ds {
		if p.Shows(d) {
			if len(s.Decisions) == limit {
				s.End = s.Decisions[limit-1].BehindSettled()
				return true
			}
			s.Decisions = append(s.Decisions, d)
		}
		if !p.None() && time.Now().After(until) {
			s.End, s.Cut = d.BehindSettled(), true
			return true
		}
	}
	return false
}
