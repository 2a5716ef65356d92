package tool

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unknownName says that name is not registered and which of names was meant,
// perhaps. Names are compared byte by byte; that two look alike is only ever
// advice (case 102).
func unknownName(name string, names []string) error {
	err := ErrUnknown.Say("No tool named %s is registered here.", shown(name))
	if len(name) > maxName*4 {
		return err
	}
	var alike, folded, near []string
	want := skeleton(name)
	for _, n := range names {
		have := skeleton(n)
		switch {
		case strings.EqualFold(n, name):
			folded = append(folded, n)
		case have == want:
			alike = append(alike, n)
		case within(want, have, 2):
			near = append(near, n)
		}
	}
	switch {
	case len(folded) > 0:
		return err.Hint("Did you mean %s?", listed(folded))
	case len(alike) > 0:
		return err.Hint("%s looks the same but is spelled with other characters; write exactly that.", listed(alike))
	case len(near) > 0:
		return err.Hint("Did you mean %s?", listed(near))
	}
	return err
}

// listed is the first three of names, quoted.
func listed(names []string) string {
	const most = 3
	quoted := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, shown(n))
	}
	return strings.Join(quoted, " or ")
}

// lookalikes are letters of other scripts that are drawn like a Latin one.
var lookalikes = strings.NewReplacer(
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "i", "ј", "j", "ѕ", "s", "һ", "h", "ԁ", "d", // Cyrillic
	"α", "a", "ο", "o", "ν", "v", "ρ", "p", "ι", "i", "κ", "k", "τ", "t", "υ", "u", // Greek
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "−", "-", "⁄", "/", "∕", "/", "․", ".",
	"l", "1", "i", "1", "I", "1", "0", "o",
)

// skeleton is name without what the eye does not see: composition, accents, case,
// width, invisible characters and script.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		if unicode.Is(unicode.M, r) || unicode.Is(unicode.Cf, r) {
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return lookalikes.Replace(lookalikes.Replace(b.String()))
}

// within reports whether a becomes b by at most n insertions, removals and replacements of bytes.
func within(a, b string, n int) bool {
	if max(len(a), len(b)) <= n*2 {
		n = 1 // two changes turn any short name into any other
	}
	if d := len(a) - len(b); d > n || -d > n {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, best := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			best = min(best, cost)
		}
		if best > n {
			return false
		}
	}
	return row[len(b)] <= n
}
