//go:build race

package inbox_test

// rounds of a race between two reviewers, and how many values a large request has: fewer
// under the race detector, which is about ten times slower.
const (
	rounds = 20
	large  = 60_000
)
