package postgres

import (
	"sync"
	"time"
)

// clock is the store's clock in one process: the database's, but never earlier than
// what was given or seen before. While the database's is behind that, as after a
// standby took over, it goes on at half speed until that one has caught up: were it to
// stand still, nothing would expire meanwhile.
type clock struct {
	own func() time.Time // stands for the database's in tests

	mu   sync.Mutex
	last int64
	from time.Time // when that was, by the process's own time
}

// saw takes note of a time that stands in the store.
func (c *clock) saw(t int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t > c.last {
		c.last, c.from = t, time.Now()
	}
}

// at is the time to go by where the database says now. Microseconds.
func (c *clock) at(now int64) int64 {
	if c.own != nil {
		now = c.own().UnixMicro()
	}
	process := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now < c.last {
		now = c.last + process.Sub(c.from).Microseconds()/2
	}
	if now > c.last {
		c.last, c.from = now, process
	}
	return now
}
