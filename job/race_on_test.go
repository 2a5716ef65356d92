//go:build race

package job_test

// The race detector slows SQLite about eight times.
const raceFactor = 10
