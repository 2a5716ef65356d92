package storetest

import (
	"strings"
	"sync"
)

// faults strikes one statement of a handle: it is the handle's Options.Before.
type faults struct {
	only func(statement string) bool // nil: any

	mu     sync.Mutex
	left   int // statements to go; 0: not armed
	strike func() Blow
	struck bool
}

func isCommit(statement string) bool {
	return strings.EqualFold(strings.TrimSpace(statement), "COMMIT")
}

// arm makes the n-th statement from now one that strike is called for.
func (f *faults) arm(n int, strike func() Blow) {
	f.strikeWith(strike)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.struck = n, false
}

func (f *faults) strikeWith(strike func() Blow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strike = strike
}

// disarm reports whether the statement came.
func (f *faults) disarm() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
	return f.struck
}

// armed reports whether the statement is still to come.
func (f *faults) armed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left > 0
}

func (f *faults) before(statement string) Blow {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 || f.only != nil && !f.only(statement) {
		return None
	}
	if f.left--; f.left > 0 {
		return None
	}
	f.struck = true
	return f.strike()
}
