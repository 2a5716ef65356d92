package inbox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/review"
)

// decided lists what does not wait any more, what was decided last first.
func (b *Inbox) decided(w http.ResponseWriter, r *http.Request, who reviewer) {
	asked := r.URL.Query()
	p, err := pastOf(asked)
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	if to := pageOf(p.Search); to != "" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	list, after := listOf(address("/decided", pairsOf(p)...)), asked.Get("after")
	var from decision.SettledPlace
	from.At, from.ID, err = placeOf(after, list)
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	page, err := review.ReadSettled(r.Context(), b.c.Store, b.c.Space, p, from, onPage)
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	v := view.Past{Past: p, At: page.At, Cut: page.Cut}
	next := ""
	if !page.End.IsZero() {
		next = placeText(page.End.At, page.End.ID, list)
	}
	v.Back, v.Next = around("/decided", after, next, pairsOf(p)...)
	for _, d := range page.Decisions {
		v.Rows = append(v.Rows, review.RowOf(d))
	}
	if v.Calls, err = review.ReadCalls(r.Context(), b.c.Store, page.Decisions); err != nil && r.Context().Err() == nil {
		b.c.Log.Warn("what became of decisions was not read for a page", "error", err)
	}
	b.show(w, r, http.StatusOK, view.DecidedPage(b.shell(r, who, view.Decided, "Decided"), v))
}

// pastOf reads what is to be shown out of an address.
func pastOf(q url.Values) (p review.Past, err error) {
	p = review.Past{Standing: q.Get("how"), Search: strings.TrimSpace(q.Get("q"))}
	if p.Standing != "" && !slices.Contains(review.Standings, p.Standing) {
		return p, decision.ErrUsage.Say("Nothing ends as %q.", p.Standing).Hint("Choose one of those that the page offers.")
	}
	if err := (decision.Queued{Search: p.Search}).Check(); err != nil {
		return p, err
	}
	return p, nil
}

func pairsOf(p review.Past) []string { return []string{"how", p.Standing, "q", p.Search} }
