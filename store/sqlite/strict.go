package sqlite

import (
	"bytes"
	"runtime"
	"sync"
)

// strict finds calls of Update and View inside a closure, in tests only: it
// knows a closure by its goroutine. In production such a call shows as a closure
// that holds the store, in the log.
type strict struct{ goroutines sync.Map }

func (s *strict) enter(h *Hooks) error {
	if !h.Strict {
		return nil
	}
	if _, ok := s.goroutines.Load(goroutine()); ok {
		return errNested
	}
	return nil
}

// inside marks this goroutine as being in a closure until the returned function is called.
func (s *strict) inside(h *Hooks) func() {
	if !h.Strict {
		return func() {}
	}
	id := goroutine()
	s.goroutines.Store(id, nil)
	return func() { s.goroutines.Delete(id) }
}

// goroutine is this goroutine's number, as a stack trace opens with it.
func goroutine() string {
	var buf [64]byte
	b := buf[:runtime.Stack(buf[:], false)]
	return string(bytes.Fields(b)[1])
}
