//go:build race

package run_test

// The race detector slows SQLite about eight times.
const raceFactor = 10
