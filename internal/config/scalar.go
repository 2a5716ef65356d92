package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// isPlain reports whether a scalar stands without quotes, so that it may be a number or a word.
func isPlain(n *node) bool { return n.Kind == yaml.ScalarNode && n.Style == 0 }

// text reads a text; what names it in messages. An absent one is "".
func (l *loader) text(n *node, what string) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode:
		l.refuse(n, "%s has to be a text", what)
		return ""
	case isPlain(n) && n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp":
		l.refuse(n, "%s has to be a text; write it in quotes: \"%s\"", what, n.Value)
		return ""
	}
	return n.Value
}

// raw reads a scalar as it is written: an expression or a program's argument.
func (l *loader) raw(n *node, what string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		l.refuse(n, "%s has to be a text", what)
		return ""
	}
	return n.Value
}

// flag reads true or false; an absent one is false.
func (l *loader) flag(n *node, what string) bool {
	if n == nil {
		return false
	}
	if !isPlain(n) || n.Value != "true" && n.Value != "false" {
		l.refuse(n, "%s has to be true or false", what)
		return false
	}
	return n.Value == "true"
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// count reads a whole number that is not negative; an absent one is 0.
func (l *loader) count(n *node, what string) int64 {
	if n == nil {
		return 0
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if !isPlain(n) || !wholeNumber.MatchString(n.Value) || err != nil {
		l.refuse(n, "%s has to be a whole number, 0 or more", what)
		return 0
	}
	return v
}

// word reads one of some words; an absent one is "".
func (l *loader) word(n *node, what string, words ...string) string {
	if n == nil {
		return ""
	}
	for _, w := range words {
		if n.Kind == yaml.ScalarNode && n.Value == w {
			return w
		}
	}
	found := ""
	if n.Kind == yaml.ScalarNode {
		found = quoted(n.Value) + " is not a value of "
	}
	l.refuse(n, "%s%s; write %s", found, what, listed(words))
	return ""
}

// argv reads a program and its arguments.
func (l *loader) argv(n *node, what string) ([]string, bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		l.refuse(n, "%s has to be a list of the program and its arguments: [./program.sh, argument]", what)
		return nil, false
	}
	before := l.refused
	argv := make([]string, len(n.Content))
	for i, item := range n.Content {
		argv[i] = l.raw(item, fmt.Sprintf("element %d of %s", i+1, what))
	}
	return argv, l.refused == before
}

// duration reads a time such as 30s, 15m, 24h or 1h30m, above 0 and in whole
// milliseconds; an absent one is 0.
func (l *loader) duration(n *node, what string) time.Duration {
	if n == nil {
		return 0
	}
	if n.Kind != yaml.ScalarNode {
		l.refuse(n, "%s has to be a time such as 30s, 15m or 24h", what)
		return 0
	}
	d, problem := parseDuration(n.Value)
	if problem != "" {
		l.refuse(n, "%s: %s", what, problem)
		return 0
	}
	return d
}

var (
	bareNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	longUnits  = regexp.MustCompile(`^([0-9]{1,5})\s*(d|day|days|w|week|weeks)$`)
)

func parseDuration(s string) (d time.Duration, problem string) {
	if bareNumber.MatchString(s) {
		return 0, fmt.Sprintf("%s has no unit; write %ss, %sm or %sh", quoted(s), s, s, s)
	}
	if m := longUnits.FindStringSubmatch(s); m != nil {
		hours, _ := strconv.Atoi(m[1])
		hours *= 24
		if strings.HasPrefix(m[2], "w") {
			hours *= 7
		}
		return 0, fmt.Sprintf("%s has a unit that is not known, since days are not all of one length; write %dh", quoted(s), hours)
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, quoted(s) + " is not a time; write one such as 30s, 15m, 24h or 1h30m"
	case d <= 0:
		return 0, "a time has to be above zero"
	case d%time.Millisecond != 0:
		return 0, "a time is in whole milliseconds; write one such as 500ms or 30s"
	}
	return d, ""
}
