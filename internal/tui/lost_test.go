package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/txn"
)

const awayText = "it cannot be read, and is tried again"

// untilPassing waits for texts on the screen while what waits for a moment goes on.
func (p *person) untilPassing(texts ...string) {
	p.t.Helper()
	p.untilIs(fmt.Sprintf("%q", texts), func(screen string) bool {
		p.w.rest.pass(retryAfter)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) })
	})
}

// untilThere waits until nothing is said to be away.
func (p *person) untilThere() {
	p.t.Helper()
	p.untilIs("no "+awayText, func(screen string) bool {
		p.w.rest.pass(retryAfter)
		return !strings.Contains(screen, awayText)
	})
}

// tried waits until that many more readings failed.
func (w *world) tried(by *person, n int64) {
	for was := w.tries.Load(); w.tries.Load() < was+n; by.sync() {
		w.rest.pass(retryAfter)
	}
}

// What cannot be read for a while is read again: neither a queue nor an answer that is being
// given is lost, and what happened in between is told.
func TestAStoreThatIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	ana, bob, eve := w.at("ana", 80, 40), w.at("bob", 80, 40), w.at("eve", 80, 40)
	ana.until("1 waits")
	bob.open(id)
	bob.until("Approve this call?")
	bob.keys("a")
	bob.until("What will be recorded")
	w.blind.Store(true)
	w.refund() // happens behind everybody's back
	eve.open(id)
	ana.until(awayText)
	eve.until(awayText)
	eve.keys("r", "?", "esc")
	w.tried(ana, 10)
	bob.until("What will be recorded")
	w.blind.Store(false)
	_, err := w.operator("carl").Decide(t.Context(), id, decision.Answer{By: "carl"})
	w.check(err)
	ana.untilPassing("rejected by carl", "1 new, press r")
	bob.untilPassing("It was rejected by carl")
	eve.untilPassing("rejected")
}

// Once it can be read again that is no longer said, although nothing has happened; nor is it
// after a page that could not be read was left.
func TestAStoreThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	ana, bob := w.at("ana", 80, 40), w.at("bob", 80, 40)
	ana.until("1 waits")
	bob.until("1 waits")
	w.blind.Store(true)
	ana.keys("r")
	ana.until(awayText)
	bob.open(id)
	bob.until(awayText)
	bob.keys("esc")
	bob.until("Waiting for a person")
	w.blind.Store(false)
	ana.untilThere()
	bob.untilThere()
	ana.until("1 waits")
}

// A reading that failed and is to be made again does not come between an answer and what came
// of it.
func TestARefusalIsToldAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.refund().ApprovalID
	p := w.at("ana", 80, 40)
	p.open(id)
	p.until("Approve this call?")
	w.blind.Store(true)
	p.keys("r")
	p.until(awayText)
	w.blind.Store(false)
	p.keys("a")
	p.until("What will be recorded")
	p.settle()
	p.types("approve")
	p.until("> approve")
	w.gate.Store(&gate{came: make(chan struct{}), open: make(chan struct{})})
	g := w.gate.Load()
	_, err := w.operator("carl").Decide(t.Context(), id, decision.Answer{By: "carl"})
	w.check(err)
	p.keys("enter") // before the news of it
	p.without("Type the word")
	<-g.came
	w.rest.pass(retryAfter)
	p.sync()
	w.gate.Store(nil)
	close(g.open)
	p.untilPassing("before your answer", "It was rejected by carl")
}

// A store that cannot be read for long ends the inbox with the reason: by the time that this
// lasts, and not by how often somebody tries.
func TestAStoreThatStaysAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.at("ana", 80, 24)
	p.until("0 wait")
	w.blind.Store(true)
	for range 100 {
		p.keys("r")
		p.sync()
	}
	w.clock.Advance(longAway)
	w.tried(p, 20)
	w.blind.Store(false)
	p.untilThere()
	w.blind.Store(true)
	p.keys("r")
	p.until(awayText)
	w.clock.Advance(longAway + time.Second)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.tm.WaitFinished(t, teatest.WithFinalTimeout(time.Minute))
	}()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(time.Millisecond):
			w.rest.pass(retryAfter)
		}
	}
	if !errors.Is(p.app.err, txn.ErrBusy) {
		t.Errorf("it ended with %v", p.app.err)
	}
}

// A store that is lost ends the inbox with the reason, and nothing is decided.
func TestALostStore(t *testing.T) {
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
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	p.tm.WaitFinished(t, teatest.WithFinalTimeout(time.Minute))
	if p.err == nil || errors.Is(p.err, ErrSignal) || errors.Is(p.err, ErrGone) {
		t.Errorf("it ended with %v", p.err)
	}
	w.reopen()
	w.mustPend(id)
}
