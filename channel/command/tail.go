package command

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/placet-dev/placet/internal/display"
)

const maxTold = 400 // bytes of standard error that are told

// tail keeps the end of what is written to it.
type tail struct {
	mu      sync.Mutex
	data    []byte
	dropped bool
}

// Write never fails: a program is not disturbed by how much it says.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-maxTold):]...)
	if extra := len(t.data) - maxTold; extra > 0 || len(p) > maxTold {
		t.data, t.dropped = append(t.data[:0], t.data[max(0, extra):]...), true
	}
	return len(p), nil
}

// text is what was kept, fit to be shown.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.data
	for i := 0; t.dropped && i < utf8.UTFMax && len(data) > 0 && !utf8.RuneStart(data[0]); i++ {
		data = data[1:] // it began in the middle of a character
	}
	s := display.Line(strings.TrimSpace(string(data)))
	if t.dropped {
		return "…" + s
	}
	return s
}
