//go:build !race

package event_test

const raceFactor = 1
