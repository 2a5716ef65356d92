package config

import (
	"fmt"
	"strings"
)

// didYouMean names the word nearest to s, or all of them if none is near.
func didYouMean(s string, words []string) string {
	best, distance := "", 3
	for _, w := range words {
		// Of a short word more than one change leaves nothing.
		if d := changes(s, w); d < distance && d <= len(w)/2 {
			best, distance = w, d
		}
	}
	if best == "" {
		return "write " + listed(words)
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// listed is "a, b or c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// changes is how many letters must be added, taken, replaced or swapped to turn a into b.
func changes(a, b string) int {
	const far = 100
	if len(a) > far || len(b) > far {
		return far
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
