package delivery

import "time"

// LookEvery has the dispatcher look again only so often if nothing wakes it.
func (d *Dispatcher) LookEvery(every time.Duration) { d.again = every }

// LookEvery has the poll look again only so often if nothing wakes it.
func (p Polling) LookEvery(every time.Duration) Polling {
	p.again = every
	return p
}
