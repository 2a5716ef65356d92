package delivery

import "time"

// LookEvery has the dispatcher look again only so often if nothing wakes it.
func (d *Dispatcher) LookEvery(every time.Duration) { d.again = every }
