package simulate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
)

// receiver takes deliveries, and refuses some.
type receiver struct {
	url string

	mu   sync.Mutex
	rnd  *rand.Rand
	came []arrival
	sick bool // refuses some
}

func newReceiver(t testing.TB, seed uint64) *receiver {
	r := &receiver{rnd: rand.New(rand.NewPCG(seed, 1)), sick: true}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// ServeHTTP notes what it answers with yes before it does: a lost answer is an arrival.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m struct {
		Data struct {
			DeliveryID string `json:"delivery_id"`
			TargetID   string `json:"target_id"`
			Stream     string `json:"stream"`
			StreamSeq  int64  `json:"stream_seq"`
		} `json:"data"`
	}
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil || m.Data.DeliveryID != req.Header.Get("Webhook-Id") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sick && r.rnd.IntN(10) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d := m.Data
	r.came = append(r.came, arrival{d.DeliveryID, d.TargetID, d.Stream, d.StreamSeq})
}

func (r *receiver) recover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sick = false
}

func (r *receiver) arrivals() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.came)
}

// follower reads all events from the beginning, through one daemon after the other, going
// on where it was.
type follower struct {
	name string

	mu     sync.Mutex
	seen   []sight
	cursor event.Cursor
	grew   chan struct{} // closed and made anew as it sees more
}

func newFollower(name string) *follower { return &follower{name: name, grew: make(chan struct{})} }

func (f *follower) take(e event.Object) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.cursor = append(f.seen, sight{e.Stream, e.StreamSeq, e.Hash}), e.Cursor
	close(f.grew)
	f.grew = make(chan struct{})
	return nil
}

func (f *follower) at() event.Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor
}

func (f *follower) sights() []sight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// follow goes on until ctx ends. It changes daemons every so often, as a client behind a
// load balancer would.
func (f *follower) follow(ctx context.Context, s *sim, rnd *rand.Rand) {
	for ctx.Err() == nil {
		turn, stop := within(ctx, time.Second+time.Duration(rnd.Int64N(int64(3*time.Second))))
		err := s.anywhere("ana", rnd).Follow(turn, "", f.at(), f.take)
		if ctx.Err() == nil && turn.Err() == nil {
			s.expect("follow all events", err)
			pause(ctx, rnd, 100*time.Millisecond)
		}
		stop()
	}
}

// reaches waits until it has seen so many events.
func (f *follower) reaches(ctx context.Context, n int) bool {
	for {
		f.mu.Lock()
		enough, grew := len(f.seen) >= n, f.grew
		f.mu.Unlock()
		if enough {
			return true
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return false
		}
	}
}

// pause waits for up to d, as clients and faults do that have a pace.
func pause(ctx context.Context, rnd *rand.Rand, d time.Duration) {
	after(ctx, time.Duration(rnd.Int64N(int64(d)))+time.Millisecond)
}

func after(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
