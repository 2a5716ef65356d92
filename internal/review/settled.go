package review

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

// Past leaves out a part of what was decided. The zero Past shows all of it.
type Past struct {
	Standing string // as [StandingOf] has it; empty: all
	Search   string // a text that has to stand in what is shown, also in who decided and in the note
}

// Standings are how what does not wait any more can stand.
var Standings = []string{"approved", "rejected", "answered", "expired", "taken back", "replaced"}

// None reports whether everything is shown.
func (p Past) None() bool { return p == Past{} }

// Shows reports whether a decision that does not wait any more is one that is left in. A
// search is held against what is shown of it, so that nobody finds out a secret by searching.
func (p Past) Shows(d decision.Decision) bool {
	if p.Standing != "" && StandingOf(d, false) != p.Standing {
		return false
	}
	return p.Search == "" || holds(d, p.Search) || p.decided(d)
}

// decided reports whether the answer holds what is searched for.
func (p Past) decided(d decision.Decision) bool {
	m, text := Mask(d), strings.ToLower(p.Search)
	shown := []string{d.DecidedBy, m.Text(d.Note), string(m.Scrub(d.EditedArgs))}
	if d.Type == decision.Question {
		shown = append(shown, string(d.Choice), string(m.Scrub(d.Input)))
	}
	return slices.ContainsFunc(shown, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// Settled is a page of what was decided, what stopped waiting last first.
type Settled struct {
	At        time.Time // of the reading, by the store's clock
	Decisions []decision.Decision
	End       decision.SettledPlace // where the next page begins; zero: nothing comes behind it
	Cut       bool                  // it was looked for long enough, and the page is not full
}

// fewSettled is how many are read at once while a page is looked for: each may be large.
const fewSettled = 100

// ReadSettled reads a page of the space behind a place. What is left out is read, too: after
// a second the page is cut, and can be gone on with from its end.
func ReadSettled(ctx context.Context, s txn.Store, space string, p Past, after decision.SettledPlace, limit int) (found Settled, err error) {
	sel := decision.Settled{Space: space, After: after, Limit: limit + 1}
	if !p.None() {
		sel.Limit = fewSettled
	}
	for began := time.Now(); ; {
		var ds []decision.Decision
		err = txn.View(ctx, s, func(tx decision.Tx) (err error) {
			found.At = tx.Now()
			ds, err = tx.SettledDecisions(sel)
			return err
		})
		if err != nil {
			return Settled{}, err
		}
		if found.take(p, ds, limit) || len(ds) < sel.Limit {
			return found, nil
		}
		sel.After = ds[len(ds)-1].BehindSettled()
		if time.Since(began) > longSearch {
			found.End, found.Cut = sel.After, true
			return found, nil
		}
	}
}

// take adds what is left in, and reports whether there is more of that than the page has.
func (s *Settled) take(p Past, ds []decision.Decision, limit int) bool {
	for _, d := range ds {
		if !p.Shows(d) {
			continue
		}
		if len(s.Decisions) == limit {
			s.End = s.Decisions[limit-1].BehindSettled()
			return true
		}
		s.Decisions = append(s.Decisions, d)
	}
	return false
}
