//go:build race

package event_test

// The race detector slows SQLite about eight times.
const raceFactor = 10
