package delivery

import "time"

// LookEvery has the dispatcher look again only so often if nothing wakes it.
func (d *Dispatcher) LookEvery(every time.Duration) { d.again = every }

// Forget drops what is known of targets that nothing was sent to for so long, and
// returns of how many something is known still.
func (d *Dispatcher) Forget(unused time.Duration) int {
	d.forget(unused)
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.targets)
}
