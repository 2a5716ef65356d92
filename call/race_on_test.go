//go:build race

package call_test

// The race detector slows SQLite about eight times.
const raceFactor = 10
