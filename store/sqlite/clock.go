package sqlite

import (
	"sync"
	"time"

	"github.com/placet-dev/placet/txn"
)

// aheadLimit is by how much the store's time may be ahead of the wall clock. More
// is no difference between processes but a clock that was or is wrong.
const aheadLimit = time.Minute

// clock is the store's clock in one process: the wall clock in whole
// microseconds, but never earlier than what it gave or saw committed before. While
// the wall clock is behind that, it goes on at half speed until the wall clock has
// caught up: were it to stand still, nothing would expire meanwhile.
type clock struct {
	wall func() time.Time // nil: time.Now

	mu   sync.Mutex
	last int64     // the latest that was given or seen
	from time.Time // when that was, by the process's own time
}

// read returns the store's time, in microseconds, and the process's own.
func (c *clock) read() (now int64, process time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	process = time.Now()
	wall := c.wallNow(process)
	if c.last <= wall || tooFar(c.last-max(wall, process.UnixMicro())) { // so far ahead that it is never committed
		c.last, c.from = wall, process
		return wall, process
	}
	now = max(wall, c.last+process.Sub(c.from).Microseconds()/2)
	if now > c.last {
		c.last, c.from = now, process
	}
	return now, process
}

func (c *clock) wallNow(process time.Time) int64 {
	if c.wall != nil {
		return c.wall().UnixMicro()
	}
	return process.UnixMicro()
}

// saw takes note of a time that stands in the store.
func (c *clock) saw(t int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t > c.last {
		c.last, c.from = t, time.Now()
	}
}

func tooFar(micros int64) bool { return micros > aheadLimit.Microseconds() }

// mayFollow refuses a store whose last commit is in the future: its time would
// stand still until then, and nothing would expire.
func (c *clock) mayFollow(path string, lastAt int64) error {
	now := time.Now() // a test's clock may lie in the past, where db commands do not follow
	ahead := lastAt - max(c.wallNow(now), now.UnixMicro())
	if !tooFar(ahead) {
		return nil
	}
	return txn.ErrNotCommitted.Say("The last commit of %s is of %s, which is %s ahead of this computer's clock. Nothing was changed.",
		path, time.UnixMicro(lastAt).UTC().Format(time.RFC3339), (time.Duration(ahead) * time.Microsecond).Round(time.Second)).
		Hint("Set the clock right. If it is right now and was wrong then, run placet db accept-restore; what was approved before then needs a new yes.")
}
