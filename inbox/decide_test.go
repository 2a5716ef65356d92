package inbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/placettest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
)

const small = `{"order":"o-7","amount":5}`

func TestApprove(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	p := b.get(at).want(200).has("Approve this call?", "refund", "Refund an order.", "changes things elsewhere", "o-7", "the HTTP API", "by bot", d.Digest, "Nobody has approved a call of this tool before.")
	sent := with(p.form(at), "answer", "approve", "note", "looks right\r\nto me")
	p = b.post(at, sent).want(200)
	if p.path != at {
		t.Errorf("it leads to %s", p.path)
	}
	p.has("Approved", "by ana", "looks right", "What happened next", "The daemon goes on with it by itself.").hasNot("anaana")
	got := w.read(d.ID)
	if got.Choice != decision.ChoiceApprove || got.DecidedBy != "ana" || got.DecidedPrincipal != "ana" || !got.Verified || got.Note != "looks right\nto me" {
		t.Errorf("it is recorded as %s by %q as %q, verified %t: %q", got.Choice, got.DecidedBy, got.DecidedPrincipal, got.Verified, got.Note)
	}
	// A double click, the back button, a reload: the same form again decides nothing new.
	b.post(at, sent).want(200).has("Approved", "by ana")
	other := w.as(token.Reviewer, "ben")
	other.post(at, with(other.get("/").form("/sign-out"), "answer", "reject", "digest", d.Digest)).want(409).
		has("It was decided before your answer", "approved by ana", "Your answer was not recorded.")
	if es := w.events(d); es[event.ApprovalDecided] != 1 {
		t.Errorf("it was decided %d times", es[event.ApprovalDecided])
	}
}

// events counts those of a decision's owner.
func (w *world) events(d decision.Decision) map[event.Type]int {
	w.t.Helper()
	n := map[event.Type]int{}
	p, err := event.Read(w.t.Context(), w.st, d.Owner.Stream(), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range p.Events {
		n[e.Type]++
	}
	return n
}

func TestReject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	b.post(at, with(b.get(at).form(at), "answer", "reject", "note", "too much")).want(200).has("Rejected", "by ana", "too much", "It will not run.")
	if got := w.read(d.ID); got.Choice != decision.ChoiceReject || got.Note != "too much" {
		t.Errorf("it is %s: %q", got.Choice, got.Note)
	}
}

// A form that is not one of our own, or says neither yes nor no, decides nothing
// (cases 037, 130, 132).
func TestFormsThatDecideNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	f := with(b.get(at).form(at), "answer", "approve")
	other := w.as(token.Reviewer, "ben").get(at).form(at)
	without := func(name string) url.Values {
		g := with(f)
		g.Del(name)
		return g
	}
	for name, c := range map[string]struct {
		form   url.Values
		status int
	}{
		"no form token":             {without("form_token"), 403},
		"an empty form token":       {with(f, "form_token", ""), 403},
		"another sign-in's token":   {with(f, "form_token", other.Get("form_token")), 403},
		"no answer":                 {without("answer"), 400},
		"an empty answer":           {with(f, "answer", ""), 400},
		"true":                      {with(f, "answer", "true"), 400},
		"yes":                       {with(f, "answer", "yes"), 400},
		"1":                         {with(f, "answer", "1"), 400},
		"APPROVE":                   {with(f, "answer", "APPROVE"), 400},
		"an answer twice":           {url.Values{"form_token": f["form_token"], "digest": f["digest"], "answer": {"approve", "reject"}}, 400},
		"two digests":               {url.Values{"form_token": f["form_token"], "digest": {d.Digest, "x"}, "answer": {"approve"}}, 400},
		"no digest":                 {without("digest"), 400},
		"another digest":            {with(f, "digest", "sha256-placet1:00"), 409},
		"a note that is no text":    {with(f, "note", "a\x00"), 400},
		"a note in another coding":  {with(f, "note", "K\xf6hler"), 400},
		"a note that is too long":   {with(f, "note", strings.Repeat("x", decision.MaxNote+1)), 400},
		"a form that is too large":  {with(f, "note", strings.Repeat("x", 5<<20)), 413},
		"a form that has no values": {url.Values{}, 403},
	} {
		if p := b.post(at, c.form); p.status != c.status {
			t.Errorf("%s: %d, want %d: %.300s", name, p.status, c.status, p.text)
		}
	}
	for _, sort := range []string{"text/plain", "multipart/form-data; boundary=x", "application/json", ""} {
		if p := b.do(http.MethodPost, at, f, "Content-Type", sort); p.status != 400 {
			t.Errorf("a form sent as %q: %d", sort, p.status)
		}
	}
	for _, h := range [][]string{{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if p := b.do(http.MethodPost, at, f, h...); p.status != 403 {
			t.Errorf("a form with %s: %d", h, p.status)
		}
	}
	if p := b.do(http.MethodGet, at+"?"+f.Encode(), nil); p.status != 200 {
		t.Errorf("as a link it answers %d", p.status)
	}
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Fatalf("it is %s", got.Status)
	}
	b.post(at, f).want(200).has("Approved")
}

// What changed since a page was made is refused, and the page says what and who
// (case 159).
func TestPagesLeftOpen(t *testing.T) {
	t.Parallel()
	clock := &placettest.Clock{}
	clock.Set(time.Now())
	w := setupAt(t, &sqlite.Options{Now: clock.Now})
	ctx := t.Context()
	people := decision.Operator{Store: w.st, Principal: "ben", Verified: true}
	b := w.as(token.Reviewer, "ana")
	open := func() (decision.Decision, string, url.Values) {
		d := w.park("refund", small)
		at := "/approvals/" + d.ID
		return d, at, with(b.get(at).form(at), "answer", "approve")
	}

	d, at, f := open()
	if err := people.RejectShown(ctx, "", d.ID, d.Digest, "Ben", "no"); err != nil {
		t.Fatal(err)
	}
	b.post(at, f).want(409).has("It was decided before your answer", "rejected by Ben", "Your answer was not recorded.")

	d, at, f = open()
	if _, err := (decision.Operator{Store: w.st, Principal: "bot"}).Withdraw(ctx, d.ID, "bot", ""); err != nil {
		t.Fatal(err)
	}
	b.post(at, f).want(409).has("It was taken back before your answer", "by bot")

	d, at, f = open()
	w.alter(`UPDATE decision SET presentation = ? WHERE id = ?`, []byte(`{"title":"Harmless"}`), d.ID)
	b.post(at, f).want(409).has("does not match its digest")
	b.get(at).has("This record was altered", "It cannot be approved.")
	if got := b.get(at).buttons(at); len(got) != 1 || got[0] != "reject" {
		t.Errorf("an altered record offers %q", got)
	}
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
	b.post(at, with(b.get(at).form(at), "answer", "reject")).want(200).has("Rejected")

	d, at, f = open()
	w.alter(`UPDATE decision SET digest = 'sha256-placet1:1111', kind = 'harmless' WHERE id = ?`, d.ID)
	b.post(at, f).want(409).has("It changed since it was shown", "what changed is the kind", "outside of Placet")
}

// alter writes to the store behind Placet's back.
func (w *world) alter(sql string, args ...any) {
	w.t.Helper()
	alter(w.t, w.path, sql, args...)
}

// An approval whose time is over offers no button, and a form of before is refused.
func TestExpiredWhileOpen(t *testing.T) {
	t.Parallel()
	clock := &placettest.Clock{}
	clock.Set(time.Now())
	w := setupAt(t, &sqlite.Options{Now: clock.Now})
	q := w.ask(decision.Asking{Prompt: "Go on?", Timeout: time.Minute, By: "bot"})
	b := w.as(token.Reviewer, "ana")
	at := "/questions/" + q.ID
	f := with(b.get(at).form(at), "answer", "0")
	clock.Advance(time.Minute)
	b.get(at).has("Your answer")
	clock.Advance(time.Microsecond)
	if p := b.get(at).has("Expired"); len(p.buttons(at)) > 0 {
		t.Errorf("it offers %q", p.buttons(at))
	}
	b.post(at, f).want(410).has("It expired before your answer")
	if got := w.read(q.ID); got.Status != decision.Expired || got.DecidedBy != "" {
		t.Errorf("it is %s by %q", got.Status, got.DecidedBy)
	}
}

// A value that would run is opened before it is approved.
func TestLongValuesAreOpened(t *testing.T) {
	t.Parallel()
	w := setup(t)
	long := strings.Repeat("a", 3000) + "MIDDLE" + strings.Repeat("b", 3000)
	d := w.park("refund", `{"order":"`+long+`","amount":5}`)
	at := "/approvals/" + d.ID
	b := w.as(token.Reviewer, "ana")
	p := b.get(at).has("bytes not shown", "6,006 bytes in all").hasNot("MIDDLE")
	if got := p.buttons(at); len(got) != 1 || got[0] != "reject" {
		t.Errorf("before it is opened it offers %q", got)
	}
	b.post(at, with(p.form(at), "answer", "approve")).want(400).has("Open it all")
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Fatalf("it is %s", got.Status)
	}
	p = b.get(at + "?open=1").has("MIDDLE")
	b.post(at, with(p.form(at), "answer", "approve")).want(200).has("Approved")
	// A no needs nothing opened.
	d = w.park("refund", `{"order":"`+long+`","amount":6}`)
	at = "/approvals/" + d.ID
	b.post(at, with(b.get(at).form(at), "answer", "reject")).want(200).has("Rejected")
}

// The largest arguments that there are can be looked at, and answered.
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	d := w.park("wipe", `{"list":[`+strings.Repeat("1,", large)+`1]}`)
	at := "/approvals/" + d.ID
	b.get("/").want(200).has("a request of ", "shown on its own page")
	p := b.get(at).want(200).has("Approve this call?", "Open it all to approve")
	b.post(at, with(p.form(at), "answer", "reject")).want(200).has("Rejected")
}

// Of two reviewers who press at once one wins, and the other is told who and what.
func TestReviewersRace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ana, ben := w.as(token.Reviewer, "ana"), w.as(token.Reviewer, "ben")
	for i := range rounds {
		d := w.park("refund", fmt.Sprintf(`{"order":"o-%d","amount":%d}`, i, i))
		at := "/approvals/" + d.ID
		yes, no := with(ana.get(at).form(at), "answer", "approve"), with(ben.get(at).form(at), "answer", "reject")
		start := make(chan struct{})
		var got [2]*page
		var both sync.WaitGroup
		both.Go(func() { <-start; got[0] = ana.post(at, yes) })
		both.Go(func() { <-start; got[1] = ben.post(at, no) })
		close(start)
		both.Wait()
		won := w.read(d.ID)
		winner, loser, standing := got[0], got[1], "approved by ana"
		if won.Choice == decision.ChoiceReject {
			winner, loser, standing = got[1], got[0], "rejected by ben"
		}
		if winner.status != 200 || loser.status != 409 {
			t.Fatalf("round %d: %s won: %d and %d", i, won.Choice, winner.status, loser.status)
		}
		loser.has("Your answer was not recorded.", standing)
		if n := w.events(d)[event.ApprovalDecided]; n != 1 {
			t.Fatalf("round %d: decided %d times", i, n)
		}
	}
}

// Nobody decides what they asked for themselves.
func TestOwnRequest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := w.park("refund", small)
	b := w.as(token.Reviewer, "bot")
	at := "/approvals/" + d.ID
	p := b.get(at).has("You asked for this yourself")
	if got := p.buttons(at); len(got) > 0 {
		t.Errorf("it offers %q", got)
	}
	b.post(at, with(p.form("/sign-out"), "answer", "approve", "digest", d.Digest)).want(403).has("may not decide it")
	if got := w.read(d.ID); got.Status != decision.Pending {
		t.Errorf("it is %s", got.Status)
	}
}

// The structural difference to what was approved last, and to no other.
func TestSinceTheLastYes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.as(token.Reviewer, "ana")
	first := w.park("refund", `{"order":"o-7","amount":5,"password":"s3cret-one"}`)
	people := decision.Operator{Store: w.st, Principal: "ben"}
	if err := people.ApproveShown(t.Context(), "", first.ID, first.Digest, "ben", ""); err != nil {
		t.Fatal(err)
	}
	second := w.park("refund", `{"amount":5.0,"order":"o-8","password":"s3cret-two"}`)
	p := b.get("/approvals/"+second.ID).has("Compared with", "by ben", "order changed o-7 o-8", "password changed hidden hidden").hasNot("amount changed", "s3cret")
	if strings.Contains(p.raw, "s3cret") {
		t.Error("a secret is in the page")
	}
	b.get("/approvals/" + first.ID).has("Nobody has approved a call of this tool before.")
}
