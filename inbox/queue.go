package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/txn"
)

// onPage is how many rows a page has.
const onPage = 50

// filterOf reads a page's filter out of its address. What it does not know is an error:
// a page that shows something else than was asked for hides what waits.
func filterOf(q url.Values) (f review.Filter, err error) {
	f = review.Filter{What: review.What(q.Get("what")), Kind: q.Get("kind"), Tool: q.Get("tool"), Search: strings.TrimSpace(q.Get("q"))}
	if f.What != "" && !slices.Contains(review.Sorts, f.What) {
		return f, decision.ErrUsage.Say("There is nothing of the sort %q to show.", f.What).Hint("Choose one of those that the page offers.")
	}
	if age := q.Get("age"); age != "" {
		if f.Age, err = time.ParseDuration(age); err != nil || f.Age <= 0 {
			return f, decision.ErrUsage.Say("%q is no age.", age).Hint("Write it like 24h.")
		}
	}
	return f, nil
}

// waiting is the first page: what waits for people, what expires soonest first.
func (b *Inbox) waiting(w http.ResponseWriter, r *http.Request, who reviewer) {
	asked := r.URL.Query()
	f, err := filterOf(asked)
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	if to := pageOf(f.Search); to != "" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	var after decision.QueuePlace
	after.ExpiresAt, after.ID, err = placeOf(asked.Get("after"), listOf("/"+addressOf(f, nil)))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	q, at, err := b.readQueue(r.Context(), f, after, asked.Has("back"))
	if err != nil {
		b.fail(w, r, who, err)
		return
	}
	s := b.shell(r, who, view.Waiting, "Waiting")
	s.Count, s.Live = q.Total, live(onQueue, at, paramsOf(f))
	b.show(w, r, http.StatusOK, view.WaitingPage(s, q))
}

// readQueue reads a page and where the log stood then: what happens from there on is told
// to the page as it happens, and nothing is missed in between (case 155).
func (b *Inbox) readQueue(ctx context.Context, f review.Filter, after decision.QueuePlace, back bool) (view.Queue, event.Cursor, error) {
	sel := f.Queued(b.c.Space, time.Now())
	sel.After, sel.Back, sel.Limit = after, back, onPage
	page, err := review.ReadQueue(ctx, b.c.Store, f, sel)
	if err != nil {
		return view.Queue{}, "", err
	}
	q := view.Queue{At: page.At, Rows: page.Rows, Filter: f, Matches: -1, Cut: page.Cut, Total: review.Total(page.Counts), Counts: page.Counts, First: "/" + addressOf(f, nil)}
	if f.Age == 0 && f.Search == "" {
		q.Matches = review.Matches(page.Counts, f)
	}
	list := listOf(q.First)
	if !page.Begin.IsZero() {
		q.Back = "/" + addressOf(f, url.Values{"after": {placeText(page.Begin.ExpiresAt, page.Begin.ID, list)}, "back": {"1"}})
	}
	if !page.End.IsZero() {
		q.Next = "/" + addressOf(f, url.Values{"after": {placeText(page.End.ExpiresAt, page.End.ID, list)}})
	}
	return q, page.Seen, nil
}

// addressOf is a page's query with a filter.
func addressOf(f review.Filter, more url.Values) string {
	q := paramsOf(f)
	maps.Copy(q, more)
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

func paramsOf(f review.Filter) url.Values {
	return params("what", string(f.What), "kind", f.Kind, "tool", f.Tool, "age", review.AgeText(f.Age), "q", f.Search)
}

// placeText is a place in a list, behind one decision. It goes with the filter that it was
// found with: with another it would leave rows out without a word (case 157).
func placeText(at time.Time, of, list string) string {
	us := int64(0)
	if !at.IsZero() {
		us = at.UnixMicro()
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s %s", us, of, list))
}

// placeOf is a time and the id of a decision; both are zero for none.
func placeOf(s, list string) (at time.Time, of string, err error) {
	if s == "" {
		return at, "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	words := strings.Split(string(b), " ")
	if err != nil || len(words) != 3 || words[2] != list || !id.Has(id.Approval, words[1]) && !id.Has(id.Question, words[1]) {
		return at, "", errPlace
	}
	us, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return at, "", errPlace
	}
	if us != 0 {
		at = time.UnixMicro(us).UTC()
	}
	return at, words[1], nil
}

var errPlace = fault.New(fault.Invalid, "This is no place in what is shown; it may be one of another list or filter.").
	Hint("Begin with the first page again.")

// pageOf is where a whole id leads; empty: it is no id.
func pageOf(text string) string {
	for prefix, path := range map[string]string{
		id.Approval: "/approvals/", id.Question: "/questions/", id.Run: "/runs/", id.Job: "/jobs/", id.Call: "/calls/", id.Delivery: "/deliveries/",
	} {
		if id.Has(prefix, text) {
			return path + text
		}
	}
	return ""
}

// count is how many wait, for the line at the top; -1 where that is not known.
func (b *Inbox) count(ctx context.Context) (n int64) {
	err := txn.View(ctx, b.c.Store, func(tx review.Tx) (err error) {
		if n, err = tx.Pending(b.c.Space, 0); err != nil {
			return err
		}
		jobs, err := tx.CountJobs(b.c.Space)
		n += jobs.Asked
		return err
	})
	if err != nil {
		return -1
	}
	return n
}

// listOf tells the places of one list, by its address, from those of others.
func listOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:6])
}
