package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// scroll is where a screen stands in lines that may be more than fit.
type scroll struct {
	from         int
	lines, shown int // as they were drawn last
}

// window is the part of the lines that is seen. Where there is more, the last line says so.
func (s *scroll) window(lines []string, width, height int) []string {
	s.lines, s.shown = len(lines), height
	if len(lines) <= height {
		s.from = 0
		return lines
	}
	s.shown = max(1, height-1)
	s.from = max(0, min(s.from, len(lines)-s.shown))
	seen := append([]string(nil), lines[s.from:s.from+s.shown]...)
	more := fmt.Sprintf("  lines %d to %d of %d", s.from+1, s.from+s.shown, len(lines))
	if s.from+s.shown < len(lines) {
		more += ", more below ↓"
	}
	return append(seen, short(oneLook(more, quiet), width))
}

// scrolled moves for a key that scrolls, and reports whether it was one.
func (s *scroll) scrolled(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "up", "k":
		s.from--
	case "down", "j":
		s.from++
	case "pgup", "b":
		s.from -= s.shown
	case "pgdown", "space":
		s.from += s.shown
	case "home", "g":
		s.from = 0
	case "end", "G":
		s.from = s.lines
	default:
		return false
	}
	s.from = max(0, min(s.from, s.lines-s.shown))
	return true
}
