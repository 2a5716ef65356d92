package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/placet-dev/placet/fault"
)

// ErrConfig: a configuration that cannot be used. Every error of this package matches it.
var ErrConfig = fault.Sentinel(fault.Invalid, "config", "The configuration cannot be used.")

const (
	maxProblems = 20  // told by one error
	maxKept     = 500 // of which those are chosen; a hostile file can have a million
)

// problem is one thing that is wrong.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"` // what is wrong and what to write
}

func (p problem) String() string {
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

func (l *loader) refuse(n *node, format string, args ...any) {
	l.refuseLine(n.Line, format, args...)
}

func (l *loader) refuseLine(line int, format string, args ...any) {
	l.refused++
	if len(l.problems) == maxKept {
		return
	}
	p := problem{l.file, max(line, 1), fmt.Sprintf(format, args...)}
	if !slices.Contains(l.problems, p) {
		l.problems = append(l.problems, p)
	}
}

// error is everything that was refused, in the order of the lines; nil if nothing was.
func (l *loader) error() error {
	if len(l.problems) == 0 {
		return nil
	}
	all := slices.SortedStableFunc(slices.Values(l.problems), func(a, b problem) int { return cmp.Compare(a.Line, b.Line) })
	told := all[:min(len(all), maxProblems)]
	lines := make([]string, len(told), len(told)+1)
	for i, p := range told {
		lines[i] = p.String()
	}
	more := len(all) - len(told)
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return ErrConfig.Say("%s", strings.Join(lines, "\n")).With(struct {
		Problems []problem `json:"problems"`
		More     int       `json:"more,omitempty"`
	}{told, more})
}

// sentence is another package's refusal, with what to do about it and without its cause.
func sentence(err error) string {
	f := fault.From(err)
	if f.Advice == "" {
		return f.Message
	}
	return f.Message + " " + f.Advice
}

// quoted is text of the file as a message may show it: on one line, visible, not long.
func quoted(s string) string {
	const longest = 64
	if len(s) <= longest {
		return strconv.Quote(s)
	}
	n := longest
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(s[:n]) + "…"
}
