package delivery

import "time"

// lane is what a dispatcher knows of a target.
type lane struct {
	atWork  int
	failing bool
	ended   time.Time // the last attempt
}

// room is how many more attempts a target may get now, when taken are about to begin.
func (d *Dispatcher) room(targetID string, taken int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := lane{}
	if known := d.targets[targetID]; known != nil {
		l = *known
	}
	all := d.atWork + taken
	shared := max(0, min(d.PerTarget-l.atWork, d.AtOnce/2-all))
	switch {
	case all >= d.AtOnce, l.failing && l.atWork > 0:
		return 0
	case l.failing:
		return 1
	case l.atWork == 0:
		return max(1, shared)
	}
	return shared
}

func (d *Dispatcher) begin(targetID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.targets[targetID]
	if l == nil {
		l = &lane{}
		d.targets[targetID] = l
	}
	l.atWork++
	d.atWork++
}

func (d *Dispatcher) end(targetID string, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.targets[targetID]
	l.atWork--
	d.atWork--
	l.failing, l.ended = failed, time.Now()
	if l.atWork == 0 && !failed {
		delete(d.targets, targetID)
	}
}

// forget drops what is known of targets that nothing was sent to for so long.
func (d *Dispatcher) forget(unused time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range d.targets {
		if l.atWork == 0 && time.Since(l.ended) > unused {
			delete(d.targets, id)
		}
	}
}
