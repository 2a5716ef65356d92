package storetest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// failure tells every story once for each of its statements, breaking that one;
// again with its caller giving up there; and again with the answer to each
// commit lost. Now and then the store is opened anew.
func failure(t *testing.T, b Backend) {
	told, all := 0, stories()
	maps.Copy(all, jobStories())
	maps.Copy(all, deliveryStories())
	for name, tell := range all {
		var blows []Blow
		for _, blow := range b.failures() {
			if told++; thorough == 1 || told%5 == 0 {
				blows = append(blows, blow)
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, blow := range blows {
				name := blow.String()
				if blow == None {
					name = "cancel"
				}
				t.Run(name, func(t *testing.T) { t.Parallel(); everyStatement(t, b, tell, blow) })
			}
			t.Run("lost answers", func(t *testing.T) { t.Parallel(); everyAnswer(t, b, tell) })
		})
	}
	t.Run("batch", func(t *testing.T) { batchUnderFault(t, b) })
	t.Run("chaos", func(t *testing.T) { t.Parallel(); chaos(setup(t, b)) })
}

// failures are the ways in which any statement can fail, and None for a caller
// that gives up there; none at all where the backend cannot do that.
func (b Backend) failures() (blows []Blow) {
	for _, blow := range b.Blows {
		if blow != Lose {
			blows = append(blows, blow)
		}
	}
	if len(blows) > 0 {
		blows = append(blows, None)
	}
	return blows
}

// chaos has eight workers on two handles of which one statement in two hundred
// fails. What anybody was told is in the store, and all that must hold does.
func chaos(w *world) {
	blows := w.b.failures()
	w.skipWithout(len(blows) > 0, "blows")
	l := &ledgerOfTold{effects: map[string]int{}}
	say := func(words ...string) { l.add(w, words...) }
	strike := func(string) Blow {
		if rand.IntN(200) > 0 {
			return None
		}
		return blows[rand.IntN(len(blows))]
	}
	var shops [2]*shop
	for i := range shops {
		shops[i] = w.openShop(w.open(Options{Once: true, Before: strike}), nil)
		shops[i].ran.tell(func(c tool.Call) { say("effect", c.CallID, strconv.Itoa(c.Attempt)) })
	}
	together(8, func(i int) {
		for n := range rounds(100) {
			if err := shops[i%2].workOnce(8*n+i, say); err != nil && !errors.Is(err, txn.ErrNotCommitted) {
				w.Errorf("worker %d: %v", i, err)
			}
		}
	})
	l.check(w)
	CheckInvariants(w.T, w.s)
}

// everyStatement tells a story in peace, then with its first statement struck,
// with its second, and so on to the last. None stands for a caller that gives up.
// Every third statement is severed: it differs from failing within the store only.
func everyStatement(t *testing.T, b Backend, tell func(*play), blow Blow) {
	f := &faults{}
	h := newHouse(t, b, Options{Once: true, Before: f.before})
	h.tell(tell, f, blow)
	step := thorough
	if blow == Sever {
		step *= 3
	}
	for n, struck := 1, true; struck; n += step {
		f.arm(n, nil)
		if struck = h.tell(tell, f, blow); t.Failed() {
			t.Fatalf("with %s at statement %d", blow, n)
		}
		if told := n / step; told%40 == 39 || !struck {
			h.reopen()
		}
	}
}

// house is a store with two handles: one that may be struck, and a sound one.
type house struct {
	*world
	struck *store.Store
	how    Options // of the one that may be struck
	pos    int64   // of the last event of the stories told so far
}

func newHouse(t *testing.T, b Backend, how Options) *house {
	place := b.New(t)
	h := &house{world: at(t, b, place, place.Open(t, Options{Once: true})), how: how}
	h.struck = h.open(how)
	hears := relay("") // so that whatever a story tells is matched, and that can fail too
	hears.Events = []string{string(event.ApprovalRequested), string(event.DecisionRequested), string(event.CallFinished), string(event.RunFinished), string(event.JobStarted)}
	h.addTarget(hears)
	return h
}

// reopen opens the store anew: what was acknowledged is there, and all that must
// hold does.
func (h *house) reopen() {
	h.Helper()
	before := h.look()
	if err := h.struck.Close(); err != nil {
		h.Errorf("close: %v", err)
	}
	h.close()
	h.s = h.open(Options{Once: true})
	h.same(before, h.look())
	CheckInvariants(h.T, h.s)
	h.struck = h.open(h.how)
}

// tell tells a story and reports whether a statement of it was struck.
func (h *house) tell(story func(*play), f *faults, blow Blow) (struck bool) {
	h.Helper()
	p := h.play(h.struck, h.pos)
	p.mayFail = f.armed
	f.strikeWith(func() Blow {
		if blow == None {
			p.broken = true
			p.cancel()
		}
		return blow
	})
	story(p)
	p.endSlow()
	struck = f.disarm()
	h.pos = p.settled()
	return struck
}

// settled checks what the story left: tools ran as the ledger says, and all that
// must hold does. It returns the last pos.
func (p *play) settled() int64 {
	p.Helper()
	p.ledger()
	k := checker{image: p.lookBehind(p.start), t: p.T}
	k.all()
	if n := len(k.Events); n > 0 {
		return k.Events[n-1].Pos
	}
	return p.start
}

// ledger fails for an attempt that a tool ran twice, or without its start.
func (p *play) ledger() {
	for id, of := range p.ran.of {
		as := read(p.world, func(tx store.Tx) ([]call.Attempt, error) { return tx.Attempts(id) })
		for n, times := range of {
			if times != 1 || n > len(as) {
				p.Errorf("attempt %d at %s ran %d times; %d attempts are stored", n, id, times, len(as))
			}
		}
	}
}

// play makes engines over s that a story can be told with.
func (w *world) play(s *store.Store, start int64) *play {
	p := &play{s: s, start: start, cancel: func() {}, mayFail: func() bool { return true }}
	p.shop = w.openShop(s, func(c *call.Config) { c.ApprovalTTL, c.GrantTTL = time.Hour, 2*time.Hour })
	p.later = p.op
	p.later.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	p.endSlow = sync.OnceFunc(func() {
		close(p.slow)
		if err := p.Wait(p.ctx); err != nil {
			p.Errorf("wait for the late outcome: %v", err)
		}
	})
	return p
}

// executor is another process's engine over the same store and tools.
func (p *play) executor(change func(*call.Config)) *call.Executor {
	c := p.Config()
	change(&c)
	return call.NewExecutor(c)
}

// step does an operation of which no more than one transaction can fail: if its
// error says that nothing was committed, nothing was, and trying again works.
func (p *play) step(what string, do func(ctx context.Context) error) {
	p.Helper()
	if !p.mayFail() {
		p.again(what, do)
		return
	}
	before := p.lookBehind(p.start)
	if err := p.first(what, do); err != nil {
		p.same(before, p.lookBehind(p.start))
		p.again(what, do)
	}
}

// stepLoosely does an operation of several transactions: the earlier ones stay.
func (p *play) stepLoosely(what string, do func(ctx context.Context) error) {
	p.Helper()
	if err := p.first(what, do); err != nil {
		p.again(what, do)
	}
}

// stopped ends a story whose caller was told that nothing is known.
type stopped struct{}

func (p *play) first(what string, do func(ctx context.Context) error) error {
	p.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	p.cancel = cancel
	err := do(ctx)
	switch {
	case errors.Is(err, txn.ErrUnknown):
		panic(stopped{})
	case err != nil && !errors.Is(err, txn.ErrNotCommitted):
		p.Fatalf("%s: %v", what, err)
	}
	return err
}

func (p *play) again(what string, do func(ctx context.Context) error) {
	p.Helper()
	if err := do(p.ctx); err != nil {
		p.Fatalf("%s, with nothing in its way: %v", what, err)
	}
}

// everyAnswer tells a story with the answer to its first commit lost, to its
// second, and so on. Whoever is told so stops: nothing is started on it.
func everyAnswer(t *testing.T, b Backend, tell func(*play)) {
	for n := int64(1); ; n += thorough {
		h := newHouse(t, b, Options{Once: true}) // a story that is not told to its end leaves work for the next
		p := h.play(h.struck, 0)
		s := &forgetful{Store: h.struck}
		s.left.Store(n)
		p.s, p.op.Store, p.later.Store = s, s, s
		p.Executor = p.executor(func(c *call.Config) { c.Store, c.Approval = s, call.Deferred(s) })
		tellUntilStopped(p, tell)
		p.endSlow()
		p.settled()
		p.startedNothing()
		h.reopen()
		if t.Failed() {
			t.Fatalf("with the answer to commit %d lost", n)
		}
		if s.left.Load() > 0 {
			return
		}
	}
}

func tellUntilStopped(p *play, tell func(*play)) {
	defer func() {
		if v := recover(); v != nil && v != (stopped{}) {
			panic(v)
		}
	}()
	tell(p)
}

// startedNothing fails if a tool ran in an attempt that still looks running: its
// start was not acknowledged.
func (p *play) startedNothing() {
	for id, of := range p.ran.of {
		for n := range of {
			if a := p.world.attempt(id, int64(n)); a.Outcome == "" {
				p.Errorf("attempt %d at %s ran, although its start was not acknowledged", n, id)
			}
		}
	}
}

// forgetful commits, and once says that it does not know.
type forgetful struct {
	*store.Store
	left atomic.Int64
}

func (s *forgetful) Update(ctx context.Context, fn func(txn.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	if s.left.Add(-1) == 0 && err == nil {
		return txn.ErrUnknown
	}
	return err
}

// batchUnderFault strikes a statement while eight callers share commits: what
// each is told is what is stored.
func batchUnderFault(t *testing.T, b Backend) {
	for _, blow := range b.failures() {
		if blow == None {
			continue
		}
		t.Run(blow.String(), func(t *testing.T) {
			t.Parallel()
			place := b.New(t)
			w := at(t, b, place, place.Open(t, Options{Once: true}))
			for n := 1; n <= 100; n += thorough {
				w.strikeBatch(n, blow)
			}
			w.verify()
		})
	}
}

func (w *world) strikeBatch(n int, blow Blow) {
	const callers = 8
	f := &faults{}
	s := w.open(Options{Once: true, Before: f.before})
	f.arm(n, func() Blow { return blow })
	var cs [callers]call.Call
	var told [callers]error
	for i := range cs {
		cs[i] = parkedCall()
	}
	together(callers, func(i int) {
		told[i] = txn.Update(w.ctx, s, func(tx store.Tx) error { return park(tx, cs[i], pendingDecision(cs[i])) })
	})
	s.Close()
	for i, c := range cs {
		_, err := try(w, func(tx store.Tx) (call.Call, error) { return tx.Call(c.ID) })
		if there := err == nil; there != (told[i] == nil) || told[i] != nil && !errors.Is(told[i], txn.ErrNotCommitted) {
			w.Errorf("%s at statement %d: a caller was told %v, its call is there: %t", blow, n, told[i], there)
		}
	}
}
