package httpapi

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/placet-dev/placet/event"
)

// callWaits are the calls that somebody waits for. Thousands may wait for one of them:
// what its next event has done is read once for all.
type callWaits struct {
	mu sync.Mutex
	of map[string]*callWait
}

type callWait struct {
	users int // guarded by callWaits

	mu   sync.Mutex
	read *wholeCall // last; nil: not yet
}

func (w *callWaits) enter(id string) (one *callWait, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one = w.of[id]
	if one == nil {
		one = &callWait{}
		w.of[id] = one
	}
	one.users++
	return one, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(w.of, id)
		}
	}
}

// callEnded looks at the call again after each event of its stream until it has ended,
// or the time is over. Who lost the right to it meanwhile is told nothing.
func (s *Server) callEnded(ctx context.Context, c caller, k *wholeCall, until time.Time) (*wholeCall, error) {
	ctx, stop := s.waiting(ctx)
	defer stop()
	defer s.metrics.waits()()
	one, leave := s.callWaits.enter(k.ID)
	defer leave()
	for left := time.Until(until); left > 0 && !k.Status.Terminal(); left = time.Until(until) {
		seq, err := s.nextEvent(ctx, k.stream, k.at, left)
		if err != nil {
			return nil, because(ctx, err)
		}
		if k, err = s.callAfter(ctx, c, one, k.ID, seq); err != nil {
			return nil, because(ctx, err)
		}
	}
	return k, s.stillGood(ctx)
}

// callAfter is the call as it stood after the event of that number, or later.
func (s *Server) callAfter(ctx context.Context, c caller, one *callWait, id string, seq int64) (*wholeCall, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.read != nil && one.read.seq >= seq {
		return one.read, nil // that the caller sees the call was looked at before, and does not change
	}
	k, err := s.readCall(ctx, c, id)
	if err == nil {
		one.read = k
	}
	return k, err
}

// nextEvent waits for an event of a stream, for at most so long: then there is none,
// whose number is behind all others. Thousands of requests wait here at once: what is
// on their stacks is what they cost.
func (s *Server) nextEvent(ctx context.Context, stream string, after event.Cursor, atMost time.Duration) (seq int64, err error) {
	a := event.NewAnswer[event.Waited]()
	stop, err := event.Await(ctx, s.c.Store, event.Waiting{Stream: stream, After: after, Timeout: atMost}, a.Take)
	if err != nil {
		return 0, err
	}
	if _, gone := a.Listen(ctx, stop); gone {
		return 0, context.Cause(ctx)
	}
	if a.Got.Outcome == event.TimedOut {
		return math.MaxInt64, a.Err
	}
	return a.Got.Event.StreamSeq, a.Err
}
