package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// lull is the moment without keys that an answer waits for, so that none which was meant
// for something else gets there: it is not over until nobody has typed for a while, and for
// a longer one where somebody is found typing. All that is typed until then is dropped.
type lull struct {
	app   *app
	open  bool // it is over: keys count
	gen   int
	quiet int // looks that found nobody typing
	need  int
}

// How long the keyboard has to rest: as long as before a question on a command line.
const (
	look100    = 100 * time.Millisecond // of one look
	restAlways = 2                      // looks
	restTyping = 6
)

// lookMsg is one look at the keyboard.
type lookMsg struct {
	of  *lull
	gen int
}

// begin drops keys from now on, and begins to look.
func (l *lull) begin() tea.Cmd {
	l.open, l.quiet, l.need = false, 0, restAlways
	l.gen++
	return l.again()
}

func (l *lull) again() tea.Cmd { return l.app.After(look100, lookMsg{l, l.gen}) }

// dropped takes note of a key, and reports whether it is dropped.
func (l *lull) dropped() bool {
	if l.open {
		return false
	}
	l.quiet, l.need = 0, restTyping
	return true
}

func (l *lull) hear(msg tea.Msg) tea.Cmd {
	m, ok := msg.(lookMsg)
	if !ok || m.of != l || m.gen != l.gen || l.open {
		return nil
	}
	if l.quiet++; l.quiet > l.need { // the first look may come right behind a key
		l.open = true
		return nil
	}
	return l.again()
}
