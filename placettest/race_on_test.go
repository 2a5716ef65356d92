//go:build race

package placettest_test

// The race detector slows SQLite about eight times.
const raceFactor = 10
