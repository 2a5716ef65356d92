package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/txn"
)

// Limits of a dispatcher's work, unless its configuration says otherwise.
const (
	DefaultAtOnce    = 1024 // attempts under way
	DefaultPerTarget = 64   // of them to one target
	claimsAtOnce     = 64   // in one transaction, so that others can write soon
	settlesAtOnce    = 64   // in the same
	targetsAtOnce    = 64   // looked at in one
	lookAgain        = time.Second
	leaseSpare       = 5 * time.Second
)

// Dispatcher carries pushed deliveries to their targets. Any number of them, in any
// number of processes, share a store's work: a claim is made by one of them.
//
// A target whose last attempt failed gets one attempt at a time, and half of all
// attempts are kept for the first of each target: neither a slow target nor many of
// them hold up the others.
type Dispatcher struct {
	Store    txn.Store
	Channels Channels
	// Owner names this process to people.
	Owner string
	// AtOnce bounds the attempts under way, PerTarget those to one target. Defaults: the
	// constants'.
	AtOnce, PerTarget int
	// Drain bounds how long attempts may go on once [Dispatcher.Loop] is told to end.
	// What takes longer is cut off and tried again by the next process. Default: 5 s.
	Drain time.Duration
	// Observer hears of each event after its commit. Default: nobody.
	Observer event.Observer
	// Alive is called each time round. Default: nothing is.
	Alive func()
	// Log gets what nobody else is told. Default: slog.Default().
	Log *slog.Logger

	again time.Duration // how often to look if nothing happens

	mu      sync.Mutex
	atWork  int
	targets map[string]*lane
}

func (d *Dispatcher) defaults() {
	if d.AtOnce == 0 {
		d.AtOnce = DefaultAtOnce
	}
	if d.PerTarget == 0 {
		d.PerTarget = DefaultPerTarget
	}
	if d.Drain == 0 {
		d.Drain = 5 * time.Second
	}
	if d.again == 0 {
		d.again = lookAgain
	}
	if d.Alive == nil {
		d.Alive = func() {}
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	d.targets = map[string]*lane{}
}

// Loop delivers until ctx ends, and returns once the attempts under way have. It is
// called once.
func (d *Dispatcher) Loop(ctx context.Context) {
	d.defaults()
	woken, stop := d.Store.Watch(WakePushed)
	defer stop()
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	ended := make(chan sent, d.AtOnce)
	w := &work{d: d, ended: ended, bad: map[string]time.Time{}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-woken:
		case <-timer.C:
		case s := <-ended:
			w.took(s)
		}
		w.takeIn()
		more := w.pass(ctx, sending)
		d.Alive()
		if more {
			timer.Reset(0)
		} else {
			timer.Reset(w.rest())
		}
	}
	w.drain(cut)
}

// AtWork is how many attempts are under way.
func (d *Dispatcher) AtWork() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.atWork
}

// send makes one attempt. start is from before the claim.
func (d *Dispatcher) send(sending context.Context, c claimed, start time.Time) (s sent) {
	s = sent{d: c.d, t: c.t}
	ctx, stop := context.WithDeadline(sending, start.Add(c.t.Timeout))
	defer stop()
	if ctx.Err() != nil {
		s.out = Outcome{Result: NotSent, Message: "Writing the attempt down took as long as the attempt may."}
		return s
	}
	defer func() {
		if p := recover(); p != nil {
			d.Log.Error("a channel panicked", "type", c.t.Kind, "panic", p)
			s.out = Outcome{Result: Failed, Message: "Something failed inside Placet."}
		}
	}()
	s.out = d.Channels[c.t.Kind].Send(ctx, Message{
		DeliveryID: c.d.ID, Attempt: c.d.Fence, At: time.Now(), Target: c.t, Type: string(c.d.EventType), Body: c.d.Body(c.e),
	})
	s.out.Message = cut(s.out.Message, MaxMessage)
	s.unknown = sending.Err() != nil && s.out.Result == Failed
	return s
}
