//go:build !race

package tool

import "time"

const hostileLimit = 5 * time.Second
