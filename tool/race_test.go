//go:build race

package tool

import "time"

// hostileLimit is longer under the race detector, which slows everything about ten times.
const hostileLimit = 60 * time.Second
