package daemon

import (
	"log/slog"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
)

// unserved is the approved work that this daemon found and cannot carry out. Of each one
// its log says so once, when nobody else has for long.
type unserved struct {
	now func() time.Time
	log *slog.Logger

	mu   sync.Mutex
	work map[string]*waiting // by id
}

type waiting struct {
	since time.Time
	why   string
	seen  bool // in the present pass
	told  bool
}

func newUnserved(c Config) *unserved {
	return &unserved{now: c.Now, log: c.Log, work: map[string]*waiting{}}
}

// note is told of such work in each pass that finds it.
func (u *unserved) note(id, why, hint string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.work[id]
	if w == nil {
		w = &waiting{since: u.now()}
		u.work[id] = w
	}
	w.seen, w.why = true, why
	if !w.told && u.now().Sub(w.since) >= call.ServedWithin {
		w.told = true
		u.log.Warn("approved work waits: "+why, "id", id, "do", hint)
	}
}

// passed forgets what the pass did not find any more.
func (u *unserved) passed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, w := range u.work {
		if !w.seen {
			delete(u.work, id)
		}
		w.seen = false
	}
}

// why says why the work of that call or run waits, once it has for long; empty: it does not.
func (u *unserved) why(id string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w := u.work[id]; w != nil && w.told {
		return w.why
	}
	return ""
}

// count is how much has waited for long.
func (u *unserved) count() (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.work {
		if w.told {
			n++
		}
	}
	return n
}
