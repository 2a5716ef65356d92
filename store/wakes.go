package store

import (
	"strings"
	"sync"

	"github.com/placet-dev/placet/delivery"
)

// Wakes are those who wait in this process for news of streams. The zero value is
// ready. A backend wakes them: at once for what this process commits, and as soon as it
// finds out for what others do.
type Wakes struct {
	mu    sync.Mutex
	all   map[chan struct{}]struct{}
	of    map[string]map[chan struct{}]struct{}
	count int
}

// Watch registers for news of the streams, of all if none is named. alone says that
// nobody else watched. stop may be called twice.
func (w *Wakes) Watch(streams []string) (woken <-chan struct{}, stop func(), alone bool) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(ch, streams)
	w.count++
	return ch, sync.OnceFunc(func() { w.remove(ch, streams) }), w.count == 1
}

func (w *Wakes) add(ch chan struct{}, streams []string) {
	if w.of == nil {
		w.all, w.of = map[chan struct{}]struct{}{}, map[string]map[chan struct{}]struct{}{}
	}
	if len(streams) == 0 {
		w.all[ch] = struct{}{}
	}
	for _, s := range streams {
		if w.of[s] == nil {
			w.of[s] = map[chan struct{}]struct{}{}
		}
		w.of[s][ch] = struct{}{}
	}
}

func (w *Wakes) remove(ch chan struct{}, streams []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, ch)
	for _, s := range streams {
		delete(w.of[s], ch)
		if len(w.of[s]) == 0 {
			delete(w.of, s)
		}
	}
	w.count--
}

// Busy reports whether anybody watches.
func (w *Wakes) Busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count > 0
}

// Wake wakes those who watch one of the streams, or all.
func (w *Wakes) Wake(streams ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range streams {
		w.wake(s)
	}
}

func (w *Wakes) wake(stream string) {
	for ch := range w.of[stream] {
		Hint(ch)
	}
	for ch := range w.all {
		Hint(ch)
	}
}

// WakeAll wakes everybody.
func (w *Wakes) WakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, set := range w.of {
		for ch := range set {
			Hint(ch)
		}
	}
	for ch := range w.all {
		Hint(ch)
	}
}

// WakeDeliveries wakes whoever waits for deliveries: others may have written some, or
// made some due.
func (w *Wakes) WakeDeliveries() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.of {
		if strings.HasPrefix(s, delivery.WakePushed) {
			w.wake(s)
		}
	}
}

// Hint never waits: one that is still unread says all there is to say.
func Hint(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
