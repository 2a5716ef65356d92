package placettest

import (
	"sync"
	"time"
)

// Start is where a [Clock] stands that nobody has set: noon of 1 January 2026. It
// lies in the past, so that a store written under a Clock can be opened without.
var Start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that moves only when it is told to. Its Now fits wherever
// Placet takes one: sqlite.Options.Now, call.Config.Now, decision.Operator.Now. Its
// zero value stands at [Start]. It is safe for concurrent use.
//
// Give it to the store at least: deadlines default to the store's clock, and
// leases use no other. A store's clock never goes back, so only one that is set
// forward has an effect there.
type Clock struct {
	mu    sync.Mutex
	moved time.Duration // since Start
}

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Start.Add(c.moved)
}

// Advance moves the clock by d and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
	return Start.Add(c.moved)
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = t.Sub(Start)
}
