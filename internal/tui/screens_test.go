package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// must compares a screen with the one that is kept, ids and digests aside.
func must(t *testing.T, screen string) {
	t.Helper()
	golden.RequireEqual(t, steady(screen))
}

func TestNothingWaits(t *testing.T) {
	t.Parallel()
	must(t, newWorld(t).at("ana", 80, 24).until("Nothing waits"))
}

// mixed is a queue with one of each sort.
func mixed(t *testing.T) *world {
	w := newWorld(t)
	w.refund()
	w.ask(decision.Asking{Prompt: "Continue past epoch 40?", Options: []string{"yes", "no"}, Timeout: 5 * time.Minute, By: "ci"})
	w.park("wipe", `{"path":"/srv/data","why":"p\u0430y \u202e now"}`, call.As("a-principal-with-a-long-name"))
	w.ruling = func(request.Request) policy.Ruling { return policy.Ruling{Outcome: policy.RequireApproval} }
	w.park("refund", `{"order_id":"o-9","amount":1}`)
	return w
}

func TestTheQueue(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 30}, {40, 24}, {24, 10}, {19, 10}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			p := mixed(t).at("ana", size[0], size[1])
			if size[0] < leastWidth {
				must(t, p.until("Too small"))
				return
			}
			p.until("> ")
			p.keys("down")
			p.sync()
			must(t, p.until("> "))
		})
	}
}

// What is decided elsewhere is marked where it stands, what is asked is counted, and the
// row that keys act on stays the same until the queue is read anew.
func TestNewsMovesNoRow(t *testing.T) {
	t.Parallel()
	w := mixed(t)
	first := w.refund()
	p := w.at("ana", 80, 24)
	p.until("5 wait")
	p.keys("down")
	p.until("> in 10 min")
	for range 3 {
		w.ruling = func(request.Request) policy.Ruling {
			return policy.Ruling{Outcome: policy.RequireApproval, ApprovalTTL: time.Minute} // sooner than all others
		}
		w.refund()
	}
	if err := w.operator("bob").Approve(t.Context(), "", first.ApprovalID, "bob", ""); err != nil {
		t.Fatal(err)
	}
	must(t, p.until("3 new, press r", "approved by bob", "> in 10 min"))
	p.keys("r")
	p.without("new, press r")
	must2(t, "anew", p.until("in 1 min", "> in 10 min"))
}

func must2(t *testing.T, name, screen string) {
	t.Helper()
	t.Run(name, func(t *testing.T) { must(t, screen) })
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w := mixed(t)
	p := w.at("ana", 80, 24)
	p.until("4 wait")
	p.keys("f", "f")
	p.until("Only calls", "3 of 4")
	p.keys("f")
	p.until("Only questions", "Continue past", "1 of 4")
	p.keys("F")
	must2(t, "chooser", p.until("What to show", "wipe  (0)"))
	p.keys("up", "enter")
	p.until("4 wait")
	p.keys("F")
	for range 20 {
		p.keys("down")
	}
	p.keys("enter")
	p.until("Only asked before a week ago", "wait")
	p.keys("c")
	p.until("4 wait")
	p.keys("/")
	p.types("SRV/dat")
	p.until("Search: SRV/dat")
	p.keys("enter")
	must2(t, "search", p.until("Only with SRV/dat", "wipe"))
	p.keys("/")
	for range 7 {
		p.keys("backspace")
	}
	p.types("nowhere")
	p.keys("enter")
	must2(t, "nothing", p.until("Nothing of that sort waits"))
	p.keys("c")
	p.until("4 wait", "Continue past")
	p.keys("?")
	must2(t, "keys", p.until("Keys: Waiting for a person"))
	p.keys("esc")
	p.until("> in 5 min")
}

// A filter by tool and by kind comes from what waits.
func TestTheChooserNarrows(t *testing.T) {
	t.Parallel()
	p := mixed(t).at("ana", 80, 24)
	p.until("4 wait")
	p.keys("F")
	p.until("deletes or overwrites things  (1)")
	for !strings.Contains(p.until("What to show"), ">   wipe") {
		p.keys("down")
		p.sync()
	}
	p.keys("enter")
	p.until("Only tool wipe", "1 of 4", "> in 10 min")
}

// Each row is on exactly one page in both directions, also where many expire at one
// instant (157).
func TestPagesMissNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 120 {
		w.refund()
	}
	p := w.at("ana", 80, 70)
	read := func(key, wait string) (ids []string) {
		p.keys(key)
		p.until(wait)
		p.sync()
		done := make(chan struct{})
		p.tm.Send(func() {
			for _, r := range p.app.stack[0].(*queue).q.Rows {
				ids = append(ids, r.ID)
			}
			close(done)
		})
		<-done
		return ids
	}
	p.until("120 wait")
	var forth, back []string
	forth = append(forth, read("home", "n later")...)
	forth = append(forth, read("n", "p sooner")...)
	p.keys("n")
	p.without("n later")
	forth = append(forth, read("home", "p sooner")...)
	back = append(read("p", "n later"), read("home", "n later")...)
	seen := map[string]int{}
	for _, id := range forth {
		seen[id]++
	}
	if len(seen) != 120 || len(forth) != 120 {
		t.Errorf("forward: %d rows, %d of them different", len(forth), len(seen))
	}
	if len(back) != 100 || back[0] != forth[50] {
		t.Errorf("backward: %d rows from %s, want those from %s", len(back), back[0], forth[50])
	}
	p.keys("pgup", "p")
	p.without("p sooner")
	first := read("end", "n later")
	if len(first) != 50 || first[0] != forth[0] {
		t.Error("the first page is another one now")
	}
	p.keys("pgdown") // from the last row on to the page beside
	p.until("p sooner")
}

func TestAnApproval(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 40} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			world := newWorld(t)
			id := world.refund().ApprovalID
			p := world.at("ana", w, 90)
			p.open(id)
			must(t, p.until("History"))
		})
	}
}

// At 80 by 24 all of it can be reached, and the last line says what is hidden.
func TestAnApprovalScrolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.at("ana", 80, 24)
	p.open(w.refund().ApprovalID)
	p.until("Approve this call?", "lines 1 to 20 of", "more below")
	p.keys("pgdown", "end")
	must(t, p.until("Asked for, and put to a person", "lines"))
	p.keys("home")
	p.until("What will run")
	p.tm.Send(sizeOf(60, 16))
	must2(t, "smaller", p.until("lines 1 to 12 of"))
}

// long is a call whose arguments are longer than what is shown at first.
func long(w *world) string {
	text, _ := json.Marshal(strings.Repeat("All work and no play. ", 60) + "Then everything else.")
	return w.park("wipe", `{"path":"/srv","script":`+string(text)+`,"deep":{"list":[1,2.50,1e3,true,null,"",[],{},{"a name":"x","a\u202eb":"y"}]}}`).ApprovalID
}

// What is shown in part has to be opened before a yes; a no needs nothing.
func TestALongValueIsOpenedBeforeAYes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := long(w)
	p := w.at("ana", 80, 90)
	p.open(id)
	must2(t, "folded", p.until("not shown", "Asked for, and put to a person"))
	p.keys("a")
	p.until("Open it all first", "Press o")
	p.keys("o")
	must2(t, "opened", p.without("not shown"))
	p.keys("t")
	must2(t, "exact", p.until("the exact text"))
	p.keys("o", "x")
	p.until("Reject this?", "What will be recorded")
	p.keys("esc")
	p.keys("o", "a")
	p.until("Approve exactly this?")
	w.mustPend(id)
}

// What was approved of the same tool last is compared, value by value.
func TestSinceTheLastYes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.park("refund", `{"order_id":"o-1","amount":100,"lines":[{"sku":"a"},{"sku":"b"}],"note":"x"}`)
	if err := w.operator("bob").Approve(t.Context(), "", before.ApprovalID, "bob", ""); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Hour)
	w.useTools("Refunds an order, or several.")
	id := w.park("refund", `{"order_id":"o-1","amount":1000,"lines":[{"sku":"a"},{"sku":"c"}],"api_key":"sk-123"}`, call.WithMetadata(map[string]string{"ticket": "T-9", "digest": "sha256-placet1:fake"})).ApprovalID
	p := w.at("ana", 80, 90)
	p.open(id)
	screen := p.until("Since the last yes", "Asked for, and put to a person")
	if strings.Contains(screen, "sk-123") {
		t.Error("the secret is shown")
	}
	must(t, screen)
}

// sizeOf is what a terminal says when its window was resized.
func sizeOf(w, h int) tea.WindowSizeMsg { return tea.WindowSizeMsg{Width: w, Height: h} }
