package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/internal/daemontest"
)

const (
	pressed = 20 // rounds with the buttons of two open pages
	batches = 3  // of as many rounds with the forms of pages that were fetched
	batch   = 60
)

// Two people press at the same moment: one of them decides, and the other is told who was
// first, and with what.
func TestRace(t *testing.T) {
	t.Parallel()
	w := daemontest.Start(t, daemontest.Options{})
	a, b := visitor(t, w, "ana"), visitor(t, w, "ben")
	first := map[string]int{}
	rounds, many := pressed, batches
	if testing.Short() {
		rounds, many = 5, 1
	}
	for range rounds {
		r := w.Call("refund", large)
		a.Open(pageOf(w, r.ApprovalID))
		b.Open(pageOf(w, r.ApprovalID))
		both(a, b, ".approve", ".reject")
		first[winner(t, w, r, seenBy(a), seenBy(b))]++
	}
	for range many {
		var parked []httpapi.Result
		for range batch {
			parked = append(parked, w.Call("refund", large))
		}
		as, bs := raced(t, w, a, b, parked)
		for i, r := range parked {
			first[winner(t, w, r, as[i], bs[i])]++
		}
	}
	t.Logf("who was first: %v", first)
}

// both presses a button in each of two pages at one instant, and returns once what came of
// it is shown in both.
func both(a, b *browsertest.Page, left, right string) {
	at := browsertest.Eval[float64](b, "Date.now() + 60")
	for _, one := range []struct {
		p      *browsertest.Page
		button string
	}{{a, left}, {b, right}} {
		browsertest.Eval[bool](one.p, fmt.Sprintf("(setTimeout(() => document.querySelector(%q).click(), %f - Date.now()), true)", one.button, at))
	}
	for _, p := range []*browsertest.Page{a, b} {
		p.WaitUntil(`document.readyState === "complete" && document.querySelector(".approve") === null && document.querySelector(".pill") !== null`)
	}
}

// outcome is what one of two people saw.
type outcome struct {
	Won  bool
	Said string
}

func seenBy(p *browsertest.Page) outcome {
	if p.Count(".notice.refused") == 0 {
		return outcome{Won: true}
	}
	return outcome{Said: p.Text(".notice.refused")}
}

// winner looks whether exactly one of two has decided a call, and says who.
func winner(t *testing.T, w *daemontest.World, r httpapi.Result, ana, ben outcome) string {
	t.Helper()
	name, verb, loser := "ana", "approved", ben
	if ben.Won {
		name, verb, loser = "ben", "rejected", ana
	}
	if ana.Won == ben.Won {
		t.Fatalf("ana: %+v, ben: %+v", ana, ben)
	}
	if want := "It was " + verb + " by " + name + " on "; !strings.Contains(loser.Said, want) || !strings.Contains(loser.Said, "Your answer was not recorded.") {
		t.Errorf("the other was told %q", loser.Said)
	}
	es := decisions(t, w, r)
	if len(es) != 1 || es[0].Actor != name {
		t.Errorf("decisions: %v", es)
	}
	if o := approval(t, w, r.ApprovalID); o.DecidedBy != name {
		t.Errorf("it was decided by %s, and not by %s", o.DecidedBy, name)
	}
	return name
}

// race has a page fetch the pages of many approvals, and send the form of each at an
// instant of its own, with one of its buttons.
const race = `(async (paths, answer) => {
	const docs = await Promise.all(paths.map(async path => {
		const doc = new DOMParser().parseFromString(await (await fetch(path)).text(), "text/html");
		const fields = new URLSearchParams(new FormData(doc.querySelector("form.answers")));
		fields.set("answer", answer);
		return fields;
	}));
	window.ready = true;
	const first = await window.gate;
	return Promise.all(docs.map(async (fields, i) => {
		await new Promise(done => setTimeout(done, first + 12 * i - Date.now()));
		const got = await fetch(paths[i], {method: "POST", body: fields});
		const notice = new DOMParser().parseFromString(await got.text(), "text/html").querySelector(".notice.refused");
		return {Won: got.ok && got.redirected && notice === null, Said: notice ? notice.textContent : String(got.status)};
	}));
})`

// raced has two pages race for each of many approvals.
func raced(t *testing.T, w *daemontest.World, a, b *browsertest.Page, parked []httpapi.Result) (as, bs []outcome) {
	t.Helper()
	var paths []string
	for _, r := range parked {
		paths = append(paths, "/approvals/"+r.ApprovalID)
	}
	list, err := json.Marshal(paths)
	if err != nil {
		t.Fatal(err)
	}
	for p, answer := range map[*browsertest.Page]string{a: "approve", b: "reject"} {
		p.Open(w.URL + "/decided")
		browsertest.Eval[bool](p, "(window.gate = new Promise(open => window.open_ = open), true)")
		browsertest.Eval[bool](p, fmt.Sprintf("(window.raced = %s(%s, %q), true)", race, list, answer))
	}
	for _, p := range []*browsertest.Page{a, b} {
		p.WaitUntil("window.ready === true")
	}
	at := browsertest.Eval[float64](b, "Date.now() + 60")
	for _, p := range []*browsertest.Page{a, b} {
		browsertest.Eval[bool](p, fmt.Sprintf("(window.open_(%f), true)", at))
	}
	return browsertest.Eval[[]outcome](a, "window.raced"), browsertest.Eval[[]outcome](b, "window.raced")
}
