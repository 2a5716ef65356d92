//go:build !race

package inbox_test

import "github.com/placet-dev/placet/tool"

// rounds of a race between two reviewers, and how many values a large request has.
const (
	rounds = 200
	large  = tool.MaxArgs/2 - 10
)
