package sqlite

import (
	"sync/atomic"
	"time"
)

// clock is the store's clock in one process: the wall clock in whole
// microseconds, but never earlier than what it gave or saw committed before.
type clock struct {
	wall func() time.Time // nil: time.Now
	last atomic.Int64
}

// read returns the store's time, in microseconds, and the process's own.
func (c *clock) read() (now int64, process time.Time) {
	process = time.Now()
	wall := process
	if c.wall != nil {
		wall = c.wall()
	}
	c.saw(wall.UnixMicro())
	return c.last.Load(), process
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
