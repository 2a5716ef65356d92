package view

import (
	"strings"
	"time"

	"github.com/placet-dev/placet/internal/display"
)

// tallText is up to how many bytes a value stands beside its name on a phone.
const tallText = 60

// first is the beginning of a text, as it is.
func first(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// oddity is a character by its name, with how often it is there.
func oddity(o display.Oddity) string {
	if o.Count == 1 {
		return o.Title
	}
	return o.Title + ", " + display.Count(o.Count) + " times"
}

func datetime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// uncapital is a sentence of ours as it goes on.
func uncapital(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// capital is a text of ours as a sentence begins.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
