//go:build race

package httpapi_test

// The race detector slows SQLite about eight times.
const raceFactor = 8
