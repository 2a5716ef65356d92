package sqlite

import (
	"sync/atomic"
	"time"
)

// clock is the store's clock in one process: the wall clock in whole
// microseconds, but never earlier than what it gave or saw committed before.
type clock struct {
	wall func() time.Time
	last atomic.Int64
}

// read returns the time, in microseconds.
func (c *clock) read() int64 {
	now := c.wall().UnixMicro()
	c.saw(now)
	return c.last.Load()
}

// saw takes note of a time that stands in the store.
func (c *clock) saw(t int64) {
	for {
		last := c.last.Load()
		if t <= last || c.last.CompareAndSwap(last, t) {
			return
		}
	}
}
