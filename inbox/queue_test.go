package inbox_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// rows are the ids of a page's rows, in order.
func (p *page) rows() (ids []string) {
	for _, n := range p.elements("li") {
		if id := attr(n, "data-id"); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// link is where the link with that relation leads; empty: there is none.
func (p *page) link(rel string) string {
	for _, n := range p.elements("a") {
		if attr(n, "rel") == rel {
			return attr(n, "href")
		}
	}
	return ""
}

func TestQueue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	b.get("/").want(200).has("Nothing waits", "it appears here, what expires soonest first")
	never := w.park("refund", `{"order":"o-1","amount":1}`)
	later := w.ask(decision.Asking{Prompt: "Go on, later?", Timeout: time.Hour, By: "bot"})
	soon := w.ask(decision.Asking{Prompt: "Go on, soon?", Timeout: time.Minute, By: "bot"})
	wipe := w.park("wipe", `{"disk":"a%b_c"}`)
	p := b.get("/").want(200).has("4 wait", "Go on, soon?", "o-1", "a%b_c", "changes things elsewhere", "question", "call")
	want := []string{soon.ID, later.ID, never.ID, wipe.ID}
	if got := p.rows(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("in order %q, want %q", got, want)
	}
	for query, want := range map[string][]string{
		"what=question":             {soon.ID, later.ID},
		"what=call":                 {never.ID, wipe.ID},
		"what=run":                  nil,
		"tool=wipe":                 {wipe.ID},
		"kind=remote_mutation":      {never.ID, wipe.ID},
		"kind=nothing":              nil,
		"age=1h":                    nil,
		"q=%25b_":                   {wipe.ID},
		"q=b_":                      {wipe.ID},
		"q=GO+ON":                   {soon.ID, later.ID},
		"q=refund":                  {never.ID},
		"q=" + never.ID[:30]:        {never.ID},
		"q=o-1&what=question":       nil,
		"q=%27%3B+DROP+TABLE":       nil,
		"q=" + url.QueryEscape("é"): nil,
	} {
		p := b.get("/?" + query).want(200)
		if got := p.rows(); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if len(want) == 0 {
			p.has("Nothing of that sort waits")
		}
	}
	if p := b.get("/?q=" + never.ID); p.path != "/approvals/"+never.ID {
		t.Errorf("a whole id leads to %s", p.path)
	}
	b.get("/?what=everything").want(400)
	b.get("/?age=yesterday").want(400)
	b.get("/?after=nonsense").want(400).has("This is no place in what is shown")
}

// Each row once, forwards and backwards, while others come and go, also where many expire
// at one instant; and a place of another filter is refused (case 157).
func TestPaging(t *testing.T) {
	t.Parallel()
	clock := &placettest.Clock{}
	clock.Set(time.Now())
	w := setupAt(t, &sqlite.Options{Now: clock.Now})
	b := w.as(token.Reviewer, "ana")
	mine := map[string]bool{}
	for i := range 120 {
		mine[w.park("refund", fmt.Sprintf(`{"order":"o-%d","amount":1}`, i)).ID] = true
	}
	for _, round := range []struct{ begin, rel string }{{"/", "next"}, {"/?back=1", "prev"}} {
		seen := map[string]int{}
		at := round.begin
		for n := 0; at != "" && n < 10; n++ {
			p := b.get(at).want(200)
			for _, id := range p.rows() {
				seen[id]++
			}
			gone := w.park("wipe", `{}`)
			if err := (decision.Operator{Store: w.st, Principal: "ben"}).RejectShown(t.Context(), "", gone.ID, gone.Digest, "ben", ""); err != nil {
				t.Fatal(err)
			}
			at = p.link(round.rel)
		}
		for id := range mine {
			if seen[id] != 1 {
				t.Errorf("%s: %s was seen %d times", round.begin, id, seen[id])
			}
		}
	}
	next := b.get("/").link("next")
	u, err := url.Parse(next)
	if err != nil {
		t.Fatal(err)
	}
	b.get("/?tool=wipe&after=" + url.QueryEscape(u.Query().Get("after"))).want(400).has("This is no place in what is shown")
}

// Nobody finds out a secret by searching for it.
func TestSearchFindsNoSecret(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	d := w.park("refund", `{"order":"o-7","amount":5,"password":"s3cret"}`)
	for _, q := range []string{"s3cret", "s3c", "S3CRET"} {
		if got := b.get("/?q=" + q).want(200).rows(); len(got) > 0 {
			t.Errorf("%q finds %q", q, got)
		}
	}
	if got := b.get("/?q=o-7").rows(); len(got) != 1 || got[0] != d.ID {
		t.Errorf("o-7 finds %q", got)
	}
	people := decision.Operator{Store: w.st, Principal: "ben"}
	a := decision.Answer{Approved: true, EditedArgs: []byte(`{"order":"o-7","amount":4,"password":"n3w-s3cret"}`), Shown: d.Digest, By: "ben", Note: "not s3cret but n3w-s3cret, for Eve"}
	if _, err := people.Decide(t.Context(), d.ID, a); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"s3cret", "n3w-s", "S3CRET", "for+eve"} { // a note may repeat what only the decision's own page knows to be secret
		b.get("/decided?q=" + q).want(200).has("Nothing of that sort was found")
	}
	b.get("/decided?q=O-7").want(200).has("refund approved")
	w.alter(`UPDATE decision SET request = CAST('{' AS BLOB) WHERE id = ?`, d.ID)
	b.get("/decided?q=n3w-s").want(200).has("Nothing of that sort was found")
}

// Nor by how many rows a search has, or whether there is a page behind it.
func TestSearchTellsNoSecretApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	hidden := func() { w.park("refund", `{"order":"o-7","amount":5,"password":"guess-a"}`) }
	hidden()
	var open []string
	for range 50 {
		open = append(open, w.park("wipe", `{"t":"guess-a guess-b"}`).ID)
	}
	hidden()
	for _, q := range []string{"guess-a", "guess-b"} {
		p := b.get("/?q=" + q).want(200)
		if got := p.rows(); !slices.Equal(got, open) {
			t.Errorf("%s finds %d rows of %d", q, len(got), len(open))
		}
		if next := p.link("next"); next != "" {
			t.Errorf("%s has a page behind it: %s", q, next)
		}
	}
	more := w.park("wipe", `{"t":"guess-a guess-b"}`)
	for _, q := range []string{"guess-a", "guess-b"} {
		p := b.get(b.get("/?q=" + q).link("next")).want(200)
		if got := p.rows(); len(got) != 1 || got[0] != more.ID {
			t.Errorf("behind the first page of %s is %q", q, got)
		}
		if got := b.get(p.link("prev")).rows(); !slices.Equal(got, open) {
			t.Errorf("before the second page of %s are %d rows of %d", q, len(got), len(open))
		}
	}
}

func TestDecidedList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	b.get("/decided").want(200).has("Nothing has been decided yet")
	people := decision.Operator{Store: w.st, Principal: "ben"}
	var last decision.Decision
	for i := range 60 {
		last = w.park("refund", fmt.Sprintf(`{"order":"o-%d","amount":1}`, i))
		if err := people.RejectShown(t.Context(), "", last.ID, last.Digest, "ben", ""); err != nil {
			t.Fatal(err)
		}
	}
	waits, early := w.park("refund", small), w.park("wipe", `{"disk":"a"}`)
	w.park("refund", small)
	if err := people.RejectShown(t.Context(), "", early.ID, early.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	p := b.get("/decided").want(200).has("rejected", "rejected by ben", "o-59").hasNot(waits.ID)
	if got := p.links(); !strings.Contains(strings.Join(got, " "), "/approvals/"+last.ID) {
		t.Errorf("it leads to %q", got)
	}
	b.get(p.link("next")).want(200).has("o-9").hasNot("o-59")
	p = b.get("/decided?how=rejected&q=O-").want(200).has("o-59")
	b.get(p.link("next")).want(200).has("o-9").hasNot("o-59")
	if next := strings.Replace(p.link("next"), "how=rejected", "how=approved", 1); b.get(next).status != 400 {
		t.Error("a place in one list is one in another")
	}
	// What was decided last comes first, whenever it was asked.
	if err := people.RejectShown(t.Context(), "", waits.ID, waits.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	rows := b.get("/decided").elements("li")
	var titles []string
	for _, li := range rows {
		for n := range li.Descendants() {
			if n.Data == "a" && attr(n, "class") == "row-title" {
				titles = append(titles, attr(n, "href"))
			}
		}
	}
	if want := []string{"/approvals/" + waits.ID, "/approvals/" + early.ID, "/approvals/" + last.ID}; len(titles) != 50 || !slices.Equal(titles[:3], want) {
		t.Errorf("%d rows, first %q, want %q", len(titles), titles[:min(3, len(titles))], want)
	}
	for _, bad := range []string{"x", "!", "MTIz", base64.RawURLEncoding.EncodeToString([]byte("x apr_1"))} {
		b.get("/decided?after=" + bad).want(400).has("no place in what is shown")
	}
}

// What became of a yes stands beside it.
func TestDecidedSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	people := decision.Operator{Store: w.st, Principal: "ben"}
	approve := func() decision.Decision {
		d := w.park("refund", small)
		if err := people.ApproveShown(t.Context(), "", d.ID, d.Digest, "ben", ""); err != nil {
			t.Fatal(err)
		}
		return d
	}
	ran := approve()
	if _, err := w.calls.Server(httpapi.Origin).Continue(t.Context(), ran.CallID, func(txn.Tx, call.Call) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	no := w.park("refund", small)
	if err := people.RejectShown(t.Context(), "", no.ID, no.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	approve()
	b := w.as(token.Reviewer, "ana")
	b.get("/decided").want(200).has("refund approved not run yet", "refund rejected order", "refund approved succeeded")
	b.get("/decided?how=rejected").want(200).has("refund rejected order").hasNot("refund approved")
	b.get("/decided?how=approved&q=o-7").want(200).has("refund approved succeeded").hasNot("rejected by")
	b.get("/decided?q=BEN").want(200).has("refund approved succeeded", "refund rejected")
	b.get("/decided?q=nobody").want(200).has("Nothing of that sort was found").hasNot("refund")
	b.get("/decided?how=other").want(400).has("Nothing ends as")
	if p := b.get("/decided?q=" + no.ID); p.path != "/approvals/"+no.ID {
		t.Errorf("an id leads to %s", p.path)
	}
	// And whoever is asked for the same again is told.
	again := w.park("refund", small)
	b.get("/approvals/" + again.ID).want(200).has("Is it asked twice? Exactly these arguments were approved just now")
}

// A search whose end is reached says how many it found.
func TestSearchCounts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range 3 {
		w.park("refund", fmt.Sprintf(`{"order":"o-%d","amount":1}`, i))
	}
	w.as(token.Reviewer, "ana").get("/?q=o-1").want(200).has("1 found, of 3")
}

// Work that no process here can carry out is said to be so.
func TestUnserved(t *testing.T) {
	t.Parallel()
	w := setup(t, unserved("No process here has tool refund."))
	d := w.park("refund", small)
	if err := (decision.Operator{Store: w.st, Principal: "ben"}).ApproveShown(t.Context(), "", d.ID, d.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	w.as(token.Reviewer, "ana").get("/approvals/" + d.ID).has("Nothing has run yet. No process here has tool refund.")
}

// What a library or a command line parked says who goes on with it.
func TestWhoGoesOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.calls.Call(t.Context(), "refund", []byte(small))
	var waits *call.PendingError
	if !asPending(err, &waits) {
		t.Fatal(err)
	}
	b := w.as(token.Reviewer, "ana")
	at := "/approvals/" + waits.ApprovalID
	b.post(at, with(b.get(at).has("a program on the store itself").form(at), "answer", "approve")).want(200).has("placet resume " + waits.ApprovalID)
	if _, err := w.calls.Resume(t.Context(), waits.ApprovalID, nil); err != nil {
		t.Fatal(err)
	}
	b.get(at).has("It ran, and succeeded.")
}
