package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/txn"
)

// From the queue to the result: what is asked, what will be recorded, and what became of it.
func TestAYes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	p := w.at("ana", 80, 40)
	p.search(id)
	p.until("Approve this call?")
	p.keys("a")
	must2(t, "moment", p.until("One moment"))
	p.settle()
	must2(t, "word", p.until("Type the word approve"))
	p.keys("tab")
	p.types("looks right\nto me")
	must2(t, "note", p.until("│ to me"))
	p.keys("tab")
	p.types("approve")
	p.until("> approve")
	p.keys("enter")
	must2(t, "approved", p.until("Recorded", "placet resume "+id))
	d := w.decision(id)
	if d.Status != decision.Approved || d.DecidedBy != "ana" || d.DecidedPrincipal != "local:ana" || d.Note != "looks right\nto me" {
		t.Errorf("got %+v", d)
	}
	if _, err := w.ex.Resume(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	must2(t, "result", p.until("It ran, and succeeded", "Result"))
	p.keys("esc")
	must2(t, "marked", p.until("Waiting for a person", "approved by ana"))
}

func TestANo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("Approve this call?")
	p.confirms("x", "reject")
	must(t, p.until("Recorded", "It will not run."))
	if d := w.decision(id); d.Status != decision.Rejected || d.DecidedBy != "ana" {
		t.Errorf("got %+v", d)
	}
}

// Nothing but the word decides: no other key, no other word, no pasted text (135, 139).
func TestNothingButTheWordDecides(t *testing.T) {
	t.Parallel()
	paste := func(text string) func(*person) { return func(p *person) { p.tm.Send(tea.PasteMsg{Content: text}) } }
	keys := func(names ...string) func(*person) { return func(p *person) { p.keys(names...) } }
	types := func(text string) func(*person) { return func(p *person) { p.types(text) } }
	for name, do := range map[string]func(*person){
		"enter":               keys("enter"),
		"escape":              keys("esc"),
		"escape and the word": func(p *person) { p.keys("esc"); p.types("approve\n") },
		"delete and enter":    keys("delete", "enter"),
		"tab and enter":       keys("tab", "enter", "enter"),
		"y":                   types("y\nyes\n"),
		"another word":        types("reject\n"),
		"more than the word":  types("approved\n"),
		"less than the word":  types("approv\n"),
		"capitals":            types("Approve\n"),
		"a space":             types("approve \n"),
		"a wrong line first":  types("no\napprove\n"),
		"a pasted word":       paste("approve\n"),
		"pasted, then enter":  func(p *person) { paste("approve")(p); p.keys("enter") },
		"the word in a note":  func(p *person) { p.keys("tab"); p.types("approve\napprove\n") },
		"a pasted note": func(p *person) {
			p.keys("tab")
			paste("approve\n\napprove\x1b[31m\u202e")(p)
			p.keys("enter", "delete")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.refund().ApprovalID
			p := w.at("ana", 80, 40)
			p.open(id)
			p.until("Approve this call?")
			p.keys("a")
			p.until("What will be recorded")
			p.settle()
			do(p)
			p.sync()
			w.mustPend(id)
			if name == "a pasted note" {
				p.until("│ approve⏎", "[31m")
			}
		})
	}
}

// What was typed before the word is asked for answers nothing, and while somebody goes
// on typing it is not asked for at all (137).
func TestKeysTypedAheadAnswerNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("Approve this call?")
	p.types("aapprove\n")
	p.until("One moment")
	for range 100 {
		p.types("approve\n")
		p.w.rest.pass(look100)
		p.sync()
	}
	p.until("One moment")
	w.mustPend(id)
	p.settle()
	p.until("  >  ") // none of it stands there
	p.keys("enter")
	p.sync()
	w.mustPend(id)
}

// Somebody types without looking, 20 keys a second, while approvals come and go (137).
func TestTypingWithoutLookingDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var parked []string
	for range 5 {
		parked = append(parked, w.refund().ApprovalID)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("please approve the refund reject it yes no answer look at this a x e o t q r n p f F c / ? y j k")
	decided, shown := 0, 0
	for round := range 100 {
		c := w.config("ana")
		typist := newTypist(c)
		for range 40 {
			text := words[rnd.IntN(len(words))]
			if rnd.IntN(3) == 0 {
				text += "\n"
			} else if rnd.IntN(8) > 0 {
				text += " "
			}
			for _, r := range text {
				typist.key(string(r))
			}
			if rnd.IntN(20) == 0 {
				typist.key([]string{"esc", "tab", "delete", "backspace", "pgdown"}[rnd.IntN(5)])
			}
		}
		typist.stop()
		shown += typist.shown
		if typist.asked {
			t.Fatalf("round %d: the word was asked for while somebody was typing", round)
		}
		switch round % 3 {
		case 0:
			parked = append(parked, w.refund().ApprovalID)
		case 1:
			if _, err := w.operator("bob").Decide(t.Context(), parked[0], decision.Answer{By: "bob"}); err != nil {
				t.Fatal(err)
			}
			decided++
			parked = parked[1:]
		}
	}
	if shown < 20 {
		t.Errorf("only %d answers were begun: it tested nothing", shown)
	}
	for _, id := range parked {
		w.mustPend(id)
	}
	if n := w.settledBy("bob"); n != decided {
		t.Errorf("%d are settled, want the %d that bob rejected", n, decided)
	}
}

// settledBy counts what is settled, all of it by that one.
func (w *world) settledBy(name string) (n int) {
	w.t.Helper()
	err := txn.View(w.t.Context(), w.store, func(tx decision.Tx) error {
		ds, err := tx.SettledDecisions(decision.Settled{Space: w.config("").Space, Limit: 500})
		for _, d := range ds {
			if d.DecidedBy != name {
				w.t.Errorf("%s is %s by %q", d.ID, d.Status, d.DecidedBy)
			}
			n++
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// typist types at a program that is driven by hand: 50 ms pass between two keys, and what
// is waited for happens in between.
type typist struct {
	app    *app
	now    time.Duration
	due    []timer
	msgs   chan tea.Msg
	stop   context.CancelFunc
	shown  int  // how often an answer was begun
	asked  bool // a word was asked for
	before screen
}

type timer struct {
	at  time.Duration
	msg tea.Msg
}

func newTypist(c Config) *typist {
	ty := &typist{msgs: make(chan tea.Msg, 1000)}
	c.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
		ty.due = append(ty.due, timer{ty.now + d, msg})
		return nil
	}
	var ctx context.Context
	ctx, ty.stop = context.WithCancel(context.Background())
	ty.app = newApp(ctx, c)
	ty.do(ty.app.Init())
	return ty
}

// do carries out what the program asks for. Whoever leaves it stays here all the same.
func (ty *typist) do(cmd tea.Cmd) {
	if cmd != nil {
		go func() { ty.msgs <- cmd() }()
	}
}

func (ty *typist) take(msg tea.Msg) {
	if all, ok := msg.(tea.BatchMsg); ok {
		for _, c := range all {
			ty.do(c)
		}
		return
	}
	_, cmd := ty.app.Update(msg)
	ty.do(cmd)
}

// reads reports whether the screen that is seen is still being read.
func (ty *typist) reads() bool {
	switch s := ty.app.top().(type) {
	case *queue:
		return !s.loaded
	case *approval:
		return !s.loaded && s.note == nil
	}
	return false
}

func (ty *typist) key(name string) {
	ty.now += 50 * time.Millisecond
	due := ty.due
	ty.due = nil
	for _, tm := range due {
		if tm.at <= ty.now {
			ty.take(tm.msg)
		} else {
			ty.due = append(ty.due, tm)
		}
	}
	ty.take(keyOf(name))
	for more := true; more; {
		select {
		case msg := <-ty.msgs:
			ty.take(msg)
		default:
			if more = ty.reads(); more {
				ty.take(<-ty.msgs)
			}
		}
	}
	c, ok := ty.app.top().(*confirm)
	if ok && ty.before != ty.app.top() {
		ty.shown++
	}
	ty.before = ty.app.top()
	ty.asked = ty.asked || ok && c.lull.open
}

// Two people decide the same approvals at the same time: one of them wins, and the other
// is told who did and what.
func TestTwoReviewers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana, bob := w.at("ana", 80, 40), w.at("bob", 80, 40)
	won := map[string]int{}
	for round := range 200 {
		id := w.refund().ApprovalID
		words := map[*person]string{ana: "approve", bob: []string{"approve", "reject"}[round%2]}
		for p, word := range words {
			p.open(id)
			p.until("Approve this call?", "00"+id[len(id)-6:])
			p.keys(map[string]string{"approve": "a", "reject": "x"}[word])
			p.until("What will be recorded")
			p.settle()
			p.types(word)
			p.until("> " + word)
		}
		var both sync.WaitGroup
		barrier := make(chan struct{})
		for p := range words {
			both.Go(func() {
				<-barrier
				p.keys("enter")
			})
		}
		close(barrier)
		both.Wait()
		ana.without("What will be recorded")
		bob.without("What will be recorded")
		d := w.decision(id)
		won[d.DecidedBy]++
		verb := map[decision.Choice]string{decision.ChoiceApprove: "approved", decision.ChoiceReject: "rejected"}[d.Choice]
		winner, loser := ana, bob
		if d.DecidedBy == "bob" {
			winner, loser = bob, ana
		}
		winner.until("Recorded", verb+" by "+d.DecidedBy)
		loser.until("before your answer", "not recorded", fmt.Sprintf("It was %s by %s on", verb, d.DecidedBy))
		ana.rests()
		bob.rests()
		ana.keys("esc")
		bob.keys("esc")
	}
	if won["ana"]+won["bob"] != 200 {
		t.Errorf("won: %v", won)
	}
}

// What is decided, taken back or expires while somebody is about to answer closes the
// answer by itself, and says who and when (159).
func TestAnAnswerClosesByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*world, string)
		says    string
	}{
		"approved": {func(w *world, id string) {
			_, err := w.operator("bob").Decide(context.Background(), id, decision.Answer{Approved: true, By: "bob"})
			w.check(err)
		}, "It was approved by bob on 4 Mar 2026"},
		"rejected": {func(w *world, id string) {
			_, err := w.operator("bob").Decide(context.Background(), id, decision.Answer{By: "bob"})
			w.check(err)
		}, "It was rejected by bob on"},
		"taken back": {func(w *world, id string) {
			_, err := w.operator("bob").Withdraw(context.Background(), id, "agent-7", "")
			w.check(err)
		}, "It was taken back by agent-7."},
		"expired, as somebody noted": {func(w *world, id string) {
			w.clock.Advance(11 * time.Minute)
			_, err := w.operator("bob").Expire(context.Background(), id)
			w.check(err)
		}, "Its time was over at 4 Mar 2026"},
		"expired, and nobody noted it": {func(w *world, _ string) {
			w.clock.Advance(11 * time.Minute)
			w.rest.pass(time.Second)
		}, "It expired before your answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.refund().ApprovalID
			p := w.at("ana", 80, 40)
			p.open(id)
			p.until("Approve this call?")
			p.keys("a")
			p.until("What will be recorded")
			p.settle()
			p.types("approve")
			p.until("> approve")
			c.happens(w, id)
			p.until("before your answer", "was not recorded", c.says)
			p.keys("enter", "e", "q", "a", "enter") // whoever typed on for a moment does nothing else, either
			p.sync()
			p.until("before your answer")
			p.rests()
			p.keys("esc")
			p.until("Waiting for a person")
			if d := w.decision(id); d.DecidedBy == "ana" {
				t.Errorf("it is %s by ana", d.Status)
			}
		})
	}
}

// What was altered in the store since it was shown is refused, and the screen says so.
func TestWhatChangedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("Approve this call?")
	p.keys("a")
	p.until("What will be recorded")
	p.settle()
	w.alter(id, "kind", "harmless")
	p.types("approve")
	p.until("> approve")
	p.keys("enter")
	must(t, p.until("It changed since it was shown", "This record was altered"))
	p.keys("a")
	p.until("It cannot be approved.")
	w.mustPend(id)
}

// A call whose tool changed is asked about anew, and the screen leads there.
func TestWhatTookItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	if _, err := w.operator("bob").Decide(t.Context(), id, decision.Answer{Approved: true, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	w.useTools("Refunds an order twice.")
	_, _ = w.ex.Resume(t.Context(), id, nil)
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("Another approval took its place", "Press l")
	p.keys("l")
	p.until("Approve this call?", "The tool itself has changed", "instead of")
}

// A step of a run, what may have run already, and what a policy forbids to edit cannot be edited.
func TestWhatCannotBeEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ruling = func(request.Request) policy.Ruling {
		return policy.Ruling{Outcome: policy.RequireApproval, ForbidEdits: true}
	}
	fixed := w.refund().ApprovalID
	w.ruling = func(request.Request) policy.Ruling { return policy.Ruling{Outcome: policy.RequireApproval} }
	secret := w.park("refund", `{"order_id":"o-1","api_key":"sk-123"}`, call.As("x")).ApprovalID
	p := w.at("ana", 80, 40)
	p.open(fixed)
	p.until("Approve this call?")
	p.keys("e")
	p.until("Its arguments cannot be edited", "The policy does not allow it.")
	p.keys("esc")
	p.open(secret)
	p.until("hidden: a secret")
	p.keys("e")
	if s := p.until("cannot be edited here", "in plain text"); strings.Contains(s, "sk-123") {
		t.Error("the secret is shown")
	}
}

// An outcome that nobody knows is a question of its own: to run it again.
func TestRunItAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lose = true
	w.useTools("Refunds an order.")
	id := w.refund().ApprovalID
	if _, err := w.operator("bob").Decide(t.Context(), id, decision.Answer{Approved: true, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	res, err := w.ex.Resume(t.Context(), id, nil)
	if err != nil || res.Status != call.Unknown {
		t.Fatalf("%+v, %v", res, err)
	}
	p := w.at("ana", 80, 60)
	p.open(res.ApprovalID)
	must(t, p.until("Run it again?", "It may have run already", "Why a person is asked"))
	p.confirms("x", "reject")
	p.until("It will not be run again.")
}
