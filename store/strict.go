package store

import (
	"bytes"
	"runtime"
	"sync"
)

// Strict finds calls of Update and View inside a closure, in tests of backends only: it
// knows a closure by its goroutine. In production such a call shows as a closure
// that holds the store, in the log.
type Strict struct{ goroutines sync.Map }

// Enter is [ErrNested] inside a closure.
func (s *Strict) Enter() error {
	if _, ok := s.goroutines.Load(goroutine()); ok {
		return ErrNested
	}
	return nil
}

// Inside marks this goroutine as being in a closure until the returned function is called.
func (s *Strict) Inside() (leave func()) {
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
